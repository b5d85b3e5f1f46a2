//! `longwire generate --to pcap:FILE`: generates traffic into a capture, in
//! virtual time.
//!
//! Nothing here waits or reads a clock. Stamps count from the start of 1970 or
//! from `--start-at`, so the same options produce identical files.

use std::process::ExitCode;
use std::time::Instant;

use longwire_capture::{CaptureFormat, Record};
use longwire_engine::Nanos;
use longwire_runtime::fabric::Simulation;
use longwire_runtime::record::Epoch;
use longwire_runtime::{Feed, InputReport, LinkSetup, RunReport};
use longwire_traffic::generator::{GeneratorConfig, GeneratorFeed};

use super::generate::GenerateArgs;
use crate::cli::StartAt;
use crate::progress::Progress;
use crate::report::finish::{ReportStream, finish, on_stuck_plugin};
use crate::report::start;
use crate::signals::stop_flag;
use crate::simulate::{Direction, Outputs, Stop, VirtualRun};
use crate::{Error, Globals};

/// Frames taken from the feed at once.
const BURST: usize = 256;

/// Returns the capture to which frames are written; `None` if `--to` is a port
/// that sends.
///
/// # Errors
/// If `--to` names a capture to read.
pub(super) fn capture(to: &str) -> Result<Option<&str>, Error> {
    let Some(file) = to.strip_prefix("pcap:") else {
        return Ok(None);
    };
    let file = file.strip_prefix("out=").unwrap_or(file);
    if file.starts_with("in=") || file.contains(",in=") {
        return Err(Error::Usage(format!(
            "--to {to}: generate reads no capture; write pcap:FILE"
        )));
    }
    if file == "-" || CaptureFormat::of(file).is_none() {
        return Err(Error::Usage(format!(
            "--to {to}: end the file's name in .pcap or .pcapng"
        )));
    }
    Ok(Some(file))
}

/// Generates traffic into a capture.
///
/// # Errors
/// If an option does not fit, or the file cannot be written.
pub(super) fn run(
    file: &str,
    args: &GenerateArgs,
    config: GeneratorConfig,
    globals: &Globals,
) -> Result<ExitCode, Error> {
    check(args, &config)?;
    let stop = stop_flag()?;
    let start = start_time(args.pump.start_at)?;
    let feed = GeneratorFeed::new(config).map_err(|error| Error::Usage(error.to_string()))?;
    let pump = &args.pump;
    let link = LinkSetup::new("out", pump.link.0.link_up()?);
    let recorder = pump.record.recorder(&[&link.name], &pump.report)?;
    let outputs = Outputs::of_pair(file)?;
    let notes = start::announce([&link], globals)?;
    let seed = pump.seed.seed;
    on_stuck_plugin(seed, &pump.report, globals, ReportStream::Stdout);
    let simulation = Simulation::pair(vec![(Direction::Up.port(), link)], seed, start, recorder)?;
    let mut run = VirtualRun::new(simulation, outputs, None, pump.faults(), &stop);
    let mut feed: Box<dyn Feed> = Box::new(feed);
    let began = Instant::now();
    let ended = generate(feed.as_mut(), &mut run, start, globals);
    let interrupted = format!("interrupted; {file} holds what was generated until then");
    let (links, ended) = run.finish(ended, &interrupted);
    let status = feed.status();
    let report = RunReport {
        seed,
        epoch_ns: start.as_nanos(),
        duration_s: began.elapsed().as_secs_f64(),
        links,
        inputs: vec![InputReport {
            name: status.name,
            fraction: status.fraction,
            counts: status.counts.into_iter().collect(),
            behind_max_us: 0.0,
            notes: status.notes,
        }],
        notes,
        error: ended.error,
        ..RunReport::default()
    };
    finish(&report, &pump.report, globals, ReportStream::Stdout)
}

/// Generates everything from `start` on, and releases all frames, also after a
/// signal.
///
/// # Errors
/// If the capture cannot be written, a plugin failed, or a signal came.
fn generate(
    feed: &mut dyn Feed,
    run: &mut VirtualRun<'_>,
    start: Nanos,
    globals: &Globals,
) -> Result<(), Stop> {
    feed.begin(Epoch {
        monotonic: start,
        wall: start,
    });
    let mut progress = Progress::new(Progress::SHARE, globals);
    let mut end = false;
    let mut taken = Ok(());
    while !end && taken.is_ok() {
        let received = feed.feed(BURST, &mut |fed| {
            if taken.is_ok() {
                let record = Record {
                    stamp: start.saturating_add(fed.due),
                    bytes: fed.bytes,
                    wire_len: fed.wire_len,
                    interface: 0,
                };
                taken = run.frame(Direction::Up.port(), record);
            }
        });
        end = received.map_err(Error::from)?.end;
        if progress.shows() {
            let done = feed.status().fraction.unwrap_or(0.0);
            progress.at((done * 1_000.0) as u64, Some(1_000));
        }
    }
    progress.clear();
    if matches!(taken, Ok(()) | Err(Stop::Signal)) {
        run.drain()?;
    }
    taken
}

fn check(args: &GenerateArgs, config: &GeneratorConfig) -> Result<(), Error> {
    let usage = |text: &str| Err(Error::Usage(text.to_owned()));
    if args.traffic.topspeed {
        return usage("--topspeed gives frames no times, and a capture needs them; give --rate");
    }
    if config.count.is_none() && config.time.is_none() {
        return usage("how much? give --time or --count: a file takes frames without end");
    }
    if args.receive.is_some() {
        return usage("--receive needs a port, not a capture");
    }
    if args.pump.record.capture.is_some() {
        return usage("--capture: --to is the capture already");
    }
    Ok(())
}

/// Returns the time of the start, since 1970.
fn start_time(start: Option<StartAt>) -> Result<Nanos, Error> {
    match start {
        None => Ok(Nanos::ZERO),
        Some(StartAt::At(time)) => Ok(time),
        Some(StartAt::In(_)) => Err(Error::Usage(
            "--start-at: a capture is written in virtual time; give a date".to_owned(),
        )),
    }
}
