//! Whose lateness it is: the emulator's own, the machine's, or the start's.

use std::sync::{Arc, Mutex, PoisonError};

use hdrhistogram::Histogram;
use longwire_engine::Nanos;

use crate::lateness::nanos_histogram;
use crate::witness::{PAUSE_MIN, Pauses, stood_still};

/// Whose a frame's lateness is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// Within the tolerance.
    Timely,
    /// The emulator's own.
    Own,
    /// Without witnessed pauses of the machine it would have been in time.
    Machine,
    /// Released within the grace at the start of the run.
    Start,
}

/// How lateness is judged.
#[derive(Debug, Default)]
pub(crate) struct Judge {
    /// A handover later than this is an artifact.
    pub tolerance: Nanos,
    /// Frames released before this are of the start.
    pub grace_until: Nanos,
    /// The pauses of the threads that frames pass.
    pub threads: Vec<Arc<Pauses>>,
    /// What distinguishes own lateness from all, since it was last shared.
    corrections: Option<Box<Corrections>>,
}

/// What to take out of the histogram of all lateness, and what to put in, to
/// have the emulator's own.
#[derive(Debug)]
pub(crate) struct Corrections {
    out: Histogram<u64>,
    in_place: Histogram<u64>,
}

impl Corrections {
    fn new() -> Corrections {
        Corrections {
            out: nanos_histogram(),
            in_place: nanos_histogram(),
        }
    }
}

/// The corrections of a direction, as far as there are any.
pub(crate) type CorrectionsShared = Mutex<Option<Box<Corrections>>>;

/// The emulator's own lateness, of all that was recorded.
pub(crate) fn own(shared: &CorrectionsShared, mut all: Histogram<u64>) -> Histogram<u64> {
    let corrections = shared.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(corrections) = corrections.as_deref() {
        // Bounds are alike, and what is taken out was recorded before.
        let _ = all.subtract(&corrections.out);
        let _ = all.add(&corrections.in_place);
    }
    all
}

impl Judge {
    /// Judges frames that pass no thread whose pauses are known yet.
    pub fn new(tolerance: Nanos, grace_until: Nanos) -> Judge {
        Judge {
            tolerance,
            grace_until,
            ..Judge::default()
        }
    }

    /// No lateness below this needs to be judged.
    #[inline]
    pub fn threshold(&self) -> Nanos {
        self.tolerance.min(PAUSE_MIN)
    }

    /// Whose the lateness of a frame is.
    pub fn whose(&self, release: Nanos, lateness: Nanos) -> (Whose, Nanos) {
        let still = match self.threads.is_empty() {
            true => Nanos::ZERO,
            false => stood_still(&self.threads, release, release.saturating_add(lateness)),
        };
        let own = lateness.saturating_sub(still);
        let whose = match lateness > self.tolerance {
            false => Whose::Timely,
            true if own <= self.tolerance => Whose::Machine,
            true if release < self.grace_until => Whose::Start,
            true => Whose::Own,
        };
        (whose, own)
    }

    /// Like [`Judge::whose`], and notes what distinguishes the emulator's own
    /// lateness from `recorded`, which is what the histogram of all has of the
    /// frame's lateness.
    #[cold]
    pub fn judge(&mut self, release: Nanos, lateness: Nanos, recorded: Nanos, times: u64) -> Whose {
        let (whose, own) = self.whose(release, lateness);
        let starts = release < self.grace_until;
        if own < lateness || starts {
            let corrections = self
                .corrections
                .get_or_insert_with(|| Box::new(Corrections::new()));
            corrections
                .out
                .saturating_record_n(recorded.as_nanos(), times);
            if !starts {
                let own = own.min(recorded);
                corrections
                    .in_place
                    .saturating_record_n(own.as_nanos(), times);
            }
        }
        whose
    }

    /// Shares the corrections; to be called after the histogram of all was.
    pub fn share(&mut self, shared: &CorrectionsShared) {
        let Some(own) = self.corrections.take() else {
            return;
        };
        let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
        match shared.as_deref_mut() {
            None => *shared = Some(own),
            Some(total) => {
                // Both have the same bounds: adding cannot fail.
                let _ = total.out.add(&own.out);
                let _ = total.in_place.add(&own.in_place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Nanos = Nanos::from_millis;

    fn judge() -> Judge {
        Judge {
            tolerance: MS(1),
            grace_until: MS(100),
            ..Judge::default()
        }
    }

    #[test]
    fn late_frames_at_the_start_are_the_starts() {
        let judge = judge();
        assert_eq!(judge.whose(MS(99), MS(2)).0, Whose::Start);
        assert_eq!(judge.whose(MS(100), MS(2)).0, Whose::Own);
        assert_eq!(judge.whose(MS(99), MS(1)).0, Whose::Timely);
    }

    #[test]
    fn own_lateness_is_all_without_what_was_corrected() {
        let mut judge = judge();
        let mut all = nanos_histogram();
        for (release, lateness) in [(50, 5), (200, 7), (300, 0)] {
            all.record(MS(lateness).as_nanos()).expect("within bounds");
            if MS(lateness) >= judge.threshold() {
                judge.judge(MS(release), MS(lateness), MS(lateness), 1);
            }
        }
        let shared = CorrectionsShared::default();
        judge.share(&shared);
        let own = own(&shared, all.clone());
        assert_eq!((all.len(), own.len()), (3, 2));
        assert!(own.max() >= MS(7).as_nanos());
    }
}
