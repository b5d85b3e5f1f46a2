//! Distributions in bounded memory.
//!
//! A [`Sketch`] counts values in buckets whose width is a fixed fraction of the value, like an HDR
//! histogram, but stores only non-empty buckets. When there are too many, it halves its precision.
//! In the same memory, a time bin with a narrow range of values is accurate to 0.05 %, one with a
//! wide range to a few percent.

/// Minimum number of mantissa bits.
const BITS_MIN: u8 = 3;

/// A sketch that is exact for up to 16,384 distinct values below 2²⁷, and accurate to 0.1 % for
/// more values over three decades.
pub type FineSketch = Sketch<16_384, 26>;

/// A distribution in at most `BUCKETS` buckets; a new sketch keeps `BITS` bits of a value's
/// mantissa.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sketch<const BUCKETS: usize = 192, const BITS: u8 = 11> {
    /// Buckets with their counts, in ascending order.
    counts: Vec<(u32, u32)>,
    bits: u8,
    least: u64,
    most: u64,
    total: u64,
}

impl<const BUCKETS: usize, const BITS: u8> Default for Sketch<BUCKETS, BITS> {
    fn default() -> Self {
        Sketch {
            counts: Vec::new(),
            bits: BITS,
            least: u64::MAX,
            most: 0,
            total: 0,
        }
    }
}

impl<const BUCKETS: usize, const BITS: u8> Sketch<BUCKETS, BITS> {
    /// Adds a value.
    pub fn add(&mut self, value: u64) {
        self.least = self.least.min(value);
        self.most = self.most.max(value);
        self.total += 1;
        let bucket = bucket(value, self.bits);
        match self.counts.binary_search_by_key(&bucket, |(of, _)| *of) {
            Ok(at) => self.counts[at].1 = self.counts[at].1.saturating_add(1),
            Err(at) => {
                self.counts.insert(at, (bucket, 1));
                self.limit();
            }
        }
    }

    /// Adds the values of another sketch.
    pub fn merge(&mut self, mut other: Self) {
        if other.total == 0 {
            return;
        }
        let bits = self.bits.min(other.bits);
        self.coarsen(bits);
        other.coarsen(bits);
        self.least = self.least.min(other.least);
        self.most = self.most.max(other.most);
        self.total += other.total;
        self.counts.append(&mut other.counts);
        self.counts.sort_unstable_by_key(|(bucket, _)| *bucket);
        self.join();
        self.limit();
    }

    /// Returns the number of values.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns the minimum and maximum.
    pub fn range(&self) -> Option<(u64, u64)> {
        (self.total > 0).then_some((self.least, self.most))
    }

    /// Returns each bucket's maximum value and count.
    pub fn counts(&self) -> impl Iterator<Item = (u64, u32)> {
        self.counts.iter().map(|(bucket, count)| {
            let (low, width) = bounds(*bucket, self.bits);
            ((low + (width - 1)).clamp(self.least, self.most), *count)
        })
    }

    /// Returns the `share`-quantile.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let rank = ((share * self.total as f64).ceil() as u64).clamp(1, self.total.max(1));
        let mut below = 0u64;
        for (bucket, count) in &self.counts {
            below += u64::from(*count);
            if below >= rank {
                let (low, width) = bounds(*bucket, self.bits);
                return Some((low + (width - 1) / 2).clamp(self.least, self.most));
            }
        }
        (self.total > 0).then_some(self.most)
    }

    fn limit(&mut self) {
        while self.counts.len() > BUCKETS && self.bits > BITS_MIN {
            self.coarsen(self.bits - 1);
        }
    }

    fn coarsen(&mut self, bits: u8) {
        if bits >= self.bits {
            return;
        }
        for (of, _) in &mut self.counts {
            *of = bucket(bounds(*of, self.bits).0, bits);
        }
        self.bits = bits;
        self.join();
    }

    /// Merges adjacent entries of the same bucket.
    fn join(&mut self) {
        self.counts.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 = kept.1.saturating_add(next.1);
            }
            same
        });
    }
}

