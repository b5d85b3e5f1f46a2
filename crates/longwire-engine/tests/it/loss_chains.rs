//! Correlated losses compared with the theory of their chains: rates, correlation, run lengths and
//! every pattern of six consecutive frames. About 1,500 exact bounds, each at 99.9999 % confidence:
//! one in a thousand correct runs would fail.

use crate::common::assert_binomial;
use crate::common::files::frame_context;
use longwire_engine::models::LOSS;
use longwire_units::random::{Purpose, Stream};

const CONFIDENCE: f64 = 0.999_999;

/// Thinning interval for nearly independent patterns and rates: correlation in the slowest chain
/// here falls by a tenth per frame.
const THIN: usize = 128;
const FRAMES: usize = 4_000_000;

/// Returns whether each frame is lost.
fn losses(model: &str, seed: u64) -> Vec<bool> {
    let mut placed = LOSS.parse(model).unwrap_or_else(|error| panic!("{error}"));
    let name = placed.name;
    let mut stream = Stream::of_model(seed, 0, Purpose::MediumLoss, name, 0);
    let frame = frame_context(0, 1000);
    let judge = |_| placed.model.judge(&frame, &mut stream).is_some();
    (0..FRAMES).map(judge).collect()
}

/// A chain: transition probabilities, and the loss probability in each state.
struct Chain<const N: usize> {
    moves: [[f64; N]; N],
    loss: [f64; N],
}

impl<const N: usize> Chain<N> {
    fn step(&self, from: [f64; N]) -> [f64; N] {
        let mut to = [0.0; N];
        for (share, row) in from.iter().zip(&self.moves) {
            for (to, probability) in to.iter_mut().zip(row) {
                *to += share * probability;
            }
        }
        to
    }

    fn stationary(&self) -> [f64; N] {
        (0..20_000).fold([1.0 / N as f64; N], |share, _| self.step(share))
    }

    /// Returns the probability of a pattern of consecutive frames.
    fn pattern(&self, lost: impl Iterator<Item = bool>) -> f64 {
        let mut share = self.stationary();
        for (index, lost) in lost.enumerate() {
            if index > 0 {
                share = self.step(share);
            }
            for (share, loss) in share.iter_mut().zip(self.loss) {
                *share *= if lost { loss } else { 1.0 - loss };
            }
        }
        share.iter().sum()
    }
}

fn two_states(p: f64, r: f64, loss: [f64; 2]) -> Chain<2> {
    Chain {
        moves: [[1.0 - p, p], [r, 1.0 - r]],
        loss,
    }
}

fn assert_within(what: &str, count: u64, trials: u64, p: f64) {
    assert_binomial(what, count, trials, p, CONFIDENCE);
}

/// Checks all patterns of six frames, which covers the rate and all correlations up to lag 5.
fn check_patterns<const N: usize>(model: &str, chain: &Chain<N>) {
    const LEN: usize = 6;
    for seed in 1..=2 {
        let losses = losses(model, seed);
        let mut counts = [0u64; 1 << LEN];
        // The chain starts in a fixed state, so the first frames are not stationary.
        let windows = losses[10_000..].chunks_exact(THIN);
        let trials = windows.len() as u64;
        for window in windows {
            let bits = window[..LEN].iter();
            counts[bits.fold(0, |bits, lost| bits << 1 | usize::from(*lost))] += 1;
        }
        for (bits, count) in counts.into_iter().enumerate() {
            let lost = (0..LEN).rev().map(|bit| bits >> bit & 1 == 1);
            let what = format!("{model}, seed {seed}, pattern {bits:06b}");
            assert_within(&what, count, trials, chain.pattern(lost));
        }
    }
}

/// Returns the lengths of runs of lost or passed frames, without the first and the last run.
fn runs(losses: &[bool], lost: bool) -> Vec<usize> {
    let runs: Vec<&[bool]> = losses.chunk_by(|a, b| a == b).collect();
    let inner = runs[1..runs.len() - 1].iter();
    inner
        .filter(|run| run[0] == lost)
        .map(|run| run.len())
        .collect()
}

/// Checks each length up to twelve, and the total of longer ones.
fn check_runs(what: &str, runs: &[usize], probability: impl Fn(usize) -> f64) {
    const LENGTH_MAX: usize = 12;
    let trials = runs.len() as u64;
    assert!(trials > 10_000, "{what}: {trials} runs");
    let mut left = 1.0;
    for length in 1..=LENGTH_MAX {
        let count = runs.iter().filter(|run| **run == length).count() as u64;
        let what = format!("{what}, runs of {length}");
        assert_within(&what, count, trials, probability(length));
        left -= probability(length);
    }
    let count = runs.iter().filter(|run| **run > LENGTH_MAX).count() as u64;
    assert_within(
        &format!("{what}, longer runs"),
        count,
        trials,
        left.max(0.0),
    );
}

fn geometric(p: f64) -> impl Fn(usize) -> f64 {
    move |length| p * (1.0 - p).powi(length as i32 - 1)
}

#[test]
fn gilberts_runs_are_geometric() {
    for (model, p, r) in [
        ("gilbert:p=2%,r=30%", 0.02, 0.3),
        ("gilbert:p=60%,r=90%", 0.6, 0.9),
    ] {
        check_patterns(model, &two_states(p, r, [0.0, 1.0]));
        let losses = losses(model, 3);
        check_runs(model, &runs(&losses, true), geometric(r));
        check_runs(model, &runs(&losses, false), geometric(p));
    }
}

