//! How much delays differ from one packet to the next.

/// Interarrival jitter (RFC 3550, section 6.4.1): the mean deviation of the
/// difference of delays, each new one with a weight of a sixteenth, of
/// packets in the order of arrival.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Jitter {
    last: Option<i64>,
    /// Nanoseconds times sixteen, rounded as in appendix A.8.
    now: u64,
    max: u64,
}

impl Jitter {
    #[inline]
    /// A packet came that took so long, in nanoseconds.
    pub(super) fn came(&mut self, delay: i64) {
        if let Some(last) = self.last.replace(delay) {
            let apart = delay.abs_diff(last);
            self.now = self.now.saturating_add(apart) - ((self.now + 8) >> 4);
            self.max = self.max.max(self.now);
        }
    }

    /// As of the last packet, in microseconds.
    pub(super) fn now_us(&self) -> f64 {
        self.now as f64 / 16e3
    }

    /// The most that it was, in microseconds.
    pub(super) fn max_us(&self) -> f64 {
        self.max as f64 / 16e3
    }
}
