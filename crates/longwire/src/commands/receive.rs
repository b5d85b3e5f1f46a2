//! `longwire receive`: receives frames from a port or a capture, and compares them with the frames
//! sent.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use longwire_engine::replay::Pace;
use longwire_engine::{Nanos, Speed};
use longwire_io::port::registry;
use longwire_packet::filter::Filter;
use longwire_runtime::sent::IgnoredFields;
use longwire_traffic::receive::{
    AgainstTrace, CaptureReceiver, ReceiveConfig, ReceiveError, ReceiveReport, ReceiveRequirement,
    Receiver,
};

use crate::cli::{Paint, refuse_page};
use crate::error::{EXIT_FAILED, EXIT_FIDELITY};
use crate::progress::Progress;
use crate::receiving::text;
use crate::report::{StatusLine, check_file, print_error, print_json, print_line, write_file};
use crate::signals::stop_flag;
use crate::{Error, Globals, rights};

const AFTER_HELP: &str = "\
Times are kernel timestamps, not the times at which this program reads frames; with
pcap:FILE, they are the file's timestamps. Ctrl-C stops the run and prints the report.

Frames of `longwire generate` carry probes, which yield loss, reordering, one-way delay
and jitter. Delays between two machines are as accurate as their clocks.

Examples:
  longwire receive eth1 --time 10s                       rates, gaps, probes
  longwire receive eth1 --against sent.pcap --idle 2s    compare with the replayed trace
  longwire receive eth1 --expect-gap 70us --require 'gap_error.p99<10us,drift<1'
  longwire receive pcap:there.pcapng --against sent.pcap --ignore mac,ttl";

/// Arguments of `receive`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct ReceiveArgs {
    /// Port to receive on, or pcap:FILE
    #[arg(value_name = "PORT")]
    pub port: String,

    /// The expectation with which frames are compared.
    #[command(flatten)]
    pub judged: JudgedArgs,

    /// Conditions that end receiving.
    #[command(flatten)]
    pub end: EndArgs,

    /// Capture arriving frames with nanosecond timestamps: FILE ends in .pcap or .pcapng
    #[arg(long, value_name = "FILE", help_heading = "Recording")]
    pub capture: Option<String>,

    /// Detect machine pauses with a thread that spins at idle priority
    #[arg(long, help_heading = "Running")]
    pub witness: bool,

    /// Core for the receiving thread and the witness
    #[arg(long, value_name = "N", help_heading = "Running")]
    pub core: Option<usize>,

    /// Exit with code 3 unless these conditions hold, such as
    /// 'lost=0,gap_error.p99<10us,drift<1'
    #[arg(long, value_name = "EXPRESSION", long_help = REQUIRE_HELP, help_heading = "Report")]
    pub require: Option<ReceiveRequirement>,

    /// Also write the report to FILE, as JSON
    #[arg(long, value_name = "FILE", help_heading = "Report")]
    pub report: Option<PathBuf>,
}

const REQUIRE_HELP: &str = "\
Exit with code 3 unless these conditions hold, such as 'lost=0,gap_error.p99<10us,drift<1'

Conditions are separated by commas, each NAME OPERATOR VALUE with one of < <= = >= >. Names: \
packets, bytes, lost, duplicates, reordered, changed, foreign, matched, streams, unseen (counts); \
drift (absolute, in ppm); jitter (a time); gap, gap_error, delay, offset, each with .min, .p50, \
.p90, .p99, .p999, .max or .mean (times). Counts are sums over streams; of other values, the \
highest applies.";

/// The expectation with which frames are compared.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Comparison")]
pub struct JudgedArgs {
    /// Compare with this trace, which the sender sends
    #[arg(long, value_name = "TRACE")]
    pub against: Option<String>,

    /// The sender's --speed, such as 2x; default: 1x
    #[arg(long, value_name = "SPEED", requires = "against")]
    pub speed: Option<Speed>,

    /// The sender's --gap-cap, which limits the gaps of the trace
    #[arg(long, value_name = "TIME", requires = "against")]
    pub gap_cap: Option<Nanos>,

    /// Number of times the sender sends the trace; 0: unlimited [default: 1]
    #[arg(long = "loop", value_name = "N", requires = "against")]
    pub rounds: Option<u64>,

    /// Fields that may change in transit: mac, address, port, tos, ttl, checksum
    #[arg(long, value_name = "FIELDS", requires = "against")]
    pub ignore: Option<IgnoredFields>,

    /// Expected gap between frames, such as 70us
    #[arg(long, value_name = "TIME")]
    pub expect_gap: Option<Nanos>,

    /// Count only frames that match, such as 'udp port 5000'
    #[arg(long, value_name = "FILTER")]
    pub filter: Option<Filter>,
}

/// Conditions that end receiving.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Running")]
pub struct EndArgs {
    /// Stop after this time
    #[arg(long, value_name = "TIME")]
    pub time: Option<Nanos>,

    /// Stop after this many frames
    #[arg(long, value_name = "N")]
    pub count: Option<u64>,

    /// Stop after this time without frames, once one has arrived
    #[arg(long, value_name = "TIME")]
    pub idle: Option<Nanos>,
}

