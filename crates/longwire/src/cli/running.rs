//! Options of live runs and of reports.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use longwire_capture::CAPTURED_MAX;
use longwire_capture::log::{LogWriter, RowSink};
use longwire_engine::{Bytes, Nanos};
use longwire_io::TxPort;
use longwire_io::port::Port;
use longwire_io::port::options::LaunchMode;
use longwire_network::shard_plan::ShardCount;
use longwire_plot::SharedGatherer;
use longwire_runtime::{Faults, FileRecorder, Placement, Recorder, RunConfig, WaitMode};

use super::{ControlArgs, DuplexArgs};
use crate::Error;
use crate::report::{Requirement, RunKind, check_file};
use crate::table::joined;

/// Options that `run`, `exec` and `attach` have in common.
#[derive(Clone, Debug, Args)]
pub struct LiveArgs {
    /// TOML file of timed changes (`[[at]]` tables); replaces a topology's scenario
    #[arg(long, value_name = "FILE", help_heading = "Running")]
    pub scenario: Option<PathBuf>,

    /// The link.
    #[command(flatten)]
    pub link: DuplexArgs,

    /// The seed.
    #[command(flatten)]
    pub seed: SeedArgs,

    /// Timing, placement and shards.
    #[command(flatten)]
    pub running: RunningArgs,

    /// Recordings.
    #[command(flatten)]
    pub record: RecordArgs,

    /// The control API.
    #[command(flatten)]
    pub control: ControlArgs,

    /// The report.
    #[command(flatten)]
    pub report: ReportArgs,
}

impl LiveArgs {
    /// Checks that the report can be written without overwriting `files`, the scenario or the log.
    ///
    /// # Errors
    /// If it cannot be written, or would overwrite one of them.
    pub fn check_report<'a>(&'a self, files: impl Iterator<Item = &'a str>) -> Result<(), Error> {
        let own = [self.scenario.as_deref(), self.record.log.as_deref()];
        let own = own.into_iter().flatten().filter_map(Path::to_str);
        check_file(self.report.report.as_deref(), files.chain(own))
    }
}

/// Timing, placement and shards of a live run.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Running")]
pub struct RunningArgs {
    /// Waiting, memory and lateness.
    #[command(flatten)]
    pub timing: TimingArgs,

    /// Distribution of stages over threads
    #[arg(long, value_name = "HOW", value_enum, default_value_t)]
    pub placement: PlacementOption,

    /// Number of shards of a network, run by at most one thread per core; auto: two per core from
    /// 512 links, else one. Does not affect results. No effect on a link that cannot change
    #[arg(long, value_name = "N", default_value = "1")]
    pub shards: ShardCount,
}

/// Waiting, memory and lateness of a run.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Running")]
pub struct TimingArgs {
    /// How threads wait for the next release
    #[arg(long, value_name = "HOW", value_enum, default_value_t)]
    pub wait: Wait,

    /// Maximum memory for queued frames, per direction, or per port of a network, such as 512mb;
    /// default: 256mb to 4gb, derived from rate, delay and queue limit
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub memory: Option<Bytes>,

    /// Maximum lateness; later frames count as artifacts
    #[arg(long, value_name = "TIME", default_value = "1ms")]
    #[arg(allow_hyphen_values = true)]
    pub tolerance: Nanos,

    /// Count late frames due within this time after the start as late_start instead of late
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    #[arg(allow_hyphen_values = true)]
    pub grace: Nanos,

    /// Do not request real-time priority, locked memory or shallow idle states
    #[arg(long)]
    pub no_realtime: bool,
}

impl TimingArgs {
    /// Returns the runtime configuration; link plugins report to `faults`.
    pub fn config(&self, seed: u64, faults: &Faults) -> RunConfig {
        RunConfig {
            seed,
            wait: self.wait.into(),
            memory: self.memory,
            tolerance: self.tolerance,
            grace: self.grace,
            realtime: !self.no_realtime,
            faults: faults.clone(),
            ..RunConfig::default()
        }
    }
}

impl RunningArgs {
    /// Refuses more than one shard, for the reason `why`.
    ///
    /// # Errors
    /// [`Error::Usage`] if more than one shard is requested.
    pub fn refuse_shards(&self, why: &str) -> Result<(), Error> {
        if [Some(ShardCount::Auto), ShardCount::exactly(1)].contains(&Some(self.shards)) {
            return Ok(());
        }
        Err(Error::usage(format!("--shards: {why}")))
    }

