//! The report of a replay's inputs.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use longwire_engine::Nanos;

use crate::report::InputReport;
use crate::stage::FeedShared;

/// An input that is being read.
pub(crate) struct ReplayInput(pub Arc<FeedShared>);

impl ReplayInput {
    /// Returns the time until the next frame, during a gap of at least 10 s.
    pub fn gap_left(&self, now: Nanos) -> Option<Nanos> {
        self.0.gap_left(now)
    }

    /// Returns the report as of the last bursts.
    pub fn report(&self) -> InputReport {
        let ReplayInput(shared) = self;
        let status = shared.status.lock();
        let status = status.unwrap_or_else(PoisonError::into_inner).clone();
        let behind = shared.behind_max.lock();
        let behind = *behind.unwrap_or_else(PoisonError::into_inner);
        let mut counts: BTreeMap<&'static str, u64> = BTreeMap::new();
        for (name, count) in status.counts {
            *counts.entry(name).or_default() += count;
        }
        InputReport {
            name: status.name,
            fraction: status.fraction,
            counts,
            behind_max_us: behind.as_micros_f64(),
            notes: status.notes,
        }
    }
}
