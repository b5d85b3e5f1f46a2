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
Two networks, near and far, are joined by the link and by nothing else. CMD
runs in near, the command of --peer in far; both find the other by the names
near and far, and in $LONGWIRE_NEAR and $LONGWIRE_FAR. No root is needed
where user namespaces are allowed. Without CMD, the link is probed: round
trips, one-way delay, throughput and loss, with their expected values.

With a file that ends in .toml before the --, the link is the network that the
file describes (docs/topology.md), with a host at each port: near and far, or
the first is near and the second far; others have the names of their ports. Like
--scenario and --time, it needs a CMD. The link without a file has the name
'link'.

stdout is the command's alone. The report goes to stderr, also with --json, and
to a file with --report FILE. Lines of the peer go to stderr after 'peer: ', or
to a file with --peer-output FILE. The exit code is that of CMD.

Examples:
  longwire exec --delay 20ms --rate 10mbit
  longwire exec --delay 20ms -- ping -c 3 far
  longwire exec --rate 100mbit --loss 0.1% --peer 'iperf3 -s' -- iperf3 -c far
  longwire exec --peer 'iperf3 -s' -- iperf3 -J -c far | jq .end.sum_received
  longwire exec --up-rate 2mbit --down-rate 20mbit -- bash
  longwire exec --delay 20ms --control ./link.sock -- bash     in it: longwire ctl
  longwire exec network.toml --scenario rush-hour.toml --time 1min -- ./client
  longwire exec lan.toml --node 'core=iperf3 -s' -- iperf3 -c core
  sudo longwire exec --delay 50ms --uplink -- curl https://example.org";

/// The arguments of `exec`.
#[derive(Debug, Args)]
#[command(after_help = format!("{LINK_HELP}\n{DUPLEX_HELP}\n\n{EXAMPLES}"))]
#[command(group(ArgGroup::new("hosts-with-commands").args(["peer", "node"]).multiple(true)))]
#[command(override_usage = "longwire exec [OPTIONS] [FILE.toml] [--] [CMD]...")]
pub struct ExecArgs {
    /// The command to run in near, with its arguments; without it, the link
    /// is probed. A first word FILE.toml is a network in place of one link
    #[arg(value_name = "CMD", trailing_var_arg = true)]
    pub command: Vec<OsString>,

    /// The peer's command.
    #[command(flatten)]
    pub peer: PeerArgs,

    /// The hosts of a topology.
    #[command(flatten)]
    pub hosts: HostArgs,

    /// As root: connect far to this host's network, to reach outside servers
    /// through the link
    #[arg(long, help_heading = "Commands")]
    pub uplink: bool,

    /// Stop the command after this time, and end the run with its report
    #[arg(long, value_name = "TIME", help_heading = "Running")]
    #[arg(allow_hyphen_values = true)]
    pub time: Option<Nanos>,

    /// The kind of port that the emulator opens its devices with
    #[arg(long, value_name = "KIND", help_heading = "Running")]
    #[arg(default_value = "auto")]
    #[arg(value_parser = ["auto", "packet", "xdp", "tap"])]
    pub port: String,

    /// While a direction of the link is off, remove the carrier of the eth0 at its
    /// end, like an unplugged cable
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

    /// How long CMD waits for the commands of other hosts to listen
    #[arg(
        long,
        value_name = "TIME",
        requires = "hosts-with-commands",
        default_value_t = Nanos::from_nanos(PEER_WAIT.as_nanos() as u64),
        allow_hyphen_values = true
    )]
    pub peer_wait: Nanos,

    /// Write the peer's output to this file; without it, its lines go to
    /// stderr after 'peer: '
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
