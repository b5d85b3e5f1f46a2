//! Poisson arrivals.

use std::fmt;

use longwire_engine::models::Entry;
use longwire_units::Nanos;
use longwire_units::random::Stream;

use super::{ArrivalModel, Arrivals, Load};

/// Registry entry.
pub const ENTRY: Entry<Box<dyn ArrivalModel>> = Entry::new(
    "poisson",
    "a Poisson process: gaps between frames are independent and exponential (RFC 2330, section \
     11.1.1), independent of frame sizes",
    &[],
    |_| Ok(Box::new(Poisson)),
);

#[derive(Clone, Copy, Debug)]
struct Poisson;

impl ArrivalModel for Poisson {
    fn begin(&self, load: Load) -> Box<dyn Arrivals> {
        Box::new(PoissonArrivals {
            mean_gap: load.mean_gap(),
            at: 0,
            fraction: 0.0,
        })
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("poisson")
    }
}

#[derive(Clone, Debug)]
struct PoissonArrivals {
    /// Mean gap in nanoseconds.
    mean_gap: f64,
    /// Last arrival in nanoseconds, with integer part and fraction, so that rounding errors do not
    /// accumulate.
    at: u64,
    fraction: f64,
}

impl Arrivals for PoissonArrivals {
    fn due(&mut self, _len: u32, stream: &mut Stream) -> Nanos {
        let gap = -libm::log(stream.unit()) * self.mean_gap + self.fraction;
        let whole = libm::floor(gap);
        self.fraction = gap - whole;
        // The cast saturates.
        self.at = self.at.saturating_add(whole as u64);
        Nanos::from_nanos(self.at)
    }
}
