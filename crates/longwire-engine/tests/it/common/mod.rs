//! Common helpers: links from text, and exact statistical bounds.
#![allow(dead_code, reason = "each test uses its part")]

pub mod any_spec;
pub mod composition;
pub mod files;
#[path = "../../../../longwire-packet/tests/it/common/frames.rs"]
pub mod frames;
pub mod special;

use longwire_engine::{FrameMeta, Link, LinkConfig, LinkId, LinkSpec, Nanos, NoLoader, Verdict};

/// Returns the specification of a line such as `rate=10mbit loss=1%`.
pub fn spec(line: &str) -> LinkSpec {
    let spec = line.parse();
    spec.unwrap_or_else(|error| panic!("{line}: {error}"))
}

/// Returns the configuration that the line describes.
pub fn config(line: &str) -> LinkConfig {
    let config = spec(line).build(&NoLoader);
    config.unwrap_or_else(|error| panic!("{line}: {error}"))
}

/// Returns a link that the line describes.
pub fn link(line: &str, seed: u64) -> Link {
    Link::new(config(line), seed, LinkId(0))
}

/// Returns the message about a value that must be refused.
pub fn refusal(option: &str, text: &str) -> String {
    let set = LinkSpec::new().set(option, text, &NoLoader);
    set.expect_err(text).to_string()
}

pub fn frame(arrival: u64, len: u32) -> FrameMeta {
    FrameMeta {
        arrival: Nanos::from_nanos(arrival),
        len,
    }
}

/// The verdicts of `count` frames of 1000 bytes, `gap` nanoseconds apart.
pub fn verdicts(link: &mut Link, count: u64, gap: u64) -> Vec<Verdict> {
    let offer = |index| link.offer(frame(index * gap, 1000), &[]);
    (0..count).map(offer).collect()
}

/// The release, in nanoseconds, of a frame that must have been delivered.
pub fn release(verdict: Verdict) -> u64 {
    match verdict {
        Verdict::Deliver(delivery) => delivery.release.as_nanos(),
        other => panic!("not delivered: {other:?}"),
    }
}

/// The least and the greatest count of successes that `trials` independent
/// trials of probability `p` stay within, but for a chance of at most
/// `(1 - confidence) / 2` on each side. Sums the binomial distribution term
/// by term from its mode.
pub fn binomial_bounds(trials: u64, p: f64, confidence: f64) -> (u64, u64) {
    let mode = (((trials + 1) as f64 * p) as u64).min(trials);
    let odds = p / (1.0 - p);
    let mut terms = std::collections::VecDeque::from([1.0f64]);
    let (mut first, mut last) = (mode, mode);
    while last < trials && terms[terms.len() - 1] > 1e-40 {
        let ratio = (trials - last) as f64 / (last + 1) as f64 * odds;
        terms.push_back(terms[terms.len() - 1] * ratio);
        last += 1;
    }
    while first > 0 && terms[0] > 1e-40 {
        let ratio = first as f64 / (trials - first + 1) as f64 / odds;
        terms.push_front(terms[0] * ratio);
        first -= 1;
    }
    let tail = terms.iter().sum::<f64>() * (1.0 - confidence) / 2.0;
    // How many terms may be left out at one end.
    fn left_out<'a>(terms: impl Iterator<Item = &'a f64>, tail: f64) -> u64 {
        let mut sum = 0.0;
        let within = |term: &&f64| {
            sum += **term;
            sum <= tail
        };
        terms.take_while(within).count() as u64
    }
    let low = first + left_out(terms.iter(), tail);
    let high = last - left_out(terms.iter().rev(), tail);
    (low, high)
}

/// The greatest distance between the samples' distribution and `cdf`
/// (Kolmogorov and Smirnov).
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

/// Returns a bound of that distance that is exceeded with a chance of at most `1 -
/// confidence`, for any number of samples (Massart's form of the inequality of
/// Dvoretzky, Kiefer and Wolfowitz, 1990).
pub fn ks_bound(samples: usize, confidence: f64) -> f64 {
    ((2.0 / (1.0 - confidence)).ln() / (2.0 * samples as f64)).sqrt()
}
