//! `generate` and `replay` with `--to pcap:FILE`: writes a feed to captures, in virtual time.
//!
//! No clock is read, so the same input and options always produce byte-identical files.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use longwire_capture::{CaptureFormat, Record, same_file};
use longwire_engine::Nanos;
use longwire_runtime::deciding::Simulation;
use longwire_runtime::record::Epoch;
use longwire_runtime::{Feed, InputReport, LinkSetup, RunReport};
use nix::poll::{PollFd, PollFlags, poll};

use crate::cli::{PumpArgs, StartAt};
use crate::progress::Progress;
use crate::report::{Ending, ReportStream, finish, on_stuck_plugin};
use crate::simulate::{Direction, Outputs, Stop, VirtualRun};
use crate::{Error, Globals};

/// Frames per batch.
const BURST: usize = 256;

/// Timeout for slow input, in milliseconds, after which signals are checked.
const WAIT_MS: u8 = 50;

/// Direction of frames, per `--to`.
const DIRECTIONS: [Direction; 2] = [Direction::Up, Direction::Down];

/// Returns the captures to write; `None` if a `--to` is a sending port.
///
/// # Errors
/// If a `--to` names a capture to read, or there are too many.
pub(super) fn captures(to: &[String]) -> Result<Option<Vec<&str>>, Error> {
    let captures: Result<Vec<Option<&str>>, Error> = to.iter().map(|to| capture(to)).collect();
    let captures: Option<Vec<&str>> = captures?.into_iter().collect();
    match captures.as_deref() {
        Some(files) if files.len() > DIRECTIONS.len() => Err(Error::usage(format!(
            "--to pcap: at most {} captures",
            DIRECTIONS.len()
        ))),
        Some([one, other]) if one == other || same_file(one, other) => Err(Error::usage(format!(
            "--to '{one}' is given twice; choose another name"
        ))),
        _ => Ok(captures),
    }
}

fn capture(to: &str) -> Result<Option<&str>, Error> {
    let Some(file) = to.strip_prefix("pcap:") else {
        return Ok(None);
    };
    let file = file.strip_prefix("out=").unwrap_or(file);
    if file.starts_with("in=") || file.contains(",in=") {
        return Err(Error::usage(format!(
            "--to {to}: an output cannot read a capture; use pcap:FILE"
        )));
    }
    if file == "-" || CaptureFormat::of(file).is_none() {
        return Err(Error::usage(format!(
            "--to {to}: name must end in .pcap or .pcapng"
        )));
    }
    Ok(Some(file))
}

/// Refuses options that need a sending port.
///
/// # Errors
/// If such an option is given.
pub(super) fn check(pump: &PumpArgs, topspeed: bool, receives: bool) -> Result<(), Error> {
    let (captures, holds) = (pump.record.capture.is_some(), pump.launch.must_hold());
    let starts_in = matches!(pump.start_at, Some(StartAt::In(_)));
    Error::refuse_first(&[
        (
            topspeed,
            "--topspeed gives frames no timestamps; use --rate with --to pcap:FILE",
        ),
        (receives, "--receive needs a port, not a capture"),
        (
            captures,
            "--capture: --to is already a capture; remove --capture",
        ),
        (holds, "--launch needs a live port, not a capture"),
        (
            pump.control.is_given(),
            "--control and --view need a live port, not --to pcap:FILE",
        ),
        (
            starts_in,
            "--start-at: --to pcap:FILE needs a date; write 2026-11-20T17:30:00Z or Unix seconds",
        ),
    ])
}

/// A feed to be written to captures.
pub(super) struct FeedFile<'a> {
    pub feed: Box<dyn Feed>,
    /// One capture per output of the feed.
    pub files: &'a [&'a str],
    /// Link of each capture.
    pub links: Vec<LinkSetup>,
    /// Start of virtual time, unless `--start-at` sets it.
    pub start: Nanos,
    pub pump: &'a PumpArgs,
    /// Set by a signal handler.
    pub stop: &'a AtomicBool,
}

impl FeedFile<'_> {
    /// Writes all frames, each through its output's link.
    ///
    /// # Errors
    /// If an option does not apply, or a file cannot be written.
    pub fn write(mut self, globals: &Globals) -> Result<ExitCode, Error> {
        let pump = self.pump;
        if let Some(StartAt::At(start)) = pump.start_at {
            self.start = start;
        }
        let links = std::mem::take(&mut self.links);
        let names = links.iter().map(|link| link.name.as_str());
        let recorder = pump.record.recorder((names.clone(), names), &pump.report)?;
        let outputs = Outputs::of_pair(self.files)?;
        let announcement = pump.announce(&links, globals);
        announcement.print(globals);
        let seed = pump.seed.seed;
        on_stuck_plugin(seed, &pump.report, globals, ReportStream::Stdout);
        let ports = DIRECTIONS.map(Direction::port).into_iter();
        let simulation = Simulation::pair(ports.zip(links).collect(), seed, self.start, recorder)?;
        let mut run = VirtualRun::new(simulation, outputs, None, &pump.link.faults, self.stop);
        let began = Instant::now();
        let ended = self.feed_all(&mut run, globals);
        let files = self.files.join(" and ");
        let interrupted = format!("interrupted; {files} has the frames written so far");
        let report = run.finish(ended, &interrupted);
        let status = self.feed.status();
        let report = RunReport {
            duration_s: began.elapsed().as_secs_f64(),
            inputs: vec![InputReport {
                name: status.name,
                fraction: status.fraction,
                counts: status.counts.into_iter().collect(),
                behind_max_us: 0.0,
                notes: status.notes,
            }],
            notes: announcement.warnings,
            ..report
        };
        finish(&report, &Ending::of(&report), &pump.report, globals)
    }

    /// Reads all frames from the feed and releases them. After a signal, releases the frames
    /// already read.
    fn feed_all(&mut self, run: &mut VirtualRun<'_>, globals: &Globals) -> Result<(), Stop> {
        let start = self.start;
        self.feed.begin(Epoch {
            monotonic: start,
            wall: start,
        });
        let mut progress = Progress::new(Progress::SHARE, globals);
        let mut taken = Ok(());
        let mut read = Ok(());
        while taken.is_ok() {
            let received = self.feed.feed(BURST, &mut |fed| {
                if taken.is_ok() {
                    let record = Record {
                        stamp: start.saturating_add(fed.due),
                        bytes: fed.bytes,
                        wire_len: fed.wire_len,
                        interface: 0,
                    };
                    taken = run.frame(DIRECTIONS[fed.output].port(), record);
                }
            });
            match received {
                Ok(received) if received.end => break,
                Ok(received) if received.frames < BURST => self.wait(),
                Ok(_) => {}
                Err(error) => {
                    // Frames read before the error are still written.
                    read = Err(Error::from(error));
                    break;
                }
            }
            if self.stop.load(Ordering::Relaxed) {
                taken = Err(Stop::Signal);
            }
            if progress.shows() {
                let done = self.feed.status().fraction.unwrap_or(0.0);
                progress.at((done * 1_000.0) as u64, Some(1_000));
            }
        }
        progress.clear();
        if matches!(taken, Ok(()) | Err(Stop::Signal)) {
            run.drain()?;
        }
        taken?;
        Ok(read?)
    }

    /// Waits for slow input, at most [`WAIT_MS`].
    fn wait(&self) {
        if let Some(readable) = self.feed.readable() {
            // Ignore errors and spurious wake-ups: the caller polls again.
            let _ = poll(&mut [PollFd::new(readable, PollFlags::POLLIN)], WAIT_MS);
        }
    }
}
