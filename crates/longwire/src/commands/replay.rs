//! `longwire replay`: sends captures at their recorded times or at another rate.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;

use clap::Args;
use longwire_capture::same_file;
use longwire_control::{Bound, Server};
use longwire_engine::models::framing::Framing;
use longwire_engine::replay::Pace;
use longwire_engine::{BitRate, Nanos, PacketRate, Speed};
use longwire_io::rights::Capability;
use longwire_network::{Controller, Numbered};
use longwire_runtime::feed::trace::{Moment, TraceConfig, TraceFeed};
use longwire_runtime::replay::ReplayOutput;
use longwire_runtime::{Feed, FileLoader, NetworkPlan, RunReport, RunningNetwork, network};
use longwire_topology::Topology;
use longwire_traffic::arrivals::LoadRate;
use serde::Serialize;

use super::feed_file::{self, FeedFile};
use super::run::ports_help;
use super::{run_network, topologies};
use crate::cli::{AlterArgs, LINK_HELP, PumpArgs, rate_framing};
use crate::receiving::{ReceivedByLink, ReceiverArgs, Receivers};
use crate::report::start as announcement;
use crate::report::words::count_of;
use crate::report::{Ending, finish};
use crate::signals::stop_flag;
use crate::watch::watch_replay;
use crate::{Error, Globals, rights};

const EXAMPLES: &str = "\
Send times are computed from the first frame, so errors do not accumulate. Frames that are
read too late are reported as `behind`. Ctrl-C stops the replay and prints the report.

Traces are pcap or pcapng, plain or compressed with gzip, zstd or lz4; - is stdin. Several
traces are sent one after another, merged by timestamp with --merge, or with as many --to,
each to its own port. Frames keep their timestamp order across traces and ports.

--to pcap:FILE writes a capture in virtual time, without root. Link options insert a link
before each port, in direction up, or with --split, up before the first port and down before
the second. --rate is the sending rate, --link-rate the link's rate.

Examples:
  longwire replay trace.pcap --to eth1                   at the recorded times
  longwire replay trace.pcap --to eth1 --rate 1gbit      at a rate
  longwire replay trace.pcap --to eth1 --topspeed --loop 100
  longwire replay both.pcap --split client=10.0.0.0/8 --to eth1 --to eth2
  longwire replay trace.pcap --to eth1 --map 10.0.0.0/8=192.168.0.0/16 --dst-mac 02:00:00:00:00:01
  longwire replay trace.pcap --to eth1 --delay 20ms --loss 1% --link-rate 10mbit
  longwire replay trace.pcap --to eth1 --view            with a page
  longwire replay trace.pcap --to pcap:new.pcap --map 10.0.0.0/8=192.168.0.0/16   rewrite a file";

/// Arguments of `replay`.
#[derive(Debug, Args)]
#[command(after_help = after_help())]
pub struct ReplayArgs {
    /// Captures to send: pcap or pcapng, also compressed; -: stdin
    #[arg(value_name = "TRACE", required = true)]
    pub traces: Vec<String>,

    /// Send times.
    #[command(flatten)]
    pub pace: PaceArgs,

    /// Selection of frames.
    #[command(flatten)]
    pub select: SelectArgs,

    /// Alterations of frames.
    #[command(flatten)]
    pub alter: AlterArgs,

    /// Outputs.
    #[command(flatten)]
    pub pump: PumpArgs,

    /// Receivers.
    #[command(flatten)]
    pub receivers: ReceiverArgs,
}

fn after_help() -> String {
    format!("{}\n{LINK_HELP}\n\n{EXAMPLES}", ports_help())
}

/// Options that determine the send times of frames.
#[derive(Debug, Args)]
#[command(next_help_heading = "Pace")]
pub struct PaceArgs {
    /// Relative speed: 2x, 0.1x or 150%
    #[arg(long, value_name = "SPEED", conflicts_with_all = ["pace_rate", "topspeed"])]
    pub speed: Option<Speed>,

