//! The report of a network's ports and switch.

use longwire_engine::Nanos;
use longwire_packet::bridge::{BridgeCounters, Flooded, NotForwarded};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::counters::LinkShared;
use crate::counters::{
    Artifact, CoreCounts, Counter, Memory, NamedCounts, Spread, StageTotals, Traffic, histogram,
};
use crate::port_loss::LostPort;
use crate::report::LinkReport;
use crate::summary;

/// The report of one port.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Port")]
pub struct PortReport {
    /// The port's name.
    pub name: String,
    /// Frames and bytes.
    #[serde(flatten)]
    pub traffic: Traffic,
    /// Artifacts by kind.
    pub artifacts: NamedCounts,
    /// Lateness of the frames that left, in microseconds.
    #[serde(serialize_with = "Spread::as_lateness")]
    #[schemars(schema_with = "Spread::lateness_schema")]
    pub lateness_us: Spread,
    /// Own lateness, in microseconds: without machine pauses, and without frames late within the
    /// grace period.
    #[serde(serialize_with = "Spread::as_lateness")]
    #[schemars(schema_with = "Spread::lateness_schema")]
    pub lateness_own_us: Spread,
    /// Lateness as a histogram: upper bounds and counts.
    #[serde(rename = "lateness_histogram_us", default, with = "histogram")]
    #[schemars(schema_with = "histogram::schema")]
    pub lateness_buckets: Vec<(f64, u64)>,
    /// Memory for the port's frames.
    #[serde(flatten)]
    pub memory: Memory,
    /// Time and cause of the port's loss, if the network continued without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<LostPort>,
}

/// Counters of a switch.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Switch")]
pub struct SwitchReport {
    /// Frames to one port.
    pub forwarded: u64,
    /// Frames to all ports: broadcast, multicast, and unknown stations.
    pub flooded: [u64; Flooded::ALL.len()],
    /// Frames to no port, by reason.
    pub not_forwarded: NamedCounts,
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
    /// Returns the flooded frames by kind of destination.
    pub fn flooded_by_kind(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
        let flooded = self.flooded;
        let kinds = Flooded::ALL.into_iter();
        kinds.map(move |kind| (kind.name(), flooded[kind as usize]))
    }

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

/// A snapshot of a deciding thread's counters.
#[derive(Clone, Debug, Default)]
pub(crate) struct InsideCounts {
    pub switch: SwitchReport,
    /// Totals of all links.
    pub counts: CoreCounts,
    /// Frames in the network, not counting those still on lines.
    pub frames: u64,
    /// Frames taken from the lines since the start.
    pub taken: u64,
}

impl PortReport {
    pub(crate) fn of(
        name: &str,
        (shared, stages): (&LinkShared, &StageTotals),
        epoch: Nanos,
    ) -> PortReport {
        // Only a replay can fall behind its trace.
        let kinds = Artifact::live().filter(|kind| *kind != Artifact::Behind);
        PortReport {
            lost: shared.loss.get(epoch),
            ..PortReport::measured(name, stages, kinds, Some(shared))
        }
    }

    /// Returns the report on a pair's port. `from` and `to` are the links from and to it.
    pub(crate) fn of_pair(
        name: &str,
        from: Option<&LinkShared>,
        to: Option<&LinkShared>,
    ) -> PortReport {
        let mut stages = StageTotals::default();
        // Read egress first, so that a snapshot never shows more departures than arrivals.
        if let Some(to) = to {
            stages.add(&to.egress);
            stages.add(&to.link.stage);
        }
        if let Some(from) = from {
            stages.add(&from.ingress);
        }
        PortReport::measured(name, &stages, Artifact::live(), to)
    }

    /// Returns the report on a port, with the lateness that its sending stage publishes in `to`.
    fn measured(
        name: &str,
        stages: &StageTotals,
        kinds: impl Iterator<Item = Artifact>,
        to: Option<&LinkShared>,
    ) -> PortReport {
        let (lateness_us, lateness_own_us) = to.map(summary::both_lateness).unwrap_or_default();
        PortReport {
            name: name.to_owned(),
            traffic: stages.traffic,
            artifacts: stages.artifacts(kinds),
            lateness_us,
            lateness_own_us,
            lateness_buckets: to.map(summary::lateness_buckets).unwrap_or_default(),
            memory: stages.memory,
            lost: None,
        }
    }

    /// Returns the report of a replay's output, which receives no frames.
    pub(crate) fn of_output(link: &LinkReport) -> PortReport {
        PortReport {
            name: link.name.clone(),
            traffic: Traffic {
                packets_in: 0,
                bytes_in: 0,
                ..link.traffic
            },
            artifacts: link.artifacts.clone(),
            lateness_us: link.lateness_us,
            lateness_own_us: link.lateness_own_us,
            lateness_buckets: link.lateness_buckets.clone(),
            memory: link.memory,
            lost: None,
        }
    }

    /// Returns all counters except artifacts, with their values.
    pub fn counted(&self) -> impl Iterator<Item = (&'static Counter, u64)> + use<> {
        self.traffic.counted().chain(self.memory.counted())
    }
}
