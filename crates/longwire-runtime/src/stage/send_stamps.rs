//! Send stamps: times at which the kernel or the device sent sampled frames, compared
//! with their releases.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;
use longwire_engine::Nanos;
use longwire_io::TxPort;
use longwire_io::port::{SendStamp, StampedBy};

use crate::lateness::{LatenessRecorder, nanos_histogram};

/// Interval of reading the port's stamps.
const LOOK_EVERY: Nanos = Nanos::from_millis(100);

/// Maximum number of stamps per reading. Each may cost a system call (about 1 us) while a
/// departure waits; at higher rates, readings are proportionally more frequent.
const PER_LOOK: u64 = 32;

/// Minimum interval of readings.
const LOOK_MIN: Nanos = Nanos::from_millis(1);

/// Number of readings for outstanding stamps at the end, and the wait before each.
const LAST_LOOKS: usize = 5;
const LAST_WAIT: Duration = Duration::from_millis(2);

/// The send stamps of a stage.
#[derive(Debug)]
pub(super) struct SendStamps {
    counts: SendStampCounts,
    lateness: LatenessRecorder,
    looked: Nanos,
    look_at: Nanos,
}

/// Counts of send stamps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendStampCounts {
    /// Source of the stamps.
    pub by: StampedBy,
    /// Sampling interval in frames.
    pub every: u32,
    /// Stamps received.
    pub count: u64,
    /// Stamps before their release; they count as not late.
    pub early: u64,
    /// Maximum time before a release.
    pub earliest: Nanos,
}

/// The published state, for reports.
#[derive(Debug)]
pub(crate) struct SendStampsShared {
    pub lateness: Mutex<Histogram<u64>>,
    /// `None` if the port makes no stamps.
    pub counts: Mutex<Option<SendStampCounts>>,
}

impl SendStampsShared {
    pub fn new() -> SendStampsShared {
        SendStampsShared {
            lateness: Mutex::new(nanos_histogram()),
            counts: Mutex::new(None),
        }
    }

    fn publish(&self, counts: SendStampCounts) {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner) = Some(counts);
    }
}

impl SendStamps {
    pub fn new(by: StampedBy, every: u32, shared: &SendStampsShared) -> SendStamps {
        let counts = SendStampCounts {
            by,
            every,
            count: 0,
            early: 0,
            earliest: Nanos::ZERO,
        };
        shared.publish(counts);
        SendStamps {
            counts,
            lateness: LatenessRecorder::new(),
            looked: Nanos::ZERO,
            look_at: Nanos::ZERO,
        }
    }

    /// Whether a reading is due.
    #[inline]
    pub fn is_time(&self, now: Nanos) -> bool {
        now >= self.look_at
    }

    /// Reads the stamps received so far.
    #[cold]
    pub fn look(&mut self, now: Nanos, port: &mut impl TxPort, shared: &SendStampsShared) {
        let came = self.take(port);
        let since = now.saturating_sub(self.looked).min(LOOK_EVERY);
        let pause = Nanos::from_nanos(since.as_nanos() * PER_LOOK / came.max(1));
        self.looked = now;
        self.look_at = now.saturating_add(pause.clamp(LOOK_MIN, LOOK_EVERY));
        if self.lateness.flush(now, &shared.lateness, false) {
            shared.publish(self.counts);
        }
    }

    /// Reads outstanding stamps at the end.
    pub fn finish(&mut self, port: &mut impl TxPort, shared: &SendStampsShared) {
        self.take(port);
        for _ in 0..LAST_LOOKS {
            std::thread::sleep(LAST_WAIT);
            self.take(port);
        }
        self.lateness.flush(Nanos::ZERO, &shared.lateness, true);
        shared.publish(self.counts);
    }

    /// Reads stamps; returns their number.
    fn take(&mut self, port: &mut impl TxPort) -> u64 {
        let before = self.counts.count;
        port.sampled(&mut |stamp| self.record(stamp));
        self.counts.count - before
    }

    fn record(&mut self, stamp: SendStamp) {
        let SendStamp { release, left, by } = stamp;
        let counts = &mut self.counts;
        counts.by = by;
        counts.count += 1;
        counts.early += u64::from(left < release);
        counts.earliest = counts.earliest.max(release.saturating_sub(left));
        self.lateness.record(left.saturating_sub(release), 1);
    }
}
