//! Selects measurements and runs them.

use longwire::Error;
use longwire::bench::harness::show;
use serde::Serialize;

/// A measurement with its arguments.
pub trait Measurement: Clone {
    /// The rows of a table, or several tables; fields are columns.
    type Found: Serialize;

    /// Conditions and bars, printed above the table.
    const ABOUT: &'static str;

    /// Returns the arguments of a short measurement, which only shows that it works.
    fn quick(&self) -> Self;

    /// Measures; `port` is the kind of live ports.
    ///
    /// # Errors
    /// Those of the measurement.
    fn measure(&self, port: &str) -> Result<Self::Found, Error>;
}

/// Measures and prints the result: as JSON, or as `ABOUT` and tables of the same
/// fields.
///
/// # Errors
/// Those of the measurement.
pub fn run<M: Measurement>(args: &M, port: &str, quick: bool, json: bool) -> Result<(), Error> {
    let found = if quick { args.quick() } else { args.clone() }.measure(port)?;
    show(M::ABOUT, &found, json)
}
