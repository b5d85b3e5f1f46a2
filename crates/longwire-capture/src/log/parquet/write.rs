//! Writing of rows, which are buffered until a row group is full, column by column.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use super::{EPOCH_KEY, FIRST_KEY, GROUP_ROWS, LAST_KEY};
use crate::log::row::{COLUMNS, StoredTimes};
use crate::log::{FormatWriter, LogError, Row};

/// Columns and their types, in the order of [`COLUMNS`].
const SCHEMA: &str = "
message verdicts {
  required int64 frame (integer(64,false));
  required binary link (string);
  required int64 arrival_ns;
  required int32 length (integer(32,false));
  required binary verdict (string);
  required int64 sojourn_ns;
  required int64 delay_ns;
  optional binary reason (string);
  required boolean ecn_marked;
  required boolean corrupted;
  required int32 copy (integer(16,false));
  required int32 queue_packets (integer(32,false));
  required int64 queue_bytes (integer(64,false));
  required int64 epoch_ns;
}";

/// Columns whose values mostly increase slightly from row to row, so that differences are smaller
/// than values.
const GROWING: [&str; 4] = ["frame", "arrival_ns", "sojourn_ns", "delay_ns"];

/// Columns with few distinct values.
const REPETITIVE: [&str; 7] = [
    "link",
    "length",
    "verdict",
    "reason",
    "queue_packets",
    "queue_bytes",
    "epoch_ns",
];

/// Writes rows as columns.
struct ParquetWriter {
    file: SerializedFileWriter<BufWriter<File>>,
    /// The rows of the current group.
    rows: Vec<Row>,
    span: Option<Span>,
}

impl std::fmt::Debug for ParquetWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("ParquetWriter");
        shown.field("rows_waiting", &self.rows.len());
        shown.finish_non_exhaustive()
    }
}

/// Times in the file's metadata: the origin of arrivals, the earliest arrival, and the latest
/// arrival or release.
#[derive(Clone, Copy, Debug)]
struct Span {
    epoch: i64,
    first: i64,
    last: i64,
}

/// Returns a writer for an empty file.
pub(in crate::log) fn writer(file: File, path: &Path) -> Result<Box<dyn FormatWriter>, LogError> {
    let schema = parse_message_type(SCHEMA).map(Arc::new);
    let opened = schema.and_then(|schema| {
        SerializedFileWriter::new(BufWriter::new(file), schema, Arc::new(properties()))
    });
    let file = opened.map_err(|error| unwritten(path, error))?;
    Ok(Box::new(ParquetWriter {
        file,
        rows: Vec::new(),
        span: None,
    }))
}

impl ParquetWriter {
    /// Writes the buffered rows as a row group, and clears the buffer.
    fn flush(&mut self) -> Result<(), ParquetError> {
        let Some(Span { epoch, .. }) = self.span.filter(|_| !self.rows.is_empty()) else {
            return Ok(());
        };
        let times = |row: &Row| StoredTimes::of(row, epoch);
        let rows = &self.rows;
        let mut group = self.file.next_row_group()?;
        let out = &mut group;
        // Unsigned numbers keep their bits; the schema records the signedness.
        column::<Int64Type>(out, rows, |row| Some(row.frame.cast_signed()))?;
        column::<ByteArrayType>(out, rows, text(|row| Some(&row.link)))?;
        column::<Int64Type>(out, rows, |row| Some(times(row).arrival))?;
        column::<Int32Type>(out, rows, |row| Some(row.length.cast_signed()))?;
        column::<ByteArrayType>(out, rows, text(|row| Some(row.verdict.name())))?;
        column::<Int64Type>(out, rows, |row| Some(times(row).sojourn))?;
        column::<Int64Type>(out, rows, |row| Some(times(row).delay))?;
        column::<ByteArrayType>(out, rows, text(|row| row.reason.as_deref()))?;
        column::<BoolType>(out, rows, |row| Some(row.ecn_marked))?;
        column::<BoolType>(out, rows, |row| Some(row.corrupted))?;
        column::<Int32Type>(out, rows, |row| Some(row.copy.into()))?;
        column::<Int32Type>(out, rows, |row| Some(row.queue_packets.cast_signed()))?;
        column::<Int64Type>(out, rows, |row| Some(row.queue_bytes.cast_signed()))?;
        column::<Int64Type>(out, rows, |_| Some(epoch))?;
        self.rows.clear();
        group.close().map(drop)
    }
}

