//! The arguments of `longwire exec`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgGroup, Args};
use longwire_capture::open;
use longwire_engine::Nanos;
use longwire_testbed::{PEER_WAIT, PeerOutput};

use super::exec_hosts::HostArgs;
use crate::Error;
use crate::cli::{DUPLEX_HELP, LINK_HELP, LiveArgs};

const EXAMPLES: &str = "\
CMD runs in network namespace near, the command of --peer in far; only the link
connects them. Their addresses have the names near and far, and are in
$LONGWIRE_NEAR and $LONGWIRE_FAR. No root is needed where user namespaces are
allowed. Without CMD, the link is probed: round trips, one-way delay, throughput
and loss, next to their expected values.

A topology FILE.toml before the -- replaces the single link, which is named 'link'
(docs/topology.md). Each port becomes a host of the same name. If no ports are named
near and far, the first two take these names. A topology, --scenario and --time need
a CMD.

Only CMD writes to stdout. The report, also with --json, and the peer's output go
to stderr; --report FILE and --peer-output FILE write files. The exit code is that
of CMD.

Examples:
  longwire exec --delay 20ms --rate 10mbit
  longwire exec --delay 20ms -- ping -c 3 far
  longwire exec --rate 100mbit --loss 0.1% --peer 'iperf3 -s' -- iperf3 -c far
  longwire exec --peer 'iperf3 -s' -- iperf3 -J -c far | jq .end.sum_received
  longwire exec --up-rate 2mbit --down-rate 20mbit -- bash
  longwire exec --delay 20ms --control ./link.sock -- bash     then: longwire ctl
  longwire exec network.toml --scenario rush-hour.toml --time 1min -- ./client
  longwire exec lan.toml --node 'core=iperf3 -s' -- iperf3 -c core
  sudo longwire exec --delay 50ms --uplink -- curl https://example.org";

/// The arguments of `exec`.
#[derive(Debug, Args)]
#[command(after_help = format!("{LINK_HELP}\n{DUPLEX_HELP}\n\n{EXAMPLES}"))]
#[command(group(ArgGroup::new("hosts-with-commands").args(["peer", "node"]).multiple(true)))]
#[command(override_usage = "longwire exec [OPTIONS] [FILE.toml] [--] [CMD]...")]
pub struct ExecArgs {
    /// Command to run in near, with its arguments; without it, the link is probed. A
    /// leading FILE.toml is a topology in place of one link
    #[arg(value_name = "CMD", trailing_var_arg = true)]
    pub command: Vec<OsString>,

    /// Shell command to run in far; CMD starts once it listens
    #[command(flatten)]
    pub peer: PeerArgs,

    /// The hosts of a topology.
    #[command(flatten)]
    pub hosts: HostArgs,

    /// Connect far to this host's network, to reach outside servers over the link; needs
    /// root
    #[arg(long, help_heading = "Commands")]
    pub uplink: bool,

    /// Stop the command after this time, and end the run with its report
    #[arg(long, value_name = "TIME", help_heading = "Running")]
    #[arg(allow_hyphen_values = true)]
    pub time: Option<Nanos>,

    /// Kind of the emulator's ports
    #[arg(long, value_name = "KIND", help_heading = "Running")]
    #[arg(default_value = "auto")]
    #[arg(value_parser = ["auto", "packet", "xdp", "tap"])]
    pub port: String,

    /// Remove the carrier of the eth0 at the end of a direction that is off, like an
    /// unplugged cable
    #[arg(long, help_heading = "Running")]
    pub carrier: bool,

    /// The scenario, the link, recordings, clients and the report.
    #[command(flatten)]
    pub live: LiveArgs,
}

/// The command in far.
#[derive(Debug, Args)]
#[command(next_help_heading = "Commands")]
pub struct PeerArgs {
    /// A command for far, run by the shell; CMD waits until it listens
    #[arg(long, value_name = "CMD", requires = "command")]
    pub peer: Option<OsString>,

    /// Maximum time that CMD waits for commands of other hosts to listen
    #[arg(
        long,
        value_name = "TIME",
        requires = "hosts-with-commands",
        default_value_t = Nanos::from_nanos(PEER_WAIT.as_nanos() as u64),
        allow_hyphen_values = true
    )]
    pub peer_wait: Nanos,

    /// Write the peer's output to FILE; default: to stderr, each line after 'peer: '
    #[arg(long, value_name = "FILE", requires = "peer")]
    pub peer_output: Option<PathBuf>,
}

impl PeerArgs {
    /// Opens the peer's output.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn output(&self) -> Result<PeerOutput, Error> {
        let Some(path) = &self.peer_output else {
            return Ok(PeerOutput::Prefixed);
        };
        let file =
            open::to_write(path).map_err(Error::file(path, "cannot write the peer's output"))?;
        Ok(PeerOutput::File(file))
    }
}
