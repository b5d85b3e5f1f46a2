//! `longwire run`: runs a link between two ports, until stopped.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use longwire_engine::{BitRate, Nanos};
use longwire_io::port::options::{OpenOptions, Purpose};
use longwire_io::port::registry::{self, Port};
use longwire_node::parent;
use longwire_runtime::{DIRECTIONS, LinkSetup, NetworkPlan, network};

use super::{run_network, run_pair};
use crate::cli::ControlArgs;
use crate::cli::{
    DUPLEX_HELP, DuplexArgs, LINK_HELP, RecordArgs, ReportArgs, RunningArgs, SeedArgs,
};
use crate::report::finish::{ReportStream, check_file, finish};
use crate::report::start::{self, Announcement};
use crate::signals::stop_flag;
use crate::watch::watch_live;
use crate::{Error, Globals, rights};

const EXAMPLES: &str = "\
Ctrl-C ends the run with its report. link.up is the direction from A to B; --ab-X
and --ba-X are other names for --up-X and --down-X.

Examples:
  longwire run packet:eth1 packet:eth2 --delay 20ms --rate 100mbit
  longwire run xdp:eth1 xdp:eth2 --ab-rate 10mbit --ba-rate 50mbit --loss 0.1%
  longwire run network.toml                 many links, from a file
  longwire run network.toml --control /run/longwire/a.sock     and `longwire ctl`
  longwire run network.toml --host west     this machine's part of a network
  longwire run network.toml --scenario rush-hour.toml --capture run --log run.csv
  longwire run packet:eth1 packet:eth2 --delay 5ms --time 1min \\
      --require 'lateness.p99<50us,nearly-faithful,packets_in>0' --json";

/// Arguments of `run`.
#[derive(Debug, Args)]
#[command(after_help = after_help())]
pub struct RunArgs {
    /// The port at one end of the link, or a file that describes a network of
    /// many links (docs/topology.md): then there is no B, and no link options
    #[arg(value_name = "A")]
    pub a: String,

    /// The port at the other end
    #[arg(value_name = "B")]
    pub b: Option<String>,

    /// The scenario of a network, in place of its file's own: a TOML file of
    /// `[[at]]` tables
    #[arg(long, value_name = "FILE", help_heading = "Running")]
    pub scenario: Option<PathBuf>,

    /// The host that this machine is, of a network that its file divides among
    /// several (docs/hosts.md)
    #[arg(long, value_name = "NAME", help_heading = "Running")]
    pub host: Option<String>,

    /// The file with the key that the hosts share, in place of that of the network's file
    #[arg(long, value_name = "FILE", requires = "host", help_heading = "Running")]
    pub key: Option<PathBuf>,

    /// The link.
    #[command(flatten)]
    pub link: DuplexArgs,

    /// The seed.
    #[command(flatten)]
    pub seed: SeedArgs,

    /// Carry frames from A to B only
    #[arg(long, help_heading = "Running")]
    pub one_way: bool,

    /// Stop after this time; without it, when interrupted
    #[arg(long, value_name = "TIME", help_heading = "Running")]
    #[arg(allow_hyphen_values = true)]
    pub time: Option<Nanos>,

    /// Fill the wires at the ports with frames that the next device discards,
    /// so that frames are spaced to the byte: the wires' rate, as in 10gbit
    #[arg(long, value_name = "RATE", help_heading = "Running")]
    #[arg(allow_hyphen_values = true)]
    pub gap_frames: Option<BitRate>,

    /// While a direction of the link is down, take the carrier of the interface
    /// that it leads to: for ports tap:NAME, with --control
    #[arg(long, help_heading = "Running")]
    pub carrier: bool,

    /// Execution of the link.
    #[command(flatten)]
    pub running: RunningArgs,

    /// Recordings.
    #[command(flatten)]
    pub record: RecordArgs,

    /// The control API.
    #[command(flatten)]
    pub control: ControlArgs,

    /// The report.
    #[command(flatten)]
    pub report: ReportArgs,
}

