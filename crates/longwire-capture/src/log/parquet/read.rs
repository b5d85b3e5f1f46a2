//! Reading of row groups in sequence, with the columns of a group in lockstep.

use std::fs::File;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::statistics::Statistics;

use super::column::{Column, Value, guarded};
use super::{EPOCH_KEY, FIRST_KEY, LAST_KEY};
use crate::log::row::{COLUMNS, EPOCH, Fate, Layout, Name, Names, Row};
use crate::log::{FormatReader, LogError};

/// Error for a file that begins as Parquet but has no index.
const UNFINISHED: &str = "not readable as Parquet; if the writer was killed, the end of the file \
                          is missing";

/// Reads rows from columns.
struct ParquetReader {
    path: PathBuf,
    file: SerializedFileReader<File>,
    /// Position of each of [`COLUMNS`] in the file.
    layout: Layout,
    /// The columns of the current row group.
    columns: Vec<Column>,
    rows_left: u64,
    /// Index of the next row group.
    group: usize,
    rows_read: u64,
    rows: u64,
    names: Names,
    ended: bool,
}

impl std::fmt::Debug for ParquetReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("ParquetReader");
        shown.field("path", &self.path);
        shown.field("rows_read", &self.rows_read);
        shown.finish_non_exhaustive()
    }
}

/// Opens a file.
pub(in crate::log) fn reader(path: PathBuf) -> Result<Box<dyn FormatReader>, LogError> {
    let unreadable = |source| LogError::file(&path, "cannot read it", source);
    let file = File::open(&path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if metadata.len() == 0 && metadata.is_file() {
        return Err(LogError::Empty { path });
    }
    let file = guarded(|| SerializedFileReader::new(file))
        .map_err(|error| unread(&path, UNFINISHED, error))?;
    let metadata = file.metadata().file_metadata();
    let columns = metadata.schema_descr().columns();
    let place = |name: &str| {
        columns.iter().position(|column| {
            let path = column.path().parts();
            path.len() == 1 && path[0] == name
        })
    };
    let layout = Layout::find(&path, place)?;
    let rows = u64::try_from(metadata.num_rows()).unwrap_or(0);
    Ok(Box::new(ParquetReader {
        path,
        file,
        layout,
        columns: Vec::new(),
        rows_left: 0,
        group: 0,
        rows_read: 0,
        rows,
        names: Names::default(),
        ended: false,
    }))
}

impl ParquetReader {
    /// Returns a number from the file's metadata.
    fn metadata(&self, key: &str) -> Option<i64> {
        let metadata = self.file.metadata().file_metadata();
        let entries = metadata.key_value_metadata()?;
        let entry = entries.iter().find(|entry| entry.key == key)?;
        entry.value.as_ref()?.parse().ok()
    }

    /// Returns a column's minimum and maximum in a row group; `None` if unknown, `Some(None)` if
    /// the column has no values.
    fn range(&self, group: &RowGroupMetaData, name: &str) -> Option<Option<(i64, i64)>> {
        let index = (0..EPOCH).find(|index| self.layout.name(*index) == name)?;
        let column = group.columns().get(self.layout.places[index])?;
        let statistics = column.statistics()?;
        let rows = u64::try_from(group.num_rows()).ok()?;
        if statistics.null_count_opt() == Some(rows) {
            return Some(None);
        }
        match statistics {
            Statistics::Int64(range) => Some(Some((*range.min_opt()?, *range.max_opt()?))),
            _ => None,
        }
    }

    fn open_group(&mut self) -> Result<(), ParquetError> {
        let group = self.file.get_row_group(self.group)?;
        self.group += 1;
        self.columns.clear();
        let metadata = group.metadata();
        for place in self.layout.places.clone() {
            let reader = group.get_column_reader(place)?;
            let column = Column::new(reader, metadata.column(place).column_descr())?;
            self.columns.push(column);
        }
        let rows = u64::try_from(metadata.num_rows());
        self.rows_left = rows.map_err(|_| general("a negative number of rows"))?;
        Ok(())
    }

    fn row(&mut self) -> Result<Row, RowError> {
        // The fields are read in the order of [`COLUMNS`].
        let mut columns = self.columns.iter_mut().enumerate();
        let mut next = || columns.next().ok_or_else(|| general("columns are missing"));
        let mut row = Row {
            frame: number(next()?)?,
            link: name(next()?, &mut self.names)?.unwrap_or_else(|| Name::from("")),
            arrival_ns: number(next()?)?,
            length: number(next()?)?,
            verdict: fate(next()?)?,
            departure_ns: optional(next()?)?,
            release_ns: optional(next()?)?,
            reason: name(next()?, &mut self.names)?,
            ecn_marked: truth(next()?)?,
            corrupted: truth(next()?)?,
            copy: number(next()?)?,
            queue_packets: number(next()?)?,
            queue_bytes: number(next()?)?,
        };
        let epoch = columns.next().map(number).transpose()?.unwrap_or(0);
        self.layout.resolve(&mut row, epoch);
        row.check()?;
        Ok(row)
    }

    fn wrong(&self, wrong: RowError) -> LogError {
        match wrong {
            RowError::Row(what) => {
                LogError::row(&self.path, format!("row {}", self.rows_read), what)
            }
            RowError::File(error) => {
                let action = format!("cannot read row {}", self.rows_read);
                unread(&self.path, &action, error)
            }
        }
    }
}

impl Iterator for ParquetReader {
    type Item = Result<Row, LogError>;
    fn next(&mut self) -> Option<Result<Row, LogError>> {
        if self.ended {
            return None;
        }
        while self.rows_left == 0 {
            if self.group == self.file.num_row_groups() {
                return None;
            }
            if let Err(error) = guarded(|| self.open_group()) {
                self.ended = true;
                let action = format!("cannot read row group {}", self.group);
                return Some(Err(unread(&self.path, &action, error)));
            }
        }
        self.rows_left -= 1;
        self.rows_read += 1;
        let row = self.row().map_err(|wrong| self.wrong(wrong));
        self.ended = row.is_err();
        Some(row)
    }
}

impl FormatReader for ParquetReader {
    fn progress(&self) -> (u64, u64) {
        (self.rows_read, self.rows)
    }

    fn epoch(&self) -> Option<i64> {
        self.metadata(EPOCH_KEY)
    }

    fn span(&self) -> Option<(i64, i64)> {
        if self.layout.has_epoch() {
            return Some((self.metadata(FIRST_KEY)?, self.metadata(LAST_KEY)?));
        }
        let groups = self.file.metadata().row_groups();
        let ranges = |name| -> Option<Vec<_>> {
            groups.iter().map(|group| self.range(group, name)).collect()
        };
        // A group without delivered frames has no releases.
        let arrivals = ranges("arrival_ns")?.into_iter().flatten();
        let releases = ranges("release_ns")?.into_iter().flatten();
        let first = arrivals.clone().map(|(least, _)| least).min()?;
        let last = arrivals.chain(releases).map(|(_, most)| most).max()?;
        Some((first, last))
    }
}

enum RowError {
    /// An invalid value in the row.
    Row(String),
    /// An error in the file's structure.
    File(ParquetError),
}

impl From<String> for RowError {
    fn from(what: String) -> RowError {
        RowError::Row(what)
    }
}

impl From<ParquetError> for RowError {
    fn from(error: ParquetError) -> RowError {
        RowError::File(error)
    }
}

/// A column and its index in [`COLUMNS`].
type Indexed<'a> = (usize, &'a mut Column);

