//! What a fabric's ports and switch did.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use longwire_engine::bridge::BridgeCounters;
use serde::Serialize;

use super::core::CoreCounts;
use crate::counters::{EgressCounts, IngressCounts, LinkShared};
use crate::report::{Lateness, Pauses};
use crate::summary;

/// What one port did.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PortReport {
    /// Its name.
    pub name: String,
    /// Frames that came in.
    pub packets_in: u64,
    /// Their bytes.
    pub bytes_in: u64,
    /// Frames that left.
    pub packets_out: u64,
    /// Their bytes.
    pub bytes_out: u64,
    /// What the emulator itself could not do, by kind.
    pub artifacts: BTreeMap<&'static str, u64>,
    /// Handover minus release of what left, in microseconds.
    pub lateness_us: Lateness,
    /// The most memory that its frames took, in bytes.
    pub memory_max: u64,
}

/// What a fabric did, its links apart.
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
    /// What the switch did; of a running fabric, as of the last look.
    pub switch: SwitchReport,
    /// What was counted of all links together.
    #[serde(flatten)]
    pub counts: CoreCounts,
    /// Frames inside.
    pub in_flight: u64,
    /// CPU time of its threads, in seconds; at the end only.
    pub cpu_s: f64,
    /// When the machine itself stood still.
    pub pauses: Pauses,
    /// Why it ended, if something failed.
    pub error: Option<String>,
    /// What was decided or found, in sentences.
    pub notes: Vec<String>,
}

/// What a switch did.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SwitchReport {
    /// Frames to one port.
    pub forwarded: u64,
    /// Frames to all ports: broadcast, multicast, to stations unknown.
    pub flooded: [u64; 3],
    /// Frames to no port, by reason.
    pub not_forwarded: BTreeMap<&'static str, u64>,
    /// Stations learnt.
    pub learnt: u64,
    /// Stations heard of at another port than before.
    pub moved: u64,
    /// Frames of stations that found no room in the table.
    pub not_learnt: u64,
    /// Signs of a loop among the ports.
    pub loop_signs: u64,
}

impl SwitchReport {
    pub(super) fn of(counters: &BridgeCounters) -> SwitchReport {
        const REASONS: [&str; 8] = [
            "reflection",
            "reserved",
            "short",
            "source",
            "storm",
            "unknown",
            "unpaired",
            "no_such_port",
        ];
        let reasons = REASONS.into_iter().zip(counters.not_forwarded);
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
    pub(super) fn of(name: &str, shared: &LinkShared) -> PortReport {
        let egress = EgressCounts::from_cells(shared.egress.load());
        let ingress = IngressCounts::from_cells(shared.ingress.load());
        let lateness = shared.lateness.lock();
        let lateness = lateness.unwrap_or_else(PoisonError::into_inner);
        let artifacts = [
            ("late", egress.late),
            ("memory", ingress.memory),
            ("refused", egress.refused),
            ("ring_full", ingress.ring_full),
            ("too_long", ingress.too_long),
            ("send_failed", egress.send_failed),
            ("unrecorded", egress.unrecorded),
            ("unusable", ingress.unusable),
        ];
        PortReport {
            name: name.to_owned(),
            packets_in: ingress.packets,
            bytes_in: ingress.bytes,
            packets_out: egress.packets,
            bytes_out: egress.bytes,
            artifacts: artifacts.into_iter().collect(),
            lateness_us: summary::lateness(&lateness),
            memory_max: ingress.memory_max,
        }
    }
}
