//! Writing of rows, which are buffered by column until a row group is full.

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
use crate::log::{FormatWriter, LogError, Name, Row};

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
    group: Group,
    span: Option<Span>,
}

impl std::fmt::Debug for ParquetWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("ParquetWriter");
        shown.field("rows_waiting", &self.group.frame.len());
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

/// The buffered rows of the current group, by column.
#[derive(Default)]
struct Group {
    frame: Vec<i64>,
    link: Vec<ByteArray>,
    arrival: Vec<i64>,
    length: Vec<i32>,
    verdict: Vec<ByteArray>,
    sojourn: Vec<i64>,
    delay: Vec<i64>,
    reason: Optional<ByteArray>,
    ecn_marked: Vec<bool>,
    corrupted: Vec<bool>,
    copy: Vec<i32>,
    queue_packets: Vec<i32>,
    queue_bytes: Vec<i64>,
    epoch: Vec<i64>,
    /// The bytes of recent names, shared by rows.
    names: Vec<(Name, ByteArray)>,
}

/// A column with optional values: the present values, and whether each row has one.
#[derive(Default)]
struct Optional<T> {
    values: Vec<T>,
    present: Vec<i16>,
}

/// Starts a file.
pub(in crate::log) fn writer(file: File, path: &Path) -> Result<Box<dyn FormatWriter>, LogError> {
    let schema = parse_message_type(SCHEMA).map(Arc::new);
    let opened = schema.and_then(|schema| {
        SerializedFileWriter::new(BufWriter::new(file), schema, Arc::new(properties()))
    });
    let file = opened.map_err(|error| unwritten(path, error))?;
    Ok(Box::new(ParquetWriter {
        file,
        group: Group::default(),
        span: None,
    }))
}

impl ParquetWriter {
    fn flush(&mut self) -> Result<(), ParquetError> {
        let mut out = self.file.next_row_group()?;
        self.group.write(&mut out)?;
        out.close().map(drop)
    }
}

impl FormatWriter for ParquetWriter {
    fn write(&mut self, row: &Row, epoch: i64, path: &Path) -> Result<(), LogError> {
        self.span = Some(Span::with(self.span, row, epoch));
        self.group.push(row, epoch);
        if self.group.frame.len() < GROUP_ROWS {
            return Ok(());
        }
        self.flush().map_err(|error| unwritten(path, error))
    }

    fn finish(mut self: Box<Self>, path: &Path) -> Result<(), LogError> {
        let is_flushed = self.group.frame.is_empty();
        let rest = if is_flushed { Ok(()) } else { self.flush() };
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

impl Span {
    /// Returns the span extended to include a row.
    fn with(span: Option<Span>, row: &Row, epoch: i64) -> Span {
        let (first, last) = (row.arrival_ns, row.release_ns.unwrap_or(row.arrival_ns));
        let span = span.unwrap_or(Span { epoch, first, last });
        Span {
            first: span.first.min(first),
            last: span.last.max(last),
            ..span
        }
    }
}

impl Group {
    fn push(&mut self, row: &Row, epoch: i64) {
        let times = StoredTimes::of(row, epoch);
        // Unsigned numbers keep their bits; the schema records the signedness.
        self.frame.push(row.frame.cast_signed());
        let link = self.name(&row.link);
        self.link.push(link);
        self.arrival.push(times.arrival);
        self.length.push(row.length.cast_signed());
        self.verdict.push(ByteArray::from(row.verdict.name()));
        self.sojourn.push(times.sojourn);
        self.delay.push(times.delay);
        let reason = row.reason.as_ref().map(|reason| self.name(reason));
        self.reason.push(reason);
        self.ecn_marked.push(row.ecn_marked);
        self.corrupted.push(row.corrupted);
        self.copy.push(row.copy.into());
        self.queue_packets.push(row.queue_packets.cast_signed());
        self.queue_bytes.push(row.queue_bytes.cast_signed());
        self.epoch.push(epoch);
    }

    fn name(&mut self, name: &Name) -> ByteArray {
        if let Some((_, bytes)) = self.names.iter().find(|(known, _)| known == name) {
            return bytes.clone();
        }
        let bytes = ByteArray::from(name.as_bytes().to_vec());
        self.names.push((name.clone(), bytes.clone()));
        bytes
    }

    /// Writes and removes the rows, keeping their memory.
    fn write(&mut self, out: &mut GroupWriter<'_>) -> Result<(), ParquetError> {
        self.names.clear();
        required::<Int64Type>(out, &mut self.frame)?;
        required::<ByteArrayType>(out, &mut self.link)?;
        required::<Int64Type>(out, &mut self.arrival)?;
        required::<Int32Type>(out, &mut self.length)?;
        required::<ByteArrayType>(out, &mut self.verdict)?;
        required::<Int64Type>(out, &mut self.sojourn)?;
        required::<Int64Type>(out, &mut self.delay)?;
        optional::<ByteArrayType>(out, &mut self.reason)?;
        required::<BoolType>(out, &mut self.ecn_marked)?;
        required::<BoolType>(out, &mut self.corrupted)?;
        required::<Int32Type>(out, &mut self.copy)?;
        required::<Int32Type>(out, &mut self.queue_packets)?;
        required::<Int64Type>(out, &mut self.queue_bytes)?;
        required::<Int64Type>(out, &mut self.epoch)
    }
}

impl<T> Optional<T> {
    fn push(&mut self, value: Option<T>) {
        self.present.push(i16::from(value.is_some()));
        self.values.extend(value);
    }
}

type GroupWriter<'a> = SerializedRowGroupWriter<'a, BufWriter<File>>;

fn required<T: DataType>(
    out: &mut GroupWriter<'_>,
    values: &mut Vec<T::T>,
) -> Result<(), ParquetError> {
    column::<T>(out, values, None)?;
    values.clear();
    Ok(())
}

fn optional<T: DataType>(
    out: &mut GroupWriter<'_>,
    Optional { values, present }: &mut Optional<T::T>,
) -> Result<(), ParquetError> {
    column::<T>(out, values, Some(present))?;
    values.clear();
    present.clear();
    Ok(())
}

/// Writes the group's next column.
fn column<T: DataType>(
    out: &mut GroupWriter<'_>,
    values: &[T::T],
    present: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let next = out.next_column()?;
    let mut next = next.ok_or_else(|| ParquetError::General("no column is left".to_owned()))?;
    next.typed::<T>().write_batch(values, present, None)?;
    next.close()
}

/// Returns the columns' encodings and compression.
fn properties() -> WriterProperties {
    let path = |column: &str| ColumnPath::from(column);
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_dictionary_enabled(false)
        // The minimum and maximum of each group suffice to find a time.
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
            Ok(source) => return LogError::file(path, "cannot write it", *source),
            Err(error) => ParquetError::External(error),
        },
        source => source,
    };
    LogError::Parquet {
        path: path.to_owned(),
        action: "cannot write it".to_owned(),
        source: source.into(),
    }
}
