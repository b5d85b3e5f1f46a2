//! `longwire ctl`: reads and changes a running network through its control API.

mod change;
mod links;
mod place;
mod show;
mod watch;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use longwire_client::{Client, ClientError};
use longwire_control::{Address, read_token};
use longwire_engine::Nanos;
use longwire_node::names;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::node;
use crate::cli::{DUPLEX_HELP, DuplexArgs, LINK_HELP};
use crate::error::EXIT_USAGE;
use crate::report::output::print_json;
use crate::{Error, Globals};

pub(super) use change::{changes_of, duplex_table, option};
pub(crate) use links::link_and_direction;

const EXAMPLES: &str = "\
The run needs a control socket:
  longwire run network.toml --control /run/longwire/net.sock
Without --control, ctl uses $LONGWIRE_CONTROL, or else the only *.sock with a listening run
in $XDG_RUNTIME_DIR/longwire/ or /run/longwire/. If XDG_RUNTIME_DIR is unset,
/run/user/UID/longwire/ or /tmp/longwire-UID/ takes its place.

Examples:
  longwire ctl get                                    every link
  longwire ctl get 'adsl*' --json                     by name, as JSON
  longwire ctl set 'adsl*' rate=5mbit delay=20ms --in 2s
  longwire ctl set adsl7.down loss=1%                 one direction
  longwire ctl add new7 --match src=10.0.0.7 --rate 1mbit --template adsl
  longwire ctl remove 'adsl9*'
  longwire ctl off core                               drop its frames, until: ctl on core
  longwire ctl move terminal by-west --outage 50ms
  longwire ctl watch 'adsl*' --every 1s
  longwire ctl apply change.toml --check

Exit codes: 0 success, 1 failure such as no response, 2 usage error or refused change.";

/// Arguments of `ctl`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CtlArgs {
    /// The run.
    #[command(flatten)]
    pub run: RunAddress,

    /// Action
    #[command(subcommand)]
    pub action: Action,
}

/// Address of a run, and the file of its token.
#[derive(Clone, Debug, Args)]
pub struct RunAddress {
    /// The run's --control socket or address
    #[arg(long, global = true, value_name = "PATH|tcp:ADDR:PORT")]
    #[arg(help_heading = "Run")]
    pub control: Option<Address>,

    /// Control the links of this `longwire node` attachment; --control is then the node's socket,
    /// by default node.sock in the run directory
    #[arg(long, global = true, value_name = "NAME", help_heading = "Run")]
    pub attachment: Option<String>,

    /// File whose first line is the token, for runs that listen on TCP; default:
    /// $LONGWIRE_TOKEN_FILE
    #[arg(long, global = true, value_name = "FILE", help_heading = "Run")]
    pub token_file: Option<PathBuf>,
}

/// An action on a running network.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Show options, state and counters of links
    Get {
        /// Name of a link, or a pattern (* any text, ? one character); default: all links
        #[arg(value_name = "NAME")]
        name: Option<String>,
    },
    /// Set options of links
    Set(SetArgs),
    /// Add a link
    Add(Box<AddArgs>),
    /// Remove links or paths, and their rules
    Remove {
        /// Names or patterns of links and paths
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,

        /// Validate without applying
        #[arg(long)]
        check: bool,
    },
    /// Turn links on after off or pause
    On(NamesArgs),
    /// Turn links off: drop queued and arriving frames
    Off(NamesArgs),
    /// Pause links: hold arriving frames until `on`
    Pause(NamesArgs),
    /// Move the frames of a link or path to another
    Move(MoveArgs),
    /// Apply a change from a file, atomically
    Apply {
        /// Change in TOML or JSON; -: standard input
        #[arg(value_name = "FILE")]
        file: PathBuf,

        /// Validate without applying
        #[arg(long)]
        check: bool,
    },
    /// Print counters repeatedly
    Watch(WatchArgs),
    /// Print counters summed over links
    Stats {
        /// Name or pattern of links; default: all
        #[arg(value_name = "NAME")]
        name: Option<String>,
    },
    /// Show the state of the run
    Status,
    /// Show ports and their counters
    Ports,
    /// Show paths
    Paths,
    /// Show rules in order of evaluation: matchers with their links and paths
    Rules,
    /// Print the report so far
    Report,
    /// List past and scheduled changes
    Changes,
}

/// Time of a change, and whether it is only checked.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "When")]
pub struct WhenArgs {
    /// Apply at this time since the start of the run; default: now
    #[arg(long, value_name = "TIME", conflicts_with = "after")]
    pub at: Option<Nanos>,

    /// Apply after this time from now
    #[arg(long = "in", id = "after", value_name = "TIME")]
    pub after: Option<Nanos>,

    /// Validate without applying
    #[arg(long)]
    pub check: bool,
}

/// Arguments of `ctl set`.
#[derive(Debug, Args)]
pub struct SetArgs {
    /// Name or pattern of links; a suffix .up or .down selects one direction
    #[arg(value_name = "NAME")]
    pub name: String,

