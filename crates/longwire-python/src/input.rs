//! Integers from Python: Arrow, numpy, or any sequence.

use std::ffi::{c_char, c_int, c_void};

use arrow_array::cast::AsArray;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::types::{Int32Type, Int64Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, make_array};
use arrow_schema::DataType;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

/// Reads unsigned integers from a Python value.
///
/// # Errors
/// If the value contains anything else.
pub fn integers(value: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
    if let Ok(single) = value.extract::<u64>() {
        return Ok(vec![single]);
    }
    if value.hasattr("__arrow_c_array__")? {
        return from_arrow(value);
    }
    if value.hasattr("__arrow_c_stream__")? {
        return from_stream(value);
    }
    if value.hasattr("__array_interface__")? {
        return from_numpy(value);
    }
    value.extract().map_err(|_| not_numbers(value))
}

fn not_numbers(value: &Bound<'_, PyAny>) -> PyErr {
    let kind = value.get_type().name().map(|name| name.to_string());
    PyTypeError::new_err(format!(
        "{} is not a sequence of non-negative integers; pass a list, a numpy array or an \
         Arrow column",
        kind.unwrap_or_default()
    ))
}

/// Imports an array through the Arrow PyCapsule interface.
fn from_arrow(value: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
    let (schema, array): (Bound<'_, PyCapsule>, Bound<'_, PyCapsule>) =
        value.call_method0("__arrow_c_array__")?.extract()?;
    let schema = schema.pointer_checked(Some(c"arrow_schema"))?;
    let array = array.pointer_checked(Some(c"arrow_array"))?;
    // SAFETY: capsules with these names contain these structures. The array is moved out, which
    // marks it as released; the schema lives as long as the capsule.
    let data = unsafe {
        let array = FFI_ArrowArray::from_raw(array.as_ptr().cast());
        from_ffi(array, schema.cast::<FFI_ArrowSchema>().as_ref())
    };
    let data = data.map_err(|error| PyValueError::new_err(error.to_string()))?;
    let mut found = Vec::new();
    append(&make_array(data), &mut found)?;
    Ok(found)
}

/// A stream of the Arrow C stream interface. `arrow-array` accepts only streams of structs, but a
/// column is a stream of plain arrays.
#[repr(C)]
struct ArrayStream {
    get_schema: Option<unsafe extern "C" fn(*mut ArrayStream, *mut FFI_ArrowSchema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut ArrayStream, *mut FFI_ArrowArray) -> c_int>,
    _get_last_error: Option<unsafe extern "C" fn(*mut ArrayStream) -> *const c_char>,
    _release: Option<unsafe extern "C" fn(*mut ArrayStream)>,
    _private_data: *mut c_void,
}

fn from_stream(value: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
    let capsule: Bound<'_, PyCapsule> = value.call_method0("__arrow_c_stream__")?.extract()?;
    let at = capsule.pointer_checked(Some(c"arrow_array_stream"))?;
    let stream = at.cast::<ArrayStream>();
    let failed = |code| PyValueError::new_err(format!("the Arrow stream failed with error {code}"));
    // SAFETY: a capsule with this name contains this structure, and lives until the end of this
    // function.
    let (get_schema, get_next) = unsafe { (stream.as_ref().get_schema, stream.as_ref().get_next) };
    let (Some(get_schema), Some(get_next)) = (get_schema, get_next) else {
        return Err(failed(0));
    };
    let mut schema = FFI_ArrowSchema::empty();
    // SAFETY: `schema` is valid for the stream to write to.
    match unsafe { get_schema(stream.as_ptr(), &mut schema) } {
        0 => {}
        code => return Err(failed(code)),
    }
    let mut found = Vec::new();
    loop {
        let mut array = FFI_ArrowArray::empty();
        // SAFETY: as above. A released array marks the end of the stream.
        match unsafe { get_next(stream.as_ptr(), &mut array) } {
            0 if array.is_released() => return Ok(found),
            0 => {}
            code => return Err(failed(code)),
        }
        // SAFETY: the stream has filled both, and the array has the stream's schema.
        let data = unsafe { from_ffi(array, &schema) };
        let data = data.map_err(|error| PyValueError::new_err(error.to_string()))?;
        append(&make_array(data), &mut found)?;
    }
}

