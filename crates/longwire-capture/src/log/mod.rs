//! The verdict log: one row per verdict on a wire frame, as CSV or Parquet.
//!
//! A row contains a frame's arrival, verdict and drop reason, and the queue's occupancy after the
//! arrival. Throughput, delay, queueing and loss derive from these. Both formats have the same
//! columns ([`COLUMNS`]) and are streamed in constant memory.

mod csv;
mod error;
#[cfg(feature = "parquet")]
mod parquet;

#[cfg(not(feature = "parquet"))]
#[path = "without_parquet.rs"]
mod parquet;
mod row;
mod values;
mod verdicts;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::{fmt, io};

pub use error::LogError;
pub use row::{COLUMNS, Fate, Name, Row};
pub use verdicts::{Number, VerdictLog};

use self::csv::{CsvReader, CsvWriter};
use crate::open;

/// File format of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// A header line, then one line per row.
    Csv,
    /// Apache Parquet: compressed columns, a fraction of the CSV's size.
    Parquet,
}

impl LogFormat {
    /// Returns the format that corresponds to a file name's extension.
    pub fn of(path: &Path) -> Option<LogFormat> {
        let extension = path.extension()?.to_str()?;
        match extension.to_ascii_lowercase().as_str() {
            "csv" => Some(LogFormat::Csv),
            "parquet" => Some(LogFormat::Parquet),
            _ => None,
        }
    }
}

/// Writes a verdict log.
#[derive(Debug)]
pub struct LogWriter {
    path: PathBuf,
    rows: u64,
    /// Origin of arrivals; by default, the first arrival.
    epoch: Option<i64>,
    format: Box<dyn FormatWriter>,
}

/// Writes rows in one format.
trait FormatWriter: fmt::Debug + Send {
    fn write(&mut self, row: &Row, epoch: i64, path: &Path) -> Result<(), LogError>;

    fn finish(self: Box<Self>, path: &Path) -> Result<(), LogError>;
}

impl LogWriter {
    /// Creates the file, in the format of its extension.
    ///
    /// # Errors
    /// [`LogError::Extension`] if the name ends in neither `.csv` nor `.parquet`;
    /// [`LogError::File`] if the file cannot be created; [`LogError::NoParquet`] without the
    /// feature `parquet`.
    pub fn create(path: impl Into<PathBuf>) -> Result<LogWriter, LogError> {
        let path = path.into();
        let Some(format) = LogFormat::of(&path) else {
            return Err(LogError::Extension { path });
        };
        let created = open::to_write(&path);
        let file = created.map_err(|source| LogError::file(&path, "cannot create", source))?;
        let format = match format {
            LogFormat::Csv => Box::new(CsvWriter::new(file, &path)?),
            LogFormat::Parquet => parquet::writer(file, &path)?,
        };
        Ok(LogWriter {
            path,
            rows: 0,
            epoch: None,
            format,
        })
    }

    /// Sets the origin of arrivals in the file, as nanoseconds of Unix time. Call it before the
    /// first row. The default is the first arrival.
    pub fn set_epoch(&mut self, epoch_ns: i64) {
        if self.rows == 0 {
            self.epoch = Some(epoch_ns);
        }
    }

    /// Appends a row, which may be buffered until the writer is finished.
    ///
    /// # Errors
    /// [`LogError::Row`] if the row is contradictory; [`LogError::File`] or [`LogError::Parquet`]
    /// if the file cannot be written.
    pub fn write(&mut self, row: &Row) -> Result<(), LogError> {
        self.rows += 1;
        row.check()
            .map_err(|what| LogError::row(&self.path, format!("row {}", self.rows), what))?;
        let epoch = *self.epoch.get_or_insert(row.arrival_ns);
        self.format.write(row, epoch, &self.path)
    }

    /// Writes the buffered rows. An unfinished Parquet file is unreadable.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(self) -> Result<(), LogError> {
        self.format.finish(&self.path)
    }
}

/// Reads a verdict log row by row.
#[derive(Debug)]
pub struct LogReader(Box<dyn FormatReader>);

/// Reads rows in one format.
trait FormatReader: Iterator<Item = Result<Row, LogError>> + fmt::Debug + Send {
    fn progress(&self) -> (u64, u64);

    fn epoch(&self) -> Option<i64>;

    fn span(&self) -> Option<(i64, i64)> {
        None
    }
}

impl LogReader {
    /// Opens a log. The format is determined by its first bytes, not by its name.
    ///
    /// # Errors
    /// If the file cannot be read, is neither CSV nor Parquet, or lacks a column;
    /// [`LogError::NoParquet`] without the feature `parquet`.
    pub fn open(path: impl Into<PathBuf>) -> Result<LogReader, LogError> {
        let path = path.into();
        let unreadable = |source| LogError::file(&path, "cannot read", source);
        let is_parquet = is_parquet(&path).map_err(unreadable)?;
        let file = File::open(&path).map_err(unreadable)?;
        let metadata = file.metadata().map_err(unreadable)?;
        let size = metadata.len();
        Ok(LogReader(if is_parquet {
            parquet::reader(file, path)?
        } else if size == 0 && metadata.is_file() {
            return Err(LogError::Empty { path });
        } else {
            Box::new(CsvReader::new(file, size, path)?)
        }))
    }

    /// Returns the progress and the total, in bytes or rows depending on the format.
    pub fn progress(&self) -> (u64, u64) {
        self.0.progress()
    }

    /// Returns the origin of arrivals in the file, the start of the run, as nanoseconds of Unix
    /// time. Known once a row has been read; absent in older logs.
    pub fn epoch(&self) -> Option<i64> {
        self.0.epoch()
    }

    /// Returns the earliest arrival and the latest arrival or release, as nanoseconds of Unix time,
    /// or `None` if the file has no index.
    pub fn span(&self) -> Option<(i64, i64)> {
        self.0.span()
    }
}

impl Iterator for LogReader {
    type Item = Result<Row, LogError>;

    fn next(&mut self) -> Option<Result<Row, LogError>> {
        self.0.next()
    }
}

/// Returns whether a file starts with the Parquet magic.
fn is_parquet(path: &Path) -> io::Result<bool> {
    let mut start = Vec::new();
    open::to_read(path)?.take(4).read_to_end(&mut start)?;
    Ok(start == b"PAR1")
}

/// A receiver of log rows.
pub trait RowSink: fmt::Debug + Send {
    /// Sets the origin of arrivals, as nanoseconds of Unix time. Call it before the first row.
    fn set_epoch(&mut self, epoch_ns: i64);

    /// Writes a row.
    ///
    /// # Errors
    /// If the row cannot be written or is contradictory.
    fn write(&mut self, row: &Row) -> Result<(), LogError>;

    /// Ends the log.
    ///
    /// # Errors
    /// If the log cannot be written.
    fn finish(self: Box<Self>) -> Result<(), LogError>;
}

impl RowSink for LogWriter {
    fn set_epoch(&mut self, epoch_ns: i64) {
        LogWriter::set_epoch(self, epoch_ns);
    }

    fn write(&mut self, row: &Row) -> Result<(), LogError> {
        LogWriter::write(self, row)
    }

    fn finish(self: Box<Self>) -> Result<(), LogError> {
        LogWriter::finish(*self)
    }
}
