//! The report of a fabric's ports and switch.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use hdrhistogram::Histogram;
use longwire_engine::Nanos;
use longwire_packet::bridge::{BridgeCounters, NotForwarded};
use serde::Serialize;

use super::core::CoreCounts;
use crate::counters::{Artifact, EgressCounts, IngressCounts, LinkCounts, LinkShared};
use crate::port_loss::LostPort;
use crate::report::{Lateness, Pauses};
use crate::summary;

/// The report of one port.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PortReport {
    /// The port's name.
    pub name: String,
    /// Frames that arrived.
    pub packets_in: u64,
    /// Their bytes.
    pub bytes_in: u64,
    /// Frames that left.
    pub packets_out: u64,
    /// Their bytes.
    pub bytes_out: u64,
    /// Artifacts by kind.
    pub artifacts: BTreeMap<&'static str, u64>,
    /// Handover minus release of the frames that left, in microseconds.
    pub lateness_us: Lateness,
    /// The same without pauses of the machine and frames of the start.
    pub lateness_own_us: Lateness,
    /// The same as a histogram, so that several can be added.
    #[serde(skip)]
    pub lateness_spread: LatenessSpread,
    /// The maximum memory of its frames, in bytes.
    pub memory_max: u64,
    /// When and why the port went away, if it did and the network continued.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<LostPort>,
}

/// A histogram of lateness.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LatenessSpread {
    /// The number of measurements.
    pub count: u64,
    /// Their sum, in seconds.
    pub sum_s: f64,
    /// Upper bounds in seconds, and the number of measurements up to each and
    /// above the bound before; the last bound is infinite.
    pub buckets: Vec<(f64, u64)>,
}

impl LatenessSpread {
    /// Bounds in nanoseconds: 1, 2 and 5 of each decade from 1 us to 1 s.
    const BOUNDS: [u64; 19] = {
        let mut bounds = [0; 19];
        let mut decade = 1_000;
        let mut at = 0;
        while at < bounds.len() {
            bounds[at] = decade * [1, 2, 5][at % 3];
            if at % 3 == 2 {
                decade *= 10;
            }
            at += 1;
        }
        bounds
    };

    fn of(histogram: &Histogram<u64>) -> LatenessSpread {
        let mut counts = [0; Self::BOUNDS.len() + 1];
        for step in histogram.iter_recorded() {
            let bucket = Self::BOUNDS.partition_point(|bound| *bound < step.value_iterated_to());
            counts[bucket] += step.count_at_value();
        }
        let bounds = Self::BOUNDS.iter().map(|bound| *bound as f64 / 1e9);
        let bounds = bounds.chain([f64::INFINITY]);
        let count: u64 = counts.iter().sum();
        let sum_s = match count {
            0 => 0.0,
            count => histogram.mean() * count as f64 / 1e9,
        };
        LatenessSpread {
            count,
            sum_s,
            buckets: bounds.zip(counts).collect(),
        }
    }
}

/// The report of a fabric, without its links.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FabricReport {
    /// The seed of every random stream.
    pub seed: u64,
    /// When it started, in nanoseconds since 1970.
    pub epoch_ns: u64,
    /// How long it has run, in seconds.
    pub duration_s: f64,
    /// Its ports.
    pub ports: Vec<PortReport>,
    /// The switch; of a running fabric, as of the last query.
    pub switch: SwitchReport,
    /// Counts of all links together.
    #[serde(flatten)]
    pub counts: CoreCounts,
    /// Frames inside.
    pub in_flight: u64,
    /// CPU time of its threads, in seconds; at the end only.
    pub cpu_s: f64,
    /// Pauses of the machine itself.
    pub pauses: Pauses,
    /// Stops of the process.
    pub stops: Pauses,
    /// How long its threads waited for a core that was in use, in seconds.
    pub core_wait_s: f64,
    /// The error that ended it, if one did.
    pub error: Option<String>,
    /// Notes of the run, as sentences.
    pub notes: Vec<String>,
}

/// Counters of a switch.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SwitchReport {
    /// Frames to one port.
    pub forwarded: u64,
    /// Frames to all ports: broadcast, multicast, and unknown stations.
    pub flooded: [u64; 3],
    /// Frames to no port, by reason.
    pub not_forwarded: BTreeMap<&'static str, u64>,
    /// Stations learnt.
    pub learnt: u64,
    /// Stations that moved from one port to another.
    pub moved: u64,
    /// Frames of stations that did not fit into the table.
    pub not_learnt: u64,
    /// Signs of a loop among the ports.
    pub loop_signs: u64,
}

impl SwitchReport {
    pub(super) fn of(counters: &BridgeCounters) -> SwitchReport {
        let reasons = NotForwarded::ALL.iter();
        let reasons = reasons.map(|reason| (reason.name(), counters.not_forwarded(*reason)));
        SwitchReport {
            forwarded: counters.forwarded,
            flooded: counters.flooded,
            not_forwarded: reasons.filter(|(_, count)| *count > 0).collect(),
            learnt: counters.learnt,
            moved: counters.moved,
            not_learnt: counters.not_learnt,
            loop_signs: counters.loop_signs,
        }
    }
}

impl PortReport {
    pub(super) fn of(name: &str, shared: &LinkShared, epoch: Nanos) -> PortReport {
        let egress = EgressCounts::from_cells(shared.egress.load());
        let ingress = IngressCounts::from_cells(shared.ingress.load());
        let (lateness_us, lateness_own_us) = summary::both_lateness(shared);
        let lateness = shared.lateness.lock();
        let lateness = lateness.unwrap_or_else(PoisonError::into_inner);
        let decided = LinkCounts::default();
        // Only a replay can be behind its trace.
        let kinds = Artifact::ALL
            .into_iter()
            .filter(|kind| *kind != Artifact::Behind);
        let artifacts = kinds.map(|kind| {
            (
                kind.name(),
                summary::artifact(kind, &ingress, &decided, &egress),
            )
        });
        PortReport {
            name: name.to_owned(),
            packets_in: ingress.packets,
            bytes_in: ingress.bytes,
            packets_out: egress.packets,
            bytes_out: egress.bytes,
            artifacts: artifacts.collect(),
            lateness_us,
            lateness_own_us,
            lateness_spread: LatenessSpread::of(&lateness),
            memory_max: ingress.memory_max,
            lost: shared.loss.get(epoch),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_falls_into_its_bucket() {
        let mut histogram = Histogram::<u64>::new(3).expect("three digits");
        for nanos in [0, 1_000, 1_500, 400_000, 3_000_000_000] {
            histogram.record(nanos).expect("it grows");
        }
        let spread = LatenessSpread::of(&histogram);
        assert_eq!(spread.count, 5);
        assert!(
            (spread.sum_s - 3.000_402_5).abs() < 0.01,
            "{}",
            spread.sum_s
        );
        let filled = spread.buckets.iter().filter(|(_, count)| *count > 0);
        let filled: Vec<(f64, u64)> = filled.copied().collect();
        assert_eq!(
            filled,
            [(1e-6, 2), (2e-6, 1), (5e-4, 1), (f64::INFINITY, 1)]
        );
    }
}
