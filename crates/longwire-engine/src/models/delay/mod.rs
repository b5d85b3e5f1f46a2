//! Propagation delay and jitter.

use core::fmt;

use crate::random::Stream;
use crate::units::Nanos;

pub mod constant;
pub mod exponential;
pub mod uniform;

/// A distribution of propagation delays.
pub trait DelayModel: fmt::Debug + Send {
    /// The delay of the next frame.
    fn draw(&mut self, stream: &mut Stream) -> Nanos;

    /// The delay if it never varies.
    fn fixed(&self) -> Option<Nanos> {
        None
    }

    /// The mean, for default queue limits and reports.
    fn mean(&self) -> Nanos;

    /// The model as its user would write it.
    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

impl fmt::Display for dyn DelayModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe(f)
    }
}
