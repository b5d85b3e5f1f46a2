//! `longwire check`: validates a topology file and prints the network.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use longwire_engine::Nanos;
use longwire_network::Numbered;
use longwire_network::shard_plan::ShardCount;
use longwire_runtime::host;
use longwire_topology::summary::Summary;
use longwire_topology::{Problem, StartFiles, Topology};
use longwire_units::count_of;
use serde::Serialize;

use crate::progress::StepsOnStderr;
use crate::report::output::{print_error, print_json, write_json};
use crate::{Error, Globals};

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

    /// Check with the scenario in FILE instead of the topology's
    #[arg(long, value_name = "FILE")]
    pub scenario: Option<PathBuf>,

    /// Show how links are divided among at most N shards; auto: two per core from 512 links, else
    /// one
    #[arg(long, value_name = "N|auto")]
    pub shards: Option<ShardCount>,
}

/// Output with `--json`.
#[derive(Default, Serialize)]
struct CheckResult<'a> {
    fine: bool,
    problems: &'a [Problem],
    warnings: &'a [Problem],
    doubts: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<Summary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shards: Option<Shards>,
}

/// Exit code for an invalid file.
const EXIT_REFUSED: u8 = 2;

/// Validates a file and explains it.
///
/// # Errors
/// If the file is invalid (the error lists all reasons), or stdout cannot be written.
pub fn run(args: &CheckArgs, globals: &Globals) -> Result<ExitCode, Error> {
    let started = Instant::now();
    let watch = StepsOnStderr::start(globals);
    let steps = watch.steps();
    let (file, scenario) = (&args.file, args.scenario.as_deref());
    let read = Topology::read_in_steps(file, scenario, &StartFiles::any(), steps);
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
        Shards::of(&Numbered::new(topology.clone()), count, host::cores())
    });
    drop(watch);
    let mut out = io::stdout().lock();
    if globals.json {
        let checked = CheckResult {
            fine: true,
            warnings: &topology.warnings,
            doubts: &doubts,
            summary: Some(summary),
            shards,
            ..CheckResult::default()
        };
        write_json(&mut out, &checked)?;
        return Ok(ExitCode::SUCCESS);
    }
    if !globals.quiet {
        let shards = shards.iter().flat_map(Shards::lines);
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
            problems,
            ..CheckResult::default()
        };
        print_json(&checked)?;
    } else {
        problems.iter().for_each(print_error);
    }
    Ok(ExitCode::from(EXIT_REFUSED))
}

/// Maximum number of link names shown per shard.
const NAMES_SHOWN: usize = 6;

/// Maximum number of cuts shown.
const CUTS_SHOWN: usize = 10;

/// Assignment of links to shards, by name.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Shards {
    /// Requested shard count, as written.
    asked: String,
    /// Reason for this shard count and these cuts.
    reason: String,
    /// Minimum lookahead over all cuts, in nanoseconds. Bounds how far one shard can run ahead of
    /// another.
    lookahead_ns: Option<u64>,
    /// Shards, by number.
    shards: Vec<Shard>,
    /// Cuts, where paths change shards, by increasing lookahead.
    cuts: Vec<NamedCut>,
}

#[derive(Clone, Debug, Serialize)]
struct Shard {
    /// Names of the shard's links.
    links: Vec<String>,
    /// Load; in bit/s if the rates are known.
    load: u64,
    /// Fraction of the total load, from 0 to 1.
    share: f64,
}

/// A point where paths change shards.
#[derive(Clone, Debug, Serialize)]
struct NamedCut {
    link: String,
    to: String,
    lookahead_ns: u64,
}

impl Shards {
    /// Plans a network's shards for a machine with `cores` cores.
    pub(super) fn of(network: &Numbered, count: ShardCount, cores: usize) -> Shards {
        let plan = network.shard_plan(count, cores);
        let links = network.links();
        let total: f64 = plan.loads.iter().map(|load| *load as f64).sum();
        let shard = |load: &u64| Shard {
            links: Vec::new(),
            load: *load,
            // Without any load, the quotient is NaN, and `min` returns 1.
            share: (*load as f64 / total).min(1.0),
        };
        let mut shards: Vec<Shard> = plan.loads.iter().map(shard).collect();
        for (link, shard) in links.iter().zip(&plan.shard_of) {
            if !link.removed {
                shards[usize::from(*shard)].links.push(link.name.clone());
            }
        }
        let name = |link: u32| links[link as usize].name.clone();
        let mut cuts = plan.cuts;
        cuts.sort_by_key(|cut| (cut.lookahead, cut.link, cut.to));
        let named = cuts.iter().map(|cut| NamedCut {
            link: name(cut.link),
            to: name(cut.to),
            lookahead_ns: cut.lookahead.as_nanos(),
        });
        Shards {
            asked: count.to_string(),
            reason: plan.reason,
            lookahead_ns: plan.lookahead.map(Nanos::as_nanos),
            shards,
            cuts: named.collect(),
        }
    }

    /// Returns the plan as lines of text.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "shards     {} ({} requested): {}",
            self.shards.len(),
            self.asked,
            self.reason
        )];
        for (number, shard) in self.shards.iter().enumerate() {
            let names = &shard.links[..shard.links.len().min(NAMES_SHOWN)];
            let more = match shard.links.len() - names.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            lines.push(format!(
                "  shard {number:<2} {:.1} % of the load, {}: {}{more}",
                shard.share * 100.0,
                count_of(shard.links.len() as u64, "link"),
                names.join(", ")
            ));
        }
        for cut in self.cuts.iter().take(CUTS_SHOWN) {
            let lookahead = Nanos::from_nanos(cut.lookahead_ns);
            lines.push(format!(
                "  cut      {lookahead} between {} and {}",
                cut.link, cut.to
            ));
        }
        if self.cuts.len() > CUTS_SHOWN {
            let more = (self.cuts.len() - CUTS_SHOWN) as u64;
            let longest = self.cuts.iter().map(|cut| cut.lookahead_ns).max();
            lines.push(format!(
                "           and {}, up to {}",
                count_of(more, "other cut"),
                Nanos::from_nanos(longest.unwrap_or(0))
            ));
        }
        lines
    }
}
