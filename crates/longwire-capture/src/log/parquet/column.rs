//! One column of a row group, read in batches.
//!
//! The Parquet library panics on some damaged files. Panics are returned as errors, so that a
//! damaged file does not end the program.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use parquet::basic::{ConvertedType, LogicalType, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{BoolType, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::ColumnDescriptor;

const BATCH_ROWS: usize = 4096;

/// A column in one row group.
pub(super) struct Column {
    values: Values,
    /// Whether the column's numbers are unsigned.
    unsigned: bool,
    /// Whether values may be absent; if so, `present` records for each row of the batch whether it
    /// has a value.
    optional: bool,
    present: Vec<i16>,
    /// Indices in the batch of the next row and of its value.
    row: usize,
    value: usize,
    rows: usize,
}

/// A column's reader and its batch.
enum Values {
    Int32(Batch<Int32Type>),
    Int64(Batch<Int64Type>),
    Bool(Batch<BoolType>),
    Bytes(Batch<ByteArrayType>),
}

struct Batch<T: DataType> {
    reader: ColumnReaderImpl<T>,
    values: Vec<T::T>,
}

impl<T: DataType> Batch<T> {
    fn new(reader: ColumnReaderImpl<T>) -> Batch<T> {
        let values = Vec::with_capacity(BATCH_ROWS);
        Batch { reader, values }
    }

    /// Reads the next batch and returns its number of rows.
    fn fill(&mut self, present: Option<&mut Vec<i16>>) -> Result<usize> {
        self.values.clear();
        let (rows, ..) = self
            .reader
            .read_records(BATCH_ROWS, present, None, &mut self.values)?;
        Ok(rows)
    }
}

/// A column value.
#[derive(Debug)]
pub(super) enum Value<'a> {
    Absent,
    /// An integer of any width, signed or not.
    Number(i128),
    Truth(bool),
    Bytes(&'a [u8]),
}

impl Column {
    /// Creates a column for a row group.
    ///
    /// # Errors
    /// If no log column has this type.
    pub(super) fn new(reader: ColumnReader, of: &ColumnDescriptor) -> Result<Column> {
        let values = match reader {
            ColumnReader::Int32ColumnReader(reader) => Values::Int32(Batch::new(reader)),
            ColumnReader::Int64ColumnReader(reader) => Values::Int64(Batch::new(reader)),
            ColumnReader::BoolColumnReader(reader) => Values::Bool(Batch::new(reader)),
            ColumnReader::ByteArrayColumnReader(reader) => Values::Bytes(Batch::new(reader)),
            _ => {
                let kind = of.physical_type();
                let what = format!("column {} is of type {kind}", of.name());
                return Err(ParquetError::General(what));
            }
        };
        if of.max_rep_level() > 0 || of.max_def_level() > 1 {
            let what = format!("column {} is a list or nested in a struct", of.name());
            return Err(ParquetError::General(what));
        }
        Ok(Column {
            values,
            unsigned: is_unsigned(of),
            optional: of.max_def_level() == 1,
            present: Vec::with_capacity(BATCH_ROWS),
            row: 0,
            value: 0,
            rows: 0,
        })
    }

    /// Returns the next row's value.
    ///
    /// # Errors
    /// If the column ends before its row group, or is damaged.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Value<'_>> {
        if self.row == self.rows {
            self.fill()?;
        }
        let row = self.row;
        self.row += 1;
        if self.optional && self.present.get(row) != Some(&1) {
            return Ok(Value::Absent);
        }
        let at = self.value;
        self.value += 1;
        let number = |signed: i64, unsigned: u64| {
            Value::Number(if self.unsigned {
                unsigned.into()
            } else {
                signed.into()
            })
        };
        let found = match &self.values {
            Values::Int32(batch) => {
                let value = batch.values.get(at);
                value.map(|value| number((*value).into(), value.cast_unsigned().into()))
            }
            Values::Int64(batch) => batch
                .values
                .get(at)
                .map(|value| number(*value, value.cast_unsigned())),
            Values::Bool(batch) => batch.values.get(at).map(|value| Value::Truth(*value)),
            Values::Bytes(batch) => batch.values.get(at).map(|value| Value::Bytes(value.data())),
        };
        found.ok_or_else(|| ParquetError::General("fewer values than rows".to_owned()))
    }

    #[cold]
    fn fill(&mut self) -> Result<()> {
        self.present.clear();
        let present = self.optional.then_some(&mut self.present);
        self.rows = guarded(|| match &mut self.values {
            Values::Int32(batch) => batch.fill(present),
            Values::Int64(batch) => batch.fill(present),
            Values::Bool(batch) => batch.fill(present),
            Values::Bytes(batch) => batch.fill(present),
        })?;
        (self.row, self.value) = (0, 0);
        if self.rows == 0 {
            let what = "a column is shorter than its row group";
            return Err(ParquetError::General(what.to_owned()));
        }
        Ok(())
    }
}

fn is_unsigned(of: &ColumnDescriptor) -> bool {
    use ConvertedType::{UINT_8, UINT_16, UINT_32, UINT_64};
    let logical = match of.logical_type_ref() {
        Some(LogicalType::Integer(kind)) => Some(!kind.is_signed),
        _ => None,
    };
    let converted = [UINT_8, UINT_16, UINT_32, UINT_64].contains(&of.converted_type());
    let integer = matches!(of.physical_type(), Type::INT32 | Type::INT64);
    integer && logical.unwrap_or(converted)
}

thread_local! {
    /// Whether this thread is inside [`guarded`].
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Calls the Parquet library and returns a panic as an error. After an error, the caller must drop
/// the objects used in the call.
pub(super) fn guarded<T>(call: impl FnOnce() -> Result<T>) -> Result<T> {
    stay_silent_inside();
    INSIDE.set(true);
    // A panic may leave the captured objects in any state, but the caller drops them.
    let ended = panic::catch_unwind(AssertUnwindSafe(call));
    INSIDE.set(false);
    ended.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        let text = text.unwrap_or("inconsistent metadata");
        Err(ParquetError::General(format!("damaged: {text}")))
    })
}

/// Suppresses the message of a panic inside [`guarded`], which is reported later as an error. Other
/// panics are reported as usual.
fn stay_silent_inside() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let default_hook = panic::take_hook();
        panic::set_hook(Box::new(move |information| {
            if !INSIDE.get() {
                default_hook(information);
            }
        }));
    });
}
