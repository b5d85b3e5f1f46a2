//! Delivery opportunities of a link, and the frames that use them.

use longwire_units::{BitRate, Nanos};

use crate::trace::schedule::{OpportunityCursor, OpportunitySchedule};

/// Delivers frames in FIFO order, by the rules of mahimahi's `LinkQueue`:
///
/// * An opportunity delivers its bytes at its instant. Bytes without a waiting frame are
///   lost.
/// * A frame that needs more bytes continues with the next opportunity, and departs at the
///   one that delivers its last byte. The remainder of that opportunity goes to the next
///   frame, if that was already waiting.
/// * A frame that arrives at the instant of an opportunity misses it.
#[derive(Clone, Debug)]
pub(super) struct Opportunities {
    schedule: OpportunitySchedule,
    repeats: bool,
    /// Bytes per opportunity.
    size: u64,
    epoch: u64,
    next: OpportunityCursor,
    /// Time and remaining bytes of the last used opportunity.
    current: u64,
    left: u64,
}

impl Opportunities {
    /// Creates a possibly repeating schedule of opportunities of `size` bytes.
    pub fn new(schedule: OpportunitySchedule, size: u64, repeats: bool) -> Opportunities {
        Opportunities {
            schedule,
            repeats,
            size,
            epoch: 0,
            next: OpportunityCursor::default(),
            current: 0,
            left: 0,
        }
    }

    /// Sets the origin of the schedule.
    pub fn start(&mut self, epoch: Nanos) {
        self.epoch = epoch.as_nanos();
    }

    /// Returns the next opportunity at or after `from` with bytes left.
    #[inline]
    pub fn ready(&mut self, from: Nanos) -> Nanos {
        let since = self.since_epoch(from);
        if self.left > 0 && since <= self.current {
            return from.max(self.instant(Some(self.current)));
        }
        self.left = 0;
        self.schedule.skip(&mut self.next, since, self.repeats);
        self.instant(self.schedule.time(&self.next)).max(from)
    }

    /// Returns when the last of `bytes` is delivered, for a frame that arrived at `arrival`
    /// and is the head at `at`; [`Nanos::MAX`] means never.
    #[inline]
    pub fn deliver(&mut self, arrival: Nanos, at: Nanos, bytes: u64) -> Nanos {
        let arrival = self.since_epoch(arrival);
        let at = self.since_epoch(at);
        let mut need = bytes;
        if self.left > 0 && at <= self.current && arrival < self.current {
            let share = need.min(self.left);
            self.left -= share;
            need -= share;
            if need == 0 {
                return self.instant(Some(self.current));
            }
        }
        self.left = 0;
        let least = at.max(arrival.saturating_add(1));
        self.schedule.skip(&mut self.next, least, self.repeats);
        // Usually one; avoids an expensive division.
        let count = if need <= self.size {
            1
        } else {
            need.div_ceil(self.size)
        };
        let last = self.schedule.take(&mut self.next, count, self.repeats);
        if let Some(last) = last {
            self.current = last;
            self.left = count * self.size - need;
        }
        self.instant(last)
    }

    /// Returns the mean rate over a lap, exact to less than 1 bit/s.
    pub fn mean(&self) -> Option<BitRate> {
        let bits = u128::from(self.schedule.count()) * u128::from(self.size) * 8;
        let rate = bits * 1_000_000_000 / u128::from(self.schedule.length().as_nanos());
        BitRate::from_bits_per_sec(u64::try_from(rate).ok()?)
    }

    fn since_epoch(&self, at: Nanos) -> u64 {
        at.as_nanos().saturating_sub(self.epoch)
    }

    fn instant(&self, since: Option<u64>) -> Nanos {
        let since = since.and_then(|since| self.epoch.checked_add(since));
        since.map_or(Nanos::MAX, Nanos::from_nanos)
    }
}
