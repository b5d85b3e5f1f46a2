//! What a replay has to say beside what its links do.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use crate::report::{DepartureReport, InputReport, ReplaySummary};
use crate::run::Watched;
use crate::stage::FeedShared;
use crate::summary::lateness;

/// An input that is being read.
pub(super) struct Input(pub Arc<FeedShared>);

/// The summary as of the last bursts.
pub(super) fn replay(inputs: &[Input], outputs: &[Watched]) -> ReplaySummary {
    ReplaySummary {
        inputs: inputs.iter().map(input).collect(),
        departures: outputs.iter().map(departures).collect(),
    }
}

fn input(input: &Input) -> InputReport {
    let status = input.0.status.lock();
    let status = status.unwrap_or_else(PoisonError::into_inner).clone();
    let behind = input.0.behind_max.lock();
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

fn departures(output: &Watched) -> DepartureReport {
    let shared = &output.shared.departures;
    let errors = shared.gap_errors.lock();
    let drift = shared.drift.lock();
    DepartureReport {
        name: output.name.clone(),
        gap_error_us: lateness(&errors.unwrap_or_else(PoisonError::into_inner)),
        drift_ppm: drift
            .unwrap_or_else(PoisonError::into_inner)
            .parts_per_million(),
    }
}
