//! Pareto distributed delays: a few are very long.

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
    name: "pareto",
    summary: "location plus a Pareto distributed time: above t with probability \
              (scale/t)^shape, and never below scale; the mean is scale·shape/(shape-1) for \
              shapes above 1, the variance finite for shapes above 2",
    params: &[
        Param::new("scale", Unit::Time).help("the least of the Pareto distributed time"),
        Param::with_default("shape", Unit::Real, "3")
            .within("0.1", "1000", "0.1 to 1000")
            .help("how fast long delays become rare, 0.1 to 1000; 3 is that of netem's table"),
        LOCATION,
        MIN,
        MAX,
        CORRELATION,
    ],
};

fn build(arguments: &Arguments<'_>) -> Result<Box<dyn DelayModel>, SpecError> {
    let common = Common::read(arguments)?;
    let pareto = Pareto {
        scale: arguments.required("scale")?,
        shape: arguments.read("shape", parse_real)?,
    };
    if pareto.scale == Nanos::ZERO {
        return Err(arguments.invalid("scale=0 leaves nothing to vary; the least is 1ns"));
    }
    sampled(arguments, common, pareto)
}

/// A Pareto distribution, of the first type.
#[derive(Clone, Copy, Debug)]
struct Pareto {
    scale: Nanos,
    shape: f64,
}

impl Distribution for Pareto {
    fn tails(&self, time: f64) -> Tails {
        let scale = self.scale.as_nanos() as f64;
        if time <= scale {
            return Tails::LOWEST;
        }
        let log_above = -self.shape * libm::log(time / scale);
        Tails {
            below: -libm::expm1(log_above),
            above: libm::exp(log_above),
        }
    }

    fn quantile(&self, at: Tails) -> f64 {
        self.scale.as_nanos() as f64 * libm::exp(at.exponential() / self.shape)
    }
}

impl fmt::Display for Pareto {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pareto:scale={},shape={}", self.scale, self.shape)
    }
}
