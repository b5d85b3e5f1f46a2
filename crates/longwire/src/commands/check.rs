//! `longwire check`: checks a topology file and prints the network.

mod shards;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use serde::Serialize;

use crate::steps::StepsOnStderr;
use crate::{Error, Globals};
use longwire_fabric::Numbered;
use longwire_fabric::shard_plan::ShardCount;
use longwire_runtime::host;
use longwire_topology::summary::Summary;
use longwire_topology::{Problem, StartFiles, Topology};

/// Arguments of `check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Reports all errors with file, line and column; the exit code is then 2. Opens no port and
changes nothing.

Examples:
  longwire check network.toml             print the network, and warnings
  longwire check network.toml --verbose   also the time of each step
  longwire check network.toml --json      as JSON
  longwire check network.toml --scenario rush-hour.toml
  longwire check network.toml --shards 4  divide the links among four shards")]
pub struct CheckArgs {
    /// Topology, a TOML file
    pub file: PathBuf,

    /// Check with the scenario of FILE; replaces that of the topology
    #[arg(long, value_name = "FILE")]
    pub scenario: Option<PathBuf>,

    /// Show how links are divided among shards: at most N, or auto for two per core
    #[arg(long, value_name = "N|auto")]
    pub shards: Option<ShardCount>,
}

/// The output with `--json`.
#[derive(Serialize)]
struct CheckResult<'a> {
    fine: bool,
    problems: &'a [Problem],
    warnings: &'a [Problem],
    doubts: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<Summary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shards: Option<shards::Shards>,
}

/// Exit code for an invalid file.
const EXIT_REFUSED: u8 = 2;

/// Checks a file and explains it.
///
/// # Errors
/// If it is invalid, with all reasons, or stdout cannot be written.
pub fn run(args: &CheckArgs, globals: &Globals) -> Result<ExitCode, Error> {
    let started = Instant::now();
    let watch = StepsOnStderr::start(globals);
    let steps = watch.steps();
    let read = Topology::read_in_steps(
        &args.file,
        args.scenario.as_deref(),
        &StartFiles::any(),
        steps,
    );
    let topology = match read {
        Ok(topology) => topology,
        Err(problems) => {
            drop(watch);
            return refuse(&problems, globals);
        }
    };
    let reading = started.elapsed();
    steps.begin("comparing rules", None);
    let doubts = topology.doubts();
    let compared = started.elapsed() - reading;
    let summary = Summary::of(&topology);
    let shards = args.shards.map(|count| {
        steps.begin("distributing links over shards", None);
        let network = Numbered::new(topology.clone());
        shards::Shards::of(&network, count, host::cores())
    });
    drop(watch);
    let mut out = io::stdout().lock();
    if globals.json {
        let checked = CheckResult {
            fine: true,
            problems: &[],
            warnings: &topology.warnings,
            doubts: &doubts,
            summary: Some(summary),
            shards,
        };
        write_json(&mut out, &checked)?;
        return Ok(ExitCode::SUCCESS);
    }
    if !globals.quiet {
        let shards = shards.iter().flat_map(shards::Shards::lines);
        for line in summary.lines().into_iter().chain(shards) {
            writeln!(out, "{line}")?;
        }
    }
    for warning in &topology.warnings {
        writeln!(out, "warning: {warning}")?;
    }
    for doubt in &doubts {
        writeln!(out, "warning: {}: {doubt}", args.file.display())?;
    }
    if globals.verbose {
        let (reading, compared) = (reading.as_secs_f64(), compared.as_secs_f64());
        writeln!(
            out,
            "read in {reading:.3} s, rules compared in {compared:.3} s"
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

fn refuse(problems: &[Problem], globals: &Globals) -> Result<ExitCode, Error> {
    if globals.json {
        let checked = CheckResult {
            fine: false,
            problems,
            warnings: &[],
            doubts: &[],
            summary: None,
            shards: None,
        };
        write_json(&mut io::stdout().lock(), &checked)?;
        return Ok(ExitCode::from(EXIT_REFUSED));
    }
    let mut err = io::stderr().lock();
    for problem in problems {
        writeln!(err, "error: {problem}")?;
    }
    Ok(ExitCode::from(EXIT_REFUSED))
}

fn write_json(out: &mut impl Write, value: &impl Serialize) -> Result<(), Error> {
    serde_json::to_writer_pretty(&mut *out, value).map_err(io::Error::from)?;
    writeln!(out)?;
    Ok(())
}
