//! `longwire simulate`: processes captures in virtual time.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::{Args, value_parser};
use longwire_capture::CaptureFormat;
use longwire_capture::log::{LogError, LogFormat};
use longwire_engine::{LinkConfig, Nanos};
use longwire_network::shard_plan::ShardCount;
use longwire_packet::bridge::PortIndex;
use longwire_packet::sides::{Near, Sides};
use longwire_runtime::deciding::Simulation;
use longwire_runtime::{DIRECTIONS, LinkReport, LinkSetup, Recorder};
use serde::Serialize;

use super::simulate_network;
use crate::cli::{DUPLEX_HELP, DuplexArgs, LINK_HELP, RecordArgs, ReportArgs, SeedArgs};
use crate::report::words::count_of;
use crate::report::{
    Announcement, Ending, ReportStream, RunKind, check_file, finish, on_stuck_plugin, start,
};
use crate::signals::stop_flag;
use crate::simulate::{Direction, Inputs, Outputs, PORTS, UnassignedFrames, VirtualRun, Ways};
use crate::{Error, Globals};

const EXAMPLES: &str = "\
Each frame is stamped with its release: arrival plus time on the link, to the nanosecond.
Truncated frames count with their length on the wire. A frame stamped before its
predecessor is treated as simultaneous with it; the report counts such frames.

All frames go in the direction of --link. With --near, frames from these addresses go up and
frames to them down; other frames follow their source MAC address. Frames of unknown
direction are skipped and counted. OUT contains both directions, ordered by release.

In a topology, the captures' frames enter at its ports and cross its switch, rules and
links. Schedules, traces and scenarios start with the first frame, or at --epoch.

OUT ends in .pcap (nanoseconds) or .pcapng; - is stdin or stdout. After Ctrl-C, the output
written so far is kept.

Examples:
  longwire simulate in.pcap out.pcap --rate 10mbit --delay 20ms
  longwire simulate in.pcap out.pcapng --loss 1% --seed 7 --json
  longwire simulate in.pcap out.pcap --rate 10mbit --queue 60p --log run.parquet
  longwire simulate both.pcap out.pcap --near 10.0.0.0/24 --near fd00::/64 \\
      --delay 20ms --up-rate 2mbit --down-rate 20mbit
  longwire simulate network.toml --in run.in.pcapng --out out.pcapng --log run.csv
  longwire simulate network.toml --in left=a.pcap --in right=b.pcap --out right=c.pcap
  longwire simulate in.pcap.gz out.pcap --delay uniform:min=5ms,max=9ms";

/// Arguments of `simulate`.
#[derive(Debug, Args)]
#[command(after_help = format!("{LINK_HELP}\n\n{DUPLEX_HELP}\n\n{EXAMPLES}"))]
pub struct SimulateArgs {
    /// Capture to read: pcap or pcapng, plain or compressed with gzip, zstd or lz4; -: stdin. Or a
    /// topology FILE.toml, without OUT and link options (docs/topology.md)
    #[arg(value_name = "IN")]
    pub input: String,

    /// Capture to write: .pcap or .pcapng; -: stdout
    #[arg(value_name = "OUT")]
    pub output: Option<String>,

    /// Topologies: capture of the frames that enter at PORT; repeatable. Without PORT, each
    /// interface of the capture must have the name of a port or of its device, as written by
    /// `run --capture`
    #[arg(long = "in", value_name = "[PORT=]CAPTURE", help_heading = "Network")]
    pub inputs: Vec<String>,

    /// Topologies: capture for the frames that leave at PORT; repeatable. Without PORT, the
    /// .pcapng gets one interface per port
    #[arg(long = "out", value_name = "[PORT=]CAPTURE", help_heading = "Network")]
    pub outputs: Vec<String>,

    /// TOML file of timed changes (`[[at]]` tables); replaces a topology's scenario. A single link
    /// is named `link`
    #[arg(long, value_name = "FILE", help_heading = "Network")]
    pub scenario: Option<PathBuf>,

    /// Topologies: number of shards, run by at most one thread per core; auto: two per core from
    /// 512 links, else one. Does not affect results
    #[arg(long, value_name = "N", default_value = "auto")]
    #[arg(help_heading = "Network")]
    pub shards: ShardCount,

    /// The link.
    #[command(flatten)]
    pub link: DuplexArgs,

    /// The seed.
    #[command(flatten)]
    pub seed: SeedArgs,

    /// Direction of all frames; selects the random streams and a preset's options
    #[arg(long = "link", value_name = "DIRECTION", value_enum, default_value_t)]
    #[arg(help_heading = "Link", conflicts_with = "near")]
    pub direction: Direction,

