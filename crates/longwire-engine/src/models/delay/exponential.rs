//! A minimum delay plus an exponentially distributed part.

use alloc::boxed::Box;
use alloc::format;
use core::fmt;

use longwire_units::Nanos;

use super::DelayModel;
use super::sampled::{CORRELATION, Common, Distribution, MAX, MIN, Tails, sampled, without_spread};
use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};

/// The registry line.
pub const ENTRY: Entry<Box<dyn DelayModel>> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "exponential",
    summary: "min plus an exponentially distributed time, such that the whole has this mean \
              (as in Rizzo and Lettieri's TLEM, 2016)",
    params: &[
        Param::new("mean", Unit::Time)
            .help("the mean of the whole delay, min included, before max cuts"),
        MIN.help("the least delay"),
        MAX,
        CORRELATION,
    ],
};

fn build(arguments: &Arguments<'_>) -> Result<Box<dyn DelayModel>, SpecError> {
    let common = Common::read(arguments)?.without_own(&["min"]);
    let (min, mean): (Nanos, Nanos) = (arguments.required("min")?, arguments.required("mean")?);
    if min > mean {
        return Err(arguments.invalid(format!("min={min} is above mean={mean}")));
    }
    let exponential = Exponential { min, mean };
    if min == mean {
        return without_spread(arguments, common, exponential, mean.as_nanos() as f64);
    }
    sampled(arguments, common, exponential)
}

/// A shifted exponential distribution.
#[derive(Clone, Copy, Debug)]
struct Exponential {
    min: Nanos,
    mean: Nanos,
}

impl Exponential {
    fn scale(&self) -> f64 {
        self.mean.saturating_sub(self.min).as_nanos() as f64
    }
}

impl Distribution for Exponential {
    fn tails(&self, time: f64) -> Tails {
        let above_min = (time - self.min.as_nanos() as f64).max(0.0) / self.scale();
        Tails {
            below: -libm::expm1(-above_min),
            above: libm::exp(-above_min),
        }
    }

    fn quantile(&self, at: Tails) -> f64 {
        let above_min = at.exponential();
        self.min.as_nanos() as f64 + above_min * self.scale()
    }
}

impl fmt::Display for Exponential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "exponential:mean={},min={}", self.mean, self.min)
    }
}
