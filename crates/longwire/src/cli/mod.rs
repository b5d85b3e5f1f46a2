//! The command line, defined once for parsing, help, shell completions and manual pages.

mod alter;
mod control;
mod doubts;
mod examples;
mod globals;
mod link;
mod netem;
mod pump;
mod running;
mod spelling;
mod traffic;

use std::ffi::OsString;

use clap::builder::Styles;
use clap::builder::styling::AnsiColor;
use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser};

use crate::commands::Command;

pub use alter::AlterArgs;
pub use control::{ControlArgs, MetricsLinks};
pub use globals::{Color, Globals, Paint};
pub use link::{DUPLEX_HELP, DuplexArgs, LINK_HELP};
pub use pump::{PumpArgs, StartAt};
pub use running::{
    LaunchBy, LiveArgs, RecordArgs, ReportArgs, RunningArgs, SEED_DEFAULT, SeedArgs, TimingArgs,
    Wait, is_page, refuse_page,
};
pub use traffic::{Inside, Order, TrafficArgs, rate_framing};

const LONG_ABOUT: &str = "\
A network link in software.

Longwire forwards Ethernet frames between two ports through an emulated link with a rate, \
queue, delay and loss, and reports the accuracy of every run.";

const AFTER_HELP: &str = "\
Examples:
  longwire exec --delay 20ms --rate 10mbit            probe a link; no root needed
  longwire exec --delay 20ms -- ping -c 3 far         run a program over a link
  longwire run packet:eth1 packet:eth2 --delay 20ms   connect two interfaces
  longwire simulate in.pcap out.pcap --rate 10mbit    process a capture in virtual time
  longwire plot run.parquet -o run.svg                plot the log of a run
  longwire ctl set 'adsl*' delay=50ms                 change a running network
  longwire models delay                               list delay models
  longwire doctor                                     check this machine

Exit codes: 0 success, 1 failure, 2 usage error, 3 a condition of --require was not met, \
4 `faithful` was required and the run is nearly faithful. `exec` returns its command's exit \
code unless that is 0.";

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "longwire",
    version,
    about = "Emulate network links, and report the accuracy of every run",
    long_about = LONG_ABOUT,
    after_help = AFTER_HELP,
    styles = STYLES,
    max_term_width = 100,
)]
pub struct Cli {
    /// Global options.
    #[command(flatten)]
    pub globals: Globals,
    /// The command to run.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Parses a command line that includes the program's name.
    ///
    /// # Errors
    /// clap's error, which prints itself: for an invalid command line, `--help` and `--version`.
    pub fn from_arguments(arguments: Vec<OsString>) -> Result<Cli, clap::Error> {
        let parsed = Cli::parse_words(&arguments);
        let end = match &parsed {
            // The word after `--view` is the first word of the parsed command.
            Ok(Cli {
                command: Command::Exec(args),
                ..
            }) => arguments.len() - args.command.len(),
            _ => arguments.len(),
        };
        if let Some(joined) = control::joined(&arguments, end) {
            return Cli::from_arguments(joined);
        }
        // Exclude the command and its options.
        let own = &arguments[..arguments.len().min(end + 1)];
        let mut cli = parsed.map_err(|error| spelling::explain(error, &arguments))?;
        if let Some(message) = spelling::netem_values(own) {
            return Err(spelling::refuse(ErrorKind::UnknownArgument, &message, own));
        }
        if let Command::Exec(args) = &cli.command
            && let Some(words) = args.options_first(&arguments)
        {
            cli = Cli::parse_words(&words)?;
        }
        if let Command::Exec(args) = &cli.command
            && let Some(message) = args.missing_command(&arguments)
        {
            let kind = ErrorKind::MissingRequiredArgument;
            return Err(spelling::refuse(kind, &message, own));
        }
        cli.globals.doubts = doubts::of_rates(&arguments[..arguments.len().min(end)]);
        Ok(cli)
    }

    fn parse_words(words: &[OsString]) -> Result<Cli, clap::Error> {
        let mut command = Cli::with_examples();
        let matches = command.try_get_matches_from_mut(words)?;
        Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
    }

    /// Returns the command line, with examples at the start of each long help.
    pub fn with_examples() -> clap::Command {
        examples::first(Cli::command())
    }
}

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());
