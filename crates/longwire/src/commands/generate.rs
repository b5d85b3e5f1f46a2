//! `longwire generate`: generates precisely timed traffic, and runs test profiles.

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use clap::Args;
use longwire_engine::Nanos;
use longwire_runtime::{Feed, RunReport};
use longwire_traffic::generator::{GeneratorConfig, GeneratorFeed};
use longwire_traffic::profile::ProbeReport;
use longwire_traffic::receive::{ReceiveConfig, ReceiveReport, Receiver, StreamReport};
use serde::Serialize;

use super::feed_file::{self, FeedFile};
use super::replay::{self, ReplayControl};
use super::run::ports_help;
use crate::cli::{LINK_HELP, PumpArgs, TrafficArgs};
use crate::profile::{self, ProfileArgs, probe_lines};
use crate::receiving::refused;
use crate::report::{Ending, finish};
use crate::signals::stop_flag;
use crate::{Error, Globals};

const EXAMPLES: &str = "\
Send times are computed from the start of the run, so errors do not accumulate. Frames
carry probes: 18 bytes at the start of the payload with a sequence number and send time.
--receive, or `longwire receive` on another machine, measures loss, reordering and delay
with them. Delays between two machines are as accurate as their clocks.

Examples:
  longwire generate --to eth1 --rate 1mpps --time 10s
  longwire generate --to eth1 --rate 500mbit --sizes imix --arrivals poisson
  longwire generate --to pcap:made.pcap --rate 10kpps --time 1h   # in virtual time
  longwire generate --to eth1 --rate 1gbit --rate-framing ethernet --sizes 1514 \\
      --flows 1000 --src-ip 10.0.0.0/16 --dst-ip 10.9.0.1 --receive eth2
  longwire generate --to eth1 --receive eth2 --rate 1gbit --profile rfc2544
  longwire generate --to eth1 --receive eth2 --rate 1gbit --profile y1564 \\
      --cir 100mbit --eir 20mbit --max-loss 0.1% --max-delay 20ms --max-jitter 5ms";

/// Arguments of `generate`.
#[derive(Debug, Args)]
#[command(after_help = after_help())]
// Hide the options of direction down: all frames have direction up.
#[command(mut_args(|arg| {
    let of_down = arg.get_id().as_str().starts_with("down-");
    if of_down { arg.hide(true) } else { arg }
}))]
pub struct GenerateArgs {
    /// The generated traffic.
    #[command(flatten)]
    pub traffic: TrafficArgs,

    /// Receive on this port, and report lost, duplicate and reordered probes and their delay
    #[arg(long, value_name = "PORT", help_heading = "Receiving")]
    pub receive: Option<String>,

    /// Time to wait for frames in flight after the last frame is sent
    #[arg(long, value_name = "TIME", help_heading = "Receiving")]
    #[arg(default_value = "1s")]
    pub settle: Nanos,

    /// A test made of several runs.
    #[command(flatten)]
    pub profile: ProfileArgs,

    /// The outputs.
    #[command(flatten)]
    pub pump: PumpArgs,
}

fn after_help() -> String {
    format!("{}\n{LINK_HELP}\n\n{EXAMPLES}", ports_help())
}

/// JSON report.
#[derive(Serialize)]
struct GenerateJson<'a> {
    #[serde(flatten)]
    report: &'a RunReport,
    /// Probe results, if there was a receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    received: Option<&'a ProbeReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    receiver: Option<&'a ReceiveReport>,
}

