//! Delay distributions compared with their formulas: a million samples each, with fixed seeds. Two
//! in a thousand correct models would fail. The seeds were not selected to pass.

use crate::common::special::{gamma_cdf, mean, normal_cdf, truncated};
use crate::common::{ks_bound, ks_distance, link};
use longwire_engine::Verdict;
use longwire_engine::models::DELAY;

const CONFIDENCE: f64 = 0.998;
const SAMPLES: u64 = 1_000_000;
const MS: f64 = 1e6;

/// One day, the default maximum.
const DAY: f64 = 86_400e9;

/// Returns delays, in nanoseconds, of frames that may overtake each other.
fn delays(delay: &str, seed: u64) -> Vec<f64> {
    const GAP: u64 = 1_000;
    let mut link = link(&format!("delay={delay} order=reorder"), seed);
    let offer = |index: u64| match link.offer(crate::common::frame(index * GAP, 1000), &[]) {
        Verdict::Deliver(delivery) => (delivery.release.as_nanos() - index * GAP) as f64,
        other => panic!("not delivered: {other:?}"),
    };
    (0..SAMPLES).map(offer).collect()
}

/// Compares samples with the distribution and bounds, and the model's mean with the formula.
fn check(delay: &str, seed: u64, cdf: impl Fn(f64) -> f64, (min, max): (f64, f64)) {
    let mut samples = delays(delay, seed);
    let distance = ks_distance(&mut samples, &cdf);
    let bound = ks_bound(samples.len(), CONFIDENCE);
    assert!(distance < bound, "{delay}: {distance} of {bound}");
    let model = DELAY.parse(delay).unwrap();
    let (least, greatest) = (samples[0], samples[samples.len() - 1]);
    let half = 0.5;
    assert!(
        least >= min - half && greatest <= max + half,
        "{delay}: {least} to {greatest}"
    );
    let claimed = model.least().as_nanos() as f64;
    assert!(
        claimed >= min - half && claimed <= least,
        "{delay}: {claimed}"
    );
    let (claimed, computed) = (model.mean().as_nanos() as f64, mean(cdf, min, max, MS));
    assert!(
        (claimed / computed - 1.0).abs() < 2e-4,
        "{delay}: a mean of {claimed}, not {computed}"
    );
}

fn normal(mean: f64, stddev: f64) -> impl Fn(f64) -> f64 {
    move |x| normal_cdf((x - mean) / stddev)
}

fn lognormal(mean: f64, stddev: f64, location: f64) -> impl Fn(f64) -> f64 {
    let variance = (1.0 + (stddev / mean).powi(2)).ln();
    let log_mean = mean.ln() - variance / 2.0;
    move |x| {
        if x > location {
            normal_cdf(((x - location).ln() - log_mean) / variance.sqrt())
        } else {
            0.0
        }
    }
}

fn pareto(scale: f64, shape: f64, location: f64) -> impl Fn(f64) -> f64 {
    move |x| 1.0 - (scale / (x - location).max(scale)).powf(shape)
}

fn weibull(scale: f64, shape: f64) -> impl Fn(f64) -> f64 {
    move |x| 1.0 - (-(x.max(0.0) / scale).powf(shape)).exp()
}

fn exponential(min: f64, mean: f64) -> impl Fn(f64) -> f64 {
    move |x| 1.0 - (-(x - min).max(0.0) / (mean - min)).exp()
}

#[test]
fn uniform_delays_are_uniform() {
    let (min, max) = (10.0 * MS, 30.0 * MS);
    let cdf = |x: f64| ((x - min) / (max - min)).clamp(0.0, 1.0);
    for seed in 1..=3 {
        check("uniform:min=10ms,max=30ms", seed, cdf, (min, max));
    }
}