/// Returns the help on ports and units, with examples.
fn after_help() -> String {
    let ports = registry::PORTS.iter();
    let ports = ports.map(|port| (port.written(), port.summary));
    let ports: Vec<(String, &str)> = ports.collect();
    let width = ports
        .iter()
        .map(|(written, _)| written.len())
        .max()
        .unwrap_or(0);
    let ports = ports
        .iter()
        .map(|(written, summary)| format!("  {written:width$}  {summary}\n"));
    let ports: String = ports.collect();
    format!("Ports:\n{ports}\n{LINK_HELP}\n{DUPLEX_HELP}\n\n{EXAMPLES}")
}

/// Runs a link.
///
/// # Errors
/// If a port cannot be opened or the run not be started.
pub fn run(args: &RunArgs, globals: &Globals) -> Result<ExitCode, Error> {
    if parent::follow() {
        return Err(Error::Failed(
            "the node that started this run has ended".to_owned(),
        ));
    }
    let files = [args.scenario.as_deref(), args.record.log.as_deref()];
    let files = files.into_iter().flatten().filter_map(Path::to_str);
    let ports = [Some(args.a.as_str()), args.b.as_deref()];
    let topology = Some(args.a.as_str()).filter(|_| args.b.is_none());
    let files = ports
        .into_iter()
        .flatten()
        .flat_map(registry::files)
        .chain(topology)
        .chain(files);
    check_file(args.report.report.as_deref(), files)?;
    let Some(b) = &args.b else {
        return if args.a.ends_with(".toml") {
            run_network::run(Path::new(&args.a), args, globals)
        } else {
            Err(Error::Usage(format!(
                "a link has two ends: give another port after '{}', or a file that ends in .toml",
                args.a
            )))
        };
    };
    if args.host.is_some() {
        return Err(Error::Usage(
            "--host is for a network that a file describes".to_owned(),
        ));
    }
    if args.scenario.is_some() {
        return Err(Error::Usage(
            "--scenario is for a network that a file describes; one link's rate and delay change \
             by their models, as in --rate steps:at=0s/20mbit;30s/5mbit"
                .to_owned(),
        ));
    }
    if args.control.is_given() {
        let topology = run_pair::topology(b, args)?;
        let announcement = run_pair::announce(&args.link, &topology, globals)?;
        return run_network::run_topology((topology, announcement), args, globals);
    }
    run_network::refuse_idle_carrier(args.carrier, "--control")?;
    args.running.refuse_shards()?;
    let (ab, ba) = args.link.links()?;
    let stop = stop_flag()?;
    let (a, b) = open_ports(&args.a, b, args)?;
    let mut links = vec![LinkSetup::new(DIRECTIONS[0], ab)];
    links.extend((!args.one_way).then(|| LinkSetup::new(DIRECTIONS[1], ba)));
    let announcement = Announcement::of_links(&links, globals)?;

    let mut links = links.into_iter();
    let (ab, ba) = (links.next(), links.next());
    let ab = ab.unwrap_or_else(|| unreachable!("there is always a direction from A to B"));
    let config = args.running.config(args.seed.seed, &args.link.faults);
    let recorder = args
        .record
        .recorder(&DIRECTIONS[..1 + usize::from(ba.is_some())], &args.report)?;
    let running = network::start(NetworkPlan::link(a, b, ab, ba), config, recorder)?;
    announcement.print(globals);
    rights::give_up(&args.report, &[]);
    start::notes(running.notes(), globals)?;
    watch_live(&running, &stop, args.time, globals)?;
    let mut report = running.stop();
    report.notes.extend(announcement.warnings);
    finish(&report, &args.report, globals, ReportStream::Stdout)
}

/// Opens both ports.
fn open_ports(a: &str, b: &str, args: &RunArgs) -> Result<(Port, Port), Error> {
    let (of_a, of_b) = if args.one_way {
        (Purpose::ForwardIn, Purpose::Send)
    } else {
        (Purpose::Forward, Purpose::Forward)
    };
    let open = |name: &str, purpose| {
        let options = OpenOptions {
            gap_frames: args.gap_frames.filter(|_| purpose != Purpose::ForwardIn),
            purpose,
            ..OpenOptions::default()
        };
        registry::open(name, &options)
    };
    Ok((open(a, of_a)?, open(b, of_b)?))
}
