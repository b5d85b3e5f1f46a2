//! Causes of lateness: the emulator, the machine or the start.

use std::sync::{Arc, Mutex, PoisonError};

use hdrhistogram::Histogram;
use longwire_engine::Nanos;

use crate::lateness::nanos_histogram;
use crate::ledger::Artifact;
use crate::witness::{PAUSE_MIN, PauseHistory, stood_still};

/// The cause of a frame's lateness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LatenessCause {
    /// Within the tolerance: not late.
    Timely,
    /// The emulator.
    Own,
    /// Witnessed pauses of the machine; otherwise timely.
    Machine,
    /// The start of the run: released within the grace.
    Start,
}

impl LatenessCause {
    /// Returns the artifact for this cause.
    pub fn artifact(self) -> Option<Artifact> {
        match self {
            LatenessCause::Timely => None,
            LatenessCause::Own => Some(Artifact::Late),
            LatenessCause::Machine => Some(Artifact::LatePaused),
            LatenessCause::Start => Some(Artifact::LateStart),
        }
    }
}

/// Determines the causes of lateness.
#[derive(Debug, Default)]
pub(crate) struct Judge {
    /// Handovers later than this are artifacts.
    pub tolerance: Nanos,
    /// Frames released before this time belong to the start.
    pub grace_until: Nanos,
    /// Pauses of the threads that handle the frames.
    pub threads: Vec<Arc<PauseHistory>>,
    /// Own lateness minus total lateness since the last share.
    corrections: Option<Box<Corrections>>,
}

/// Values to remove from and add to the histogram of total lateness to obtain the
/// emulator's own.
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

/// The corrections of a direction, if any.
pub(crate) type CorrectionsShared = Mutex<Option<Box<Corrections>>>;

/// Returns the emulator's own lateness from the histogram of total lateness.
pub(crate) fn own(shared: &CorrectionsShared, mut all: Histogram<u64>) -> Histogram<u64> {
    let corrections = shared.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(corrections) = corrections.as_deref() {
        // Equal bounds, and removed values were recorded before.
        let _ = all.subtract(&corrections.out);
        let _ = all.add(&corrections.in_place);
    }
    all
}

impl Judge {
    /// Returns a judge that accounts for no thread's pauses.
    pub fn new(tolerance: Nanos, grace_until: Nanos) -> Judge {
        Judge {
            tolerance,
            grace_until,
            ..Judge::default()
        }
    }

    /// Returns the lateness below which no cause is determined.
    #[inline]
    pub fn threshold(&self) -> Nanos {
        self.tolerance.min(PAUSE_MIN)
    }

    /// Returns the cause of a frame's lateness, and its own lateness.
    pub fn cause(&self, release: Nanos, lateness: Nanos) -> (LatenessCause, Nanos) {
        let still = if self.threads.is_empty() {
            Nanos::ZERO
        } else {
            stood_still(&self.threads, release, release.saturating_add(lateness))
        };
        let own = lateness.saturating_sub(still);
        let cause = if lateness <= self.tolerance {
            LatenessCause::Timely
        } else if own <= self.tolerance {
            LatenessCause::Machine
        } else if release < self.grace_until {
            LatenessCause::Start
        } else {
            LatenessCause::Own
        };
        (cause, own)
    }

    /// Like [`Judge::cause`]; also records the correction from `recorded`, the frame's
    /// value in the histogram of total lateness.
    #[cold]
    pub fn judge(
        &mut self,
        release: Nanos,
        lateness: Nanos,
        recorded: Nanos,
        times: u64,
    ) -> LatenessCause {
        let (cause, own) = self.cause(release, lateness);
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
        cause
    }

    /// Shares the corrections; call it after sharing the histogram of total lateness.
    pub fn share(&mut self, shared: &CorrectionsShared) {
        let Some(own) = self.corrections.take() else {
            return;
        };
        let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
        match shared.as_deref_mut() {
            None => *shared = Some(own),
            Some(total) => {
                // Equal bounds: adding cannot fail.
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
        assert_eq!(judge.cause(MS(99), MS(2)).0, LatenessCause::Start);
        assert_eq!(judge.cause(MS(100), MS(2)).0, LatenessCause::Own);
        assert_eq!(judge.cause(MS(99), MS(1)).0, LatenessCause::Timely);
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