#[test]
fn normal_delays_are_normal() {
    // Five standard deviations above zero: truncation is negligible.
    let (text, bounds) = ("normal:mean=50ms,stddev=10ms", (0.0, 100.0 * MS));
    check(text, 1, normal(50.0 * MS, 10.0 * MS), bounds);
    // Negative values are redrawn.
    let cdf = truncated(normal(2.0 * MS, 4.0 * MS), 0.0, DAY);
    check("normal:mean=2ms,stddev=4ms", 2, cdf, (0.0, 40.0 * MS));
    let (min, max) = (48.0 * MS, 75.0 * MS);
    let cdf = truncated(normal(50.0 * MS, 10.0 * MS), min, max);
    check("normal:50ms,10ms,min=48ms,max=75ms", 3, cdf, (min, max));
    // Far in one tail, with barely more than 10^-6 of the probability mass.
    let (min, max) = (97.0 * MS, 110.0 * MS);
    let cdf = move |x: f64| {
        let above = |x: f64| 1.0 - normal_cdf((x / MS - 50.0) / 10.0);
        (above(min) - above(x)) / (above(min) - above(max))
    };
    let text = "normal:50ms,10ms,min=97ms,max=110ms";
    check(text, 4, cdf, (min, max));
}

#[test]
fn lognormal_delays_are_lognormal() {
    let cdf = lognormal(20.0 * MS, 10.0 * MS, 0.0);
    check("lognormal:mean=20ms,stddev=10ms", 1, cdf, (0.0, 1e4 * MS));
    let cdf = lognormal(5.0 * MS, 20.0 * MS, 30.0 * MS);
    let text = "lognormal:mean=5ms,stddev=20ms,location=30ms";
    check(text, 2, cdf, (30.0 * MS, 1e6 * MS));
    let (min, max) = (32.0 * MS, 60.0 * MS);
    let cdf = truncated(lognormal(5.0 * MS, 20.0 * MS, 30.0 * MS), min, max);
    let text = "lognormal:5ms,20ms,location=30ms,min=32ms,max=60ms";
    check(text, 3, cdf, (min, max));
}

#[test]
fn gamma_delays_are_gamma() {
    // Shapes 4, 9/16 and 9/4, with Γ(5), Γ(25/16) and Γ(13/4).
    let cdf = |x: f64| gamma_cdf(4.0, 24.0, x / (5.0 * MS));
    check("gamma:mean=20ms,stddev=10ms", 1, cdf, (0.0, 300.0 * MS));
    let cdf = |x: f64| gamma_cdf(0.5625, 0.8898443818650698, x / MS * 15.0 / 400.0);
    check("gamma:mean=15ms,stddev=20ms", 2, cdf, (0.0, 900.0 * MS));
    let (min, max) = (25.0 * MS, 70.0 * MS);
    let cdf = |x: f64| gamma_cdf(2.25, 2.549_256_966_718_529, (x / MS - 10.0) * 2.25 / 30.0);
    let text = "gamma:mean=30ms,stddev=20ms,location=10ms,min=25ms,max=70ms";
    check(text, 3, truncated(cdf, min, max), (min, max));
    // At the minimum width, the distribution is nearly normal: the Berry-Esseen bound for shape
    // 10^4 exceeds the resolution of a million samples.
    let mut samples = delays("gamma:mean=100ms,stddev=1ms", 4);
    let skewed = ks_distance(&mut samples, normal(100.0 * MS, MS));
    assert!((0.001..0.004).contains(&skewed), "{skewed}");
}

#[test]
fn exponential_delays_are_exponential() {
    let cdf = exponential(5.0 * MS, 20.0 * MS);
    let text = "exponential:mean=20ms,min=5ms";
    check(text, 1, cdf, (5.0 * MS, 700.0 * MS));
    let (min, max) = (5.0 * MS, 22.0 * MS);
    let cdf = truncated(exponential(min, 20.0 * MS), min, max);
    check("exponential:20ms,5ms,max=22ms", 2, cdf, (min, max));
}

#[test]
fn pareto_delays_are_pareto() {
    let cdf = pareto(10.0 * MS, 3.0, 0.0);
    check("pareto:scale=10ms", 1, cdf, (10.0 * MS, 1e8 * MS));
    // The variance is infinite; the mean depends on the maximum of one day.
    let cdf = truncated(pareto(MS, 1.1, 40.0 * MS), 41.0 * MS, DAY);
    let text = "pareto:scale=1ms,shape=1.1,location=40ms";
    check(text, 2, cdf, (41.0 * MS, DAY));
    let (min, max) = (15.0 * MS, 100.0 * MS);
    let cdf = truncated(pareto(10.0 * MS, 1.5, 0.0), min, max);
    let text = "pareto:scale=10ms,shape=1.5,min=15ms,max=100ms";
    check(text, 3, cdf, (min, max));
}

