//! Evenly spaced frames.

use std::fmt;

use longwire_engine::models::Entry;
use longwire_units::Nanos;
use longwire_units::random::Stream;

use super::{ArrivalModel, Arrivals, EvenClock, Load};

/// Registry entry.
pub const ENTRY: Entry<Box<dyn ArrivalModel>> = Entry::new(
    "constant",
    "evenly spaced frames; the remainder is carried, so the rate is exact",
    &[],
    |_| Ok(Box::new(ConstantArrivals)),
);

/// Evenly spaced arrivals.
#[derive(Clone, Copy, Debug)]
pub struct ConstantArrivals;

impl ArrivalModel for ConstantArrivals {
    fn begin(&self, load: Load) -> Box<dyn Arrivals> {
        Box::new(EvenClock::new(load.rate))
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("constant")
    }
}

impl Arrivals for EvenClock {
    #[inline]
    fn due(&mut self, len: u32, _stream: &mut Stream) -> Nanos {
        EvenClock::due(self, len)
    }
}
