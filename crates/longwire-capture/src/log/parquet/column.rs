//! One column of a row group, read in batches.
//!
//! The Parquet library panics on some damaged files. Panics are returned as errors, so that a
//! damaged file does not end the program.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use parquet::basic::{ConvertedType, LogicalType, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::ColumnDescriptor;

use crate::log::values::Value;

const BATCH_ROWS: usize = 4096;

/// Reads the next batch of a column.
type NextBatch = Box<dyn FnMut() -> Result<Vec<Value<ByteArray>>> + Send>;

/// A column in one row group.
pub(super) struct Column {
    next_batch: NextBatch,
    batch: std::vec::IntoIter<Value<ByteArray>>,
}

impl Column {
    /// Creates a column for a row group.
    ///
    /// # Errors
    /// If no log column has this type.
    pub(super) fn new(reader: ColumnReader, of: &ColumnDescriptor) -> Result<Column> {
        let (unsigned, optional) = (is_unsigned(of), of.max_def_level() == 1);
        let number = move |signed: i64, bits: u64| {
            let unsigned = unsigned.then_some(i128::from(bits));
            Value::Number(unsigned.unwrap_or(signed.into()))
        };
        let next_batch = match reader {
            ColumnReader::Int32ColumnReader(reader) => batches(reader, optional, move |value| {
                number(value.into(), value.cast_unsigned().into())
            }),
            ColumnReader::Int64ColumnReader(reader) => batches(reader, optional, move |value| {
                number(value, value.cast_unsigned())
            }),
            ColumnReader::BoolColumnReader(reader) => batches(reader, optional, Value::Truth),
            ColumnReader::ByteArrayColumnReader(reader) => batches(reader, optional, Value::Text),
            _ => {
                let kind = of.physical_type();
                return Err(general(format!(
                    "column {} has unsupported type {kind}",
                    of.name()
                )));
            }
        };
        if of.max_rep_level() > 0 || of.max_def_level() > 1 {
            let what = format!("column {} is a list or nested in a struct", of.name());
            return Err(general(what));
        }
        Ok(Column {
            next_batch,
            batch: Vec::new().into_iter(),
        })
    }

    /// Returns the next row's value.
    ///
    /// # Errors
    /// If the column ends before its row group, or is damaged.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Value<ByteArray>> {
        if let Some(value) = self.batch.next() {
            return Ok(value);
        }
        self.batch = guarded(&mut self.next_batch)?.into_iter();
        let first = self.batch.next();
        first.ok_or_else(|| general("a column is shorter than its row group"))
    }
}

fn batches<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    optional: bool,
    value: impl Fn(T::T) -> Value<ByteArray> + Send + 'static,
) -> NextBatch {
    Box::new(move || {
        let (mut values, mut present) = (Vec::with_capacity(BATCH_ROWS), Vec::new());
        let levels = optional.then_some(&mut present);
        let (rows, ..) = reader.read_records(BATCH_ROWS, levels, None, &mut values)?;
        let mut values = values.into_iter().map(&value);
        let batch = (0..rows).map(|row| {
            let is_absent = optional && present.get(row) != Some(&1);
            is_absent.then_some(Value::Absent).or_else(|| values.next())
        });
        let batch: Option<Vec<_>> = batch.collect();
        batch.ok_or_else(|| general("a column has fewer values than rows"))
    })
}

pub(super) fn general(what: impl Into<String>) -> ParquetError {
    ParquetError::General(what.into())
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
        Err(general(format!("damaged: {text}")))
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