    /// Options, such as rate=5mbit; loss and rewrite are repeatable. An empty value, as in
    /// queue=, restores the default
    #[arg(value_name = "OPTION=VALUE", required = true, value_parser = change::option)]
    pub options: Vec<(String, String)>,

    /// Time of the change.
    #[command(flatten)]
    pub when: WhenArgs,
}

/// Arguments of `ctl add`.
#[derive(Debug, Args)]
#[command(after_help = format!("{LINK_HELP}\n\n{DUPLEX_HELP}"))]
pub struct AddArgs {
    /// Name of the new link
    #[arg(value_name = "NAME")]
    pub name: String,

    /// Matcher for direction up, such as src=10.0.0.7; direction down matches with source and
    /// destination swapped. Repeatable
    #[arg(long = "match", value_name = "FIELDS", required = true)]
    pub matches: Vec<String>,

    /// Matcher for direction down; default: --match with source and destination swapped
    #[arg(long, value_name = "FIELDS")]
    pub match_down: Vec<String>,

    /// Topology template that the options override
    #[arg(long, value_name = "NAME")]
    pub template: Option<String>,

    /// Let both directions share one queue and one rate
    #[arg(long)]
    pub shared: bool,

    /// The link's options.
    #[command(flatten)]
    pub link: DuplexArgs,

    /// Validate without applying
    #[arg(long)]
    pub check: bool,
}

/// Arguments of `ctl on`, `ctl off` and `ctl pause`.
#[derive(Debug, Args)]
pub struct NamesArgs {
    /// Names or patterns of links (* any text, ? one character); .up or .down selects one direction
    #[arg(value_name = "NAME", required = true)]
    pub names: Vec<String>,

    /// Time of the change.
    #[command(flatten)]
    pub when: WhenArgs,
}

/// Arguments of `ctl move`.
#[derive(Debug, Args)]
pub struct MoveArgs {
    /// Link or path whose matchers select the frames
    #[arg(value_name = "NAME")]
    pub class: String,

    /// Link or path that the frames take afterwards
    #[arg(value_name = "TO")]
    pub to: String,

    /// Drop the frames for this time during the move
    #[arg(long, value_name = "TIME")]
    pub outage: Option<Nanos>,

    /// Time of the change.
    #[command(flatten)]
    pub when: WhenArgs,
}

/// Arguments of `ctl watch`.
#[derive(Debug, Args)]
pub struct WatchArgs {
    /// Name or pattern of links; default: the sum over all links
    #[arg(value_name = "NAME")]
    pub name: Option<String>,

    /// Interval, 50ms to 1h
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub every: Nanos,

    /// Stop after N reports; default: run until interrupted
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    /// Print the sum over the links instead of each link
    #[arg(long)]
    pub sum: bool,
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
/// If no run is found, or its token cannot be read.
pub fn connect(args: &RunAddress) -> Result<Client, Error> {
    let address = match (&args.control, &args.attachment) {
        (None, Some(_)) => Address::Unix(node::socket().ok_or_else(node::missing)?),
        (given, _) => place::find(given.as_ref(), |name| std::env::var_os(name))?,
    };
    let named = std::env::var_os(place::TOKEN_FILE).filter(|named| !named.is_empty());
    let file = args.token_file.clone().or(named.map(PathBuf::from));
    let token = file.as_deref().map(read_token).transpose()?;
    if let (Address::Tcp(_), None) = (&address, &token) {
        return Err(Error::usage(format!(
            "{address}: TCP needs a token; name the file of the run's --control-token-file with \
             --token-file or in {}",
            place::TOKEN_FILE
        )));
    }
    let client = Client::new(address, token.as_deref())?;
    let Some(name) = &args.attachment else {
        return Ok(client);
    };
    names::check(name).map_err(Error::usage)?;
    Ok(client.of_attachment(name))
}

fn act(action: &Action, client: &mut Client, globals: &Globals) -> Result<(), Error> {
    match action {
        Action::Get { name } => links::get(name.as_deref(), client, globals),
        Action::Watch(args) => watch::run(args, client, globals),
        Action::Stats { name } => show::stats(name.as_deref(), client, globals),
        Action::Status => show::status(client, globals),
        Action::Ports => show::ports(client, globals),
        Action::Paths => show::paths(client, globals),
        Action::Rules => show::rules(client, globals),
        Action::Report => show::report(client, globals),
        Action::Changes => show::changes(client, globals),
        _ => change::make(action, client, globals),
    }
}

/// Parses a response; fails if this version does not support its format.
pub(crate) fn read<T: DeserializeOwned>(value: Value) -> Result<T, Error> {
    serde_json::from_value(value).map_err(|error| {
        Error::failed(format!(
            "unknown response format ({error}); the run may have another version; `ctl --json` \
             prints the response"
        ))
    })
}

/// Percent-encodes text for a URL path or query.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}