    /// Returns the runtime configuration; link plugins report to `faults`.
    pub fn config(&self, seed: u64, faults: &Faults) -> RunConfig {
        RunConfig {
            placement: self.placement.into(),
            ..self.timing.config(seed, faults)
        }
    }
}

/// Recordings of a live run.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Recording")]
pub struct RecordArgs {
    /// Capture frames with nanosecond timestamps: PREFIX.in.pcapng on entry, PREFIX.out.pcapng on
    /// exit; one interface per port
    #[arg(long, value_name = "PREFIX")]
    pub capture: Option<String>,

    /// Capture at most BYTES of each frame; the original length is kept
    #[arg(long, value_name = "BYTES", requires = "capture")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(CAPTURED_MAX)))]
    pub snaplen: Option<u32>,

    /// Write a row per verdict to FILE, .csv or .parquet; see `longwire plot` and `longwire
    /// report`
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
}

impl RecordArgs {
    /// Returns a recorder for the named ports and links if anything is recorded or the report is an
    /// HTML page.
    ///
    /// # Errors
    /// If a file cannot be created.
    pub fn recorder<'a>(
        &self,
        (ports, links): (impl Iterator<Item = &'a str>, impl Iterator<Item = &'a str>),
        report: &ReportArgs,
    ) -> Result<Option<Box<dyn Recorder>>, Error> {
        let ports: Vec<&str> = ports.collect();
        let mut log: Vec<Box<dyn RowSink>> = Vec::new();
        if let Some(path) = &self.log {
            log.push(Box::new(LogWriter::create(path)?));
        }
        if report.is_page() {
            log.push(Box::new(report.rows.clone()));
        }
        let capture = (
            self.capture.as_deref(),
            self.snaplen.unwrap_or(CAPTURED_MAX),
        );
        Ok(FileRecorder::create(capture, log, &ports, links)?)
    }
}

/// Default seed.
pub const SEED_DEFAULT: u64 = 1;

/// The seed of all random streams.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Link")]
pub struct SeedArgs {
    /// Seed of all random streams; the same seed reproduces losses and delays
    #[arg(long, value_name = "N", default_value_t = SEED_DEFAULT, allow_negative_numbers = true)]
    pub seed: u64,
}

/// Output and requirements of the report.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Report")]
pub struct ReportArgs {
    /// Exit with code 3 unless these conditions hold, such as
    /// 'nearly-faithful,packets_in>0'
    #[arg(long, value_name = "EXPRESSION", long_help = REQUIRE_HELP)]
    pub require: Option<Requirement>,

    /// Also write the report to FILE: JSON, or a page with charts if it ends in .html
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,

    /// Rows of the log, for an HTML report.
    #[arg(skip)]
    pub rows: SharedGatherer,
}

impl ReportArgs {
    /// Returns whether the report is an HTML page.
    pub fn is_page(&self) -> bool {
        self.report.as_deref().is_some_and(is_page)
    }
    /// Refuses requirements that no run with these ports and links can meet.
    ///
    /// # Errors
    /// [`Error::Usage`], naming each unmeetable condition.
    pub fn refuse_unmeetable(
        &self,
        ports: &[&str],
        links: &[&str],
        kind: RunKind,
    ) -> Result<(), Error> {
        let required = self.require.iter();
        let unmeetable = required.flat_map(|required| required.unmeetable(ports, links, kind));
        match joined(unmeetable, "; ").as_str() {
            "" => Ok(()),
            unmeetable => Err(Error::usage(format!("--require: {unmeetable}"))),
        }
    }
}

/// Refuses an HTML page as the report of a command without links.
///
/// # Errors
/// [`Error::Usage`] if the report is a page.
pub fn refuse_page(report: Option<&Path>) -> Result<(), Error> {
    if report.is_some_and(is_page) {
        return Err(Error::usage(
            "--report: this command writes JSON only; choose a name that does not end in .html",
        ));
    }
    Ok(())
}

/// Returns whether the file name denotes an HTML page.
pub fn is_page(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default();
    extension.eq_ignore_ascii_case("html") || extension.eq_ignore_ascii_case("htm")
}

const REQUIRE_HELP: &str = "\
Exit with code 3 unless these conditions hold; for CI:
--require 'nearly-faithful,packets_in>0'

