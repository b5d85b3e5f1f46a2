//! Common helpers: links from text, and exact statistical bounds.
#![allow(dead_code, reason = "each test uses its part")]

pub mod any_spec;
pub mod composition;
pub mod fates;
pub mod files;
pub mod special;
pub mod traces;

use longwire_engine::{
    Delivery, DropReason, FrameMeta, Link, LinkConfig, LinkId, LinkSpec, Nanos, NoLoader, Verdict,
};
use longwire_testbed::support::binomial_interval;

/// Parses a specification such as `rate=10mbit loss=1%`.
pub fn spec(line: &str) -> LinkSpec {
    let spec = line.parse();
    spec.unwrap_or_else(|error| panic!("{line}: {error}"))
}

/// Builds the configuration specified by `line`.
pub fn config(line: &str) -> LinkConfig {
    let config = spec(line).build(&NoLoader);
    config.unwrap_or_else(|error| panic!("{line}: {error}"))
}

/// Builds the link specified by `line`.
pub fn link(line: &str, seed: u64) -> Link {
    Link::new(config(line), seed, LinkId(0))
}

/// Returns the error for a value that must be rejected.
pub fn refusal(option: &str, text: &str) -> String {
    let set = LinkSpec::new().set(option, text, &NoLoader);
    set.expect_err(text).to_string()
}

pub fn frame(arrival: u64, len: u32) -> FrameMeta {
    FrameMeta::new(Nanos::from_nanos(arrival), len)
}

/// Offers a frame and returns its delivery and edited bytes, or the drop reason.
pub fn cross(link: &mut Link, at: u64, bytes: &[u8]) -> Result<(Delivery, Vec<u8>), DropReason> {
    match link.offer(frame(at, bytes.len() as u32), bytes) {
        Verdict::Deliver(delivery) => {
            let mut bytes = bytes.to_vec();
            if delivery.edits.any() {
                link.edit(&delivery, &mut bytes);
            }
            Ok((delivery, bytes))
        }
        Verdict::Drop(reason) => Err(reason),
        Verdict::Queued => panic!("queued"),
    }
}

/// Returns the verdicts for `count` frames of 1000 bytes, `gap` nanoseconds apart.
pub fn verdicts(link: &mut Link, count: u64, gap: u64) -> Vec<Verdict> {
    let offer = |index| link.offer(frame(index * gap, 1000), &[]);
    (0..count).map(offer).collect()
}

/// Returns the release in nanoseconds; the frame must be delivered.
pub fn release(verdict: Verdict) -> u64 {
    match verdict {
        Verdict::Deliver(delivery) => delivery.release.as_nanos(),
        other => panic!("not delivered: {other:?}"),
    }
}

/// Asserts that the number of successes in `trials` with probability `p` is plausible: a correct
/// model passes with this confidence.
#[track_caller]
pub fn assert_binomial(
    what: impl std::fmt::Display,
    count: u64,
    trials: u64,
    p: f64,
    confidence: f64,
) {
    let (low, high) = binomial_interval(trials, p, confidence);
    assert!(
        (low..=high).contains(&count),
        "{what}: {count} of {trials}, not {low} to {high}"
    );
}

/// Returns the Kolmogorov-Smirnov distance between samples and `cdf`.
pub fn ks_distance(samples: &mut [f64], cdf: impl Fn(f64) -> f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    let count = samples.len() as f64;
    let distance = |(index, sample): (usize, &f64)| {
        let expected = cdf(*sample);
        let (below, above) = (index as f64 / count, (index + 1) as f64 / count);
        (expected - below).abs().max((above - expected).abs())
    };
    samples.iter().enumerate().map(distance).fold(0.0, f64::max)
}

/// Returns the bound that the distance exceeds with probability at most `1 - confidence`, for any
/// number of samples (Dvoretzky-Kiefer-Wolfowitz inequality with Massart's constant, 1990).
pub fn ks_bound(samples: usize, confidence: f64) -> f64 {
    ((2.0 / (1.0 - confidence)).ln() / (2.0 * samples as f64)).sqrt()
}
