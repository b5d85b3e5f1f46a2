//! Weibull distributed delays.

use alloc::boxed::Box;
use core::fmt;

use longwire_units::{Nanos, parse_real};

use super::DelayModel;
use super::sampled::{CORRELATION, Common, Distribution, LOCATION, MAX, MIN, Tails, sampled};
use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};

/// The registry line.
pub const ENTRY: Entry<Box<dyn DelayModel>> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "weibull",
    summary: "location plus a Weibull distributed time: above t with probability \
              exp(-(t/scale)^shape); the mean is scale·Γ(1 + 1/shape)",
    params: &[
        Param::new("scale", Unit::Time)
            .help("the time that a fraction 1/e of the delays (36.8 %) is above"),
        Param::new("shape", Unit::Real)
            .within("0.1", "100", "0.1 to 100")
            .help("below 1 the tail is longer than the exponential's, above 1 shorter; 0.1 to 100"),
        LOCATION,
        MIN,
        MAX,
        CORRELATION,
    ],
};

fn build(arguments: &Arguments<'_>) -> Result<Box<dyn DelayModel>, SpecError> {
    let common = Common::read(arguments)?;
    let weibull = Weibull {
        scale: arguments.required("scale")?,
        shape: arguments.read("shape", parse_real)?,
    };
    if weibull.scale == Nanos::ZERO {
        return Err(arguments.invalid("scale=0 leaves nothing to vary; the least is 1ns"));
    }
    sampled(arguments, common, weibull)
}

/// A Weibull distribution.
#[derive(Clone, Copy, Debug)]
struct Weibull {
    scale: Nanos,
    shape: f64,
}

impl Distribution for Weibull {
    fn tails(&self, time: f64) -> Tails {
        let power = libm::pow(time.max(0.0) / self.scale.as_nanos() as f64, self.shape);
        Tails {
            below: -libm::expm1(-power),
            above: libm::exp(-power),
        }
    }

    fn quantile(&self, at: Tails) -> f64 {
        let power = at.exponential();
        self.scale.as_nanos() as f64 * libm::pow(power, 1.0 / self.shape)
    }
}

impl fmt::Display for Weibull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "weibull:scale={},shape={}", self.scale, self.shape)
    }
}
