//! Options of live runs and of reports.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use longwire_capture::log::{LogWriter, RowSink};
use longwire_engine::{Bytes, Nanos};
use longwire_fabric::shard_plan::ShardCount;
use longwire_io::TxPort;
use longwire_io::port::Port;
use longwire_io::port::options::LaunchMode;
use longwire_plot::SharedGatherer;
use longwire_runtime::{Faults, FileRecorder, Placement, Recorder, RunConfig, WaitMode};

use super::{ControlArgs, DuplexArgs};
use crate::Error;
use crate::report::Requirement;
use crate::report::finish::check_file;

/// Options that `run`, `exec` and `attach` have in common.
#[derive(Clone, Debug, Args)]
pub struct LiveArgs {
    /// Changes of the links while they run: a TOML file of `[[at]]` tables, in place of
    /// those of a network's file
    #[arg(long, value_name = "FILE", help_heading = "Running")]
    pub scenario: Option<PathBuf>,

    /// The link.
    #[command(flatten)]
    pub link: DuplexArgs,

    /// The seed.
    #[command(flatten)]
    pub seed: SeedArgs,

    /// Execution.
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
    /// Checks that the report can be written without replacing `files`, the scenario or
    /// the log.
    ///
    /// # Errors
    /// If it cannot be written, or would replace one.
    pub fn check_report<'a>(&'a self, files: impl Iterator<Item = &'a str>) -> Result<(), Error> {
        let own = [self.scenario.as_deref(), self.record.log.as_deref()];
        let own = own.into_iter().flatten().filter_map(Path::to_str);
        check_file(self.report.report.as_deref(), files.chain(own))
    }
}

/// Execution of a live link.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Running")]
pub struct RunningArgs {
    /// Waiting, memory and lateness.
    #[command(flatten)]
    pub timing: TimingArgs,

    /// How stages are distributed over threads
    #[arg(long, value_name = "HOW", value_enum, default_value_t)]
    pub placement: PlacementOption,

    /// Distribute the links of a network over this many shards, which threads
    /// process at the same time: a number, or auto for two per core.
    /// Verdicts, releases and logs do not depend on it
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

    /// The most memory that frames may wait in, each direction or output, as in
    /// 512mb; without it, derived from rate, delay and --read-ahead
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub memory: Option<Bytes>,

    /// A frame handed over later than this counts as an artifact
    #[arg(long, value_name = "TIME")]
    #[arg(default_value = "1ms", allow_hyphen_values = true)]
    pub tolerance: Nanos,

    /// Frames due within this time after the start that are late count as
    /// late_start, apart from late
    #[arg(long, value_name = "TIME")]
    #[arg(default_value = "100ms", allow_hyphen_values = true)]
    pub grace: Nanos,

    /// Request neither a better priority nor locked memory nor cores that stay
    /// awake
    #[arg(long)]
    pub no_realtime: bool,
}

impl TimingArgs {
    /// Returns the runtime's configuration; plugins of links report to `faults`.
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
    /// Refuses more than one shard.
    ///
    /// # Errors
    /// [`Error::Usage`], with the reason `why`.
    pub fn refuse_shards(&self, why: &str) -> Result<(), Error> {
        if [Some(ShardCount::Auto), ShardCount::exactly(1)].contains(&Some(self.shards)) {
            return Ok(());
        }
        Err(Error::Usage(format!("--shards: {why}")))
    }

    /// Returns the runtime's configuration; plugins of links report to `faults`.
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
    /// Capture with nanoseconds: PREFIX.in.pcapng holds the frames that entered and
    /// PREFIX.out.pcapng those that left, with an interface for each port
    #[arg(long, value_name = "PREFIX")]
    pub capture: Option<String>,

    /// Write a row for each verdict about a frame: FILE ends in .csv or
    /// .parquet; `longwire plot` and `longwire report` draw it
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
}

impl RecordArgs {
    /// Returns a recorder for the named ports and links, if anything is recorded or the
    /// report is a page.
    ///
    /// # Errors
    /// If a file cannot be created.
    pub fn recorder<'a>(
        &self,
        (ports, links): (impl Iterator<Item = &'a str>, impl Iterator<Item = &'a str>),
        report: &ReportArgs,
    ) -> Result<Option<Box<dyn Recorder>>, Error> {
        let ports: Vec<&str> = ports.collect();
        let log = self.log(report)?;
        let prefix = self.capture.as_deref();
        Ok(FileRecorder::create(prefix, log, &ports, links)?)
    }

    /// Returns the sinks of the log's rows: its file, and the report's page.
    fn log(&self, report: &ReportArgs) -> Result<Vec<Box<dyn RowSink>>, Error> {
        let mut sinks: Vec<Box<dyn RowSink>> = Vec::new();
        if let Some(path) = &self.log {
            sinks.push(Box::new(LogWriter::create(path)?));
        }
        if report.is_page() {
            sinks.push(Box::new(report.rows.clone()));
        }
        Ok(sinks)
    }
}

/// The seed without `--seed`.
pub const SEED_DEFAULT: u64 = 1;

/// The seed of all random streams.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Link")]
pub struct SeedArgs {
    /// The seed of every random stream: the same seed, the same losses and
    /// delays
    #[arg(long, value_name = "N")]
    #[arg(default_value_t = SEED_DEFAULT, allow_negative_numbers = true)]
    pub seed: u64,
}