#[test]
fn gilbert_and_elliotts_patterns_are_those_of_the_chain() {
    for (model, p, r, loss) in [
        (
            "gilbert-elliott:p=5%,r=20%,loss-good=1%,loss-bad=70%",
            0.05,
            0.2,
            [0.01, 0.7],
        ),
        (
            "gilbert-elliott:p=10%,r=40%,loss-good=30%,loss-bad=0%",
            0.1,
            0.4,
            [0.3, 0.0],
        ),
        ("gilbert-elliott:p=2%,r=25%", 0.02, 0.25, [0.0, 1.0]),
    ] {
        check_patterns(model, &two_states(p, r, loss));
    }
}

/// Returns the four-state chain with the paper's numbers: 1 received in a gap, 2 received in a
/// burst, 3 lost in a burst, 4 lost in a gap.
fn four_states([p13, p31, p32, p23, p14]: [f64; 5]) -> Chain<4> {
    Chain {
        moves: [
            [1.0 - p13 - p14, 0.0, p13, p14],
            [0.0, 1.0 - p23, p23, 0.0],
            [p31, p32, 1.0 - p31 - p32, 0.0],
            [1.0, 0.0, 0.0, 0.0],
        ],
        loss: [0.0, 0.0, 1.0, 1.0],
    }
}

#[test]
fn the_four_states_are_those_of_the_paper() {
    let model = "state:p13=3%,p31=20%,p32=30%,p23=40%,p14=2%";
    let chain = four_states([0.03, 0.2, 0.3, 0.4, 0.02]);
    check_patterns(model, &chain);
    // Stationary probabilities from section 4.1 of the paper.
    let [p13, p31, p32, p23, p14] = [0.03, 0.2, 0.3, 0.4, 0.02];
    let sum = p13 * p23 + p23 * p31 + p14 * p23 * p31 + p13 * p32;
    let expected = [p23 * p31, p13 * p32, p13 * p23, p14 * p23 * p31].map(|part| part / sum);
    for (found, expected) in chain.stationary().iter().zip(expected) {
        assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
    }
    // With only p13 and p31, it is a Gilbert chain; if also p31 = 1 - p13, losses are independent.
    check_patterns("state:p13=5%,p31=25%", &two_states(0.05, 0.25, [0.0, 1.0]));
    check_patterns("state:p13=5%,p31=95%", &two_states(0.05, 0.95, [0.0, 1.0]));
    let losses = losses(model.replace("p14=2%", "p14=0%").as_str(), 5);
    check_runs(model, &runs(&losses, true), geometric(0.5));
}

#[test]
fn correlated_losses_have_their_rate_and_correlation() {
    for (model, rate, correlation) in [
        ("correlated:rate=1%,correlation=25%", 0.01, 0.25),
        ("correlated:rate=20%,correlation=80%", 0.2, 0.8),
        ("correlated:rate=40%,correlation=-50%", 0.4, -0.5),
        ("correlated:rate=30%,correlation=0%", 0.3, 0.0),
        ("packet:20%", 0.2, 0.0),
    ] {
        let (p, r) = (
            rate * (1.0 - correlation),
            (1.0 - rate) * (1.0 - correlation),
        );
        check_patterns(model, &two_states(p, r, [0.0, 1.0]));
        let losses = losses(model, 4);
        check_runs(model, &runs(&losses, true), geometric(r));
        // Lag-1 autocorrelation from distant pairs: both frames are lost with probability rate² +
        // correlation·rate·(1 - rate).
        let pairs = losses.chunks_exact(THIN);
        let both = pairs.clone().filter(|pair| pair[0] && pair[1]).count() as u64;
        let expected = rate * rate + correlation * rate * (1.0 - rate);
        assert_within(model, both, pairs.len() as u64, expected);
    }
}

/// Probability of each burst length.
type Lengths<'a> = &'a dyn Fn(usize) -> f64;

/// Bursts with no frame between them form one run.
#[test]
fn bursts_have_their_lengths() {
    let uniform = |length: usize| if length <= 9 { 1.0 / 9.0 } else { 0.0 };
    let fixed = |length: usize| f64::from(u8::from(length == 3));
    let one = |length: usize| f64::from(u8::from(length == 1));
    let fourth = geometric(1.0 / 4.0);
    let cases: [(&str, f64, f64, Lengths<'_>); 4] = [
        ("burst:start=10%,length=3", 0.1, 3.0, &fixed),
        (
            "burst:start=5%,length=5,distribution=uniform",
            0.05,
            5.0,
            &uniform,
        ),
        (
            "burst:start=20%,length=4,distribution=geometric",
            0.2,
            4.0,
            &fourth,
        ),
        (
            "burst:start=20%,length=1,distribution=geometric",
            0.2,
            1.0,
            &one,
        ),
    ];
    for (model, start, mean, burst) in cases {
        let mut run = [0.0; 13];
        for length in 1..run.len() {
            let joined: f64 = (1..length)
                .map(|first| burst(first) * run[length - first])
                .sum();
            run[length] = (1.0 - start) * burst(length) + start * joined;
        }
        let losses = losses(model, 1);
        check_runs(model, &runs(&losses, true), |length| run[length]);
        check_runs(model, &runs(&losses, false), geometric(start));
        let thinned = losses[10_000..].iter().step_by(THIN);
        let lost = thinned.clone().filter(|lost| **lost).count() as u64;
        let rate = mean / (mean + 1.0 / start - 1.0);
        assert_within(model, lost, thinned.count() as u64, rate);
    }
}
