//! Delays drawn from a distribution, with truncation, offset and correlation. A
//! distribution only adds its formula.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;

mod copula;
mod inverse;
#[cfg(test)]
mod tests;

use longwire_units::random::Stream;
use longwire_units::{Correlation, Nanos};

use super::DelayModel;
use crate::frame_context::FrameContext;
use crate::spec::{Arguments, Param, SpecError, Unit};
use copula::Copula;
use inverse::{Inverse, Octaves, Points};

pub(super) use inverse::Tails;

/// A continuous distribution of times in nanoseconds.
pub(super) trait Distribution {
    /// Returns the tail probabilities at `time`.
    fn tails(&self, time: f64) -> Tails;

    /// Returns the quantile at this position. Never called with a tail of zero.
    fn quantile(&self, at: Tails) -> f64;
}

/// Minimum delay.
pub(super) const MIN: Param =
    Param::with_default("min", Unit::Time, "0ns").help("minimum delay; lower values are redrawn");

/// Maximum delay.
pub(super) const MAX: Param =
    Param::with_default("max", Unit::Time, "24h").help("maximum delay; higher values are redrawn");

/// Constant offset.
pub(super) const LOCATION: Param = Param::with_default("location", Unit::Time, "0ns")
    .help("a constant time that is added to what is drawn");

/// Correlation with the previous frame.
pub(super) const CORRELATION: Param = Param::with_default("correlation", Unit::Correlation, "0%")
    .help(
        "correlation with the previous delay, above -100% and below 100%; keeps the distribution",
    );

/// Unit of bare numbers in a file.
pub(super) const UNIT: Param =
    Param::with_default("unit", Unit::Choice(&["ms", "us", "ns", "s"]), "ms")
        .help("unit of delays without one");

/// Maximum number of values in a file: 128 MiB.
pub(super) const VALUES_MAX: usize = 1 << 24;

/// Default maximum delay.
const MAX_DEFAULT: Nanos = Nanos::from_secs(24 * 60 * 60);

/// Minimum probability within the bounds; less is an error.
const INSIDE_LEAST: f64 = 1e-6;

/// Common parameters: [`MIN`], [`MAX`], [`LOCATION`] and [`CORRELATION`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Common {
    min: Nanos,
    max: Nanos,
    location: Nanos,
    correlation: Correlation,
    /// Parameters that the model writes itself.
    own: &'static [&'static str],
}

impl Common {
    /// Reads the common parameters that the model has.
    pub fn read(arguments: &Arguments<'_>) -> Result<Common, SpecError> {
        let common = Common {
            min: arguments.optional(MIN.name)?.unwrap_or(Nanos::ZERO),
            max: arguments.optional(MAX.name)?.unwrap_or(MAX_DEFAULT),
            location: arguments.optional(LOCATION.name)?.unwrap_or(Nanos::ZERO),
            correlation: arguments.optional(CORRELATION.name)?.unwrap_or_default(),
            own: &[],
        };
        let Common { min, max, .. } = common;
        if min > max {
            return Err(arguments.invalid(format!("min={min} is above max={max}")));
        }
        Ok(common)
    }

    /// Excludes parameters from the output, because the model writes them itself.
    pub fn without_own(self, own: &'static [&'static str]) -> Common {
        Common { own, ..self }
    }

    /// Returns the bounds of the drawn part, without the offset.
    fn bounds(&self) -> (f64, f64) {
        let location = self.location.as_nanos() as f64;
        let bound = |bound: Nanos| bound.as_nanos() as f64 - location;
        (bound(self.min), bound(self.max))
    }

    fn refuse(&self, arguments: &Arguments<'_>, inside: f64) -> SpecError {
        let Common { min, max, .. } = self;
        arguments.invalid(format!(
            "min={min} and max={max} leave {inside:.1e} of the distribution; at least \
             {INSIDE_LEAST:.0e} must be between them"
        ))
    }
}

impl fmt::Display for Common {
    /// Writes the non-default parameters, each after a comma.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = [
            (LOCATION.name, self.location, Nanos::ZERO),
            (MIN.name, self.min, Nanos::ZERO),
            (MAX.name, self.max, MAX_DEFAULT),
        ];
        for (name, time, default) in times {
            if time != default && !self.own.contains(&name) {
                write!(f, ",{name}={time}")?;
            }
        }
        if self.correlation != Correlation::ZERO {
            write!(f, ",{}={}", CORRELATION.name, self.correlation)?;
        }
        Ok(())
    }
}

