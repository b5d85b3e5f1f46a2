//! Reading of row groups in sequence, with the columns of a group in lockstep.

use std::fs::File;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::statistics::Statistics;

use super::column::{Column, general, guarded};
use super::{EPOCH_KEY, FIRST_KEY, LAST_KEY};
use crate::log::row::{EPOCH, Layout, Names, Row};
use crate::log::values::Values;
use crate::log::{FormatReader, LogError};

/// Error for a file that begins as Parquet but has no index.
const UNFINISHED: &str = "not readable as Parquet; if the writer was killed, the end of the file \
                          is missing";

/// Reads rows from columns.
struct ParquetReader {
    path: PathBuf,
    file: SerializedFileReader<File>,
    /// Position of each column in the file.
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

/// Returns a reader for a Parquet log, after reading its index.
pub(in crate::log) fn reader(file: File, path: PathBuf) -> Result<Box<dyn FormatReader>, LogError> {
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
        self.rows_left = rows.map_err(|_| general("a row group has a negative number of rows"))?;
        Ok(())
    }

    fn row(&mut self) -> Result<Row, LogError> {
        let mut values = Values::new(&self.layout);
        for (value, column) in values.values.iter_mut().zip(&mut self.columns) {
            *value = column.next().map_err(|error| {
                let action = format!("cannot read row {}", self.rows_read);
                unread(&self.path, &action, error)
            })?;
        }
        let row = values.row(&mut self.names);
        row.map_err(|what| LogError::row(&self.path, format!("row {}", self.rows_read), what))
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
        let row = self.row();
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

fn unread(path: &Path, action: &str, source: ParquetError) -> LogError {
    LogError::Parquet {
        path: path.to_owned(),
        action: action.to_owned(),
        source: source.into(),
    }
}
