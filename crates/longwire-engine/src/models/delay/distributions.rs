//! Parametric delay distributions.

use longwire_units::parse_real;
use longwire_units::special::{GAMMA_SHAPE_MAX, gamma_quantile, gamma_tails, normal_above};

use super::DelayModel;
use super::sampled::{CORRELATION, LOCATION, MAX, MIN, Sampler, Tails};
use crate::models::prelude::*;

type Built = Result<Described<dyn DelayModel>, SpecError>;

/// Mean of the distribution, before truncation.
const MEAN: Param = Param::new("mean", Unit::Time).help("mean delay, before truncation");
/// Standard deviation.
const STDDEV: Param =
    Param::new("stddev", Unit::Time).help("standard deviation (jitter), before truncation");

pub(super) const NORMAL: Entry<Described<dyn DelayModel>> = Entry::new(
    "normal",
    "normal distribution, truncated at 0 and at the bounds; truncation shifts the mean",
    &[MEAN, STDDEV, MIN, MAX, CORRELATION],
    build_normal,
);

fn build_normal(arguments: &Arguments<'_>) -> Built {
    let model = build_by_spread(arguments, |mean, stddev| Ok(Formula::Normal(mean, stddev)))?;
    let (mean, stddev) = mean_and_stddev(arguments)?;
    if stddev > mean {
        let left = model.mean();
        arguments.doubt(format!(
            "stddev={stddev} is above mean={mean}: draws below 0 are redrawn, which raises the \
             mean to {left}; use lognormal or gamma"
        ));
    }
    Ok(model)
}

/// Reads `mean` and `stddev`.
pub(super) fn mean_and_stddev(arguments: &Arguments<'_>) -> Result<(Nanos, Nanos), SpecError> {
    Ok((arguments.required("mean")?, arguments.required("stddev")?))
}

/// Builds a distribution from mean and standard deviation in nanoseconds. A deviation of zero gives
/// a constant delay.
fn build_by_spread(
    arguments: &Arguments<'_>,
    formula: impl Fn(f64, f64) -> Result<Formula, SpecError>,
) -> Built {
    let (mean, stddev) = mean_and_stddev(arguments)?;
    let sampler = Sampler::new(arguments, &[])?;
    let (mean, stddev) = (mean.as_nanos() as f64, stddev.as_nanos() as f64);
    if stddev == 0.0 {
        return sampler.constant(mean);
    }
    sampler.formula(formula(mean, stddev)?)
}

pub(super) const LOGNORMAL: Entry<Described<dyn DelayModel>> = Entry::new(
    "lognormal",
    "location plus a lognormal delay of this mean and standard deviation; its logarithm has \
     variance v = ln(1 + (stddev/mean)²) and mean ln(mean) - v/2",
    &[
        Param::new("mean", Unit::Time)
            .help("mean of the delay itself, not of its logarithm; excludes location"),
        Param::new("stddev", Unit::Time).help("standard deviation (jitter) of the delay"),
        LOCATION,
        MIN,
        MAX,
        CORRELATION,
    ],
    build_lognormal,
);

fn build_lognormal(arguments: &Arguments<'_>) -> Built {
    if arguments.required::<Nanos>("mean")? == Nanos::ZERO {
        return Err(arguments.invalid("mean=0 allows no variation; the minimum is 1ns"));
    }
    build_by_spread(arguments, |mean, stddev| {
        let ratio = stddev / mean;
        let variance = libm::log1p(ratio * ratio);
        let log_mean = libm::log(mean) - variance / 2.0;
        Ok(Formula::Lognormal(log_mean, libm::sqrt(variance)))
    })
}

pub(super) const GAMMA: Entry<Described<dyn DelayModel>> = Entry::new(
    "gamma",
    "location plus a gamma-distributed delay of this mean and standard deviation: shape \
     (mean/stddev)², scale stddev²/mean",
    &[
        Param::new("mean", Unit::Time).help("mean, excluding location"),
        Param::new("stddev", Unit::Time)
            .help("standard deviation (jitter), from mean/100 to 10 times mean, or 0"),
        LOCATION,
        MIN,
        MAX,
        CORRELATION,
    ],
    build_gamma,
);

/// Minimum shape; below it, `f64` cannot resolve the lower tail.
const GAMMA_SHAPE_MIN: f64 = 0.01;

fn build_gamma(arguments: &Arguments<'_>) -> Built {
    build_by_spread(arguments, |mean, stddev| {
        let ratio = mean / stddev;
        let (shape, scale) = (ratio * ratio, stddev / ratio);
        // Tolerates rounding at the limits.
        let shapes = GAMMA_SHAPE_MIN * (1.0 - 1e-9)..=GAMMA_SHAPE_MAX * (1.0 + 1e-9);
        if !shapes.contains(&shape) {
            let refusal = "stddev must be 0, or mean/100 to 10*mean; below that, use normal (equal \
                           within 1 %)";
            return Err(arguments.invalid(refusal));
        }
        Ok(Formula::Gamma(shape, scale))
    })
}