/// A delay model with a distribution and its parameters.
///
/// The distribution is truncated to the bounds, as if values outside were redrawn. This is
/// precomputed, so every frame costs one draw.
#[derive(Clone, Debug)]
struct SampledDelay {
    /// The model and its own parameters, in the user's notation.
    own: Arc<str>,
    common: Common,
    /// Shared by clones.
    inverse: Arc<Inverse>,
    location: f64,
    copula: Option<Box<Copula>>,
    mean: Nanos,
    least: Nanos,
}

/// Creates a delay model of a distribution with a formula.
pub(super) fn sampled(
    arguments: &Arguments<'_>,
    common: Common,
    own: String,
    distribution: impl Distribution,
) -> Result<Box<dyn DelayModel>, SpecError> {
    let (min, max) = common.bounds();
    let (at_min, at_max) = (distribution.tails(min), distribution.tails(max));
    // Near one, the difference of the upper tails is exact.
    let inside = if at_min.below > 0.5 {
        at_min.above - at_max.above
    } else {
        at_max.below - at_min.below
    };
    let left = |at: Tails| Tails {
        below: at_min.below + at.below * inside,
        above: at_max.above + at.above * inside,
    };
    let inverse = if min == max {
        Inverse::Points(Points::one(min))
    } else if inside < INSIDE_LEAST {
        return Err(common.refuse(arguments, inside));
    } else {
        let quantile = |at| distribution.quantile(left(at)).clamp(min, max);
        Inverse::Octaves(Octaves::new(quantile))
    };
    finish(arguments, common, own, inverse)
}

/// Creates a delay model of a file's values, evenly spaced over the distribution.
pub(super) fn of_values(
    arguments: &Arguments<'_>,
    common: Common,
    own: String,
    mut values: alloc::vec::Vec<f64>,
) -> Result<Box<dyn DelayModel>, SpecError> {
    values.sort_by(f64::total_cmp);
    of_points(arguments, common, own, Points::evenly(values))
}

/// Creates a delay model of values at given probabilities; neither may decrease, and the
/// last probability must be 1.
pub(super) fn of_probabilities(
    arguments: &Arguments<'_>,
    common: Common,
    own: String,
    points: &[(f64, f64)],
) -> Result<Box<dyn DelayModel>, SpecError> {
    let points = Points::at_probabilities(points);
    of_points(arguments, common, own, points)
}

fn of_points(
    arguments: &Arguments<'_>,
    common: Common,
    own: String,
    mut points: Points,
) -> Result<Box<dyn DelayModel>, SpecError> {
    let (min, max) = common.bounds();
    let inside = points.truncate(min, max);
    let inverse = if min == max {
        Inverse::Points(Points::one(min))
    } else if inside < INSIDE_LEAST {
        return Err(common.refuse(arguments, inside));
    } else {
        Inverse::Points(points)
    };
    finish(arguments, common, own, inverse)
}

/// Creates a delay model of a distribution without spread.
pub(super) fn without_spread(
    arguments: &Arguments<'_>,
    common: Common,
    own: String,
    value: f64,
) -> Result<Box<dyn DelayModel>, SpecError> {
    of_points(arguments, common, own, Points::one(value))
}

fn finish(
    arguments: &Arguments<'_>,
    common: Common,
    own: String,
    inverse: Inverse,
) -> Result<Box<dyn DelayModel>, SpecError> {
    let moments = inverse.moments();
    let location = common.location.as_nanos() as f64;
    let target = common.correlation.as_f64();
    if target.abs() >= 1.0 {
        let refusal = "correlation is above -100% and below 100%: at either end one delay would \
                       decide all others";
        return Err(arguments.invalid(refusal));
    }
    let copula = if target == 0.0 || moments.variance == 0.0 {
        None
    } else {
        let copula = Copula::new(&inverse, target).map_err(|least| {
            let percent = least * 100.0;
            arguments.invalid(format!(
                "correlation={} cannot be had with this distribution: the minimum is {percent:.2}%",
                common.correlation
            ))
        })?;
        Some(Box::new(copula))
    };
    Ok(Box::new(SampledDelay {
        least: nanos(inverse.least() + location),
        mean: nanos(moments.mean + location),
        own: own.into(),
        common,
        inverse: Arc::new(inverse),
        location,
        copula,
    }))
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

    /// Draws independently of the frame's own delay.
    fn draw_copy(&mut self, _frame: &FrameContext<'_>, stream: &mut Stream) -> Nanos {
        nanos(self.inverse.draw(stream.next_u64()) + self.location)
    }

    fn fixed(&self) -> Option<Nanos> {
        matches!(&*self.inverse, Inverse::Points(points) if points.is_one()).then_some(self.least)
    }

    fn least(&self) -> Nanos {
        self.least
    }

    /// Returns the exact mean of the draws, rounded to the nanosecond.
    fn mean(&self) -> Nanos {
        self.mean
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.own, self.common)
    }
}
