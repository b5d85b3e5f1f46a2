//! State that one direction's stages share with reports.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use longwire_engine::Nanos;

use super::{LinkCells, StageCells, StageTotals};
use crate::port_loss::LossCell;
use crate::stage::{CorrectionsShared, DeparturesShared, NanosHistogram, SendStampsShared};

/// The time up to which the ingress stage has published all arrivals. It limits a managed queue's
/// decisions.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct SeenUntil(AtomicU64);

impl SeenUntil {
    /// Sets the time. Call after publishing all arrivals before `time`.
    pub(crate) fn set(&self, time: Nanos) {
        self.0.store(time.as_nanos(), Ordering::Release);
    }

    /// Lifts the limit while the stage sleeps until the next arrival; only the clock then limits
    /// decisions.
    pub(crate) fn asleep(&self) {
        self.set(Nanos::MAX);
    }

    pub(crate) fn get(&self) -> Nanos {
        Nanos::from_nanos(self.0.load(Ordering::Acquire))
    }
}

/// Counters and records of one direction's stages.
#[derive(Debug, Default)]
pub(crate) struct LinkShared {
    pub ingress: StageCells,
    pub link: LaneCells,
    pub seen_until: SeenUntil,
    pub egress: StageCells,
    pub lateness: Mutex<NanosHistogram>,
    pub corrections: CorrectionsShared,
    pub departures: DeparturesShared,
    pub send_stamps: SendStampsShared,
    /// The loss of the port, if the network continues without it.
    pub loss: LossCell,
}

/// Counters of the stage that drives the link: ingress, or egress for a managed queue. Duplicates
/// that egress makes on the delay line are also counted here, as crossed.
#[derive(Debug, Default)]
pub(crate) struct LaneCells {
    pub stage: StageCells,
    pub link: LinkCells,
}

impl LinkShared {
    /// Returns the totals for the stages at a network's port.
    pub(crate) fn port_totals(&self) -> StageTotals {
        let mut totals = StageTotals::default();
        // Read before the arrivals, so that a snapshot never shows more frames on the line than
        // have arrived, even while another thread receives.
        totals.put_on_line = self.ingress.crossed.get();
        totals.add(&self.egress);
        totals.add(&self.ingress);
        totals
    }

    /// Returns the number of wire frames on the delay line.
    pub(crate) fn in_flight(&self) -> u64 {
        // Egress is read first, so that a snapshot never shows more departures than arrivals.
        let taken_off = self.egress.crossed.get();
        let copied = self.link.stage.crossed.get();
        (self.ingress.crossed.get() + copied).saturating_sub(taken_off)
    }
}
