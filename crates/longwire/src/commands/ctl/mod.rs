//! `longwire ctl`: reads and changes a running network through its control API.

mod body;
mod change;
mod links;
mod place;
mod show;
mod stats;
mod watch;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use longwire_engine::Nanos;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::node;
use crate::cli::{DUPLEX_HELP, DuplexTexts, LINK_HELP};
use crate::error::EXIT_USAGE;
use crate::{Error, Globals};
use longwire_client::{Client, ClientError};
use longwire_control::{Address, read_token};
use longwire_node::names;

pub(super) use body::{option, table};

const EXAMPLES: &str = "\
Start a run with --control to control it:
  longwire run network.toml --control /run/longwire/net.sock
Without --control, ctl uses the address in LONGWIRE_CONTROL, else the only socket
(*.sock) at which a run listens in $XDG_RUNTIME_DIR/longwire/ or /run/longwire/;
without that variable, in /run/user/UID/longwire/ or /tmp/longwire-UID/.

Examples:
  longwire ctl get                                    every link
  longwire ctl get 'adsl*' --json                     those of a name, for programs
  longwire ctl set 'adsl*' rate=5mbit delay=20ms --in 2s
  longwire ctl set adsl7.down loss=1%                 one direction
  longwire ctl add new7 --match src=10.0.0.7 --rate 1mbit --template adsl
  longwire ctl remove 'adsl9*'
  longwire ctl off core                               drops its frames, until: ctl on core
  longwire ctl move terminal by-west --outage 50ms
  longwire ctl watch 'adsl*' --every 1s
  longwire ctl apply change.toml --check

Exit codes: 0 success, 1 failure (such as no response), 2 refused: nothing was changed.";

/// Arguments of `ctl`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CtlArgs {
    /// The run.
    #[command(flatten)]
    pub run: RunAddress,

    /// The action
    #[command(subcommand)]
    pub action: Action,
}

/// The address of a run.
#[derive(Clone, Debug, Args)]
pub struct RunAddress {
    /// The run: the socket or the address of its --control
    #[arg(
        long,
        global = true,
        value_name = "PATH|tcp:ADDR:PORT",
        help_heading = "Run"
    )]
    pub control: Option<Address>,

    /// The attachment of `longwire node` whose links are meant; --control is then the
    /// socket of the node, node.sock in the run directory without it
    #[arg(long, global = true, value_name = "NAME", help_heading = "Run")]
    pub attachment: Option<String>,

    /// The file whose first line is the token, for a run that listens on TCP;
    /// without it, the one that LONGWIRE_TOKEN_FILE names
    #[arg(long, global = true, value_name = "FILE", help_heading = "Run")]
    pub token_file: Option<PathBuf>,
}

/// An action on a running network.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Show links: their options, state and counters
    Get(GetArgs),
    /// Set options of links
    Set(SetArgs),
    /// Add a link
    Add(Box<AddArgs>),
    /// Remove links or paths; their frames find no rule from then on
    Remove(RemoveArgs),
    /// Turn links on again after off or pause
    On(NamesArgs),
    /// Turn links off: drop queued and arriving frames
    Off(NamesArgs),
    /// Pause links: hold arriving frames until `on`
    Pause(NamesArgs),
    /// Move the frames of a link or path to another
    Move(MoveArgs),
    /// Make a change that a file describes, as a whole
    Apply(ApplyArgs),
    /// Print counters repeatedly
    Watch(WatchArgs),
    /// Print the summed counters of links
    Stats(StatsArgs),
    /// Show the state of the run
    Status,
    /// Show ports and their counters
    Ports,
    /// Show paths of several links
    Paths,
    /// Show rules: matchers with their links and paths, in order of evaluation
    Rules,
    /// Print the report so far
    Report,
    /// List changes that were made
    Changes,
}

/// Arguments of `ctl get`.
#[derive(Debug, Args)]
pub struct GetArgs {
    /// The name of a link, or a pattern: * stands for anything, ? for a
    /// character; without it, all links
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
}

/// Time of a change, and whether it is only checked.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "When")]
pub struct WhenArgs {
    /// At this time since the start of the run; without it, now
    #[arg(long, value_name = "TIME", conflicts_with = "after")]
    pub at: Option<Nanos>,

    /// After this time from now
    #[arg(long = "in", id = "after", value_name = "TIME")]
    pub after: Option<Nanos>,

    /// Only report whether it could be done
    #[arg(long)]
    pub check: bool,
}

/// Arguments of `ctl set`.
#[derive(Debug, Args)]
pub struct SetArgs {
    /// The links: a name or a pattern, followed by .up or .down for one
    /// direction
    #[arg(value_name = "NAME")]
    pub name: String,

    /// Options, as in rate=5mbit; loss and rewrite may be repeated. Without a
    /// value, as in queue=, an option gets its default
    #[arg(value_name = "OPTION=VALUE", required = true, value_parser = body::option)]
    pub options: Vec<(String, String)>,

    /// Time of the change.
    #[command(flatten)]
    pub when: WhenArgs,
}

/// Arguments of `ctl add`.
#[derive(Debug, Args)]
#[command(after_help = format!("{LINK_HELP}\n\n{DUPLEX_HELP}"))]
pub struct AddArgs {
    /// Its name
    #[arg(value_name = "NAME")]
    pub name: String,

    /// The matcher of frames upwards, as in src=10.0.0.7; frames of the other
    /// direction have source and destination swapped. May be repeated
    #[arg(long = "match", value_name = "FIELDS", required = true)]
    pub matches: Vec<String>,

