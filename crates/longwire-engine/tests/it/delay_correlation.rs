//! Correlated delays have the specified marginal distribution and lag-1 autocorrelation.

use crate::common::files::file;
use crate::common::special::normal_cdf;
use crate::common::{ks_bound, ks_distance};
use longwire_engine::models::DELAY;
use longwire_engine::{Nanos, Verdict};
use longwire_units::random::{Purpose, Stream};

const CONFIDENCE: f64 = 0.998;
const MS: f64 = 1e6;

/// Thinning interval for nearly independent samples: 0.9^64 is about 10^-3.
const THIN: usize = 64;

/// Returns successive delays in nanoseconds.
fn delays(model: &str, contents: &str, seed: u64, count: usize) -> Vec<f64> {
    let mut model = DELAY
        .parse_with(model, &file(contents))
        .unwrap_or_else(|error| panic!("{model}: {error}"));
    let mut stream = Stream::new(seed, 0, Purpose::Delay);
    let frame = crate::common::files::frame_context(0, 1000);
    (0..count)
        .map(|_| model.draw(&frame, &mut stream).as_nanos() as f64)
        .collect()
}

/// Returns the correlation between adjacent frames, from pairs that are [`THIN`] frames apart, and
/// its standard error by the delta method.
fn autocorrelation(delays: &[f64]) -> (f64, f64) {
    let mean = delays.iter().sum::<f64>() / delays.len() as f64;
    let pairs = delays.chunks_exact(THIN);
    let pairs = pairs.map(|pair| (pair[0] - mean, pair[1] - mean));
    let products: f64 = pairs.clone().map(|(a, b)| a * b).sum();
    let squares: f64 = pairs.clone().map(|(a, b)| (a * a + b * b) / 2.0).sum();
    let correlation = products / squares;
    // Each pair's contribution to the variance of the estimate.
    let pulls = pairs.map(|(a, b)| (a * b - correlation * (a * a + b * b) / 2.0).powi(2));
    (correlation, pulls.sum::<f64>().sqrt() / squares)
}

/// Checks 31,250 thinned delays against the distribution at 99.8 % confidence, and the
/// autocorrelation of the same number of pairs within 3.1 standard errors (the same confidence).
fn check(model: &str, contents: &str, cdf: impl Fn(f64) -> f64, wanted: f64) {
    let delays = delays(model, contents, 1, 2_000_000);
    let mut thinned: Vec<f64> = delays.iter().copied().step_by(THIN).collect();
    let bound = ks_bound(thinned.len(), CONFIDENCE);
    let distance = ks_distance(&mut thinned, cdf);
    assert!(distance < bound, "{model}: {distance} of {bound}");
    let (correlation, error) = autocorrelation(&delays);
    assert!(error < 0.03, "{model}: standard error {error}");
    assert!(
        (correlation - wanted).abs() < 3.1 * error,
        "{model}: {correlation}, not {wanted} within 3.1 times {error}"
    );
}

#[test]
fn normal_delays_keep_their_distribution() {
    for (correlation, wanted) in [("25%", 0.25), ("90%", 0.9), ("-60%", -0.6)] {
        let text = format!("normal:mean=50ms,stddev=8ms,correlation={correlation}");
        check(&text, "", |x| normal_cdf((x / MS - 50.0) / 8.0), wanted);
    }
}

/// In a skewed distribution, values and ranks have different autocorrelations; the coefficient is
/// adjusted for this.
#[test]
fn skewed_delays_have_the_correlation_that_was_asked_for() {
    let exponential = |x: f64| 1.0 - (-(x / MS - 5.0).max(0.0) / 15.0).exp();
    let text = "exponential:mean=20ms,min=5ms,correlation=";
    check(&format!("{text}50%"), "", exponential, 0.5);
    check(&format!("{text}-50%"), "", exponential, -0.5);
    // The logarithm's variance is ln 5: a long tail.
    let variance = 5f64.ln();
    let lognormal =
        |x: f64| normal_cdf(((x / MS).ln() - 5f64.ln() + variance / 2.0) / variance.sqrt());
    let text = "lognormal:mean=5ms,stddev=10ms,correlation=70%";
    check(text, "", lognormal, 0.7);
    let weibull = |x: f64| 1.0 - (-(x / MS / 20.0).powf(0.7)).exp();
    let text = "weibull:scale=20ms,shape=0.7,correlation=30%";
    check(text, "", weibull, 0.3);
    let pareto = |x: f64| 1.0 - (10.0 / (x / MS).max(10.0)).powf(6.0);
    let text = "pareto:scale=10ms,shape=6,correlation=40%";
    check(text, "", pareto, 0.4);
}

