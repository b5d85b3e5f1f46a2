//! Interarrival jitter.

/// Interarrival jitter (RFC 3550, section 6.4.1): the mean deviation of delay differences
/// in order of arrival, with a gain of 1/16.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Jitter {
    last: Option<i64>,
    /// In 1/16 ns, rounded as in appendix A.8.
    now: u64,
    max: u64,
}

impl Jitter {
    #[inline]
    /// Records a delay in nanoseconds.
    pub(super) fn record(&mut self, delay: i64) {
        if let Some(last) = self.last.replace(delay) {
            let apart = delay.abs_diff(last);
            self.now = self.now.saturating_add(apart) - ((self.now + 8) >> 4);
            self.max = self.max.max(self.now);
        }
    }

    /// Returns the current jitter in microseconds.
    pub(super) fn now_us(&self) -> f64 {
        self.now as f64 / 16e3
    }

    /// Returns the maximum jitter in microseconds.
    pub(super) fn max_us(&self) -> f64 {
        self.max as f64 / 16e3
    }
}
