//! `longwire simulate`: capture in, capture out, in virtual time.

use std::fs;
use std::io::{self, IsTerminal};
use std::os::unix::fs::MetadataExt;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use clap::Args;
use longwire_io::PortError;
use longwire_io::port::pcap::{CaptureFormat, CaptureReader, CaptureWriter};
use longwire_runtime::{LinkSetup, RunReport};

use crate::cli::{LINK_HELP, ReportArgs, SeedArgs, SimplexArgs};
use crate::progress::Progress;
use crate::report::finish::{Place, finish};
use crate::report::start;
use crate::signals::stop_flag;
use crate::simulate::{Direction, Simulation};
use crate::{Error, Globals};

const EXAMPLES: &str = "\
One direction of a link: each frame leaves with the stamp that it came with
plus the time that the emulated link takes, to the nanosecond. Frames are
taken by the length they had on the wire; frames without a whole Ethernet
header too. Frames stamped before the one in front of them count as
simultaneous with it, and are counted.

OUT ends in .pcap (nanoseconds) or .pcapng; `-` is stdin or stdout. Ctrl-C
ends the simulation: what was written until then is kept.

Examples:
  longwire simulate in.pcap out.pcap --rate 10mbit --delay 20ms
  longwire simulate in.pcap out.pcapng --loss 1% --seed 7 --json
  zcat in.pcap.gz | longwire simulate - out.pcap --delay uniform:min=5ms,max=9ms";

/// What `simulate` takes.
#[derive(Debug, Args)]
#[command(after_help = format!("{LINK_HELP}\n\n{EXAMPLES}"))]
pub struct SimulateArgs {
    /// The capture to read: pcap or pcapng; - is stdin
    #[arg(value_name = "IN")]
    pub input: String,

    /// The capture to write: .pcap or .pcapng; - is stdout
    #[arg(value_name = "OUT")]
    pub output: String,

    /// The link.
    #[command(flatten)]
    pub link: SimplexArgs,

    /// The seed.
    #[command(flatten)]
    pub seed: SeedArgs,

    /// Which direction of a live run to repeat: up and down have random
    /// streams of their own
    #[arg(long = "link", value_name = "DIRECTION", value_enum, default_value_t)]
    #[arg(help_heading = "Link")]
    pub direction: Direction,

    /// The report.
    #[command(flatten)]
    pub report: ReportArgs,
}

/// Simulates a capture.
///
/// # Errors
/// If a file cannot be opened, read or written; a capture that breaks off in
/// the middle is simulated up to there first.
pub fn run(args: &SimulateArgs, globals: &Globals) -> Result<ExitCode, Error> {
    let config = args.link.link()?;
    check_output(args, globals)?;
    let stop = stop_flag()?;
    let mut reader = CaptureReader::open(&args.input)?;
    let mut writer = CaptureWriter::create(&args.output)?;
    let link = [LinkSetup {
        name: args.direction.name().to_owned(),
        config,
    }];
    let warnings = start::announce(&link, globals)?;
    let [LinkSetup { config, .. }] = link;
    let started = Instant::now();
    let mut simulation = Simulation::new(config, args.seed.seed, args.direction);
    let mut progress = Progress::new(Progress::BYTES, globals);
    let ended = replay(
        &mut simulation,
        &mut reader,
        &mut writer,
        &mut progress,
        &stop,
    );
    progress.clear();
    let written = writer.finish();
    let ended = ended.and_then(|end| written.map(|()| end));

    let report = RunReport {
        seed: args.seed.seed,
        duration_s: started.elapsed().as_secs_f64(),
        links: vec![simulation.report()],
        notes: warnings,
        error: match ended {
            Ok(End::Whole) => None,
            Ok(End::Interrupted) => Some(format!(
                "interrupted; {} holds what was released until then",
                args.output
            )),
            Err(error) => Some(error.to_string()),
        },
        ..RunReport::default()
    };
    let place = match args.output.as_str() {
        "-" => Place::Stderr,
        _ => Place::Stdout,
    };
    finish(&report, &args.report, globals, place)
}

/// How a replay ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Whole,
    Interrupted,
}

/// Between two looks at the signals and the clock so many frames pass.
const FRAMES_A_LOOK: u32 = 4096;

/// Reads to the end, whatever that is, and releases all that was read before
/// it.
fn replay(
    simulation: &mut Simulation,
    reader: &mut CaptureReader,
    writer: &mut CaptureWriter,
    progress: &mut Progress,
    stop: &AtomicBool,
) -> Result<End, PortError> {
    loop {
        for _ in 0..FRAMES_A_LOOK {
            match reader.next() {
                Ok(Some(record)) => simulation.frame(record, writer)?,
                Ok(None) => {
                    simulation.finish(writer)?;
                    return Ok(End::Whole);
                }
                Err(error) => {
                    simulation.finish(writer)?;
                    return Err(error);
                }
            }
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(End::Interrupted);
        }
        progress.at(reader.offset(), reader.size());
    }
}

/// Refuses an output that would destroy the input or a terminal's screen.
fn check_output(args: &SimulateArgs, globals: &Globals) -> Result<(), Error> {
    let usage = |message: String| Err(Error::Usage(message));
    if CaptureFormat::of(&args.output).is_none() {
        return usage(format!(
            "OUT '{}': end its name in .pcap or .pcapng, or write - for stdout",
            args.output
        ));
    }
    if args.output == "-" {
        if globals.json {
            return usage("OUT is stdout, and so is --json; use --report FILE".to_owned());
        }
        if io::stdout().is_terminal() {
            return usage("OUT is a terminal; name a file, or pipe stdout".to_owned());
        }
    }
    if same_file(&args.input, &args.output) {
        return usage(format!(
            "IN and OUT are the same file, '{}'; choose another name for OUT",
            args.output
        ));
    }
    Ok(())
}

/// Whether two names lead to one regular file.
fn same_file(input: &str, output: &str) -> bool {
    let identity = |path: &str, standard: &str| {
        let metadata = fs::metadata(if path == "-" { standard } else { path }).ok()?;
        metadata.is_file().then(|| (metadata.dev(), metadata.ino()))
    };
    let input = identity(input, "/dev/stdin");
    input.is_some() && input == identity(output, "/dev/stdout")
}
