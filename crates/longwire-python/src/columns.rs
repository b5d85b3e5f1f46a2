//! Results as Arrow columns, which Python libraries import without copying.

use std::sync::Arc;

use arrow_array::ffi::to_ffi;
use arrow_array::types::UInt8Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, StringArray, UInt8Array, UInt64Array};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use crate::simulation::{Results, verdict_names};

/// A column that implements the Arrow and numpy interfaces.
#[pyclass(frozen, module = "longwire._engine")]
pub struct Column {
    array: ArrayRef,
    /// Address of the values, and their numpy type.
    values: (usize, &'static str),
}

/// Converts results to columns: frames, verdicts, departures and releases.
pub fn of(results: Results) -> Vec<Column> {
    let delivered =
        BooleanBuffer::collect_bool(results.verdicts.len(), |index| results.verdicts[index] == 0);
    let delivered = NullBuffer::new(delivered);
    let times = |times: Vec<u64>| UInt64Array::new(times.into(), Some(delivered.clone()));
    let names = Arc::new(StringArray::from(verdict_names()));
    let codes = UInt8Array::from(results.verdicts);
    let verdicts_at = codes.values().as_ptr() as usize;
    let verdicts = DictionaryArray::<UInt8Type>::new(codes, names);
    let verdicts = Column {
        array: Arc::new(verdicts),
        values: (verdicts_at, "|u1"),
    };
    let [departures, releases] = [results.departures, results.releases].map(times);
    let frames = UInt64Array::from(results.frames);
    vec![
        Column::of_numbers(frames),
        verdicts,
        Column::of_numbers(departures),
        Column::of_numbers(releases),
    ]
}

impl Column {
    fn of_numbers(array: UInt64Array) -> Column {
        let at = array.values().as_ptr() as usize;
        Column {
            array: Arc::new(array),
            values: (at, "<u8"),
        }
    }
}

#[pymethods]
impl Column {
    fn __len__(&self) -> usize {
        self.array.len()
    }

    /// Implements the Arrow PyCapsule interface: a schema and an array.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // The interface allows the argument to be ignored.
        let _ = requested_schema;
        let exported = to_ffi(&self.array.to_data());
        let (array, schema) =
            exported.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        Ok((
            PyCapsule::new_with_value(py, schema, c"arrow_schema")?,
            PyCapsule::new_with_value(py, array, c"arrow_array")?,
        ))
    }

    /// Implements the numpy array interface: verdicts are codes, and times of dropped frames are 0.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (at, kind) = self.values;
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("shape", (self.array.len(),))?;
        interface.set_item("typestr", kind)?;
        // Read-only, because arrays exported through Arrow share the buffer.
        interface.set_item("data", (at, true))?;
        Ok(interface)
    }
}
