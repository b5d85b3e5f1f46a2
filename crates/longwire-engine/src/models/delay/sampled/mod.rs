//! Delays drawn from a distribution, with truncation, offset and correlation. Each distribution
//! contributes only its formula.

use alloc::sync::Arc;

mod copula;
mod inverse;
#[cfg(test)]
mod tests;

use super::DelayModel;
use super::distributions::Formula;
use crate::models::prelude::*;
use copula::Copula;
use inverse::{Inverse, Octaves};

pub(super) use inverse::{Points, Tails};

/// Minimum delay.
pub(super) const MIN: Param =
    Param::with_default("min", Unit::Time, "0ns").help("minimum delay; lower values are redrawn");

/// Maximum delay.
pub(super) const MAX: Param =
    Param::with_default("max", Unit::Time, "24h").help("maximum delay; higher values are redrawn");

/// Constant offset.
pub(super) const LOCATION: Param =
    Param::with_default("location", Unit::Time, "0ns").help("constant added to each draw");

/// Correlation with the previous frame.
pub(super) const CORRELATION: Param = Param::with_default("correlation", Unit::Correlation, "0%")
    .help(
        "correlation with the previous delay, above -100% and below 100%; the distribution is \
         unchanged",
    );

/// Minimum probability mass within the bounds; less is an error.
const INSIDE_LEAST: f64 = 1e-6;

/// A delay model: a distribution and its parameters.
///
/// The distribution is truncated to the bounds, as if outside values were redrawn. Truncation is
/// precomputed, so each frame takes one draw.
#[derive(Clone, Debug)]
struct SampledDelay {
    /// Shared by clones.
    inverse: Arc<Inverse>,
    location: f64,
    copula: Option<Box<Copula>>,
    mean: Nanos,
    least: Nanos,
}

/// Parameters of a sampled delay model: [`MIN`], [`MAX`], [`CORRELATION`], and [`LOCATION`] if the
/// model declares it.
pub(super) struct Sampler<'a> {
    arguments: &'a Arguments<'a>,
    min: Nanos,
    max: Nanos,
    location: Nanos,
    correlation: Correlation,
    /// The model's specification text.
    text: String,
}

impl<'a> Sampler<'a> {
    /// Reads the parameters. The model's text includes the parameters in `own` even at their
    /// defaults.
    pub fn new(arguments: &'a Arguments<'a>, own: &[&str]) -> Result<Sampler<'a>, SpecError> {
        let (min, max) = (arguments.required(MIN.name)?, arguments.required(MAX.name)?);
        if min > max {
            return Err(arguments.invalid(format!("min={min} is above max={max}")));
        }
        let mut omitted = vec![LOCATION, MIN, MAX, CORRELATION];
        omitted.retain(|param| !own.contains(&param.name) && arguments.is_default(param));
        Ok(Sampler {
            arguments,
            min,
            max,
            location: arguments.optional(LOCATION.name)?.unwrap_or(Nanos::ZERO),
            correlation: arguments.required(CORRELATION.name)?,
            text: arguments.notation(&omitted),
        })
    }

    /// Returns the bounds on the drawn delay, excluding the offset.
    fn bounds(&self) -> (f64, f64) {
        let location = self.location.as_nanos() as f64;
        let bound = |bound: Nanos| bound.as_nanos() as f64 - location;
        (bound(self.min), bound(self.max))
    }

    /// Creates a model from a formula.
    pub fn formula(self, formula: Formula) -> Result<Described<dyn DelayModel>, SpecError> {
        let (min, max) = self.bounds();
        let (at_min, at_max) = (formula.tails(min), formula.tails(max));
        // Near 1, the difference of the upper tails is exact.
        let inside = if at_min.below > 0.5 {
            at_min.above - at_max.above
        } else {
            at_max.below - at_min.below
        };
        let left = |at: Tails| Tails {
            below: at_min.below + at.below * inside,
            above: at_max.above + at.above * inside,
        };
        self.truncated(inside, || {
            let quantile = |at| formula.quantile(left(at)).clamp(min, max);
            Inverse::Octaves(Octaves::new(quantile))
        })
    }

    /// Creates a model from a file's samples, as evenly spaced quantiles.
    pub fn values(self, mut values: Vec<f64>) -> Result<Described<dyn DelayModel>, SpecError> {
        values.sort_by(f64::total_cmp);
        self.points(Points::evenly(values))
    }

    /// Creates a model with a constant value.
    pub fn constant(self, value: f64) -> Result<Described<dyn DelayModel>, SpecError> {
        self.points(Points::one(value))
    }

    /// Creates a model from points of a distribution function.
    pub fn points(self, mut points: Points) -> Result<Described<dyn DelayModel>, SpecError> {
        let (min, max) = self.bounds();
        let inside = points.truncate(min, max);
        self.truncated(inside, || Inverse::Points(points))
    }

    /// Creates a model; `inside` is the probability between the bounds.
    fn truncated(
        self,
        inside: f64,
        inverse: impl FnOnce() -> Inverse,
    ) -> Result<Described<dyn DelayModel>, SpecError> {
        let Sampler {
            min,
            max,
            correlation,
            ..
        } = self;
        let inverse = if min == max {
            Inverse::Points(Points::one(self.bounds().0))
        } else if inside < INSIDE_LEAST {
            return Err(self.arguments.invalid(format!(
                "only {inside:.1e} of the distribution is between min={min} and max={max}; the \
                 minimum is {INSIDE_LEAST:.0e}"
            )));
        } else {
            inverse()
        };
        let moments = inverse.moments();
        let location = self.location.as_nanos() as f64;
        let target = correlation.as_f64();
        if target.abs() >= 1.0 {
            let refusal = "correlation must be above -100% and below 100%; at the limits, one \
                           delay would determine all others";
            return Err(self.arguments.invalid(refusal));
        }
        let copula = if target == 0.0 || moments.variance == 0.0 {
            None
        } else {
            let copula = Copula::new(&inverse, target).map_err(|least| {
                let percent = least * 100.0;
                self.arguments.invalid(format!(
                    "correlation={correlation} is impossible with this distribution; the minimum \
                     is {percent:.2}%"
                ))
            })?;
            Some(Box::new(copula))
        };
        let model = SampledDelay {
            least: nanos(inverse.least() + location),
            mean: nanos(moments.mean + location),
            inverse: Arc::new(inverse),
            location,
            copula,
        };
        Ok(Described::new(self.text, Box::new(model)))
    }
}

/// Rounds to the nearest nanosecond.
#[inline]
fn nanos(value: f64) -> Nanos {
    // The conversion rounds down and saturates.
    Nanos::from_nanos((value + 0.5) as u64)
}

impl DelayModel for SampledDelay {
    fn draw(&mut self, _frame: &FrameContext<'_>, stream: &mut Stream) -> Nanos {
        let drawn = match &mut self.copula {
            None => self.inverse.draw(stream.next_u64()),
            Some(copula) => copula.draw(&self.inverse, stream),
        };
        nanos(drawn + self.location)
    }

    /// Draws independently of the original frame's delay.
    fn draw_copy(&mut self, _frame: &FrameContext<'_>, stream: &mut Stream) -> Nanos {
        nanos(self.inverse.draw(stream.next_u64()) + self.location)
    }

    fn fixed(&self) -> Option<Nanos> {
        matches!(&*self.inverse, Inverse::Points(points) if points.is_one()).then_some(self.least)
    }

    fn least(&self) -> Nanos {
        self.least
    }

    /// Returns the exact mean of the draws, rounded to nanoseconds.
    fn mean(&self) -> Nanos {
        self.mean
    }
}
