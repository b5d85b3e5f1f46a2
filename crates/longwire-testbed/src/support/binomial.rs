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
    let weights = Weights::new(trials, probability);
    let tail = (1.0 - confidence) / 2.0 * weights.total;
    let mut below = 0.0;
    let mut least = weights.first;
    for weight in &weights.values {
        if below + weight > tail {
            break;
        }
        below += weight;
        least += 1;
    }
    let mut above = 0.0;
    let mut most = weights.first + weights.values.len() as u64 - 1;
    for weight in weights.values.iter().rev() {
        if above + weight > tail {
            break;
        }
        above += weight;
        most -= 1;
    }
    (least, most)
}

/// Probabilities relative to the mode's, down to those that affect no bound.
struct Weights {
    first: u64,
    values: Vec<f64>,
    total: f64,
}

/// Relative probabilities below this affect no bound.
const NEGLIGIBLE: f64 = 1e-18;

impl Weights {
    fn new(trials: u64, probability: f64) -> Weights {
        let odds = probability / (1.0 - probability);
        let mode = (((trials + 1) as f64) * probability)
            .floor()
            .min(trials as f64) as u64;
        let mut up = vec![1.0];
        for k in mode..trials {
            let last = up[up.len() - 1];
            let next = last * (trials - k) as f64 / (k + 1) as f64 * odds;
            if next < NEGLIGIBLE {
                break;
            }
            up.push(next);
        }
        let mut down = Vec::new();
        let mut last = 1.0;
        for k in (1..=mode).rev() {
            last *= k as f64 / ((trials - k + 1) as f64 * odds);
            if last < NEGLIGIBLE {
                break;
            }
            down.push(last);
        }
        let first = mode - down.len() as u64;
        let values: Vec<f64> = down.into_iter().rev().chain(up).collect();
        let total = values.iter().sum();
        Weights {
            first,
            values,
            total,
        }
    }
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
