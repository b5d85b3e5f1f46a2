//! Inputs of figures: verdict logs and run reports.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use longwire_capture::log::{LogReader, Row};
use longwire_capture::open;

use crate::PlotError;
use crate::page::RunDocument;
use crate::series::{SINCE_FIRST_FRAME, SINCE_START};

/// An input file: a report, or a verdict log, which is read again for each use, because it may be
/// large.
#[derive(Debug)]
pub struct Input {
    /// Path of the file.
    pub path: PathBuf,
    /// Contents of a report; `links` also includes the ports of a network, where lateness is
    /// measured.
    pub report: Option<RunDocument>,
}

impl Input {
    /// Whether a file is a report. JSON starts with a brace; any other file is treated as a log.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn is_report(path: &Path) -> Result<bool, PlotError> {
        let unreadable = |source| PlotError::unreadable(path, source);
        let file = open::to_read(path).map_err(unreadable)?;
        if !file.metadata().map_err(unreadable)?.is_file() {
            let what = "not a regular file; inputs are read twice";
            return Err(PlotError::nothing(path, what));
        }
        let extension = path.extension();
        let named_json = extension.is_some_and(|extension| extension == "json");
        Ok(named_json || first_letter(BufReader::new(file)).map_err(unreadable)? == Some(b'{'))
    }

    /// Opens a file of either kind.
    ///
    /// # Errors
    /// If the file cannot be read, or is a report without links.
    pub fn open(path: &Path) -> Result<Input, PlotError> {
        let path = path.to_owned();
        let mut report = None;
        if Input::is_report(&path)? {
            let report = report.insert(RunDocument::read(&path)?);
            if !report.ports.is_empty() {
                // Omit links without frames, which are the majority in a large network.
                report.links.retain(|link| link.packets_in > 0);
                report.links.append(&mut report.ports);
            }
        }
        Ok(Input { path, report })
    }
}

/// Returns the first byte that is not whitespace.
fn first_letter(file: impl BufRead) -> std::io::Result<Option<u8>> {
    let is_space = |byte: &std::io::Result<u8>| byte.as_ref().is_ok_and(u8::is_ascii_whitespace);
    file.bytes().find(|byte| !is_space(byte)).transpose()
}

/// Time span of a log, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Start of the run, if recorded in the log.
    pub epoch: Option<i64>,
    /// Zero of the time axis: the first arrival or the start of the run.
    pub origin: i64,
    /// Last arrival or release.
    pub last: i64,
}

/// Determines the time span of a log, from its index or by reading the log.
///
/// # Errors
/// If the log cannot be read or is empty.
pub fn survey(path: &Path, mut at: impl FnMut(u64, u64)) -> Result<Span, PlotError> {
    let mut log = LogReader::open(path)?;
    let mut covered = log.span();
    if covered.is_none() {
        for_rows(&mut log, &mut at, |row, _| {
            let last = row.release_ns.unwrap_or(row.arrival_ns);
            let (first, before) = covered.unwrap_or((row.arrival_ns, last));
            covered = Some((first.min(row.arrival_ns), before.max(last)));
            Ok(())
        })?;
    }
    let (origin, last) = covered.ok_or_else(|| PlotError::nothing(path, "empty log"))?;
    let epoch = log.epoch();
    Ok(Span {
        epoch,
        origin,
        last,
    })
}

/// Number of rows between progress reports.
const ROWS_A_LOOK: u64 = 1 << 14;

/// Passes each row of a log to `take`, with the start of the run, and reports progress to `at`.
///
/// # Errors
/// If the log cannot be read, or `take` fails.
pub fn for_rows(
    log: &mut LogReader,
    at: &mut dyn FnMut(u64, u64),
    mut take: impl FnMut(&Row, Option<i64>) -> Result<(), PlotError>,
) -> Result<(), PlotError> {
    let mut rows = 0u64;
    while let Some(row) = log.next() {
        take(&row?, log.epoch())?;
        rows += 1;
        if rows.is_multiple_of(ROWS_A_LOOK) {
            let (done, all) = log.progress();
            at(done, all);
        }
    }
    Ok(())
}

/// Relation between the inputs.
#[derive(Debug)]
pub(super) struct OneRun {
    /// Whether the inputs are a log and a report of the same run.
    pub is_one: bool,
    /// Caption of the time axis.
    pub caption: &'static str,
    /// Times of the run's changes, in nanoseconds on the time axis.
    pub changes: Vec<i64>,
}

impl OneRun {
    /// Compares the inputs. If they belong to one run, sets the origin of the log to the start of
    /// the run, which reports and messages use.
    pub fn of(inputs: &[Input], spans: &mut [Option<Span>]) -> OneRun {
        let mut run = OneRun {
            is_one: false,
            caption: SINCE_FIRST_FRAME,
            changes: Vec::new(),
        };
        let mut reports = inputs.iter().filter_map(|input| input.report.as_ref());
        let mut logs = spans.iter_mut().flatten();
        let (2, Some(report), Some(span)) = (inputs.len(), reports.next(), logs.next()) else {
            return run;
        };
        let epoch = i64::try_from(report.epoch_ns).ok().filter(|at| *at > 0);
        // Older logs and reports do not record the start of their run.
        run.is_one = epoch.is_none() || span.epoch.is_none() || epoch == span.epoch;
        let Some(epoch) = epoch.filter(|_| run.is_one) else {
            return run;
        };
        if epoch <= span.origin {
            span.origin = epoch;
            run.caption = SINCE_START;
        }
        let made = report.changes.iter().flat_map(|changes| &changes.made);
        let times = made.map(|change| change.at_ns);
        let times = times.filter_map(|at| epoch.checked_add_unsigned(at));
        run.changes = times.filter_map(|at| at.checked_sub(span.origin)).collect();
        run
    }
}
