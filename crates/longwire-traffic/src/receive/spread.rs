//! Distributions in bounded memory.

use hdrhistogram::Histogram;
use longwire_runtime::Spread;

/// Maximum magnitude in nanoseconds, to which values are clamped: 137 s.
const LIMIT: u64 = 1 << 37;

/// A distribution of signed values, mostly nanoseconds.
#[derive(Clone, Debug)]
pub(super) struct Distribution {
    above: Histogram<u32>,
    /// Magnitudes of negative values.
    below: Option<Histogram<u32>>,
    count: u64,
    sum: i128,
    min: i64,
    max: i64,
}

/// Returns a histogram up to [`LIMIT`] with this many significant digits.
fn counters(digits: u8) -> Histogram<u32> {
    Histogram::new_with_bounds(1, LIMIT, digits)
        .unwrap_or_else(|_| unreachable!("bounds and digits are constants that fit"))
}

impl Default for Distribution {
    /// Creates a distribution whose percentiles have three significant digits; it takes about 100
    /// KB.
    fn default() -> Distribution {
        Distribution::with_digits(3)
    }
}

impl Distribution {
    /// Creates a distribution whose percentiles have 1 to 5 significant digits; each further digit
    /// takes ten times the memory.
    pub(super) fn with_digits(digits: u8) -> Distribution {
        Distribution {
            above: counters(digits),
            below: None,
            count: 0,
            sum: 0,
            min: i64::MAX,
            max: i64::MIN,
        }
    }

    #[inline]
    pub(super) fn record(&mut self, value: i64) {
        self.count += 1;
        self.sum += i128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        let magnitude = value.unsigned_abs().min(LIMIT);
        if value >= 0 {
            self.above.saturating_record(magnitude);
        } else {
            let digits = self.above.sigfig();
            let below = self.below.get_or_insert_with(|| counters(digits));
            below.saturating_record(magnitude);
        }
    }

    /// Returns the `quantile`-quantile.
    fn at(&self, quantile: f64) -> i64 {
        let rank = ((quantile * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let negative = self.below.as_ref().map_or(0, Histogram::len);
        let value = match &self.below {
            // The lowest value is the negative one with the largest magnitude.
            Some(below) if rank <= negative => -ranked(below, negative - rank + 1),
            _ => ranked(&self.above, rank - negative),
        };
        value.clamp(self.min, self.max)
    }

    /// Summarises the distribution, divided by `unit`: 1,000 converts nanoseconds to
    /// microseconds.
    pub(super) fn spread(&self, unit: f64) -> Spread {
        if self.count == 0 {
            return Spread::default();
        }
        let at = |quantile| self.at(quantile) as f64 / unit;
        Spread {
            count: self.count,
            min: self.min as f64 / unit,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: self.max as f64 / unit,
            mean: self.sum as f64 / self.count as f64 / unit,
            ..Spread::default()
        }
    }
}

/// Returns the midpoint of the bin that contains this rank, counted from 1.
fn ranked(histogram: &Histogram<u32>, rank: u64) -> i64 {
    let mut seen = 0;
    for class in histogram.iter_recorded() {
        seen += class.count_since_last_iteration();
        if seen >= rank {
            return histogram.median_equivalent(class.value_iterated_to()) as i64;
        }
    }
    histogram.max() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a quantile by sorting.
    fn exact(values: &[i64], quantile: f64) -> i64 {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        let rank = (quantile * sorted.len() as f64).ceil().max(1.0) as usize;
        sorted[rank - 1]
    }

    fn check(values: &[i64]) {
        let mut distribution = Distribution::default();
        values.iter().for_each(|value| distribution.record(*value));
        let spread = distribution.spread(1.0);
        for (quantile, found) in [
            (0.5, spread.p50),
            (0.9, spread.p90),
            (0.99, spread.p99),
            (0.999, spread.p999),
        ] {
            let wanted = exact(values, quantile) as f64;
            let error = (found - wanted).abs();
            let most = 0.001 * wanted.abs();
            assert!(error <= most, "{quantile}: {found} {wanted}");
        }
        let mean = values.iter().sum::<i64>() as f64 / values.len() as f64;
        assert!((spread.mean - mean).abs() < 1e-6);
        assert_eq!(spread.min, exact(values, 0.0) as f64);
        assert_eq!(spread.max, exact(values, 1.0) as f64);
    }

    #[test]
    fn percentiles_are_those_of_the_sorted_values() {
        check(&[5]);
        check(&[-7]);
        check(&[0, 0, 1]);
        check(&(-500..1_500).collect::<Vec<i64>>());
        check(&(-3_000..-10).collect::<Vec<i64>>());
        // Values over many orders of magnitude, with both signs.
        let values: Vec<i64> = (0..4_000i64)
            .map(|n| (n - 1_000) * (n * 7_919 % 100_003) * 11)
            .collect();
        check(&values);
    }

    #[test]
    fn an_empty_distribution_is_all_zeros() {
        assert_eq!(Distribution::default().spread(1e3), Spread::default());
    }

    #[test]
    fn values_beyond_the_limit_count_at_the_limit() {
        let mut distribution = Distribution::default();
        distribution.record(i64::MAX);
        distribution.record(i64::MIN + 1);
        let spread = distribution.spread(1.0);
        assert_eq!(spread.max, i64::MAX as f64);
        assert!(spread.p99 > 1e11 && spread.p50 < -1e11, "{spread:?}");
    }
}