/// Appends the integers of an array.
fn append(array: &ArrayRef, found: &mut Vec<u64>) -> PyResult<()> {
    if array.null_count() > 0 {
        return Err(PyValueError::new_err("null is not a valid time or length"));
    }
    match array.data_type() {
        DataType::UInt64 => found.extend_from_slice(array.as_primitive::<UInt64Type>().values()),
        DataType::UInt32 => return append_values::<UInt32Type>(array, found),
        DataType::UInt16 => return append_values::<UInt16Type>(array, found),
        DataType::Int64 => return append_values::<Int64Type>(array, found),
        DataType::Int32 => return append_values::<Int32Type>(array, found),
        other => {
            return Err(PyTypeError::new_err(format!(
                "{other} is not an integer type; cast the column to uint64"
            )));
        }
    }
    Ok(())
}

fn append_values<T: ArrowPrimitiveType>(array: &ArrayRef, found: &mut Vec<u64>) -> PyResult<()>
where
    u64: TryFrom<T::Native>,
{
    let values = array.as_primitive::<T>().values();
    collect(values.iter().copied(), found)
}

fn collect<T>(values: impl Iterator<Item = T>, found: &mut Vec<u64>) -> PyResult<()>
where
    u64: TryFrom<T>,
{
    for value in values {
        let value = u64::try_from(value);
        found.push(value.map_err(|_| PyValueError::new_err("a time or length is negative"))?);
    }
    Ok(())
}

fn from_numpy(value: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
    let interface = value.getattr("__array_interface__")?;
    let interface = interface.cast::<PyDict>()?;
    let item = |name: &str| -> PyResult<Bound<'_, PyAny>> {
        let found = interface.get_item(name)?;
        found.ok_or_else(|| not_numbers(value))
    };
    let kind: String = item("typestr")?.extract()?;
    let shape: Vec<usize> = item("shape")?.extract()?;
    let (at, _read_only): (usize, bool) = item("data")?.extract()?;
    let strides: Option<Vec<isize>> = match interface.get_item("strides")? {
        Some(strides) => strides.extract()?,
        None => None,
    };
    let [count] = shape[..] else {
        return Err(PyValueError::new_err(
            "the array has more than one dimension",
        ));
    };
    let stride = strides.and_then(|strides| strides.first().copied());
    let numbers = NumpyNumbers { at, count, stride };
    let mut found = Vec::with_capacity(count);
    match kind.as_str() {
        "<u8" => collect(numbers.of::<u64>(), &mut found)?,
        "<i8" => collect(numbers.of::<i64>(), &mut found)?,
        "<u4" => collect(numbers.of::<u32>(), &mut found)?,
        "<i4" => collect(numbers.of::<i32>(), &mut found)?,
        "<u2" => collect(numbers.of::<u16>(), &mut found)?,
        "<i2" => collect(numbers.of::<i16>(), &mut found)?,
        // Times and durations of numpy, in nanoseconds.
        "<M8[ns]" | "<m8[ns]" => collect(numbers.of::<i64>(), &mut found)?,
        _ => {
            return Err(PyTypeError::new_err(format!(
                "an array of {kind} does not hold integers; use .astype('uint64')"
            )));
        }
    }
    Ok(found)
}

/// Memory described by a numpy array.
struct NumpyNumbers {
    at: usize,
    count: usize,
    /// Distance between numbers in bytes; `None` if contiguous.
    stride: Option<isize>,
}

impl NumpyNumbers {
    fn of<T: Copy>(&self) -> impl Iterator<Item = T> {
        let stride = self.stride.unwrap_or(size_of::<T>() as isize);
        let at = self.at as *const u8;
        (0..self.count as isize).map(move |index| {
            // SAFETY: the interface guarantees `count` numbers of this type at these addresses
            // while the array lives, which the caller ensures. The numbers may be unaligned.
            unsafe { at.offset(index * stride).cast::<T>().read_unaligned() }
        })
    }
}
