//! `longwire generate --to pcap:FILE`: generates traffic into a capture, in
//! virtual time.
//!
//! Nothing here waits or reads a clock. Stamps count from the start of 1970 or
//! from `--start-at`, so the same options produce identical files.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use longwire_capture::log::LogWriter;
use longwire_capture::{CaptureFormat, CaptureWriter, Record};
use longwire_engine::Nanos;
use longwire_runtime::record::Epoch;
use longwire_runtime::{Faults, Feed, InputReport, LinkSetup, RunReport};
use longwire_traffic::generator::{GeneratorConfig, GeneratorFeed};

use super::generate::GenerateArgs;
use crate::cli::{PumpArgs, StartAt};
use crate::progress::Progress;
use crate::report::finish::{ReportStream, finish, on_stuck_plugin};
use crate::report::start;
use crate::signals::stop_flag;
use crate::simulate::{Direction, Simulation, check_faults};
use crate::{Error, Globals};

/// Frames between two checks for signals.
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
    let log = pump
        .record
        .log
        .as_ref()
        .map(LogWriter::create)
        .transpose()?;
    let mut writer = CaptureWriter::create(file)?;
    let notes = start::announce([&link], globals)?;
    let links = vec![(Direction::Up, link)];
    let mut simulation = Simulation::new(links, pump.seed.seed, Some(start));
    log.into_iter().for_each(|log| simulation.write_log(log));
    on_stuck_plugin(pump.seed.seed, &pump.report, globals, ReportStream::Stdout);
    let mut generation = Generation {
        feed: Box::new(feed),
        simulation,
        start,
        faults: pump.faults().clone(),
    };
    let began = Instant::now();
    let ended = generation.run(&mut writer, &stop, globals);
    let written = writer.finish().map_err(Error::from);
    let written = generation.simulation.finish_log().and(written);
    let ended = ended.and_then(|whole| written.map(|()| whole));
    let report = RunReport {
        duration_s: began.elapsed().as_secs_f64(),
        notes,
        error: match ended {
            Ok(true) => None,
            Ok(false) => Some(format!(
                "interrupted; {file} holds what was generated until then"
            )),
            Err(error) => Some(error.to_string()),
        },
        ..generation.report(pump)
    };
    finish(&report, &pump.report, globals, ReportStream::Stdout)
}

/// Traffic that is written to a capture.
struct Generation {
    feed: Box<dyn Feed>,
    simulation: Simulation,
    start: Nanos,
    /// Faults of plugins.
    faults: Faults,
}

impl Generation {
    /// Generates everything; returns `false` if a signal ended it.
    ///
    /// # Errors
    /// If the capture or the log cannot be written, or a plugin failed.
    fn run(
        &mut self,
        writer: &mut CaptureWriter,
        stop: &AtomicBool,
        globals: &Globals,
    ) -> Result<bool, Error> {
        let start = self.start;
        self.feed.begin(Epoch {
            monotonic: start,
            wall: start,
        });
        let mut progress = Progress::new(Progress::SHARE, globals);
        let (mut end, mut stopped) = (false, false);
        while !end && !stopped {
            let (simulation, faults) = (&mut self.simulation, &self.faults);
            let mut taken = Ok(());
            let received = self.feed.feed(BURST, &mut |fed| {
                let record = Record {
                    stamp: start.saturating_add(fed.due),
                    bytes: fed.bytes,
                    wire_len: fed.wire_len,
                    interface: 0,
                };
                // A plugin may take long for each frame.
                stopped = stopped || stop.load(Ordering::Relaxed);
                if taken.is_ok() && !stopped {
                    taken = simulation
                        .frame(Direction::Up, record, writer)
                        .and_then(|()| check_faults(faults));
                }
            })?;
            taken?;
            end = received.end && !stopped;
            if progress.shows() {
                let done = self.feed.status().fraction.unwrap_or(0.0);
                progress.at((done * 1_000.0) as u64, Some(1_000));
            }
        }
        progress.clear();
        self.simulation.finish(writer)?;
        check_faults(&self.faults)?;
        Ok(end)
    }

    fn report(&self, pump: &PumpArgs) -> RunReport {
        let status = self.feed.status();
        RunReport {
            seed: pump.seed.seed,
            epoch_ns: self.start.as_nanos(),
            links: self.simulation.reports(),
            inputs: vec![InputReport {
                name: status.name,
                fraction: status.fraction,
                counts: status.counts.into_iter().collect(),
                behind_max_us: 0.0,
                notes: status.notes,
            }],
            ..RunReport::default()
        }
    }
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
