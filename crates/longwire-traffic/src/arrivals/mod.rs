//! Arrival models: due times of generated frames.
//!
//! Every model keeps the requested mean rate and distributes frames around it.

use std::fmt;

use longwire_engine::models::Kind;
use longwire_units::Nanos;
use longwire_units::random::Stream;

pub mod burst;
pub mod constant;
mod load;
pub mod on_off;
pub mod poisson;
pub mod ramp;

pub use load::{EvenClock, Load, LoadRate};

/// Distributes frames over time at a mean rate.
pub trait ArrivalModel: fmt::Debug + Send + Sync {
    /// Starts a sequence of arrivals at time zero.
    fn begin(&self, load: Load) -> Box<dyn Arrivals>;

    /// Formats the model in command-line syntax.
    ///
    /// # Errors
    /// If writing to `f` fails.
    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

impl fmt::Display for dyn ArrivalModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe(f)
    }
}

/// A sequence of arrivals.
pub trait Arrivals: fmt::Debug + Send {
    /// Returns the due time of the next frame, of `len` bytes, since the start; non-decreasing.
    /// [`Nanos::MAX`] means never.
    fn due(&mut self, len: u32, stream: &mut Stream) -> Nanos;
}

/// Registry of arrival models.
pub static KIND: Kind<Box<dyn ArrivalModel>> = Kind {
    name: "arrivals",
    example: "constant",
    entries: &[
        constant::ENTRY,
        poisson::ENTRY,
        on_off::ENTRY,
        burst::ENTRY,
        ramp::ENTRY,
    ],
};