fn number<T: TryFrom<i128>>((index, column): Indexed<'_>) -> Result<T, RowError> {
    match column.next()? {
        Value::Number(number) => whole(number, index),
        other => Err(unexpected(&other, index, "a number")),
    }
}

fn optional((index, column): Indexed<'_>) -> Result<Option<i64>, RowError> {
    match column.next()? {
        Value::Absent => Ok(None),
        Value::Number(number) => whole(number, index).map(Some),
        other => Err(unexpected(&other, index, "a number")),
    }
}

fn whole<T: TryFrom<i128>>(number: i128, index: usize) -> Result<T, RowError> {
    number.try_into().map_err(|_| {
        let (name, bits) = (COLUMNS[index], size_of::<T>() * 8);
        RowError::Row(format!("{name} {number} does not fit into {bits} bits"))
    })
}

fn truth((index, column): Indexed<'_>) -> Result<bool, RowError> {
    match column.next()? {
        Value::Truth(truth) => Ok(truth),
        other => Err(unexpected(&other, index, "a boolean")),
    }
}

fn name((index, column): Indexed<'_>, names: &mut Names) -> Result<Option<Name>, RowError> {
    match column.next()? {
        Value::Absent => Ok(None),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Some(names.get(text))),
            Err(_) => Err(RowError::Row(format!("{} is not UTF-8", COLUMNS[index]))),
        },
        other => Err(unexpected(&other, index, "text")),
    }
}

fn fate((index, column): Indexed<'_>) -> Result<Fate, RowError> {
    match column.next()? {
        Value::Bytes(bytes) => Ok(Fate::parse(&String::from_utf8_lossy(bytes))?),
        other => Err(unexpected(&other, index, "text")),
    }
}

fn unexpected(value: &Value<'_>, index: usize, expected: &str) -> RowError {
    let is = match value {
        Value::Absent => "absent",
        Value::Number(_) => "a number",
        Value::Truth(_) => "a boolean",
        Value::Bytes(_) => "text",
    };
    RowError::Row(format!("{} is {is}, not {expected}", COLUMNS[index]))
}

fn general(what: &str) -> ParquetError {
    ParquetError::General(what.to_owned())
}

fn unread(path: &Path, action: &str, source: ParquetError) -> LogError {
    LogError::Parquet {
        path: path.to_owned(),
        action: action.to_owned(),
        source: source.into(),
    }
}
