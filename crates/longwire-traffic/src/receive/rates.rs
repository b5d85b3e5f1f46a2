//! Frame and byte counts over time, in bounded memory.

use longwire_engine::Nanos;

use super::report::Rates;

/// Maximum number of intervals.
const INTERVALS: usize = 600;

/// Initial interval length.
const LENGTH_START: Nanos = Nanos::from_millis(100);

/// Counts in intervals of equal length. When intervals run out, neighbours are merged.
#[derive(Clone, Debug)]
pub(super) struct Series {
    length: u64,
    /// Frames and bytes per interval.
    intervals: Vec<(u64, u64)>,
}

impl Series {
    pub(super) fn new() -> Series {
        Series {
            length: LENGTH_START.as_nanos(),
            intervals: Vec::with_capacity(INTERVALS),
        }
    }

    /// Records a frame that arrived `since` after the first.
    #[inline]
    pub(super) fn record(&mut self, since: Nanos, bytes: u64) {
        while since.as_nanos() / self.length >= INTERVALS as u64 {
            self.merge();
        }
        let index = (since.as_nanos() / self.length) as usize;
        if index >= self.intervals.len() {
            self.intervals.resize(index + 1, (0, 0));
        }
        let (frames, total) = &mut self.intervals[index];
        *frames += 1;
        *total += bytes;
    }

    #[cold]
    fn merge(&mut self) {
        let merged = self.intervals.len().div_ceil(2);
        for index in 0..merged {
            let pair = 2 * index..(2 * index + 2).min(self.intervals.len());
            let both = self.intervals[pair].iter();
            self.intervals[index] = both.fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
        }
        self.intervals.truncate(merged);
        self.length = self.length.saturating_mul(2);
    }

    pub(super) fn report(&self) -> Rates {
        let (packets, bytes) = self.intervals.iter().copied().unzip();
        Rates {
            interval_s: self.length as f64 / 1e9,
            packets,
            bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_when_intervals_merge() {
        let mut series = Series::new();
        let times: Vec<u64> = (0..10_000u64).map(|n| n * n * 3_001).collect();
        for (number, time) in times.iter().enumerate() {
            series.record(Nanos::from_nanos(*time), number as u64);
        }
        let rates = series.report();
        assert!(rates.packets.len() <= INTERVALS);
        let length = (rates.interval_s * 1e9) as u64;
        for (index, found) in rates.packets.iter().enumerate() {
            let wanted = times
                .iter()
                .filter(|time| (*time / length) as usize == index);
            assert_eq!(*found, wanted.count() as u64, "interval {index}");
        }
        assert_eq!(rates.bytes.iter().sum::<u64>(), 10_000 * 9_999 / 2);
    }

    #[test]
    fn a_second_has_ten_intervals() {
        let mut series = Series::new();
        for ms in 0..1_000 {
            series.record(Nanos::from_millis(ms), 60);
        }
        let rates = series.report();
        assert_eq!(rates.packets, vec![100; 10]);
        assert_eq!(rates.bytes, vec![6_000; 10]);
    }
}
