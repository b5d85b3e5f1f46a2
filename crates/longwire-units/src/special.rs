//! Special functions: normal tails and quantiles, incomplete gamma functions.

use core::f64::consts::{FRAC_1_SQRT_2, PI};

/// Returns the probability that a standard normal variable exceeds `z`.
pub fn normal_above(z: f64) -> f64 {
    0.5 * libm::erfc(z * FRAC_1_SQRT_2)
}

/// Returns the standard normal density.
pub fn normal_density(z: f64) -> f64 {
    libm::exp(-0.5 * z * z) / libm::sqrt(2.0 * PI)
}

/// Returns the `z` ≥ 0 that a standard normal variable exceeds with probability `above`, in (0,
/// 1/2].
///
/// Starts from Hastings' rational approximation (Abramowitz and Stegun, 26.2.23, accurate to
/// 4.5e-4). Each step of Halley's method triples the number of correct digits.
pub fn normal_quantile(above: f64) -> f64 {
    let t = libm::sqrt(-2.0 * libm::log(above));
    let numerator = 2.515517 + t * (0.802853 + t * 0.010328);
    let denominator = 1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308));
    let mut z = t - numerator / denominator;
    for _ in 0..3 {
        let step = (normal_above(z) - above) / normal_density(z);
        z += step / (1.0 - 0.5 * z * step);
    }
    z.max(0.0)
}

/// Maximum number of terms in the series and the continued fraction; enough for shapes up to
/// [`GAMMA_SHAPE_MAX`].
const TERMS_MAX: u32 = 20_000;

/// Maximum shape for which [`gamma_tails`] is accurate to 1e-10.
pub const GAMMA_SHAPE_MAX: f64 = 1e4;

/// Returns the regularised incomplete gamma functions P(a, x) and Q(a, x). For x < a + 1, computes
/// P by the series in DLMF 8.11.4, otherwise Q by the continued fraction in DLMF 8.9.2; the other
/// is the complement.
pub fn gamma_tails(a: f64, x: f64) -> (f64, f64) {
    if x <= 0.0 {
        return (0.0, 1.0);
    }
    let front = libm::exp(a * libm::log(x) - x - libm::lgamma(a));
    if x < a + 1.0 {
        let below = (front * gamma_series(a, x)).min(1.0);
        return (below, 1.0 - below);
    }
    let above = (front * gamma_fraction(a, x)).min(1.0);
    (1.0 - above, above)
}

/// Returns 1/a + x/(a (a+1)) + x²/(a (a+1) (a+2)) + …
fn gamma_series(a: f64, x: f64) -> f64 {
    let mut term = 1.0 / a;
    let mut sum = term;
    for n in 1..TERMS_MAX {
        term *= x / (a + f64::from(n));
        sum += term;
        if term < sum * 1e-16 {
            break;
        }
    }
    sum
}

/// Returns 1/(x+1-a- 1(1-a)/(x+3-a- 2(2-a)/(x+5-a- …))), by Lentz's method (1976) as modified by
/// Thompson and Barnett.
fn gamma_fraction(a: f64, x: f64) -> f64 {
    // Replaces a zero denominator.
    const TINY: f64 = 1e-300;
    let nonzero = |value: f64| if value == 0.0 { TINY } else { value };
    let mut b = x + 1.0 - a;
    let mut c = 1.0 / TINY;
    let mut d = 1.0 / nonzero(b);
    let mut fraction = d;
    for n in 1..TERMS_MAX {
        let n = f64::from(n);
        let numerator = n * (a - n);
        b += 2.0;
        d = 1.0 / nonzero(b + numerator * d);
        c = nonzero(b + numerator / c);
        fraction *= c * d;
        if (c * d - 1.0).abs() < 1e-16 {
            break;
        }
    }
    fraction
}

/// Returns the quantile of a gamma variable with shape `a` and scale 1. `below` and `above` are the
/// tail probabilities, which sum to 1; both are passed because the smaller one is more accurate.
///
/// Starts from the normal approximation by Wilson and Hilferty (1931) or, where that fails, from
/// the first term of the series. Newton's method then refines the logarithm of the tail, which is
/// concave.
pub fn gamma_quantile(a: f64, below: f64, above: f64) -> f64 {
    let z = if below < above {
        -normal_quantile(below)
    } else {
        normal_quantile(above)
    };
    let cube_root = 1.0 - 1.0 / (9.0 * a) + z / (3.0 * libm::sqrt(a));
    // ln x for small x: P(a, x) is close to x^a / Γ(a+1).
    let log_small = (libm::log(below) + libm::lgamma(a + 1.0)) / a;
    if log_small < -700.0 {
        return 0.0;
    }
    let mut x = if cube_root > 0.3 {
        a * cube_root * cube_root * cube_root
    } else {
        libm::exp(log_small)
    };
    for _ in 0..60 {
        let (lower, upper) = gamma_tails(a, x);
        // Density times x.
        let slope = libm::exp(a * libm::log(x) - x - libm::lgamma(a));
        // Step in ln x.
        let step = if below < above {
            libm::log(below / lower) * lower / slope
        } else {
            libm::log(upper / above) * upper / slope
        };
        if !step.is_finite() {
            break;
        }
        x *= libm::exp(step.clamp(-2.0, 2.0));
        if step.abs() < 1e-12 {
            break;
        }
    }
    x
}
