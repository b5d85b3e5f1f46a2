//! Per-link throughput of many links during a measurement.

use longwire_engine::Nanos;

/// A link's arrivals in the window: number of frames, and times of the first and the last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Share {
    frames: u32,
    first: Nanos,
    last: Nanos,
}

/// Start and end of a measurement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub from: Nanos,
    pub to: Nanos,
}

/// Accuracy of the rates of all links.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RateAccuracy {
    /// Total throughput of all links in bit/s, on the emulated wire.
    pub bits: f64,
    /// Relative error of the worst link.
    pub worst: f64,
    /// 99th percentile of absolute errors.
    pub p99: f64,
    /// Number of links with an error above the limit.
    pub outside: u32,
}

impl Share {
    /// Records the arrival of a frame.
    #[inline]
    pub fn note(&mut self, at: Nanos) {
        if self.frames == 0 {
            self.first = at;
        }
        self.frames += 1;
        self.last = at;
    }

    /// Returns the rate in frames/s of a link that should carry `expected`.
    ///
    /// Between the first and the last arrival of n frames are n - 1 intervals, regardless of the
    /// window's bounds, so the result is exact even for links with few frames. A link that was
    /// silent at one end of the window for more than three frame times counts as stopped for that
    /// time.
    fn per_second(&self, window: Window, expected: f64) -> f64 {
        let silence = Nanos::from_nanos((3e9 / expected) as u64);
        let mut intervals = f64::from(self.frames) - 1.0;
        let mut from = self.first;
        let mut to = self.last;
        if from.saturating_sub(window.from) > silence {
            (from, intervals) = (window.from, intervals + 1.0);
        }
        if window.to.saturating_sub(to) > silence {
            (to, intervals) = (window.to, intervals + 1.0);
        }
        let time = to.saturating_sub(from).as_nanos();
        match time {
            0 => 0.0,
            time => intervals.max(0.0) * 1e9 / time as f64,
        }
    }
}

/// Evaluates links that should carry `bits` bit/s each, in frames of `frame_bits` bits. Links with
/// an error above `allowed` (0.01 means 1 %) count as outside.
pub(super) fn judge(
    shares: &[Share],
    window: Window,
    bits: u64,
    frame_bits: u64,
    allowed: f64,
) -> RateAccuracy {
    let expected = bits as f64 / frame_bits as f64;
    let mut accuracy = RateAccuracy::default();
    let mut errors = Vec::with_capacity(shares.len());
    for share in shares {
        let carried = share.per_second(window, expected);
        let error = carried / expected - 1.0;
        accuracy.bits += carried * frame_bits as f64;
        accuracy.outside += u32::from(error.abs() > allowed);
        if error.abs() > accuracy.worst.abs() {
            accuracy.worst = error;
        }
        errors.push(error.abs());
    }
    errors.sort_by(f64::total_cmp);
    let at = (errors.len() * 99 / 100).min(errors.len().saturating_sub(1));
    accuracy.p99 = errors.get(at).copied().unwrap_or(0.0);
    accuracy
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Window = Window {
        from: Nanos::from_secs(1),
        to: Nanos::from_secs(2),
    };

    fn share(times_ms: impl IntoIterator<Item = u64>) -> Share {
        let mut share = Share::default();
        for time in times_ms {
            share.note(Nanos::from_millis(time));
        }
        share
    }

    /// Evaluates frames of 1,000 bits on links of 10,000 bit/s, which carry one every 100 ms.
    fn judged(shares: &[Share]) -> RateAccuracy {
        judge(shares, WINDOW, 10_000, 1_000, 0.01)
    }

    #[test]
    fn few_frames_are_counted_to_the_last_bit() {
        let found = judged(&[share((1_090..2_000).step_by(100))]);
        assert!(found.worst.abs() < 1e-9 && found.outside == 0, "{found:?}");
        assert!((found.bits - 10_000.0).abs() < 1e-6);
    }

    #[test]
    fn a_slow_link_and_one_that_stands_still_are_outside() {
        let slow = share((1_000..2_000).step_by(103));
        let stopped = share((1_000..1_500).step_by(100));
        let late = share((1_450..2_000).step_by(100));
        let never = share([]);
        let found = judged(&[
            slow,
            stopped,
            late,
            never,
            share((1_000..2_000).step_by(100)),
        ]);
        assert_eq!(found.outside, 4);
        assert_eq!(found.worst, -1.0);
        // The link carries four frames and a fraction in half a second, and none in the other half.
        let stopped = judged(&[stopped]).worst;
        assert!((-0.51..-0.49).contains(&stopped), "{stopped}");
    }

    #[test]
    fn most_links_hide_no_bad_one() {
        let good = share((1_000..2_000).step_by(100));
        let mut shares = vec![good; 999];
        shares.push(share((1_000..2_000).step_by(110)));
        let found = judged(&shares);
        assert!(found.p99 < 1e-9 && found.outside == 1);
        assert!((found.worst + 1.0 / 11.0).abs() < 1e-6, "{found:?}");
    }
}