    /// Send at this rate, without the gaps of the trace: 5gbit, 1mpps
    #[arg(long = "rate", value_name = "RATE", conflicts_with = "topspeed")]
    #[arg(id = "pace_rate", value_parser = pace_rate)]
    pub rate: Option<LoadRate>,

    /// Overhead per frame that a rate in bits includes, such as ethernet; default: none
    #[arg(long, value_name = "FRAMING", requires = "pace_rate")]
    pub rate_framing: Option<String>,

    /// Send as fast as the port accepts frames
    #[arg(long)]
    pub topspeed: bool,

    /// Limit gaps to this length, in trace time
    #[arg(long, value_name = "TIME", conflicts_with_all = ["pace_rate", "topspeed"])]
    pub gap_cap: Option<Nanos>,
}

/// Selection of frames.
#[derive(Debug, Args)]
#[command(next_help_heading = "Selection")]
pub struct SelectArgs {
    /// Send the trace this many times; 0: until interrupted
    #[arg(long = "loop", value_name = "N", default_value_t = 1)]
    pub rounds: u64,

    /// Gap between rounds; default: the mean gap of the trace
    #[arg(long, value_name = "TIME")]
    pub loop_gap: Option<Nanos>,

    /// Send at most this many frames over all rounds
    #[arg(long, value_name = "N")]
    pub count: Option<u64>,

    /// Start at this time in the trace: 30s (after the first frame), 2026-01-31T12:00:00Z, or
    /// @1769860800 (Unix seconds)
    #[arg(long, value_name = "TIME")]
    pub from: Option<Moment>,

    /// Stop at this time in the trace, written like --from
    #[arg(long, value_name = "TIME")]
    pub until: Option<Moment>,

    /// Merge traces into one by timestamp
    #[arg(long)]
    pub merge: bool,

    /// Send only the frames of one pcapng interface, given by name or number (from 0)
    #[arg(long, value_name = "INTERFACE")]
    pub interface: Option<String>,
}

/// Parses a sending rate; its framing is a separate option.
fn pace_rate(text: &str) -> Result<LoadRate, String> {
    if text.to_ascii_lowercase().ends_with("pps") {
        let rate: Result<PacketRate, _> = text.parse();
        return rate.map(LoadRate::Packets).map_err(|e| e.to_string());
    }
    let rate: Result<BitRate, _> = text.parse();
    let refused = |error| format!("{error}; units of packet rates are pps, kpps and mpps");
    rate.map(|rate| LoadRate::Bits(rate, Framing::NONE))
        .map_err(refused)
}

impl PaceArgs {
    fn pace(&self) -> Result<Pace, Error> {
        if self.topspeed {
            return Ok(Pace::TopSpeed);
        }
        Ok(match self.rate {
            None => Pace::Trace(self.speed.unwrap_or_default()),
            Some(LoadRate::Packets(rate)) => Pace::Packets(rate),
            Some(LoadRate::Bits(rate, _)) => Pace::Bits {
                rate,
                framing: rate_framing(self.rate_framing.as_deref().unwrap_or("none"))?,
            },
        })
    }
}

/// Sends captures.
///
/// # Errors
/// If a trace or a port cannot be opened, or options conflict.
pub fn run(args: &ReplayArgs, globals: &Globals) -> Result<ExitCode, Error> {
    args.check()?;
    let traces = args.traces.iter().map(String::as_str);
    let ports = args.receivers.receive.iter().map(String::as_str);
    args.pump.check_report(ports, traces)?;
    let stop = stop_flag()?;
    let ways = args.alter.split.is_some();
    let captures = feed_file::captures(&args.pump.to)?;
    if let Some(files) = &captures {
        args.check_captures(files)?;
    }
    let receives = !args.receivers.receive.is_empty();
    args.pump
        .refuse_unmeetable(ways, captures.is_none(), receives)?;
    let mut feed = args.open()?;
    if let Some(files) = captures {
        let file = FeedFile {
            // Virtual time starts at the first frame, so frames keep their timestamps.
            start: feed.first_stamp(&stop)?.unwrap_or_default(),
            feed: Box::new(feed),
            files: &files,
            links: args.pump.links(ways)?,
            pump: &args.pump,
            stop: &stop,
        };
        return file.write(globals);
    }
    let mut outputs = args.pump.outputs(ways, !args.pace.topspeed)?;
    let control = ReplayControl::bind(&args.pump, &mut outputs, ways)?;
    let receivers = Receivers::open(&args.receivers, &mut outputs, globals)?;
    // Start the replay only after reading the first frame.
    feed.first_stamp(&stop)?;
    let endless = args.select.rounds == 0 && args.select.count.is_none();
    let feed: (Box<dyn Feed>, bool) = (Box::new(feed), endless);
    let mut report = carry(&args.pump, feed, outputs, control, &stop, globals)?;
    let received = receivers.finish(&mut report);
    let ending = Ending {
        received,
        ..Ending::of(&report)
    };
    let json = ReplayJson {
        report: &report,
        receivers: &ending.received,
    };
    finish(&json, &ending, &args.pump.report, globals)
}

