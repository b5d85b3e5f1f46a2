//! Compiled part of the Python package: a link in virtual time that operates on arrays.
//!
//! The Python module `longwire` wraps this module and documents it for users.

mod columns;
mod input;
mod simulation;

use longwire_engine::{LinkSpec, LinkSpecError, Loader};
use longwire_runtime::loader::FileLoader;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use columns::Column;
use simulation::{Arrivals, Results, Simulation};

/// A link specification for simulations.
#[pyclass(frozen, module = "longwire._engine")]
struct Specification {
    spec: LinkSpec,
}

#[pymethods]
impl Specification {
    /// Parses `NAME=VALUE` pairs separated by blanks.
    #[new]
    fn new(py: Python<'_>, text: &str) -> PyResult<Specification> {
        let spec = py.detach(|| LinkSpec::parse(text, &FileLoader::new()));
        let spec = spec.map_err(|error| refusal(py, &error))?;
        Ok(Specification { spec })
    }

    /// Returns the options as (name, value) pairs.
    fn given(&self) -> Vec<(&'static str, String)> {
        self.spec.given()
    }

    /// Sends frames through a new link. Times are non-decreasing and in nanoseconds; lengths are in
    /// bytes. Frames have no content, so models that match headers match none.
    fn simulate(
        &self,
        py: Python<'_>,
        seed: u64,
        arrivals: &Bound<'_, PyAny>,
        lengths: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<Column>> {
        let arrivals = Arrivals::new(input::integers(arrivals)?, input::integers(lengths)?)
            .map_err(PyValueError::new_err)?;
        let loader = FileLoader::new();
        loader.begin_link();
        let config = self.spec.build(&loader);
        let config = config.map_err(|error| refusal(py, &LinkSpecError::from(error)))?;
        let results = py.detach(|| -> PyResult<Results> {
            let mut simulation = Simulation::new(config, seed, &arrivals);
            // Check signals often enough for Ctrl-C to take effect without noticeable delay.
            while simulation.advance() {
                Python::attach(|py| py.check_signals())?;
            }
            Ok(simulation.finish())
        })?;
        Ok(columns::of(results))
    }
}

/// Returns the Python exception for a refused specification.
fn refusal(py: Python<'_>, error: &LinkSpecError) -> PyErr {
    let (field, reason) = match error {
        LinkSpecError::Option(option) => (option.option, option.source.to_string()),
        other => ("", other.to_string()),
    };
    let made = py
        .import("longwire.errors")
        .and_then(|errors| errors.getattr("SpecificationError"))
        .and_then(|class| class.call1((error.to_string(), field, reason)));
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(failed) => failed,
    }
}

#[pymodule]
fn _engine(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("VERDICTS", simulation::verdict_names())?;
    module.add_class::<Specification>()?;
    module.add_class::<Column>()
}