/// Generates traffic.
///
/// # Errors
/// If an option is invalid, a port cannot be opened, or the run cannot be started.
pub fn run(args: &GenerateArgs, globals: &Globals) -> Result<ExitCode, Error> {
    if args.pump.to.len() > 1 {
        return Err(Error::usage(
            "generate sends to one port; run it once per port",
        ));
    }
    args.pump.check_report(args.receive.as_deref(), [])?;
    let captures = feed_file::captures(&args.pump.to)?;
    if args.profile.profile.is_some() {
        Error::refuse_first(&[
            (
                args.pump.control.is_given(),
                "--control and --view do not work with --profile, which makes several runs",
            ),
            (
                captures.is_some(),
                "--profile needs a port in --to, not a capture",
            ),
        ])?;
        return profile::run(args, globals);
    }
    let config = args.traffic.config(args.pump.seed.seed)?;
    if config.rate.is_none() && !args.traffic.topspeed {
        return Err(Error::usage(
            "no rate; give --rate, such as 100mbit or 1mpps, or --topspeed",
        ));
    }
    let receives = args.receive.is_some();
    args.pump
        .refuse_unmeetable(false, captures.is_none(), receives)?;
    let stop = stop_flag()?;
    if let Some(files) = captures {
        return write_file(args, config, &files, &stop, globals);
    }
    args.pump.refuse_links_at(args.traffic.topspeed)?;
    let is_unseen = args.receive.is_some() && config.probe.is_none();
    Error::refuse_first(&[(is_unseen, "--receive needs probes; remove --no-probe")])?;
    let receiver = args.receive.as_deref().map(|port| {
        Receiver::open(port, ReceiveConfig::default(), None).map_err(|error| refused(port, error))
    });
    let receiver = receiver.transpose()?;
    let report = send(&args.pump, config, &stop, globals)?;
    let receiver = receiver.map(|receiver| receiver.settle(&report, args.settle, &stop));
    let received = receiver
        .as_ref()
        .map(|receiver| ProbeReport::of(&report, receiver, args.traffic.stream));
    let json = GenerateJson {
        report: &report,
        received: received.as_ref(),
        receiver: receiver.as_ref(),
    };
    let mut ending = Ending {
        lines: received.as_ref().map(probe_lines).unwrap_or_default(),
        shows_receivers: false,
        ..Ending::of(&report)
    };
    if let (Some(receiver), Some(probes), Some(link)) = (&receiver, &received, report.links.first())
    {
        let receiver = with_all_lost(receiver, probes, args);
        ending.received.insert(link.name.clone(), receiver);
    }
    let code = finish(&json, &ending, &args.pump.report, globals)?;
    if let Some(error) = receiver.and_then(|receiver| receiver.error) {
        return Err(Error::failed(format!("receiver: {error}")));
    }
    Ok(code)
}

/// Writes generated frames to a capture.
///
/// # Errors
/// If an option does not apply, or the file cannot be written.
fn write_file(
    args: &GenerateArgs,
    config: GeneratorConfig,
    files: &[&str],
    stop: &AtomicBool,
    globals: &Globals,
) -> Result<ExitCode, Error> {
    feed_file::check(&args.pump, args.traffic.topspeed, args.receive.is_some())?;
    if config.count.is_none() && config.time.is_none() {
        return Err(Error::usage(
            "--to pcap:FILE needs an end; give --time or --count",
        ));
    }
    let file = FeedFile {
        feed: feed(config)?,
        files,
        links: args.pump.links(false)?,
        start: Nanos::ZERO,
        pump: &args.pump,
        stop,
    };
    file.write(globals)
}

/// Sends generated frames until the last has been sent or a signal stops the run.
///
/// # Errors
/// If the configuration is inconsistent, or the run cannot be started.
fn send(
    pump: &PumpArgs,
    config: GeneratorConfig,
    stop: &AtomicBool,
    globals: &Globals,
) -> Result<RunReport, Error> {
    let endless = config.count.is_none() && config.time.is_none();
    let feed = feed(config)?;
    let mut outputs = pump.outputs(false, feed.is_paced())?;
    let control = ReplayControl::bind(pump, &mut outputs, false)?;
    replay::carry(pump, (feed, endless), outputs, control, stop, globals)
}

/// Returns the receiver's report for `--require`. Includes probes lost after the last arrival,
/// which are known only to the sender.
fn with_all_lost(
    receiver: &ReceiveReport,
    probes: &ProbeReport,
    args: &GenerateArgs,
) -> ReceiveReport {
    let mut receiver = receiver.clone();
    let is_sent = |stream: &StreamReport| stream.stream == args.traffic.stream;
    if !receiver.streams.iter().any(is_sent) {
        receiver.streams.push(StreamReport {
            stream: args.traffic.stream,
            ..StreamReport::default()
        });
    }
    for stream in receiver.streams.iter_mut().filter(|stream| is_sent(stream)) {
        stream.sequence.lost = probes.lost;
    }
    receiver
}

/// Returns a feed of generated frames.
///
/// # Errors
/// If the configuration is inconsistent.
fn feed(config: GeneratorConfig) -> Result<Box<dyn Feed>, Error> {
    Ok(Box::new(GeneratorFeed::new(config).map_err(Error::usage)?))
}