/// JSON report of a replay, with receiver reports by output.
#[derive(Serialize)]
struct ReplayJson<'a> {
    #[serde(flatten)]
    report: &'a RunReport,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    receivers: &'a ReceivedByLink,
}

/// Starts sending a feed to these outputs; returns the run and its warnings.
///
/// # Errors
/// If a recording cannot be created, or the run cannot be started.
pub(crate) fn start(
    pump: &PumpArgs,
    feed: Box<dyn Feed>,
    outputs: Vec<ReplayOutput>,
    globals: &Globals,
) -> Result<(RunningNetwork, Vec<String>), Error> {
    let recorder = pump.recorder(&outputs)?;
    let announcement = pump.announce(outputs.iter().map(|output| &output.link), globals);
    let plan = NetworkPlan::replay(feed, outputs, pump.replay());
    let running = network::start(plan, pump.config(), recorder)?;
    announcement.print(globals);
    Ok((running, announcement.warnings))
}

/// Sends a feed until it ends or a signal stops the run; `endless` is true for a feed without an
/// end.
///
/// # Errors
/// Any error of [`start`], or if clients cannot be served.
pub(super) fn carry(
    pump: &PumpArgs,
    (feed, endless): (Box<dyn Feed>, bool),
    outputs: Vec<ReplayOutput>,
    control: ReplayControl,
    stop: &AtomicBool,
    globals: &Globals,
) -> Result<RunReport, Error> {
    let (running, warnings) = start(pump, feed, outputs, globals)?;
    announcement::notes(running.notes(), globals);
    let server = control.serve(&running, pump, globals)?;
    watch_replay(&running, stop, globals)?;
    drop(server);
    let ended = running.ended() || endless;
    let mut report = running.stop();
    // A pipe has no known length: its replay stopped early if frames were still in flight.
    let waiting = report.links.iter().any(|link| link.in_flight > 0);
    report.stopped_early = !ended && !report.progress().map_or(!waiting, |done| done == 1.0);
    report.notes.extend(warnings);
    Ok(report)
}

impl ReplayArgs {
    /// Returns whether each trace has its own port.
    fn apart(&self) -> bool {
        self.pump.to.len() > 1 && self.alter.split.is_none()
    }

    fn check(&self) -> Result<(), Error> {
        let (ports, traces) = (self.pump.to.len(), self.traces.len());
        if self.alter.split.is_some() && ports != 2 {
            return Err(Error::usage(format!(
                "--split needs two --to, for clients and for servers; there are {ports}"
            )));
        }
        if self.apart() && traces != ports {
            return Err(Error::usage(format!(
                "{} for {}; give one trace per port, or --split for the two sides of one trace",
                count_of(traces as u64, "trace"),
                count_of(ports as u64, "port"),
            )));
        }
        if self.traces.iter().filter(|trace| *trace == "-").count() > 1 {
            return Err(Error::usage(
                "- (stdin) is given twice, but can be read only once",
            ));
        }
        if self.apart() && self.select.merge {
            return Err(Error::usage("--merge needs a single --to, or --split"));
        }
        self.pump.refuse_links_at(self.pace.topspeed)
    }

