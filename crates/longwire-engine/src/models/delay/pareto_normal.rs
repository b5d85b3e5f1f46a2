//! Delays of netem's mixture of a normal and a Pareto distribution.

use alloc::boxed::Box;
use core::fmt;

use longwire_units::Nanos;

use super::DelayModel;
use super::sampled::{CORRELATION, Common, Distribution, MAX, MIN, Tails, sampled, without_spread};
use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};

/// The registry line.
pub const ENTRY: Entry<Box<dyn DelayModel>> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "pareto-normal",
    summary: "a quarter of a normal and three quarters of a Pareto variable of shape 3, of the \
              same rank (netem's paretonormal, from NIST Net), to this mean and deviation; \
              bounds, of which 0 is always one, raise or lower the mean that is left",
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
    let mixture = ParetoNormal {
        mean: arguments.required("mean")?,
        stddev: arguments.required("stddev")?,
    };
    if mixture.stddev == Nanos::ZERO {
        let mean = mixture.mean.as_nanos() as f64;
        return without_spread(arguments, common, mixture, mean);
    }
    sampled(arguments, common, mixture)
}

/// A sum of quantiles: that of rank u is N(u)/4 + 3/4·4/3·(P(u) - 3/2), with N the
/// standard normal's and P that of the Pareto distribution of shape 3 and scale 1,
/// whose mean is 3/2.
#[derive(Clone, Copy, Debug)]
struct ParetoNormal {
    mean: Nanos,
    stddev: Nanos,
}

/// The standard deviation of that sum: its variance is 1/16 + 3/4 + Cov(N, P)/2, and
/// the covariance 0.587470748478335… was integrated numerically.
const DEVIATION: f64 = 1.051_777_245_541_644;

/// Returns the sum at this position of the distribution.
fn standard(at: Tails) -> f64 {
    at.normal() / 4.0 + libm::exp(at.exponential() / 3.0) - 1.5
}

impl Distribution for ParetoNormal {
    /// There is no formula: the position is searched for by its logit, whose bounds are
    /// further out than any float next to one or zero.
    fn tails(&self, time: f64) -> Tails {
        let target = (time - self.mean.as_nanos() as f64) / self.stddev.as_nanos() as f64;
        let (mut low, mut high) = (-700.0, 700.0);
        let tails = |logit: f64| Tails {
            below: 1.0 / (1.0 + libm::exp(-logit)),
            above: 1.0 / (1.0 + libm::exp(logit)),
        };
        for _ in 0..80 {
            let middle = (low + high) / 2.0;
            if standard(tails(middle)) / DEVIATION < target {
                low = middle;
            } else {
                high = middle;
            }
        }
        tails((low + high) / 2.0)
    }

    fn quantile(&self, at: Tails) -> f64 {
        let standard = standard(at) / DEVIATION;
        self.mean.as_nanos() as f64 + standard * self.stddev.as_nanos() as f64
    }
}

impl fmt::Display for ParetoNormal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pareto-normal:mean={},stddev={}", self.mean, self.stddev)
    }
}
