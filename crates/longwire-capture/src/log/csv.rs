//! The log as CSV: RFC 4180 with a header line.
//!
//! Absent values are empty fields; booleans are `true` or `false`.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use csv::{ByteRecord, ReaderBuilder};

use super::error::LogError;
use super::row::{COLUMNS, Layout, Names, Row, StoredTimes};
use super::values::{Value, Values};
use super::{FormatReader, FormatWriter};

/// Size of the read and write buffers in bytes.
const BUFFER_LEN: usize = 256 * 1024;

/// Writes rows as CSV lines.
#[derive(Debug)]
pub(super) struct CsvWriter {
    out: csv::Writer<BufWriter<File>>,
}

impl CsvWriter {
    pub(super) fn new(file: File, path: &Path) -> Result<CsvWriter, LogError> {
        let mut out = csv::Writer::from_writer(BufWriter::with_capacity(BUFFER_LEN, file));
        let header = out.write_record(COLUMNS);
        header.map_err(|error| unwritten(path, error))?;
        Ok(CsvWriter { out })
    }
}

impl FormatWriter for CsvWriter {
    fn write(&mut self, row: &Row, epoch: i64, path: &Path) -> Result<(), LogError> {
        let times = StoredTimes::of(row, epoch);
        let fields = (
            row.frame,
            &*row.link,
            times.arrival,
            row.length,
            row.verdict.name(),
            times.sojourn,
            times.delay,
            row.reason.as_deref(),
            row.ecn_marked,
            row.corrupted,
            row.copy,
            row.queue_packets,
            row.queue_bytes,
            epoch,
        );
        let written = self.out.serialize(fields);
        written.map_err(|error| unwritten(path, error))
    }

    fn finish(self: Box<Self>, path: &Path) -> Result<(), LogError> {
        // `into_inner` flushes the CSV writer into the buffer, which is then flushed to the file.
        let buffer = self.out.into_inner().map_err(|error| error.into_error());
        let flushed = buffer.and_then(|mut buffer| buffer.flush());
        flushed.map_err(|source| LogError::file(path, "cannot write", source))
    }
}

fn unwritten(path: &Path, error: csv::Error) -> LogError {
    let source = match error.into_kind() {
        csv::ErrorKind::Io(source) => source,
        other => io::Error::other(format!("{other:?}")),
    };
    LogError::file(path, "cannot write", source)
}

/// Reads rows from CSV lines.
#[derive(Debug)]
pub(super) struct CsvReader {
    path: PathBuf,
    input: csv::Reader<File>,
    record: ByteRecord,
    /// Position of each of [`COLUMNS`] in a line.
    layout: Layout,
    names: Names,
    /// Epoch of the rows read so far; it must be the same in all rows.
    epoch: Option<i64>,
    size: u64,
    /// Whether an error has ended the iteration.
    ended: bool,
}

impl CsvReader {
    /// Reads a file of this size.
    pub(super) fn new(file: File, size: u64, path: PathBuf) -> Result<CsvReader, LogError> {
        let mut input = ReaderBuilder::new()
            .buffer_capacity(BUFFER_LEN)
            .from_reader(file);
        let header = input.byte_headers().map_err(|error| unread(&path, error))?;
        let find = |column: &str| header.iter().position(|name| name == column.as_bytes());
        let layout = Layout::find(&path, find)?;
        Ok(CsvReader {
            path,
            input,
            record: ByteRecord::new(),
            layout,
            names: Names::default(),
            epoch: None,
            size,
            ended: false,
        })
    }

    fn row(&mut self) -> Result<Row, String> {
        let mut values = Values::new(&self.layout);
        for (value, place) in values.values.iter_mut().zip(&self.layout.places) {
            *value = Value::Written(self.record.get(*place).unwrap_or_default());
        }
        // If the last line is truncated, its last field, the epoch, lacks digits and differs.
        let epoch = values.epoch()?;
        let first = *self.epoch.get_or_insert(epoch);
        if epoch != first {
            return Err(format!("epoch_ns is {epoch}, but {first} in the first row"));
        }
        values.row(&mut self.names)
    }
}

impl Iterator for CsvReader {
    type Item = Result<Row, LogError>;

    fn next(&mut self) -> Option<Result<Row, LogError>> {
        if self.ended {
            return None;
        }
        let row = match self.input.read_byte_record(&mut self.record) {
            Ok(false) => return None,
            Ok(true) => self.row().map_err(|what| {
                let line = self.record.position().map_or(0, |place| place.line());
                LogError::row(&self.path, format!("line {line}"), what)
            }),
            Err(error) => Err(unread(&self.path, error)),
        };
        self.ended = row.is_err();
        Some(row)
    }
}

impl FormatReader for CsvReader {
    fn progress(&self) -> (u64, u64) {
        (self.input.position().byte(), self.size)
    }

    fn epoch(&self) -> Option<i64> {
        self.epoch.filter(|_| self.layout.has_epoch())
    }
}

fn unread(path: &Path, error: csv::Error) -> LogError {
    let line = error.position().map(csv::Position::line);
    let place = line.map_or("unknown line".to_owned(), |line| format!("line {line}"));
    let what = match error.into_kind() {
        csv::ErrorKind::Io(source) => return LogError::file(path, "cannot read", source),
        csv::ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => {
            format!("{len} fields, but the header has {expected_len}")
        }
        other => format!("{other:?}"),
    };
    LogError::row(path, place, what)
}