/// Output and requirements of the report.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Report")]
pub struct ReportArgs {
    /// Exit with code 3 unless these conditions hold, as in
    /// 'nearly-faithful,packets_in>0'
    #[arg(long, value_name = "EXPRESSION", long_help = REQUIRE_HELP)]
    pub require: Option<Requirement>,

    /// Write the report to this file too: as JSON, or, if its name ends in .html,
    /// as a page with charts
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,

    /// The rows of the log, for a page.
    #[arg(skip)]
    pub rows: SharedGatherer,
}

impl ReportArgs {
    /// Returns whether the report is written as a page.
    pub fn is_page(&self) -> bool {
        self.report.as_deref().is_some_and(is_page)
    }
}

/// Refuses a page as the report of a command without links.
///
/// # Errors
/// [`Error::Usage`].
pub fn refuse_page(report: Option<&Path>) -> Result<(), Error> {
    if report.is_some_and(is_page) {
        return Err(Error::Usage(
            "--report: this command writes its report as JSON only; choose a name that does not \
             end in .html"
                .to_owned(),
        ));
    }
    Ok(())
}

/// Returns whether the file name is that of a page.
pub fn is_page(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default();
    extension.eq_ignore_ascii_case("html") || extension.eq_ignore_ascii_case("htm")
}

const REQUIRE_HELP: &str = "\
Exit with code 3 unless these conditions hold; for CI:
--require 'nearly-faithful,packets_in>0'

Conditions are joined by commas: a grade of the run, or a name, one of < <= = >= > and a \
value. Grades:
  faithful                       exits with 4 if the run is nearly faithful
  nearly-faithful                or better: up to 5 % of frames late, less than 0.1 % lost
  no-frames, not-faithful        for tests of tests
Names:
  artifacts, artifacts.KIND      frames that the emulator treated differently from the models
  artifacts-lost                 those that it lost
  artifacts-own                  without late_paused (the machine stood still) and late_start
                                 (within --grace)
  drops, drops.REASON            frames that the models dropped
  lateness.p50, .p99, .p999, .max, .mean, .stddev
  lateness-own.p50 and so on     without lateness by a pause of the machine or the start
  gap.p50 and so on              of the gaps of a replay
  sent.p50 and so on             by send stamps
  packets_in, packets_out, bytes_in, bytes_out
  raised, ecn_marked, corrupted, duplicated, icmp_sent
  pauses.count, .max, .total     when the machine stood still; of the whole run
  stops.count, .max, .total      when the process was stopped; of the whole run
  received.NAME                  all names of `receive --require`, with --receive
Artifacts and drops are compared with a count or with a share of the frames: artifacts<0.1%. \
Times need a unit. docs/reference/report.md lists each KIND and REASON. A condition on artifacts and lateness holds for every port, others for \
every link; far.NAME is about one port, up.NAME or down.NAME about one direction, and \
adsl7.down.NAME about one of a network's.";

/// How stages wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Wait {
    /// Never sleep: the most accurate, at the price of whole cores
    Spin,
    /// Sleep until shortly before the release, spin the rest
    #[default]
    Adaptive,
    /// Sleep until the release: the cheapest, late by the wake-up latency
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

/// The part of the system that holds a replay's frames until their time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LaunchBy {
    /// The device, where its queueing discipline is etf with offload
    #[default]
    Auto,
    /// None: each frame is handed over when it is due
    Off,
    /// The device; without it, the replay is refused
    Device,
    /// The device or the kernel, by the queueing discipline etf or fq
    Queue,
}

impl LaunchBy {
    /// Returns the launch mode of a port for frames with or without times.
    ///
    /// # Errors
    /// If frames without times must be held.
    pub fn launch(self, timed: bool) -> Result<LaunchMode, Error> {
        match self {
            LaunchBy::Off => Ok(LaunchMode::Off),
            LaunchBy::Auto if !timed => Ok(LaunchMode::Off),
            LaunchBy::Auto => Ok(LaunchMode::Device),
            _ if !timed => Err(Error::Usage(
                "--launch holds frames until their times, and with --topspeed they have none"
                    .to_owned(),
            )),
            LaunchBy::Device => Ok(LaunchMode::Device),
            LaunchBy::Queue => Ok(LaunchMode::Queue),
        }
    }

    /// Returns whether a port must hold frames.
    pub fn must_hold(self) -> bool {
        matches!(self, LaunchBy::Device | LaunchBy::Queue)
    }

    /// Checks that the port holds frames, if it must.
    ///
    /// # Errors
    /// If it does not.
    pub fn check(self, name: &str, port: &Port) -> Result<(), Error> {
        if !self.must_hold() || port.tx.launch_lead().is_some() {
            return Ok(());
        }
        Err(Error::Usage(format!(
            "--launch: {name} does not hold frames until their time; a device does if all its \
             queues have the queueing discipline etf with offload (tc-etf(8)) and the port is \
             packet:INTERFACE"
        )))
    }
}

/// Distribution of stages over threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PlacementOption {
    /// By the number of cores
    #[default]
    Auto,
    /// One thread runs every stage in turn
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