impl ReceiveArgs {
    fn config(&self) -> ReceiveConfig {
        let judged = &self.judged;
        ReceiveConfig {
            expect_gap: judged.expect_gap,
            against: judged.against.as_ref().map(|trace| AgainstTrace {
                trace: trace.clone(),
                pace: Pace::Trace(judged.speed.unwrap_or_default()),
                gap_cap: judged.gap_cap,
                rounds: judged.rounds.unwrap_or(1),
                ignored: judged.ignore.unwrap_or_default(),
            }),
            filter: judged.filter.clone(),
            count: self.end.count,
            idle: self.end.idle,
            capture: self.capture.clone(),
            witness: self.witness,
            core: self.core,
        }
    }
}

/// Receives frames, or reads a capture, and reports on them.
///
/// # Errors
/// If a port or a file cannot be opened.
pub fn run(args: &ReceiveArgs, globals: &Globals) -> Result<ExitCode, Error> {
    let files = [&args.capture, &args.judged.against];
    let files = files.into_iter().flatten().map(String::as_str);
    let files = registry::files(&args.port).chain(files);
    check_file(args.report.as_deref(), files)?;
    refuse_page(args.report.as_deref())?;
    let stop = stop_flag()?;
    let report = match args.port.strip_prefix("pcap:") {
        Some(capture) => judge(capture, args, &stop, globals)?,
        None => receive(args, &stop, globals)?,
    };
    finish(&report, args, globals)
}

/// Evaluates a complete capture.
fn judge(
    capture: &str,
    args: &ReceiveArgs,
    stop: &AtomicBool,
    globals: &Globals,
) -> Result<ReceiveReport, Error> {
    let live_only = [
        ("--time", args.end.time.is_some()),
        ("--idle", args.end.idle.is_some()),
        ("--witness", args.witness),
        ("--core", args.core.is_some()),
    ];
    if let Some((option, _)) = live_only.iter().find(|(_, given)| *given) {
        return Err(Error::usage(format!(
            "{option} needs a live port, not pcap:{capture}"
        )));
    }
    let mut receiver = CaptureReceiver::open(capture, args.config())?;
    let mut progress = Progress::new(Progress::BYTES, globals);
    while !stop.load(Ordering::Relaxed) && receiver.step() {
        let (done, all) = receiver.progress();
        progress.at(done, all);
    }
    progress.clear();
    let report = receiver.finish();
    for note in report.notes.iter().filter(|_| !globals.quiet) {
        print_line(format_args!("{note}"));
    }
    Ok(report)
}

/// Receives until a signal arrives or an end condition is met.
fn receive(
    args: &ReceiveArgs,
    stop: &AtomicBool,
    globals: &Globals,
) -> Result<ReceiveReport, Error> {
    /// Interval between signal checks.
    const LOOK: Duration = Duration::from_millis(20);
    /// Interval between status line updates.
    const EVERY: Duration = Duration::from_secs(1);
    let receiver = Receiver::open(&args.port, args.config(), None)?;
    rights::give_up_for(args.report.as_deref(), &[]);
    if !globals.quiet {
        for note in receiver.notes() {
            print_line(format_args!("{note}"));
        }
        // Printed even with --json: scripts that start a sender wait for this line.
        print_line(format_args!(
            "receiving at {}; Ctrl-C prints the report",
            args.port
        ));
    }
    let started = Instant::now();
    let time = args.end.time.map(|t| Duration::from_nanos(t.as_nanos()));
    let mut status = StatusLine::new(globals);
    // Preparing a report pauses reception, so prepare one only if it is shown.
    let watched = globals.talks() && io::stderr().is_terminal();
    let mut shown = started;
    while !stop.load(Ordering::Relaxed) && !receiver.ended() {
        let left = time.map_or(LOOK, |time| time.saturating_sub(started.elapsed()));
        if left.is_zero() {
            break;
        }
        std::thread::sleep(left.min(LOOK));
        if watched && shown.elapsed() >= EVERY {
            shown = Instant::now();
            status.say(&text::live(&receiver.snapshot()));
        }
    }
    status.clear();
    Ok(receiver.stop())
}

/// Writes the report and checks its requirements.
fn finish(
    report: &ReceiveReport,
    args: &ReceiveArgs,
    globals: &Globals,
) -> Result<ExitCode, Error> {
    let kept = write_file(args.report.as_deref(), report);
    if globals.json {
        print_json(report)?;
    } else if !globals.quiet {
        let paint = Paint::new(globals, &io::stdout());
        text::write(&mut io::stdout().lock(), report, globals.verbose, paint)?;
    }
    let not_kept = kept.err().map(|error| error.to_string());
    let errors: Vec<&String> = report.error.iter().chain(&not_kept).collect();
    for error in &errors {
        print_error(&error);
    }
    let required = args.require.as_ref();
    let unmet = required.map_or_else(Vec::new, |required| required.unmet(report));
    for clause in &unmet {
        print_line(format_args!("not met: {clause}"));
    }
    Ok(match (errors.is_empty(), unmet.is_empty()) {
        (false, _) => ExitCode::from(EXIT_FAILED),
        (true, false) => ExitCode::from(EXIT_FIDELITY),
        (true, true) => ExitCode::SUCCESS,
    })
}

impl From<ReceiveError> for Error {
    fn from(error: ReceiveError) -> Error {
        match error {
            ReceiveError::Port(error) => Error::Port(error),
            ReceiveError::Thread(_) => Error::failed(error),
        }
    }
}
