//! Conversion of counters into a report.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use hdrhistogram::Histogram;
use longwire_engine::DropReason;
use longwire_io::port::StampedBy;

use crate::counters::{Artifact, EgressCounts, IngressCounts, LinkCounts, LinkShared};
use crate::report::{DepartureReport, Lateness, LinkReport, Pauses, RunReport, SendStampReport};
use crate::stage::{self, DeparturesShared, SendStampsShared};
use crate::thread::ThreadEnd;
use crate::waiting::PauseLog;

/// Returns the report of one direction as of its last bursts.
pub(crate) fn link(
    name: &str,
    config: &[(&'static str, String)],
    shared: &LinkShared,
) -> LinkReport {
    // Egress first: a frame that has left must have arrived, also in a
    // snapshot.
    let egress = EgressCounts::from_cells(shared.egress.load());
    let decided = LinkCounts::from_cells(shared.link.load());
    let ingress = IngressCounts::from_cells(shared.ingress.load());
    let drops = DropReason::ALL
        .iter()
        .map(|reason| (reason.name(), decided.drops[reason.index()]));
    let artifacts = Artifact::ALL
        .iter()
        .map(|kind| (kind.name(), artifact(*kind, &ingress, &decided, &egress)));
    let (lateness, lateness_own) = both_lateness(shared);
    LinkReport {
        name: name.to_owned(),
        config: config_by_option(config),
        packets_in: ingress.packets,
        packets_out: egress.packets,
        bytes_in: ingress.bytes,
        bytes_out: egress.bytes,
        drops: drops.collect(),
        artifacts: artifacts.collect(),
        lateness_us: lateness,
        lateness_own_us: lateness_own,
        departures: departures(&shared.departures),
        send_stamps: send_stamps(&shared.send_stamps),
        raised: decided.raised,
        ecn_marked: decided.marked,
        corrupted: decided.corrupted,
        duplicated: decided.duplicated,
        in_flight: ingress.held.saturating_sub(egress.released),
        queue_packets_max: decided.queue_packets_max,
        queue_bytes_max: decided.queue_bytes_max,
        memory_max: ingress.memory_max,
    }
}

/// Returns the lateness of all causes, and the emulator's own.
pub(crate) fn both_lateness(shared: &LinkShared) -> (Lateness, Lateness) {
    // While all of it is locked, no corrections to later frames are shared.
    let all = shared.lateness.lock();
    let all = all.unwrap_or_else(PoisonError::into_inner);
    let own = stage::own(&shared.corrections, all.clone());
    (lateness(&all), lateness(&own))
}

/// Returns the accuracy of departures, if that was recorded.
fn departures(shared: &DeparturesShared) -> Option<DepartureReport> {
    let errors = shared.gap_errors.lock();
    let errors = errors.unwrap_or_else(PoisonError::into_inner);
    let drift = *shared.drift.lock().unwrap_or_else(PoisonError::into_inner);
    (!errors.is_empty()).then(|| DepartureReport {
        gap_error_us: lateness(&errors),
        drift_ppm: drift.parts_per_million(),
    })
}

/// Returns the report of send stamps, if there is a source of them.
fn send_stamps(shared: &SendStampsShared) -> Option<SendStampReport> {
    let counts = *shared.counts.lock().unwrap_or_else(PoisonError::into_inner);
    let counts = counts?;
    let histogram = shared.lateness.lock();
    let histogram = histogram.unwrap_or_else(PoisonError::into_inner);
    Some(SendStampReport {
        by: match counts.by {
            StampedBy::Kernel => "kernel",
            StampedBy::Device => "device",
        },
        every: counts.every,
        count: counts.count,
        lateness_us: lateness(&histogram),
        early: counts.early,
        earliest_us: counts.earliest.as_micros_f64(),
    })
}

/// Returns each option with its value; options given several times are joined.
fn config_by_option(parts: &[(&'static str, String)]) -> BTreeMap<&'static str, String> {
    let mut config: BTreeMap<&'static str, String> = BTreeMap::new();
    for (option, value) in parts {
        config
            .entry(option)
            .and_modify(|joined| *joined = format!("{joined} + {value}"))
            .or_insert_with(|| value.clone());
    }
    config
}

/// Returns the count of an artifact.
pub(crate) fn artifact(
    kind: Artifact,
    ingress: &IngressCounts,
    decided: &LinkCounts,
    egress: &EgressCounts,
) -> u64 {
    match kind {
        Artifact::Late => egress.late,
        Artifact::LateReceiver => egress.late_receiver,
        Artifact::LatePaused => egress.late_paused,
        Artifact::LateStart => egress.late_start,
        Artifact::Memory => ingress.memory,
        Artifact::Refused => egress.refused,
        Artifact::RingFull => ingress.ring_full,
        Artifact::TooLong => ingress.too_long,
        Artifact::SendFailed => egress.send_failed,
        Artifact::PortDown => egress.port_down,
        Artifact::Unusable => ingress.unusable,
        Artifact::Unrecorded => decided.unrecorded + egress.unrecorded,
        Artifact::Behind => ingress.behind,
        Artifact::Overload => egress.overload,
    }
}

/// Summarises a histogram of nanoseconds, in microseconds.
pub fn lateness(histogram: &Histogram<u64>) -> Lateness {
    let at = |quantile: f64| histogram.value_at_quantile(quantile) as f64 / 1e3;
    if histogram.is_empty() {
        return Lateness::default();
    }
    Lateness {
        p50: at(0.5),
        p99: at(0.99),
        p999: at(0.999),
        max: histogram.max() as f64 / 1e3,
        mean: histogram.mean() / 1e3,
        stddev: histogram.stdev() / 1e3,
    }
}

/// Summarises a log of pauses, in microseconds.
pub(crate) fn pauses(log: PauseLog) -> Pauses {
    Pauses {
        count: log.count,
        max_us: log.max.as_micros_f64(),
        total_us: log.total.as_micros_f64(),
    }
}

/// Adds the results of a thread.
pub(crate) fn add_thread_end(report: &mut RunReport, end: ThreadEnd) {
    report.pauses.count += end.pauses.count;
    report.pauses.total_us += end.pauses.total.as_micros_f64();
    report.pauses.max_us = report.pauses.max_us.max(end.pauses.max.as_micros_f64());
    report.cpu_s += end.cpu.as_secs_f64();
    report.core_wait_s += end.core_wait.as_secs_f64();
    report.wake_margin_us = report.wake_margin_us.max(end.margin.as_micros_f64());
    report.notes.extend(end.remarks);
    if let Some(error) = end.error {
        report.error.get_or_insert(error.to_string());
    }
}