Conditions are separated by commas. Each is a grade of the run, or NAME OPERATOR VALUE \
with one of < <= = >= >. Grades:
  faithful                       exit with code 4 if the run is nearly faithful
  nearly-faithful                faithful, or at most 5 % of frames late and < 0.1 % lost
  no-frames, not-faithful        to test that a run fails
Names:
  artifacts, artifacts.KIND      frames not treated as the models decided
  artifacts-lost                 artifacts that are lost frames
  artifacts-own                  artifacts except late_paused (machine paused) and
                                 late_start (within --grace)
  drops, drops.REASON            frames dropped by the models
  lateness.p50, .p99, .p999, .max, .mean, .stddev
  lateness-own.p50, ...          lateness not caused by pauses or the start
  gap.p50, ...                   error of a replay's gaps
  sent.p50, ...                  lateness by send stamps
  packets_in, packets_out, bytes_in, bytes_out
  raised, ecn_marked, corrupted, duplicated, icmp_sent
  pauses.count, .max, .total     pauses of the machine, for the whole run
  stops.count, .max, .total      stops of the process, for the whole run
  received.NAME                  names of `receive --require`, with --receive
Artifacts and drops take a count or a share of the frames: artifacts<0.1%. Times need a \
unit. docs/reference/report.md lists each KIND and REASON. Conditions on artifacts and \
lateness apply to every port, others to every link. A prefix selects one: far.NAME a port, \
up.NAME or down.NAME a direction, adsl7.down.NAME a direction of a network.";

/// How stages wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Wait {
    /// Never sleep: most accurate, but occupies a core per thread
    Spin,
    /// Sleep until shortly before the release, then spin
    #[default]
    Adaptive,
    /// Sleep until the release: least CPU time, but late by the wake-up latency
    Block,
}

impl From<Wait> for WaitMode {
    fn from(wait: Wait) -> WaitMode {
        match wait {
            Wait::Spin => WaitMode::Spin,
            Wait::Adaptive => WaitMode::Adaptive,
            Wait::Block => WaitMode::Block,
        }
    }
}

/// Component that holds a replay's frames until they are due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LaunchBy {
    /// The device if its queueing discipline is etf with offload, otherwise nothing
    #[default]
    Auto,
    /// Nothing: each frame is handed over when it is due
    Off,
    /// The device; refuse the run if it cannot
    Device,
    /// The device or the kernel (queueing discipline etf or fq); refuse the run if neither
    /// can
    Queue,
}

impl LaunchBy {
    /// Returns the launch mode of a port for frames with or without departure times.
    ///
    /// # Errors
    /// If the port must hold frames, but they have no departure times.
    pub fn launch(self, timed: bool) -> Result<LaunchMode, Error> {
        match self {
            LaunchBy::Off => Ok(LaunchMode::Off),
            LaunchBy::Auto if !timed => Ok(LaunchMode::Off),
            LaunchBy::Auto => Ok(LaunchMode::Device),
            _ if !timed => Err(Error::usage(
                "--launch needs send times, which --topspeed does not set; use --rate",
            )),
            LaunchBy::Device => Ok(LaunchMode::Device),
            LaunchBy::Queue => Ok(LaunchMode::Queue),
        }
    }

    /// Returns whether a port must hold frames until their departure times.
    pub fn must_hold(self) -> bool {
        matches!(self, LaunchBy::Device | LaunchBy::Queue)
    }

    /// Checks that the port can hold frames if it must.
    ///
    /// # Errors
    /// If it must hold frames but cannot.
    pub fn check(self, name: &str, port: &Port) -> Result<(), Error> {
        if !self.must_hold() || port.tx.launch_lead().is_some() {
            return Ok(());
        }
        Err(Error::usage(format!(
            "--launch: {name} cannot hold frames; use packet:INTERFACE, and give all queues of \
             the device the queueing discipline etf with offload (tc-etf(8))"
        )))
    }
}

/// Distribution of stages over threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PlacementOption {
    /// per-stage with 4 or more cores, otherwise together
    #[default]
    Auto,
    /// One thread for all stages
    Together,
    /// One thread per direction
    PerDirection,
    /// One thread per stage
    PerStage,
}

impl From<PlacementOption> for Placement {
    fn from(place: PlacementOption) -> Placement {
        match place {
            PlacementOption::Auto => Placement::Auto,
            PlacementOption::Together => Placement::Together,
            PlacementOption::PerDirection => Placement::PerDirection,
            PlacementOption::PerStage => Placement::PerStage,
        }
    }
}
