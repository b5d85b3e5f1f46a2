//! Arrivals: when generated frames are due.
//!
//! Every model keeps the requested mean rate; it decides how the frames are spread
//! around it.

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

/// A distribution of frames over time at a mean rate.
pub trait ArrivalModel: fmt::Debug + Send + Sync {
    /// Begins a sequence of arrivals under this load, at time zero.
    fn begin(&self, load: Load) -> Box<dyn Arrivals>;

    /// Writes the model as its user would write it.
    ///
    /// # Errors
    /// An error of the formatter `f`; a model adds none.
    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

impl fmt::Display for dyn ArrivalModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe(f)
    }
}

/// A sequence of arrivals.
pub trait Arrivals: fmt::Debug + Send {
    /// Returns when the next frame, of `len` bytes, is due after the beginning: never
    /// before the previous frame. [`Nanos::MAX`] is never.
    fn due(&mut self, len: u32, stream: &mut Stream) -> Nanos;
}

/// Arrival models.
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