    /// Refuses options that need a real-time run.
    fn check_captures(&self, files: &[&str]) -> Result<(), Error> {
        let receives = !self.receivers.receive.is_empty();
        feed_file::check(&self.pump, self.pace.topspeed, receives)?;
        if self.select.rounds == 0 && self.select.count.is_none() {
            return Err(Error::usage(
                "--loop 0 with --to pcap:FILE never ends; add --count",
            ));
        }
        let traces = self.traces.iter().filter(|trace| *trace != "-");
        let mut pairs = traces.flat_map(|trace| files.iter().map(move |file| (trace, file)));
        match pairs.find(|(trace, file)| same_file(trace, file)) {
            None => Ok(()),
            Some((trace, _)) => Err(Error::usage(format!(
                "--to is also the input {trace}; choose another name"
            ))),
        }
    }

    /// Opens the traces as one feed for all ports.
    fn open(&self) -> Result<TraceFeed, Error> {
        let select = &self.select;
        let config = TraceConfig {
            traces: self.traces.clone(),
            merge: select.merge,
            apart: self.apart(),
            interface: select.interface.clone(),
            pace: self.pace.pace()?,
            gap_cap: self.pace.gap_cap,
            rounds: (select.rounds > 0).then_some(select.rounds),
            round_gap: select.loop_gap,
            limit: select.count,
            from: select.from,
            until: select.until,
            filter: self.alter.filter.clone(),
            alterations: self.alter.alterations(self.pump.seed.seed)?,
            splitter: self.alter.split.clone(),
        };
        Ok(TraceFeed::open(config)?)
    }
}

/// Read-only control API before the start of a run that sends frames at scheduled times.
pub(super) struct ReplayControl {
    bound: Bound,
    /// Links of the outputs; `None` without addresses.
    links: Option<Numbered>,
}

impl ReplayControl {
    /// Binds the addresses. If there are any, numbers the outputs for clients. With `ways`, the
    /// outputs are the two directions of a conversation.
    ///
    /// # Errors
    /// If an address cannot be bound.
    pub fn bind(
        pump: &PumpArgs,
        outputs: &mut [ReplayOutput],
        ways: bool,
    ) -> Result<ReplayControl, Error> {
        let bound = longwire_control::bind(&pump.control.config())?;
        if !pump.control.is_given() {
            return Ok(ReplayControl { bound, links: None });
        }
        let named = outputs.iter().map(|output| output.link.name.clone());
        let topology = Topology::outputs(named.zip(pump.specs(ways)?));
        let links = Numbered::new(topology.map_err(topologies::refused)?);
        for (output, link) in outputs.iter_mut().zip(links.links()) {
            output.cells = Some(Arc::clone(&link.cells));
        }
        Ok(ReplayControl {
            bound,
            links: Some(links),
        })
    }

    /// Drops unneeded privileges, and serves the run until the server is dropped. Returns `None` if
    /// there are no addresses.
    ///
    /// # Errors
    /// If the terminal cannot be written, or a thread cannot be started.
    pub fn serve(
        self,
        running: &RunningNetwork,
        pump: &PumpArgs,
        globals: &Globals,
    ) -> Result<Option<Server>, Error> {
        let Some(links) = self.links else {
            rights::give_up(&pump.report, &[]);
            return Ok(None);
        };
        rights::give_up(&pump.report, &[Capability::DacOverride]);
        run_network::print_addresses(&self.bound, globals);
        let loader = FileLoader::reporting_to(&pump.link.faults);
        let controller = Controller::new(links, running.observer(), loader, channel());
        Ok(self.bound.serve(Arc::new(controller))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_one_of_bits_or_of_packets() {
        assert!(matches!(pace_rate("5gbit"), Ok(LoadRate::Bits(..))));
        assert!(matches!(pace_rate("1mpps"), Ok(LoadRate::Packets(_))));
        // Like tc, Longwire reads mbps as megabytes per second.
        assert!(matches!(pace_rate("1mbps"), Ok(LoadRate::Bits(..))));
        assert!(pace_rate("fast").is_err() && pace_rate("0pps").is_err());
    }
}
