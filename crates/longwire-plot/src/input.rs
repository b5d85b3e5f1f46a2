//! Inputs of figures: verdict logs and run reports.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use longwire_capture::log::LogReader;
use longwire_capture::open;

use crate::PlotError;
use crate::page::RunDocument;
use crate::series::Zero;

/// An input file.
#[derive(Debug)]
pub enum Input {
    /// A verdict log, read again for each use, because it may be large.
    Log {
        /// Path of the log.
        path: PathBuf,
    },
    /// A report.
    Report {
        /// Path of the report.
        path: PathBuf,
        /// Contents of the report; `links` also includes the ports of a network, where lateness is
        /// measured.
        report: Box<RunDocument>,
    },
}

/// Kind of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputKind {
    /// A verdict log.
    Log,
    /// A report.
    Report,
}

impl InputKind {
    /// Returns the kind's name for messages.
    pub fn name(self) -> &'static str {
        match self {
            InputKind::Log => "log",
            InputKind::Report => "report",
        }
    }
}

impl Input {
    /// Detects the kind of a file. JSON starts with a brace; any other file is treated as a log.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn kind(path: &Path) -> Result<InputKind, PlotError> {
        let unreadable = |source| PlotError::File {
            path: path.to_owned(),
            action: "cannot read it",
            source,
        };
        let file = open::to_read(path).map_err(unreadable)?;
        if !file.metadata().map_err(unreadable)?.is_file() {
            let path = path.to_owned();
            let what = "not a regular file; inputs are read twice".to_owned();
            return Err(PlotError::Nothing { path, what });
        }
        let named_json = path
            .extension()
            .is_some_and(|extension| extension == "json");
        let mut file = BufReader::new(file);
        if named_json || first_letter(&mut file).map_err(unreadable)? == Some(b'{') {
            return Ok(InputKind::Report);
        }
        Ok(InputKind::Log)
    }

    /// Opens a file of either kind.
    ///
    /// # Errors
    /// If the file cannot be read, or is a report without links.
    pub fn open(path: &Path) -> Result<Input, PlotError> {
        if Input::kind(path)? == InputKind::Log {
            let path = path.to_owned();
            return Ok(Input::Log { path });
        }
        let mut report = Box::new(RunDocument::read(path)?);
        if !report.ports.is_empty() {
            // Most links of a large network carry no frames.
            report.links.retain(|link| link.packets_in > 0);
            report.links.append(&mut report.ports);
        }
        let path = path.to_owned();
        Ok(Input::Report { path, report })
    }

    /// Returns the file's path.
    pub fn path(&self) -> &Path {
        match self {
            Input::Log { path } | Input::Report { path, .. } => path,
        }
    }
}

/// Returns the first byte that is not whitespace.
fn first_letter(file: &mut impl BufRead) -> std::io::Result<Option<u8>> {
    for byte in file.bytes() {
        let byte = byte?;
        if !byte.is_ascii_whitespace() {
            return Ok(Some(byte));
        }
    }
    Ok(None)
}

/// Time span of a log, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Start of the run, if recorded in the log.
    pub epoch: Option<i64>,
    /// Zero of the time axis: the first arrival or the start of the run.
    pub origin: i64,
    /// First arrival.
    pub first: i64,
    /// Last arrival or release.
    pub last: i64,
}

/// Determines the time span of a log, from its index or by reading the log.
///
/// # Errors
/// If the log cannot be read or is empty.
pub fn survey(path: &Path, mut at: impl FnMut(u64, u64)) -> Result<Span, PlotError> {
    let mut log = LogReader::open(path)?;
    let span = |epoch: Option<i64>, (first, last): (i64, i64)| Span {
        epoch,
        origin: first,
        first,
        last,
    };
    if let Some(covered) = log.span() {
        return Ok(span(log.epoch(), covered));
    }
    let mut covered: Option<(i64, i64)> = None;
    let mut rows = 0u64;
    while let Some(row) = log.next() {
        let row = row?;
        let last = row.release_ns.unwrap_or(row.arrival_ns);
        let (first, before) = covered.unwrap_or((row.arrival_ns, last));
        covered = Some((first.min(row.arrival_ns), before.max(last)));
        rows += 1;
        if rows.is_multiple_of(ROWS_A_LOOK) {
            let (done, all) = log.progress();
            at(done, all);
        }
    }
    let covered = covered.ok_or_else(|| PlotError::Nothing {
        path: path.to_owned(),
        what: "empty log".to_owned(),
    })?;
    Ok(span(log.epoch(), covered))
}

/// Number of rows between progress reports.
pub const ROWS_A_LOOK: u64 = 1 << 14;

/// Relation between the inputs.
#[derive(Debug)]
pub(super) struct OneRun {
    /// Whether the inputs are a log and a report of the same run.
    pub is_one: bool,
    /// Zero of the time axis.
    pub zero: Zero,
    /// Times of the run's changes, in nanoseconds on the time axis.
    pub changes: Vec<i64>,
}

impl OneRun {
    /// Compares the inputs. If they belong to one run, sets the origin of the log to the start of
    /// the run, as in reports and messages.
    pub fn of(inputs: &[Input], spans: &mut [Option<Span>]) -> OneRun {
        let mut run = OneRun {
            is_one: false,
            zero: Zero::FirstFrame,
            changes: Vec::new(),
        };
        let mut reports = inputs.iter().filter_map(|input| match input {
            Input::Report { report, .. } => Some(report),
            Input::Log { .. } => None,
        });
        let mut logs = spans.iter_mut().flatten();
        let (Some(report), None, Some(span), None) =
            (reports.next(), reports.next(), logs.next(), logs.next())
        else {
            return run;
        };
        let epoch = start(report);
        // Older logs and reports do not record the start of their run.
        run.is_one = epoch.is_none() || span.epoch.is_none() || epoch == span.epoch;
        let Some(epoch) = epoch.filter(|_| run.is_one) else {
            return run;
        };
        if epoch <= span.first {
            span.origin = epoch;
            run.zero = Zero::RunStart;
        }
        let made = report.changes.iter().flat_map(|changes| &changes.made);
        let times = made.map(|change| change.at_ns);
        let times = times.filter_map(|at| epoch.checked_add_unsigned(at));
        run.changes = times.filter_map(|at| at.checked_sub(span.origin)).collect();
        run
    }
}

/// Returns the start of a report's run, if recorded.
fn start(report: &RunDocument) -> Option<i64> {
    let epoch = i64::try_from(report.epoch_ns).ok()?;
    (epoch > 0).then_some(epoch)
}