    /// Split IN by direction: frames from this address, prefix (10.0.0.0/24) or MAC address go up.
    /// Repeatable
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',')]
    #[arg(help_heading = "Link")]
    pub near: Vec<Near>,

    /// Read only this pcapng interface, given by name or number (from 0)
    #[arg(long, value_name = "INTERFACE", help_heading = "Link")]
    pub interface: Option<String>,

    /// Start of schedules and traces in Unix nanoseconds, such as epoch_ns of a report;
    /// default: the first frame
    #[arg(long, value_name = "NS", help_heading = "Link")]
    #[arg(value_parser = value_parser!(u64).range(..=i64::MAX as u64))]
    pub epoch: Option<u64>,

    /// Write all verdicts to FILE: .csv or .parquet
    #[arg(long, value_name = "FILE", help_heading = "Report")]
    pub log: Option<PathBuf>,

    /// The report.
    #[command(flatten)]
    pub report: ReportArgs,
}

impl SimulateArgs {
    /// Returns a recorder for the named ports and links if there is a log.
    ///
    /// # Errors
    /// If a file cannot be created.
    pub fn recorder<'a>(
        &self,
        names: (impl Iterator<Item = &'a str>, impl Iterator<Item = &'a str>),
    ) -> Result<Option<Box<dyn Recorder>>, Error> {
        let record = RecordArgs {
            capture: None,
            snaplen: None,
            log: self.log.clone(),
        };
        record.recorder(names, &self.report)
    }
}

/// JSON report of a simulation.
#[derive(Serialize)]
struct SimulateJson<'a, R> {
    /// Frames of unknown direction in a bidirectional capture.
    #[serde(skip_serializing_if = "Option::is_none")]
    unassigned: Option<UnassignedFrames>,
    /// Number of records converted to Ethernet or skipped, by kind.
    records: BTreeMap<&'static str, u64>,
    #[serde(flatten)]
    report: &'a R,
}

/// Writes the report of a simulation between IN and OUT.
///
/// # Errors
/// If the report cannot be written.
pub(super) fn finish_link(
    report: &impl Serialize,
    ending: &Ending<'_>,
    inputs: &Inputs<'_>,
    args: &SimulateArgs,
    globals: &Globals,
) -> Result<ExitCode, Error> {
    let json = SimulateJson {
        unassigned: inputs.unassigned(),
        records: inputs.records().0.named().into(),
        report,
    };
    finish(&json, ending, &args.report, globals)
}

/// Simulates a capture.
///
/// # Errors
/// If a file cannot be opened, read or written. Frames before a truncation are still simulated.
pub fn run(args: &SimulateArgs, globals: &Globals) -> Result<ExitCode, Error> {
    let files = [Some(args.input.as_str()), args.output.as_deref()];
    let more = [args.log.as_deref(), args.scenario.as_deref()];
    let more = more.into_iter().flatten().filter_map(Path::to_str);
    let report = args.report.report.as_deref();
    check_file(report, files.into_iter().flatten().chain(more))?;
    let Some(output) = &args.output else {
        return if args.input.ends_with(".toml") {
            simulate_network::run(Path::new(&args.input), args, globals)
        } else {
            Err(Error::usage(format!(
                "missing OUT after '{}'; a topology file must end in .toml",
                args.input
            )))
        };
    };
    refuse_options_of_networks(args)?;
    let (ways, links) = ways(args)?;
    check_output(output, args)?;
    if args.scenario.is_some() {
        return simulate_network::run_link(output, ways, args, globals);
    }
    let names: Vec<&str> = links.iter().map(|(_, link)| link.name.as_str()).collect();
    let kind = RunKind {
        is_fixed: true,
        ..RunKind::default()
    };
    args.report.refuse_unmeetable(&PORTS, &names, kind)?;
    let stop = stop_flag()?;
    let mut inputs = Inputs::of_pair(&args.input, args.interface.as_deref(), ways, &stop)?;
    let outputs = Outputs::of_pair(&[output])?;
    let recorder = args.recorder((std::iter::empty(), DIRECTIONS.into_iter()))?;
    let announcement = Announcement::of_links(links.iter().map(|(_, link)| link), globals);
    announcement.print(globals);
    let mut notes = announcement.warnings;
    let started = Instant::now();
    let (seed, place) = (args.seed.seed, ReportStream::beside([output.as_str()]));
    on_stuck_plugin(seed, &args.report, globals, place);
    let first = inputs.first_stamp();
    let begins = first.as_ref().ok().copied().flatten();
    let epoch = args.epoch.map(Nanos::from_nanos).or(begins);
    let simulation = Simulation::pair(links, seed, epoch.unwrap_or(Nanos::ZERO), recorder)?;
    let mut run = VirtualRun::new(simulation, outputs, None, &args.link.faults, &stop);
    let ended = match first {
        Ok(_) => run.read(&mut inputs, globals),
        Err(error) => Err(error.into()),
    };
    let interrupted = format!("interrupted; {output} has the frames released so far");
    let mut report = run.finish(ended, &interrupted);
    let (_, mut of_records) = inputs.records();
    let mut remarks = remarks(&report.links, inputs.unassigned(), report.error.is_none());
    remarks.append(&mut of_records);
    start::warn(&remarks, globals);
    notes.extend(remarks);
    report.duration_s = started.elapsed().as_secs_f64();
    report.notes = notes;
    let ending = Ending {
        place,
        ..Ending::of(&report)
    };
    finish_link(&report, &ending, &inputs, args, globals)
}