/// Returns the bucket of a value: the value itself if small, otherwise its exponent and leading
/// mantissa bits. Buckets increase with values.
fn bucket(value: u64, bits: u8) -> u32 {
    let length = 64 - value.leading_zeros();
    let shift = length.saturating_sub(u32::from(bits) + 1);
    (shift << bits) + (value >> shift) as u32
}

/// Returns a bucket's minimum value and its number of values.
fn bounds(bucket: u32, bits: u8) -> (u64, u64) {
    let shift = (bucket >> bits).saturating_sub(1);
    let mantissa = bucket - (shift << bits);
    (u64::from(mantissa) << shift, 1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_hold_their_values_and_follow_one_another() {
        for bits in [BITS_MIN, 7, 11, 26] {
            let mut before = None;
            for value in (0..20_000).chain((20..60).map(|power| (1u64 << power) - 1)) {
                let of = bucket(value, bits);
                let (low, width) = bounds(of, bits);
                assert!((low..low + width).contains(&value), "{value} {bits}");
                assert!(before <= Some(of), "{value} {bits}");
                before = Some(of);
            }
        }
    }

    #[test]
    fn equal_values_stay_exact() {
        let mut sketch = <Sketch>::default();
        for _ in 0..1_000 {
            sketch.add(20_000_001);
        }
        assert_eq!(sketch.quantile(0.5), Some(20_000_001));
        assert_eq!(sketch.range(), Some((20_000_001, 20_000_001)));
        assert_eq!(<Sketch>::default().quantile(0.5), None);
    }

    #[test]
    fn a_fine_sketch_is_exact_and_stays_small() {
        let mut sketch = FineSketch::default();
        for n in 0..10_000 {
            sketch.add(8_000_000 + n * 7_919 % 10_000);
        }
        let expected = (8_000_000..8_010_000).map(|value| (value, 1));
        assert!(sketch.counts().eq(expected));
        // Three decades of values: the n-th value, rounded to the maximum of its bucket.
        let values = (0..400_000).map(|n| 1_000_000 + n * 2_497);
        let (mut sketch, mut below) = (FineSketch::default(), 0);
        for value in values {
            sketch.add(value);
        }
        assert!(sketch.counts.len() <= 16_384);
        for (value, count) in sketch.counts() {
            below += u64::from(count);
            let exact = 1_000_000 + (below - 1) * 2_497;
            assert!(value.abs_diff(exact) <= value / 1_000, "{value} {exact}");
        }
        assert_eq!(below, 400_000);
    }

    proptest! {
        // Up to 2,000 values over nine decades. Precision falls to about 4 bits, so the middle of a
        // bucket is off by at most 1/32 of the value.
        #[test]
        fn quantiles_are_near_and_merging_changes_nothing(
            mut values in proptest::collection::vec(1..1_000_000_000u64, 1..2_000),
            cut in 0..2_000usize,
        ) {
            let mut parts = [<Sketch>::default(), <Sketch>::default()];
            for (index, value) in values.iter().enumerate() {
                parts[usize::from(index >= cut)].add(*value);
            }
            let [mut all, rest] = parts;
            all.merge(rest);
            values.sort_unstable();
            prop_assert_eq!(all.total(), values.len() as u64);
            prop_assert_eq!(all.range(), Some((values[0], values[values.len() - 1])));
            prop_assert!(all.counts.len() <= 192);
            for share in [0.01, 0.5, 0.99, 1.0] {
                let rank = (share * values.len() as f64).ceil() as usize;
                let exact = values[rank.max(1) - 1] as f64;
                let found = all.quantile(share).unwrap_or(0) as f64;
                prop_assert!((found - exact).abs() <= exact / 16.0 + 1.0, "{share}: {found} {exact}");
            }
        }
    }
}
