//! Conversion of counters to a report.

use longwire_io::port::StampedBy;
use serde_json::{Map, Value};

use crate::counters::LinkShared;
use crate::counters::{Artifact, Handovers, Spread, StageTotals, buckets};
use crate::report::{DepartureReport, LinkReport, SendStampReport};
use crate::stage::{self, DeparturesShared, SendStampsShared};
use crate::sync::locked;

/// Returns the report on one direction as of its last bursts.
pub(crate) fn link(
    name: &str,
    config: &[(&'static str, String)],
    shared: &LinkShared,
) -> LinkReport {
    let in_flight = shared.in_flight();
    let mut stages = StageTotals::default();
    // Egress is read first, so that a snapshot never shows more departures than arrivals.
    stages.add(&shared.egress);
    stages.add(&shared.link.stage);
    let decided = shared.link.link.totals();
    stages.add(&shared.ingress);
    let (lateness, lateness_own) = both_lateness(shared);
    LinkReport {
        name: name.to_owned(),
        removed: false,
        config: config_by_option(config),
        traffic: stages.traffic,
        drops: decided.drops.iter().collect(),
        handovers: Handovers {
            late: stages.artifact(Artifact::Late),
            overload: 0,
            late_max_ns: (lateness.max * 1e3) as u64,
        },
        artifacts: stages.artifacts(Artifact::live()),
        lateness_us: lateness,
        lateness_own_us: lateness_own,
        lateness_buckets: lateness_buckets(shared),
        departures: departures(&shared.departures),
        send_stamps: send_stamps(&shared.send_stamps),
        effects: decided.effects,
        in_flight,
        queue: Some(stages.queue),
        memory: stages.memory,
    }
}

/// Returns the histogram of lateness from all causes.
pub(crate) fn lateness_buckets(shared: &LinkShared) -> Vec<(f64, u64)> {
    buckets(&locked(&shared.lateness))
}

/// Returns the total lateness and the emulator's own lateness.
pub(crate) fn both_lateness(shared: &LinkShared) -> (Spread, Spread) {
    // Holding this lock keeps later corrections from being published.
    let all = locked(&shared.lateness);
    let own = stage::own(&shared.corrections, all.clone());
    (Spread::of_nanos(&all), Spread::of_nanos(&own))
}

/// Returns the accuracy of departures, if recorded.
fn departures(shared: &DeparturesShared) -> Option<DepartureReport> {
    let errors = locked(&shared.gap_errors);
    let drift = *locked(&shared.drift);
    (!errors.is_empty()).then(|| DepartureReport {
        gap_error_us: Spread::of_nanos(&errors),
        drift_ppm: drift.parts_per_million(),
    })
}

/// Returns the report on send stamps, if the port makes them.
fn send_stamps(shared: &SendStampsShared) -> Option<SendStampReport> {
    let counts = (*locked(&shared.counts))?;
    Some(SendStampReport {
        by: match counts.by {
            StampedBy::Kernel => "kernel",
            StampedBy::Device => "device",
        },
        every: counts.every,
        count: counts.count,
        lateness_us: Spread::of_nanos(&locked(&shared.lateness)),
        early: counts.early,
        earliest_us: counts.earliest.as_micros_f64(),
    })
}

/// Returns each option with its value. Repeated options are joined.
pub(crate) fn config_by_option(parts: &[(&'static str, String)]) -> Map<String, Value> {
    let mut config = Map::new();
    for (option, value) in parts {
        let joined = match config.get(*option).and_then(Value::as_str) {
            Some(before) => format!("{before} + {value}"),
            None => value.clone(),
        };
        config.insert((*option).to_owned(), joined.into());
    }
    config
}