/// Returns warnings about a simulation; `ended` is true if it processed the whole capture.
fn remarks(links: &[LinkReport], unassigned: Option<UnassignedFrames>, ended: bool) -> Vec<String> {
    let mut remarks = Vec::new();
    for link in links.iter().filter(|link| ended && link.in_flight > 0) {
        remarks.push(format!(
            "{}: {} still queued when the capture ended; the link has stopped",
            link.name,
            count_of(link.in_flight, "frame")
        ));
    }
    remarks.extend(remarks_on_directions(links, unassigned));
    remarks
}

/// Returns warnings about frames of unknown direction and directions without frames.
pub(super) fn remarks_on_directions(
    links: &[LinkReport],
    unassigned: Option<UnassignedFrames>,
) -> Vec<String> {
    let mut remarks = Vec::new();
    let Some(unassigned) = unassigned else {
        return remarks;
    };
    if unassigned.packets > 0 {
        remarks.push(format!(
            "skipped {} of unknown direction: neither a --near address nor a known station; add \
             --near",
            count_of(unassigned.packets, "frame")
        ));
    }
    if links.iter().any(|link| link.traffic.packets_in > 0) {
        for link in links.iter().filter(|link| link.traffic.packets_in == 0) {
            let name = &link.name;
            remarks.push(format!("{name}: no frames in this direction; check --near"));
        }
    }
    remarks
}

/// Returns how frames are assigned to directions, and the links.
fn ways(args: &SimulateArgs) -> Result<(Ways, Vec<(PortIndex, LinkSetup)>), Error> {
    let setup = |direction: Direction, config: LinkConfig| {
        (direction.port(), LinkSetup::new(direction.name(), config))
    };
    if !args.near.is_empty() {
        let (up, down) = args.link.links()?;
        let links = vec![setup(Direction::Up, up), setup(Direction::Down, down)];
        return Ok((Ways::Two(Sides::new(&args.near)), links));
    }
    if let Some(option) = args.link.prefixed() {
        return Err(Error::usage(format!(
            "{option} needs --near; without --near, omit the up- or down- prefix"
        )));
    }
    let config = match args.direction {
        Direction::Up => args.link.link(|duplex| duplex.up)?,
        Direction::Down => args.link.link(|duplex| duplex.down)?,
    };
    Ok((
        Ways::One(args.direction),
        vec![setup(args.direction, config)],
    ))
}

/// Refuses a log with an unknown format.
pub(super) fn check_log(args: &SimulateArgs) -> Result<(), Error> {
    match args.log.clone() {
        Some(path) if LogFormat::of(&path).is_none() => Err(LogError::Extension { path }.into()),
        _ => Ok(()),
    }
}

/// Refuses network options, which do not apply to a single link.
fn refuse_options_of_networks(args: &SimulateArgs) -> Result<(), Error> {
    let ports = !args.inputs.is_empty() || !args.outputs.is_empty();
    Error::refuse_first(&[(
        ports,
        "--in and --out need a topology file; for a single link, give IN and OUT",
    )])
}

/// Refuses an unknown output or log format, output to a terminal, and files that would overwrite
/// each other.
fn check_output(output: &str, args: &SimulateArgs) -> Result<(), Error> {
    let usage = |message: String| Err(Error::usage(message));
    if CaptureFormat::of(output).is_none() {
        return usage(format!(
            "OUT '{output}': name must end in .pcap or .pcapng; - is stdout"
        ));
    }
    if output == "-" && io::stdout().is_terminal() {
        return usage("OUT is a terminal; name a file, or pipe stdout".to_owned());
    }
    check_log(args)?;
    if let Some(log) = args.log.as_ref().and_then(|path| path.to_str())
        && (same_file(&args.input, log) || same_file(log, output))
    {
        return usage(format!(
            "--log '{log}' is also IN or OUT; choose another name"
        ));
    }
    if same_file(&args.input, output) {
        return usage(format!("OUT '{output}' is also IN; choose another name"));
    }
    Ok(())
}

/// Returns whether input and output, or `-` for stdin or stdout, are the same regular file.
fn same_file(input: &str, output: &str) -> bool {
    let open = |path, standard| if path == "-" { standard } else { path };
    longwire_capture::same_file(open(input, "/dev/stdin"), open(output, "/dev/stdout"))
}
