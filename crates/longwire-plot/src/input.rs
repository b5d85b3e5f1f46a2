//! The inputs of figures: verdict logs and reports of runs.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use longwire_capture::log::LogReader;
use longwire_capture::open;
use serde::Deserialize;

use super::PlotError;
use super::page::ChangesDocument;

/// A file to draw from.
#[derive(Debug)]
pub enum Input {
    /// A verdict log; read for each use, because it may be large.
    Log {
        /// Its file.
        path: PathBuf,
    },
    /// A report.
    Report {
        /// Its file.
        path: PathBuf,
        /// Its contents.
        report: Report,
    },
}

/// The parts of a run's report that are drawn.
#[derive(Debug, Deserialize)]
#[serde(from = "ReportFile")]
pub struct Report {
    /// Its links; of a network also its ports, where lateness is measured.
    pub links: Vec<ReportLink>,
    /// Its changes.
    pub changes: ChangesDocument,
    /// The start of the run, in nanoseconds since 1970.
    pub epoch_ns: u64,
}

/// A report as it is written: of a link, or of a network, which has ports.
#[derive(Deserialize)]
struct ReportFile {
    links: Vec<ReportLink>,
    #[serde(default)]
    ports: Vec<ReportLink>,
    #[serde(default)]
    changes: Option<ChangesDocument>,
    #[serde(default)]
    epoch_ns: u64,
}

impl From<ReportFile> for Report {
    fn from(written: ReportFile) -> Report {
        let ReportFile {
            mut links,
            ports,
            changes,
            epoch_ns,
        } = written;
        if !ports.is_empty() {
            // Most links of a large network carry no frames.
            links.retain(|link| link.packets_in > 0);
            links.extend(ports);
        }
        let changes = changes.unwrap_or_default();
        Report {
            links,
            changes,
            epoch_ns,
        }
    }
}

/// The parts of a link's report that are drawn. Times are in microseconds.
#[derive(Debug, Deserialize)]
#[allow(missing_docs, reason = "the report's own documentation says it")]
pub struct ReportLink {
    pub name: String,
    pub packets_in: u64,
    pub packets_out: u64,
    /// Absent from a port.
    #[serde(default)]
    pub drops: Drops,
    /// Present in a network's links only.
    #[serde(default)]
    pub dropped: BTreeMap<String, u64>,
    /// A network counts artifacts at its ports.
    #[serde(default)]
    pub artifacts: BTreeMap<String, u64>,
    /// A network measures lateness at its ports.
    pub lateness_us: Option<ReportLateness>,
}

/// Drops by reason.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Drops {
    /// Drops by the reason's name.
    Named(BTreeMap<String, u64>),
    /// Counts as the reports of early networks had them: in an order that the
    /// report does not contain. The names are in `dropped`.
    Numbered(Vec<u64>),
}

impl Default for Drops {
    fn default() -> Drops {
        Drops::Named(BTreeMap::new())
    }
}

impl ReportLink {
    /// Returns the drops by reason.
    pub fn drops(&self) -> &BTreeMap<String, u64> {
        match &self.drops {
            Drops::Named(drops) => drops,
            Drops::Numbered(_) => &self.dropped,
        }
    }
}

/// Handover − release, in microseconds.
#[derive(Debug, Deserialize)]
#[allow(missing_docs, reason = "the report's own documentation says it")]
pub struct ReportLateness {
    pub p50: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

/// The kind of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputKind {
    /// A verdict log.
    Log,
    /// A report.
    Report,
}

impl InputKind {
    /// Returns the kind's name in messages.
    pub fn name(self) -> &'static str {
        match self {
            InputKind::Log => "log",
            InputKind::Report => "report",
        }
    }
}

impl Input {
    /// Determines the kind of a file: JSON begins with a brace, and any other file
    /// counts as a log.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn kind(path: &Path) -> Result<InputKind, PlotError> {
        let unreadable = |source| PlotError::File {
            path: path.to_owned(),
            action: "cannot read it",
            source,
        };
        let file = open::to_read(path).map_err(unreadable)?;
        if !file.metadata().map_err(unreadable)?.is_file() {
            let path = path.to_owned();
            let what = "not a file; figures are drawn from files, which are read twice".to_owned();
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
    /// If it cannot be read, or is a report without links.
    pub fn open(path: &Path) -> Result<Input, PlotError> {
        let unreadable = |source| PlotError::File {
            path: path.to_owned(),
            action: "cannot read it",
            source,
        };
        let path = path.to_owned();
        if Input::kind(&path)? == InputKind::Log {
            return Ok(Input::Log { path });
        }
        let file = File::open(&path).map_err(unreadable)?;
        match serde_json::from_reader::<_, Report>(BufReader::new(file)) {
            Ok(report) if report.links.is_empty() => {
                let what = "the report is about no link".to_owned();
                Err(PlotError::Nothing { path, what })
            }
            Ok(report) => Ok(Input::Report { path, report }),
            Err(source) => Err(PlotError::Report { path, source }),
        }
    }

    /// Returns the file's path.
    pub fn path(&self) -> &Path {
        match self {
            Input::Log { path } | Input::Report { path, .. } => path,
        }
    }
}

/// Returns the first byte that is not white space.
fn first_letter(file: &mut impl BufRead) -> std::io::Result<Option<u8>> {
    for byte in file.bytes() {
        let byte = byte?;
        if !byte.is_ascii_whitespace() {
            return Ok(Some(byte));
        }
    }
    Ok(None)
}

/// The time that a log covers, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The start of the run, where the log says it.
    pub epoch: Option<i64>,
    /// The zero of the time axis: the first arrival, or the start of the run.
    pub origin: i64,
    /// The first arrival.
    pub first: i64,
    /// The last arrival or release.
    pub last: i64,
}

/// Finds the time that a log covers: from its index, or by reading it.
///
/// # Errors
/// If it cannot be read, or is empty.
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
        what: "the log is empty: there is nothing to draw".to_owned(),
    })?;
    Ok(span(log.epoch(), covered))
}

/// Rows between two reports of progress.
pub const ROWS_A_LOOK: u64 = 1 << 14;
