//! `longwire run`: runs a link between two ports, or a network, until stopped.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use longwire_engine::{BitRate, Nanos};
use longwire_io::port::registry;
use longwire_node::process;
use longwire_topology::PairOptions;

use super::run_network;
use super::topologies::{self, ReadTopology};
use crate::cli::{DUPLEX_HELP, LINK_HELP, LiveArgs};
use crate::{Error, Globals};

const EXAMPLES: &str = "\
Ctrl-C stops the run and prints the report. Direction up is from A to B; --ab-X
and --ba-X are aliases of --up-X and --down-X.

Examples:
  longwire run packet:eth1 packet:eth2 --delay 20ms --rate 100mbit
  longwire run xdp:eth1 xdp:eth2 --ab-rate 10mbit --ba-rate 50mbit --loss 0.1%
  longwire run network.toml
  longwire run network.toml --control /run/longwire/a.sock     then: longwire ctl
  longwire run network.toml --host west     this machine's part of the network
  longwire run network.toml --scenario rush-hour.toml --capture run --log run.csv
  longwire run packet:eth1 packet:eth2 --rate 20mbit --scenario rush-hour.toml
  longwire run packet:eth1 packet:eth2 --delay 5ms --time 1min \\
      --require 'lateness.p99<50us,nearly-faithful,packets_in>0' --json";

/// Arguments of `run`.
#[derive(Debug, Args)]
#[command(after_help = after_help())]
pub struct RunArgs {
    /// Port at one end of the link; or a topology FILE.toml, without B and link options
    /// (docs/topology.md)
    #[arg(value_name = "A")]
    pub a: String,

    /// Port at the other end
    #[arg(value_name = "B")]
    pub b: Option<String>,

    /// Run this host's part of a topology with several hosts (docs/hosts.md)
    #[arg(long, value_name = "NAME", help_heading = "Running")]
    pub host: Option<String>,

    /// File with the key shared by the hosts; overrides the topology
    #[arg(long, value_name = "FILE", requires = "host", help_heading = "Running")]
    pub key: Option<PathBuf>,

    /// Forward frames from A to B only
    #[arg(long, help_heading = "Running")]
    pub one_way: bool,

    /// Stop after this time; default: run until interrupted
    #[arg(long, value_name = "TIME", help_heading = "Running")]
    #[arg(allow_hyphen_values = true)]
    pub time: Option<Nanos>,

    /// Fill gaps with frames that the next device discards, for byte-accurate spacing; RATE is the
    /// wire rate, such as 10gbit
    #[arg(long, value_name = "RATE", help_heading = "Running")]
    #[arg(allow_hyphen_values = true)]
    pub gap_frames: Option<BitRate>,

    /// Take down the carrier of the receiving port while a direction is off; tap:NAME ports only
    #[arg(long, help_heading = "Running")]
    pub carrier: bool,

    /// The scenario, the link, recordings, clients and the report.
    #[command(flatten)]
    pub live: LiveArgs,
}

/// Returns the help on ports and units, with examples.
fn after_help() -> String {
    format!("{}\n{LINK_HELP}\n{DUPLEX_HELP}\n\n{EXAMPLES}", ports_help())
}

pub(super) fn ports_help() -> String {
    let ports = registry::PORTS.iter();
    let width = ports.clone().map(|port| port.written().len()).max();
    let width = width.unwrap_or(0);
    let ports = ports.map(|port| format!("  {:width$}  {}\n", port.written(), port.summary));
    format!("Ports:\n{}", ports.collect::<String>())
}

/// Runs a link or a network until it is interrupted or its time is over.
///
/// # Errors
/// If the topology is invalid, a port cannot be opened, or the run cannot be started.
pub fn run(args: &RunArgs, globals: &Globals) -> Result<ExitCode, Error> {
    if process::follow_parent() {
        return Err(Error::failed("the node that started this run has exited"));
    }
    let ports = [Some(args.a.as_str()), args.b.as_deref()];
    let network = Some(args.a.as_str()).filter(|_| args.b.is_none());
    let files = ports.into_iter().flatten().flat_map(registry::files);
    args.live.check_report(files.chain(network))?;
    run_network::run(topology(args, globals)?, args, globals)
}

/// Returns the topology from the file, or a single link between the ports.
pub(super) fn topology(args: &RunArgs, globals: &Globals) -> Result<ReadTopology, Error> {
    let usage = |message: String| Err(Error::usage(message));
    let scenario = args.live.scenario.as_deref();
    match &args.b {
        Some(_) if args.host.is_some() => usage("--host needs a topology file".to_owned()),
        Some(b) => {
            let ports = [("a", args.a.as_str()), ("b", b)];
            let options = PairOptions {
                one_way: args.one_way,
                carrier: args.carrier,
            };
            topologies::pair(ports, &args.live.link, options, scenario, globals)
        }
        None if !args.a.ends_with(".toml") => usage(format!(
            "missing port B after '{}'; a topology file must end in .toml",
            args.a
        )),
        None if args.one_way => usage(
            "--one-way does not apply to topologies, whose matchers select directions".to_owned(),
        ),
        None => {
            topologies::refuse_options_of_one_link(&args.live.link, args.carrier)?;
            topologies::read(Path::new(&args.a), scenario, globals)
        }
    }
}