impl FormatWriter for ParquetWriter {
    fn write(&mut self, row: &Row, epoch: i64, path: &Path) -> Result<(), LogError> {
        let (first, last) = (row.arrival_ns, row.release_ns.unwrap_or(row.arrival_ns));
        let span = self.span.get_or_insert(Span { epoch, first, last });
        (span.first, span.last) = (span.first.min(first), span.last.max(last));
        self.rows.push(row.clone());
        if self.rows.len() < GROUP_ROWS {
            return Ok(());
        }
        self.flush().map_err(|error| unwritten(path, error))
    }

    fn finish(mut self: Box<Self>, path: &Path) -> Result<(), LogError> {
        let rest = self.flush();
        if let Some(span) = self.span {
            let Span { epoch, first, last } = span;
            for (key, value) in [(EPOCH_KEY, epoch), (FIRST_KEY, first), (LAST_KEY, last)] {
                let entry = KeyValue::new(key.to_owned(), value.to_string());
                self.file.append_key_value_metadata(entry);
            }
        }
        // Closing writes the index and flushes the buffer.
        let closed = rest.and_then(|()| self.file.close().map(drop));
        closed.map_err(|error| unwritten(path, error))
    }
}

/// Writes the group's next column, with the rows' values.
fn column<'a, T: DataType>(
    out: &mut SerializedRowGroupWriter<'_, BufWriter<File>>,
    rows: &'a [Row],
    value: impl FnMut(&'a Row) -> Option<T::T>,
) -> Result<(), ParquetError> {
    let (mut values, mut present) = (Vec::new(), Vec::new());
    for value in rows.iter().map(value) {
        present.push(i16::from(value.is_some()));
        values.extend(value);
    }
    let next = out.next_column()?;
    let mut next = next.ok_or_else(|| ParquetError::General("no column is left".to_owned()))?;
    next.typed::<T>()
        .write_batch(&values, Some(&present), None)?;
    next.close()
}

/// Returns a text column's values. Equal texts of successive rows share memory.
fn text<'a>(of: impl Fn(&'a Row) -> Option<&'a str>) -> impl FnMut(&'a Row) -> Option<ByteArray> {
    let (mut last, mut value) = ("", ByteArray::from(""));
    move |row| {
        let text = of(row)?;
        if text != last {
            (last, value) = (text, text.into());
        }
        Some(value.clone())
    }
}

/// Returns the columns' encodings and compression.
fn properties() -> WriterProperties {
    let path = |column: &str| ColumnPath::from(column);
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_dictionary_enabled(false)
        // Readers find a time by the minimum and maximum of each group. Page statistics are
        // unnecessary.
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_max_row_group_row_count(None);
    for column in COLUMNS {
        if REPETITIVE.contains(&column) {
            properties = properties.set_column_dictionary_enabled(path(column), true);
        }
        if GROWING.contains(&column) {
            properties =
                properties.set_column_encoding(path(column), Encoding::DELTA_BINARY_PACKED);
        }
    }
    properties.build()
}

fn unwritten(path: &Path, source: ParquetError) -> LogError {
    // Report system errors, such as a full disk, directly.
    let source = match source {
        ParquetError::External(error) => match error.downcast::<std::io::Error>() {
            Ok(source) => return LogError::file(path, "cannot write", *source),
            Err(error) => ParquetError::External(error),
        },
        source => source,
    };
    LogError::Parquet {
        path: path.to_owned(),
        action: "cannot write".to_owned(),
        source: source.into(),
    }
}
