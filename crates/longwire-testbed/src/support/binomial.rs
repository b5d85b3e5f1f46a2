//! Exact binomial intervals, to bound the losses of a random process.

/// Returns the central interval of a binomial distribution: at most `(1 - confidence) / 2` of the
/// probability lies below it, and at most as much above.
///
/// Sums probabilities from the largest outwards, using ratios of neighbours, so that nothing
/// underflows.
pub fn interval(trials: u64, probability: f64, confidence: f64) -> (u64, u64) {
    if trials == 0 || probability <= 0.0 {
        return (0, 0);
    }
    if probability >= 1.0 {
        return (trials, trials);
    }
    let odds = probability / (1.0 - probability);
    let mode = (((trials + 1) as f64) * probability)
        .floor()
        .min(trials as f64) as u64;
    // Probabilities of the values above and below the mode, relative to the mode's.
    let up = weights((mode..trials).map(|k| (trials - k) as f64 / (k + 1) as f64 * odds));
    let below = (1..=mode).rev();
    let down = weights(below.map(|k| k as f64 / ((trials - k + 1) as f64 * odds)));
    let all = down.iter().rev().chain([&1.0]).chain(&up);
    let tail = (1.0 - confidence) / 2.0 * all.clone().sum::<f64>();
    let least = mode - down.len() as u64 + excluded(all.clone(), tail);
    (least, mode + up.len() as u64 - excluded(all.rev(), tail))
}

/// Returns the cumulative products of these ratios, until they are too small to affect a bound.
fn weights(ratios: impl Iterator<Item = f64>) -> Vec<f64> {
    const NEGLIGIBLE: f64 = 1e-18;
    let weights = ratios.scan(1.0, |weight, ratio| {
        *weight *= ratio;
        Some(*weight)
    });
    weights.take_while(|weight| *weight >= NEGLIGIBLE).collect()
}

/// Returns the maximum number of leading weights whose sum is at most `tail`.
fn excluded<'a>(weights: impl Iterator<Item = &'a f64>, tail: f64) -> u64 {
    let mut sum = 0.0;
    let in_tail = weights.take_while(|weight| {
        sum += **weight;
        sum <= tail
    });
    in_tail.count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with hand-computed values: for 3 trials with p = 1/2, each tail is 1/8.
    #[test]
    fn small_cases_by_hand() {
        // P(0) = 1/8 is more than (1 - 0.8) / 2 = 0.1: all values remain.
        assert_eq!(interval(3, 0.5, 0.8), (0, 3));
        // P(0) = 1/8 is at most (1 - 0.7) / 2 = 0.15: the ends are excluded.
        assert_eq!(interval(3, 0.5, 0.7), (1, 2));
    }

    #[test]
    fn large_cases_near_the_normal_approximation() {
        let (least, most) = interval(120_000, 0.01, 0.99);
        let deviation = (120_000.0f64 * 0.01 * 0.99).sqrt();
        assert!(
            (least as f64 - (1_200.0 - 2.576 * deviation)).abs() < 3.0,
            "{least}"
        );
        assert!(
            (most as f64 - (1_200.0 + 2.576 * deviation)).abs() < 3.0,
            "{most}"
        );
    }

    #[test]
    fn certain_cases() {
        assert_eq!(interval(0, 0.5, 0.99), (0, 0));
        assert_eq!(interval(7, 0.0, 0.99), (0, 0));
        assert_eq!(interval(7, 1.0, 0.99), (7, 7));
    }
}
