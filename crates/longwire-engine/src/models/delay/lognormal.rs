//! Delays whose logarithm is normally distributed.

use alloc::boxed::Box;
use core::fmt;

use longwire_units::Nanos;

use super::DelayModel;
use super::sampled::{
    CORRELATION, Common, Distribution, LOCATION, MAX, MIN, Tails, sampled, without_spread,
};
use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};
use longwire_units::special::normal_above;

/// The registry line.
pub const ENTRY: Entry<Box<dyn DelayModel>> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "lognormal",
    summary: "location plus a lognormally distributed time of this mean and deviation: its \
              logarithm has variance ln(1 + (stddev/mean)²) and mean ln(mean) less half of that",
    params: &[
        Param::new("mean", Unit::Time)
            .help("the mean of the time itself, not of its logarithm, without location"),
        Param::new("stddev", Unit::Time).help("the standard deviation (jitter) of the time itself"),
        LOCATION,
        MIN,
        MAX,
        CORRELATION,
    ],
};

fn build(arguments: &Arguments<'_>) -> Result<Box<dyn DelayModel>, SpecError> {
    let common = Common::read(arguments)?;
    let mean: Nanos = arguments.required("mean")?;
    let stddev: Nanos = arguments.required("stddev")?;
    if mean == Nanos::ZERO {
        return Err(arguments.invalid("mean=0 leaves nothing to vary; the least is 1ns"));
    }
    let mean_nanos = mean.as_nanos() as f64;
    let ratio = stddev.as_nanos() as f64 / mean_nanos;
    let variance = libm::log1p(ratio * ratio);
    let lognormal = Lognormal {
        mean,
        stddev,
        log_mean: libm::log(mean_nanos) - variance / 2.0,
        log_stddev: libm::sqrt(variance),
    };
    if stddev == Nanos::ZERO {
        return without_spread(arguments, common, lognormal, mean_nanos);
    }
    sampled(arguments, common, lognormal)
}

/// A lognormal distribution.
#[derive(Clone, Copy, Debug)]
struct Lognormal {
    mean: Nanos,
    stddev: Nanos,
    log_mean: f64,
    log_stddev: f64,
}

impl Distribution for Lognormal {
    fn tails(&self, time: f64) -> Tails {
        if time <= 0.0 {
            return Tails::LOWEST;
        }
        let z = (libm::log(time) - self.log_mean) / self.log_stddev;
        Tails {
            below: normal_above(-z),
            above: normal_above(z),
        }
    }

    fn quantile(&self, at: Tails) -> f64 {
        libm::exp(self.log_mean + at.normal() * self.log_stddev)
    }
}

impl fmt::Display for Lognormal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lognormal:mean={},stddev={}", self.mean, self.stddev)
    }
}
