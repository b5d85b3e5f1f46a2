//! Normally distributed delays.

use alloc::boxed::Box;
use alloc::format;
use core::fmt;

use longwire_units::Nanos;

use super::DelayModel;
use super::sampled::{CORRELATION, Common, Distribution, MAX, MIN, Tails, sampled, without_spread};
use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};
use longwire_units::special::normal_above;

/// The registry line.
pub const ENTRY: Entry<Box<dyn DelayModel>> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "normal",
    summary: "normally distributed delays; bounds, of which 0 is always one, raise or lower the \
              mean that is left",
    params: &[
        Param::new("mean", Unit::Time).help("the mean, before the bounds cut"),
        Param::new("stddev", Unit::Time)
            .help("the standard deviation (jitter), before the bounds cut"),
        MIN,
        MAX,
        CORRELATION,
    ],
};

fn build(arguments: &Arguments<'_>) -> Result<Box<dyn DelayModel>, SpecError> {
    let common = Common::read(arguments)?;
    let normal = Normal {
        mean: arguments.required("mean")?,
        stddev: arguments.required("stddev")?,
    };
    if normal.stddev == Nanos::ZERO {
        let mean = normal.mean.as_nanos() as f64;
        return without_spread(arguments, common, normal, mean);
    }
    let model = sampled(arguments, common, normal)?;
    if normal.stddev > normal.mean {
        let (Normal { mean, stddev }, left) = (normal, model.mean());
        arguments.doubt(format!(
            "stddev={stddev} is above mean={mean}: draws below 0 are repeated, which makes the \
             mean {left}; use lognormal or gamma for such a spread"
        ));
    }
    Ok(model)
}

/// A normal distribution.
#[derive(Clone, Copy, Debug)]
struct Normal {
    mean: Nanos,
    stddev: Nanos,
}

impl Distribution for Normal {
    fn tails(&self, time: f64) -> Tails {
        let z = (time - self.mean.as_nanos() as f64) / self.stddev.as_nanos() as f64;
        Tails {
            below: normal_above(-z),
            above: normal_above(z),
        }
    }

    fn quantile(&self, at: Tails) -> f64 {
        self.mean.as_nanos() as f64 + at.normal() * self.stddev.as_nanos() as f64
    }
}

impl fmt::Display for Normal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "normal:mean={},stddev={}", self.mean, self.stddev)
    }
}
