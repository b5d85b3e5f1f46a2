//! Gamma distributed delays.

use alloc::boxed::Box;
use core::fmt;

use longwire_units::Nanos;

use super::DelayModel;
use super::sampled::{
    CORRELATION, Common, Distribution, LOCATION, MAX, MIN, Tails, sampled, without_spread,
};
use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};
use longwire_units::special::{GAMMA_SHAPE_MAX, gamma_quantile, gamma_tails};

/// The registry line.
pub const ENTRY: Entry<Box<dyn DelayModel>> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "gamma",
    summary: "location plus a gamma distributed time of this mean and deviation: shape \
              (mean/stddev)², scale stddev²/mean",
    params: &[
        Param::new("mean", Unit::Time).help("the mean, without location"),
        Param::new("stddev", Unit::Time)
            .help("the standard deviation (jitter), from mean/100 to 10 times mean, or 0"),
        LOCATION,
        MIN,
        MAX,
        CORRELATION,
    ],
};

/// The least shape whose lower tail is wider than the steps of a float.
const SHAPE_MIN: f64 = 0.01;

fn build(arguments: &Arguments<'_>) -> Result<Box<dyn DelayModel>, SpecError> {
    let common = Common::read(arguments)?;
    let mean: Nanos = arguments.required("mean")?;
    let stddev: Nanos = arguments.required("stddev")?;
    let (mean_nanos, stddev_nanos) = (mean.as_nanos() as f64, stddev.as_nanos() as f64);
    let ratio = mean_nanos / stddev_nanos;
    let gamma = Gamma {
        mean,
        stddev,
        shape: ratio * ratio,
        scale: stddev_nanos / ratio,
    };
    if stddev == Nanos::ZERO {
        return without_spread(arguments, common, gamma, mean_nanos);
    }
    // Tolerance for values exactly at the limits.
    let shapes = SHAPE_MIN * (1.0 - 1e-9)..=GAMMA_SHAPE_MAX * (1.0 + 1e-9);
    if !shapes.contains(&gamma.shape) {
        let refusal = "stddev is mean/100 to 10 times mean, or 0; narrower than that, normal is \
                       the same within a hundredth";
        return Err(arguments.invalid(refusal));
    }
    sampled(arguments, common, gamma)
}

/// A gamma distribution.
#[derive(Clone, Copy, Debug)]
struct Gamma {
    mean: Nanos,
    stddev: Nanos,
    shape: f64,
    scale: f64,
}

impl Distribution for Gamma {
    fn tails(&self, time: f64) -> Tails {
        let (below, above) = gamma_tails(self.shape, time / self.scale);
        Tails { below, above }
    }

    fn quantile(&self, at: Tails) -> f64 {
        self.scale * gamma_quantile(self.shape, at.below, at.above)
    }
}

impl fmt::Display for Gamma {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "gamma:mean={},stddev={}", self.mean, self.stddev)
    }
}
