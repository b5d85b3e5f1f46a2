//! When frames really left: the stamps that the kernel or the device gives of
//! some of them, held against their releases.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;
use longwire_engine::Nanos;
use longwire_io::TxPort;
use longwire_io::port::{SendStamp, StampedBy};

use crate::lateness::{LatenessRecorder, nanos_histogram};

/// How often stamps are taken from the port.
const LOOK_EVERY: Nanos = Nanos::from_millis(100);

/// So many may come at a look. Each may cost a system call (about a
/// microsecond), and a departure may be waiting: where more come, looks are
/// more frequent, and as much shorter.
const PER_LOOK: u64 = 32;

/// Looks are no more frequent than this.
const LOOK_MIN: Nanos = Nanos::from_millis(1);

/// At the end, stamps on their way are waited for: so often, so long each.
const LAST_LOOKS: usize = 5;
const LAST_WAIT: Duration = Duration::from_millis(2);

/// What a stage knows of its send stamps.
#[derive(Debug)]
pub(super) struct SendStamps {
    told: SendStampsTold,
    lateness: LatenessRecorder,
    looked: Nanos,
    look_at: Nanos,
}

/// What is told of them, beside how late they are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendStampsTold {
    /// Who stamps.
    pub by: StampedBy,
    /// One frame in so many is asked for.
    pub every: u32,
    /// Stamps that came.
    pub count: u64,
    /// Of them, those before their frame's release, which count as not late.
    pub early: u64,
    /// By how much, at the most.
    pub earliest: Nanos,
}

/// What is shown to whoever reports.
#[derive(Debug)]
pub(crate) struct SendStampsShared {
    pub lateness: Mutex<Histogram<u64>>,
    /// `None` where nobody stamps.
    pub told: Mutex<Option<SendStampsTold>>,
}

impl SendStampsShared {
    pub fn new() -> SendStampsShared {
        SendStampsShared {
            lateness: Mutex::new(nanos_histogram()),
            told: Mutex::new(None),
        }
    }

    fn tell(&self, told: SendStampsTold) {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = Some(told);
    }
}

impl SendStamps {
    pub fn new(by: StampedBy, every: u32, shared: &SendStampsShared) -> SendStamps {
        let told = SendStampsTold {
            by,
            every,
            count: 0,
            early: 0,
            earliest: Nanos::ZERO,
        };
        shared.tell(told);
        SendStamps {
            told,
            lateness: LatenessRecorder::new(),
            looked: Nanos::ZERO,
            look_at: Nanos::ZERO,
        }
    }

    /// Whether it is time for a look.
    #[inline]
    pub fn is_time(&self, now: Nanos) -> bool {
        now >= self.look_at
    }

    /// Takes the stamps that have come.
    #[cold]
    pub fn look(&mut self, now: Nanos, port: &mut impl TxPort, shared: &SendStampsShared) {
        let came = self.take(port);
        let since = now.saturating_sub(self.looked).min(LOOK_EVERY);
        let pause = Nanos::from_nanos(since.as_nanos() * PER_LOOK / came.max(1));
        self.looked = now;
        self.look_at = now.saturating_add(pause.clamp(LOOK_MIN, LOOK_EVERY));
        if self.lateness.flush(now, &shared.lateness, false) {
            shared.tell(self.told);
        }
    }

    /// Takes those that are still on their way, at the end.
    pub fn finish(&mut self, port: &mut impl TxPort, shared: &SendStampsShared) {
        self.take(port);
        for _ in 0..LAST_LOOKS {
            std::thread::sleep(LAST_WAIT);
            self.take(port);
        }
        self.lateness.flush(Nanos::ZERO, &shared.lateness, true);
        shared.tell(self.told);
    }

    /// Returns how many came.
    fn take(&mut self, port: &mut impl TxPort) -> u64 {
        let before = self.told.count;
        port.sampled(&mut |stamp| self.came(stamp));
        self.told.count - before
    }

    fn came(&mut self, stamp: SendStamp) {
        let SendStamp { release, left, by } = stamp;
        let told = &mut self.told;
        told.by = by;
        told.count += 1;
        told.early += u64::from(left < release);
        told.earliest = told.earliest.max(release.saturating_sub(left));
        self.lateness.record(left.saturating_sub(release), 1);
    }
}
