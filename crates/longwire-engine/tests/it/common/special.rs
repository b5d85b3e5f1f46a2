//! Distribution functions, computed by methods other than the engine's, so that a mistake in one
//! shows.

/// Standard normal distribution function: Marsaglia's series (2004), accurate to 1e-15 within 7
/// standard deviations.
pub fn normal_cdf(z: f64) -> f64 {
    if z.abs() > 7.0 {
        return if z > 0.0 { 1.0 } else { 0.0 };
    }
    let (mut term, mut sum, mut odd) = (z, z, 1.0);
    while f64::abs(term) > 1e-17 {
        odd += 2.0;
        term *= z * z / odd;
        sum += term;
    }
    let density = (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt();
    0.5 + density * sum
}

/// Gamma distribution function with scale 1, by the power series of the incomplete gamma function;
/// `gamma` is Γ(shape + 1).
pub fn gamma_cdf(shape: f64, gamma: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let (mut term, mut sum, mut n) = (1.0, 1.0, 0.0);
    while term > sum * 1e-17 {
        n += 1.0;
        term *= x / (shape + n);
        sum += term;
    }
    (shape * x.ln() - x).exp() / gamma * sum
}

/// Truncates a distribution function to `min..=max`.
pub fn truncated(cdf: impl Fn(f64) -> f64, min: f64, max: f64) -> impl Fn(f64) -> f64 {
    let (at_min, at_max) = (cdf(min), cdf(max));
    move |x| ((cdf(x) - at_min) / (at_max - at_min)).clamp(0.0, 1.0)
}

/// Mean of a distribution truncated to `min..=max`: the integral of the upper tail, by Simpson's
/// rule over intervals that grow geometrically from `unit`.
pub fn mean(cdf: impl Fn(f64) -> f64, min: f64, max: f64, unit: f64) -> f64 {
    const STEPS: u32 = 2_000;
    let (mut from, mut width, mut sum) = (min, unit, min);
    while from < max {
        let to = (from + width).min(max);
        let step = (to - from) / f64::from(2 * STEPS);
        for index in 0..STEPS {
            let at = from + f64::from(2 * index) * step;
            let above = |x: f64| 1.0 - cdf(x);
            sum += step / 3.0 * (above(at) + 4.0 * above(at + step) + above(at + 2.0 * step));
        }
        (from, width) = (to, width * 2.0);
    }
    sum
}