#[test]
fn bounds_and_uniform_delays_are_kept_too() {
    let uniform = |x: f64| (x / MS - 10.0) / 20.0;
    for (correlation, wanted) in [("80%", 0.8), ("-95%", -0.95)] {
        let text = format!("uniform:min=10ms,max=30ms,correlation={correlation}");
        check(&text, "", uniform, wanted);
    }
    let normal = |x: f64| normal_cdf((x / MS - 50.0) / 8.0);
    let left = normal(45.0 * MS)..normal(52.0 * MS);
    let text = "normal:mean=50ms,stddev=8ms,min=45ms,max=52ms,correlation=60%";
    let truncated = move |x: f64| (normal(x) - left.start) / (left.end - left.start);
    check(text, "", truncated, 0.6);
}

/// The distribution has an atom of probability 1/2 at 20 ms.
#[test]
fn a_distribution_from_a_file_is_kept() {
    let contents = "10 0\n20 0.25\n20 0.75\n60 1\n";
    let delays = delays("cdf:file=x,correlation=50%", contents, 1, 2_000_000);
    let (correlation, error) = autocorrelation(&delays);
    assert!((correlation - 0.5).abs() < 3.1 * error, "{correlation}");
    let thinned = delays.iter().step_by(THIN);
    let count = thinned.clone().count() as u64;
    let at_twenty = thinned.filter(|delay| **delay == 20.0 * MS).count() as u64;
    crate::common::assert_binomial("at 20 ms", at_twenty, count, 0.5, CONFIDENCE);
}

/// Draws for copies do not affect the delays of original frames.
#[test]
fn copies_do_not_disturb_the_frames() {
    for delay in [
        "normal:mean=50ms,stddev=8ms,correlation=90%",
        "exponential:mean=20ms",
        "uniform:min=1ms,max=9ms",
    ] {
        let releases = |duplicate: &str| {
            let line = format!("delay={delay} order=reorder duplicate={duplicate}");
            let mut link = crate::common::link(&line, 3);
            let mut copies = Vec::new();
            let offer = |index: u64| {
                let frame = crate::common::frame(index * 1_000, 500);
                let Verdict::Deliver(delivery) = link.offer(frame, &[]) else {
                    panic!("not delivered");
                };
                let mut more = delivery.more;
                while more && let Some(copy) = link.next_copy() {
                    more = copy.more;
                    copies.push((copy.release, delivery.release));
                }
                delivery.release
            };
            let releases: Vec<Nanos> = (0..5_000).map(offer).collect();
            (releases, copies)
        };
        let (alone, none) = releases("none");
        let (with, copies) = releases("random:rate=30%,copies=2,delay=own");
        assert_eq!(alone, with, "{delay}");
        assert!(none.is_empty() && copies.len() > 2_000);
        let own = copies.iter().filter(|(copy, frame)| copy != frame).count();
        assert!(
            own > copies.len() - 10,
            "{delay}: {own} of {}",
            copies.len()
        );
    }
}

/// Equal seeds yield equal delays; another seed yields different ones.
#[test]
fn a_seed_decides_correlated_delays() {
    let run = |seed| {
        let line = "delay=gamma:mean=20ms,stddev=10ms,correlation=50%";
        crate::common::verdicts(&mut crate::common::link(line, seed), 1_000, 1_000_000_000)
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}