    /// The matcher of frames downwards, if it is not the reverse
    #[arg(long, value_name = "FIELDS")]
    pub match_down: Vec<String>,

    /// The template of the file under its options
    #[arg(long, value_name = "NAME")]
    pub template: Option<String>,

    /// Both directions share one queue and one rate
    #[arg(long)]
    pub shared: bool,

    /// The link's options.
    #[command(flatten)]
    pub link: DuplexTexts,

    /// Only report whether it could be done
    #[arg(long)]
    pub check: bool,
}

/// Arguments of `ctl remove`.
#[derive(Debug, Args)]
pub struct RemoveArgs {
    /// Names or patterns of links and paths
    #[arg(value_name = "NAME", required = true)]
    pub names: Vec<String>,

    /// Only report whether it could be done
    #[arg(long)]
    pub check: bool,
}

/// Arguments of actions on links by name.
#[derive(Debug, Args)]
pub struct NamesArgs {
    /// Names or patterns: * stands for anything, ? for a character
    #[arg(value_name = "NAME", required = true)]
    pub names: Vec<String>,

    /// Time of the change.
    #[command(flatten)]
    pub when: WhenArgs,
}

/// Arguments of `ctl move`.
#[derive(Debug, Args)]
pub struct MoveArgs {
    /// The link or path whose frames are moved
    #[arg(value_name = "CLASS")]
    pub class: String,

    /// The link or path that they cross from then on
    #[arg(value_name = "TO")]
    pub to: String,

    /// How long they are lost during the move
    #[arg(long, value_name = "TIME")]
    pub outage: Option<Nanos>,

    /// Time of the change.
    #[command(flatten)]
    pub when: WhenArgs,
}

/// Arguments of `ctl apply`.
#[derive(Debug, Args)]
pub struct ApplyArgs {
    /// The change, as TOML or JSON; - is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Only report whether it could be made
    #[arg(long)]
    pub check: bool,
}

/// Arguments of `ctl watch`.
#[derive(Debug, Args)]
pub struct WatchArgs {
    /// The links: a name or a pattern; without it, the sum of all
    #[arg(value_name = "NAME")]
    pub name: Option<String>,

    /// How often, 50ms to 1h
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub every: Nanos,

    /// Stop after this many reports; without it, when interrupted
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    /// The sum of the links instead of each
    #[arg(long)]
    pub sum: bool,
}

/// Arguments of `ctl stats`.
#[derive(Debug, Args)]
pub struct StatsArgs {
    /// The links: a name or a pattern; without it, all
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
}

/// Sends a request to a running network and prints the response.
///
/// # Errors
/// If no server answers, or the request is refused.
pub fn run(args: &CtlArgs, globals: &Globals) -> Result<ExitCode, Error> {
    let result = connect(&args.run).and_then(|mut client| act(&args.action, &mut client, globals));
    match result {
        Err(Error::Control(ClientError::Refused(refused))) if globals.json => {
            let error = ClientError::Refused(refused.clone());
            print_json(&refused)?;
            if error.is_usage() {
                Ok(ExitCode::from(EXIT_USAGE))
            } else {
                Err(Error::Control(error))
            }
        }
        result => result.map(|()| ExitCode::SUCCESS),
    }
}

/// Connects to a run.
///
/// # Errors
/// If there is none, or its token cannot be read.
pub fn connect(args: &RunAddress) -> Result<Client, Error> {
    let address = match (&args.control, &args.attachment) {
        (None, Some(_)) => Address::Unix(node::socket().ok_or_else(node::missing)?),
        (given, _) => place::find(given.as_ref(), |name| std::env::var_os(name))?,
    };
    let named = std::env::var_os(place::TOKEN_FILE).filter(|named| !named.is_empty());
    let file = args.token_file.clone().or(named.map(PathBuf::from));
    let token = file.as_deref().map(read_token).transpose()?;
    if let (Address::Tcp(_), None) = (&address, &token) {
        return Err(Error::Usage(format!(
            "{address}: TCP requires a token; give its file, the one of the run's \
             --control-token-file, with --token-file or in {}",
            place::TOKEN_FILE
        )));
    }
    let client = Client::new(address, token.as_deref())?;
    let Some(name) = &args.attachment else {
        return Ok(client);
    };
    names::check(name).map_err(Error::Usage)?;
    Ok(client.of_attachment(name))
}

fn act(action: &Action, client: &mut Client, globals: &Globals) -> Result<(), Error> {
    match action {
        Action::Get(args) => links::get(args, client, globals),
        Action::Watch(args) => watch::run(args, client, globals),
        Action::Stats(args) => show::stats(args, client, globals),
        Action::Status => show::status(client, globals),
        Action::Ports => show::ports(client, globals),
        Action::Paths => show::paths(client, globals),
        Action::Rules => show::rules(client, globals),
        Action::Report => show::report(client, globals),
        Action::Changes => show::changes(client, globals),
        _ => change::make(action, client, globals),
    }
}

/// Parses a response; fails if this version does not know its format.
fn read<T: DeserializeOwned>(value: Value) -> Result<T, Error> {
    serde_json::from_value(value).map_err(|error| {
        Error::Failed(format!(
            "the response of the run has an unknown format ({error}); is it of another version? \
             --json prints the response"
        ))
    })
}

/// Percent-encodes text for a path or query.
fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// Prints a value in the format of `--json`.
fn print_json(value: &impl Serialize) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, value).map_err(io::Error::from)?;
    io::Write::write_all(&mut out, b"\n")?;
    Ok(())
}