#[test]
fn weibull_delays_are_weibull() {
    let cdf = weibull(20.0 * MS, 0.7);
    check("weibull:scale=20ms,shape=0.7", 1, cdf, (0.0, 4_000.0 * MS));
    let cdf = weibull(20.0 * MS, 3.5);
    check("weibull:scale=20ms,shape=3.5", 2, cdf, (0.0, 100.0 * MS));
    let (min, max) = (8.0 * MS, 25.0 * MS);
    let cdf = truncated(weibull(20.0 * MS, 2.0), min, max);
    check("weibull:20ms,2,min=8ms,max=25ms", 3, cdf, (min, max));
}

/// Compares with the mixture's distribution function, found by searching for the rank, and with the
/// mean and standard deviation, integrated over ranks.
#[test]
fn pareto_normal_delays_are_netems_mixture() {
    let mixture =
        |z: f64| z / 4.0 + 0.75 * (4.0 / 3.0) * ((1.0 - normal_cdf(z)).cbrt().recip() - 1.5);
    let (mut first, mut second) = (0.0, 0.0);
    const STEP: f64 = 1e-4;
    for index in -69_000..69_000 {
        let z = f64::from(index) * STEP;
        let mass = (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt() * STEP;
        first += mass * mixture(z);
        second += mass * mixture(z) * mixture(z);
    }
    assert!(first.abs() < 1e-3, "{first}");
    let deviation = second.sqrt();
    let cdf = move |mean: f64, stddev: f64| {
        move |x: f64| {
            let wanted = (x - mean) / stddev * deviation;
            let (mut low, mut high) = (-6.9, 6.9);
            for _ in 0..60 {
                let middle = (low + high) / 2.0;
                if mixture(middle) < wanted {
                    low = middle;
                } else {
                    high = middle;
                }
            }
            normal_cdf((low + high) / 2.0)
        }
    };
    let (low, high) = (60.0 * MS, 5_000.0 * MS);
    let text = "pareto-normal:mean=100ms,stddev=10ms";
    check(text, 1, cdf(100.0 * MS, 10.0 * MS), (low, high));
    let (min, max) = (9.0 * MS, 30.0 * MS);
    let left = truncated(cdf(10.0 * MS, 8.0 * MS), min, max);
    let text = "pareto-normal:mean=10ms,stddev=8ms,min=9ms,max=30ms";
    check(text, 2, left, (min, max));
}

/// Compares the samples with a slightly different distribution, to show that the tests above can
/// fail.
#[test]
fn the_bound_detects_a_deviation_of_a_hundredth() {
    let bound = ks_bound(SAMPLES as usize, CONFIDENCE);
    let mut samples = delays("normal:mean=50ms,stddev=10ms", 1);
    assert!(ks_distance(&mut samples, normal(50.1 * MS, 10.0 * MS)) > bound);
    assert!(ks_distance(&mut samples, normal(50.0 * MS, 10.1 * MS)) > bound);
    let mut samples = delays("weibull:scale=20ms,shape=0.7", 1);
    assert!(ks_distance(&mut samples, weibull(20.0 * MS, 0.71)) > bound);
    // The distribution if negative values were clamped instead of redrawn.
    let mut samples = delays("normal:mean=2ms,stddev=4ms", 2);
    assert!(ks_distance(&mut samples, normal(2.0 * MS, 4.0 * MS)) > 10.0 * bound);
}

#[test]
fn a_distribution_without_spread_is_one_delay() {
    for (text, delay) in [
        ("normal:mean=20ms,stddev=0ns", 20.0 * MS),
        ("lognormal:mean=20ms,stddev=0ns,location=1ms", 21.0 * MS),
        ("gamma:mean=20ms,stddev=0ns", 20.0 * MS),
        ("pareto-normal:mean=20ms,stddev=0ns", 20.0 * MS),
        ("exponential:mean=20ms,min=20ms", 20.0 * MS),
        ("weibull:scale=20ms,shape=2,min=7ms,max=7ms", 7.0 * MS),
    ] {
        let model = DELAY.parse(text).unwrap();
        assert_eq!(
            model.fixed().map(|delay| delay.as_nanos() as f64),
            Some(delay),
            "{text}"
        );
        assert_eq!(model.mean(), model.least(), "{text}");
        let written = model.to_string();
        assert_eq!(DELAY.parse(&written).unwrap().to_string(), written);
    }
}