pub(super) const PARETO_NORMAL: Entry<Described<dyn DelayModel>> = Entry::new(
    "pareto-normal",
    "sum of 1/4 of the normal and 3/4 of the Pareto (shape 3) quantile at the same rank (netem's \
     paretonormal, from NIST Net), scaled to this mean and deviation, and truncated at 0 and at \
     the bounds, which shifts the mean",
    &[MEAN, STDDEV, MIN, MAX, CORRELATION],
    |arguments| {
        build_by_spread(arguments, |mean, stddev| {
            Ok(Formula::ParetoNormal(mean, stddev))
        })
    },
);

pub(super) const EXPONENTIAL: Entry<Described<dyn DelayModel>> = Entry::new(
    "exponential",
    "min plus an exponentially distributed delay; mean is that of the sum (Rizzo and Lettieri's \
     TLEM, 2016)",
    &[
        Param::new("mean", Unit::Time)
            .help("mean of the delay, including min, before truncation at max"),
        MIN.help("minimum delay"),
        MAX,
        CORRELATION,
    ],
    build_exponential,
);

fn build_exponential(arguments: &Arguments<'_>) -> Built {
    let (min, mean): (Nanos, Nanos) = (arguments.required("min")?, arguments.required("mean")?);
    if min > mean {
        return Err(arguments.invalid(format!("min={min} is above mean={mean}")));
    }
    let sampler = Sampler::new(arguments, &["min"])?;
    if min == mean {
        return sampler.constant(mean.as_nanos() as f64);
    }
    let scale = mean.saturating_sub(min).as_nanos() as f64;
    sampler.formula(Formula::Exponential(min.as_nanos() as f64, scale))
}

pub(super) const PARETO: Entry<Described<dyn DelayModel>> = Entry::new(
    "pareto",
    "location plus a Pareto-distributed delay of at least scale, P(X > t) = (scale/t)^shape, with \
     mean scale·shape/(shape-1) for shapes above 1 and finite variance for shapes above 2",
    &[
        Param::new("scale", Unit::Time).help("minimum of the Pareto variable"),
        Param::with_default("shape", Unit::Real, "3")
            .within("0.1", "1000", "0.1 to 1000")
            .help("tail index, 0.1 to 1000; netem's table uses 3"),
        LOCATION,
        MIN,
        MAX,
        CORRELATION,
    ],
    |arguments| build_scaled(arguments, Formula::Pareto),
);

pub(super) const WEIBULL: Entry<Described<dyn DelayModel>> = Entry::new(
    "weibull",
    "location plus a Weibull-distributed delay, P(X > t) = exp(-(t/scale)^shape), with mean \
     scale·Γ(1 + 1/shape)",
    &[
        Param::new("scale", Unit::Time).help("36.8 % (1/e) of the delays exceed location + scale"),
        Param::new("shape", Unit::Real)
            .within("0.1", "100", "0.1 to 100")
            .help("shape, 0.1 to 100; below 1, the tail is heavier than exponential"),
        LOCATION,
        MIN,
        MAX,
        CORRELATION,
    ],
    |arguments| build_scaled(arguments, Formula::Weibull),
);

/// Builds a distribution from scale and shape.
fn build_scaled(arguments: &Arguments<'_>, formula: impl Fn(f64, f64) -> Formula) -> Built {
    let scale: Nanos = arguments.required("scale")?;
    let shape = arguments.read("shape", parse_real)?;
    if scale == Nanos::ZERO {
        return Err(arguments.invalid("scale=0 allows no variation; the minimum is 1ns"));
    }
    let sampler = Sampler::new(arguments, &[])?;
    sampler.formula(formula(scale.as_nanos() as f64, shape))
}

pub(super) const UNIFORM: Entry<Described<dyn DelayModel>> = Entry::new(
    "uniform",
    "uniform distribution from min to max, inclusive",
    &[
        Param::new("min", Unit::Time).help("minimum delay"),
        Param::new("max", Unit::Time).help("maximum delay"),
        CORRELATION,
    ],
    build_uniform,
);

fn build_uniform(arguments: &Arguments<'_>) -> Built {
    let (min, max): (Nanos, Nanos) = (arguments.required("min")?, arguments.required("max")?);
    // Rejects reversed bounds.
    let sampler = Sampler::new(arguments, &["min", "max"])?;
    let correlation: Correlation = arguments.required(CORRELATION.name)?;
    if correlation == Correlation::ZERO || min == max {
        let text = format!("uniform:min={min},max={max}");
        return Ok(Described::new(text, Box::new(UniformDelay { min, max })));
    }
    let span = max.saturating_sub(min).as_nanos() as f64;
    sampler.formula(Formula::Uniform(min.as_nanos() as f64, span))
}

#[derive(Clone, Copy, Debug)]
struct UniformDelay {
    min: Nanos,
    max: Nanos,
}

impl DelayModel for UniformDelay {
    fn draw(&mut self, _frame: &FrameContext<'_>, stream: &mut Stream) -> Nanos {
        let span = self.max.saturating_sub(self.min).as_nanos();
        self.min
            .saturating_add(Nanos::from_nanos(stream.up_to(span)))
    }

    fn least(&self) -> Nanos {
        self.min
    }

    fn mean(&self) -> Nanos {
        let span = self.max.saturating_sub(self.min).as_nanos();
        self.min.saturating_add(Nanos::from_nanos(span / 2))
    }
}

/// A continuous distribution with its two parameters; times are in nanoseconds.
pub(super) enum Formula {
    /// Mean and standard deviation.
    Normal(f64, f64),
    /// Mean and standard deviation of the logarithm.
    Lognormal(f64, f64),
    /// Shape and scale.
    Gamma(f64, f64),
    /// Mean and standard deviation of a sum of quantiles. At rank u: N(u)/4 + 3/4·4/3·(P(u) - 3/2),
    /// where N is the standard normal quantile and P the quantile of the Pareto distribution with
    /// shape 3 and scale 1, whose mean is 3/2.
    ParetoNormal(f64, f64),
    /// Minimum and scale.
    Exponential(f64, f64),
    /// Scale and shape.
    Pareto(f64, f64),
    /// Scale and shape.
    Weibull(f64, f64),
    /// Minimum and span.
    Uniform(f64, f64),
}

/// Standard deviation of the sum in [`Formula::ParetoNormal`]. The variance is 1/16 + 3/4 + Cov(N,
/// P)/2; numerical integration gives a covariance of 0.587470748478335….
const PARETO_NORMAL_DEVIATION: f64 = 1.051_777_245_541_644;

/// Returns the quantile of [`Formula::ParetoNormal`] for mean 0 and standard deviation 1.
fn standard_pareto_normal(at: Tails) -> f64 {
    let sum = at.normal() / 4.0 + libm::exp(at.exponential() / 3.0) - 1.5;
    sum / PARETO_NORMAL_DEVIATION
}

/// Returns the tail probabilities at `z` standard deviations above the mean.
fn normal_tails(z: f64) -> Tails {
    Tails {
        below: normal_above(-z),
        above: normal_above(z),
    }
}

/// Returns the tail probabilities of the exponential distribution with mean 1.
fn exponential_tails(time: f64) -> Tails {
    Tails {
        below: -libm::expm1(-time),
        above: libm::exp(-time),
    }
}

/// Inverts the quantile function, which has no closed-form inverse, by bisection over the logit.
/// The bounds are tail probabilities of about 10^-304.
fn pareto_normal_tails(target: f64) -> Tails {
    let (mut low, mut high) = (-700.0, 700.0);
    let tails = |logit: f64| Tails {
        below: 1.0 / (1.0 + libm::exp(-logit)),
        above: 1.0 / (1.0 + libm::exp(logit)),
    };
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        if standard_pareto_normal(tails(middle)) < target {
            low = middle;
        } else {
            high = middle;
        }
    }
    tails((low + high) / 2.0)
}

impl Formula {
    /// Returns the tail probabilities at `time`.
    pub fn tails(&self, time: f64) -> Tails {
        match *self {
            Formula::Normal(mean, stddev) => normal_tails((time - mean) / stddev),
            Formula::Lognormal(..) if time <= 0.0 => Tails::LOWEST,
            Formula::Lognormal(mean, stddev) => normal_tails((libm::log(time) - mean) / stddev),
            Formula::Gamma(shape, scale) => {
                let (below, above) = gamma_tails(shape, time / scale);
                Tails { below, above }
            }
            Formula::ParetoNormal(mean, stddev) => pareto_normal_tails((time - mean) / stddev),
            Formula::Exponential(min, scale) => exponential_tails((time - min).max(0.0) / scale),
            Formula::Pareto(scale, _) if time <= scale => Tails::LOWEST,
            Formula::Pareto(scale, shape) => exponential_tails(shape * libm::log(time / scale)),
            Formula::Weibull(scale, shape) => {
                exponential_tails(libm::pow(time.max(0.0) / scale, shape))
            }
            Formula::Uniform(min, span) => {
                let below = ((time - min) / span).clamp(0.0, 1.0);
                Tails {
                    below,
                    above: 1.0 - below,
                }
            }
        }
    }

    /// Returns the quantile at a position whose tails are both positive.
    pub fn quantile(&self, at: Tails) -> f64 {
        match *self {
            Formula::Normal(mean, stddev) => mean + at.normal() * stddev,
            Formula::Lognormal(mean, stddev) => libm::exp(mean + at.normal() * stddev),
            Formula::Gamma(shape, scale) => scale * gamma_quantile(shape, at.below, at.above),
            Formula::ParetoNormal(mean, stddev) => mean + standard_pareto_normal(at) * stddev,
            Formula::Exponential(min, scale) => min + at.exponential() * scale,
            Formula::Pareto(scale, shape) => scale * libm::exp(at.exponential() / shape),
            Formula::Weibull(scale, shape) => scale * libm::pow(at.exponential(), 1.0 / shape),
            Formula::Uniform(min, span) => min + at.below * span,
        }
    }
}
