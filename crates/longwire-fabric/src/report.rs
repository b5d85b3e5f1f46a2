//! The report of a network.

use std::collections::BTreeMap;

use longwire_engine::DropReason;
use longwire_runtime::fabric::{FabricReport, LinkTotals};
use longwire_runtime::{Artifact, Lateness, LinkReport, RunReport};
use serde::Serialize;

use crate::{Changes, Numbered};

/// One link's row.
#[derive(Clone, Debug, Serialize)]
pub struct LinkRow {
    /// Its name.
    pub name: String,
    /// Whether it was taken away while the network ran.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
    /// Its counters.
    #[serde(flatten)]
    pub totals: LinkTotals,
    /// Drops by reason, those that there were: what `drops` was called by name
    /// before that had names itself. To be left out in the next version.
    pub dropped: BTreeMap<&'static str, u64>,
}

impl LinkRow {
    /// Frames handed over later than the tolerance, for any reason.
    pub fn late(&self) -> u64 {
        self.totals.late + self.totals.overload
    }
}

/// The report of a network.
#[derive(Clone, Debug, Serialize)]
pub struct NetworkReport {
    /// Ports, switch and all.
    #[serde(flatten)]
    pub fabric: FabricReport,
    /// Every link.
    pub links: Vec<LinkRow>,
    /// The changes of the network while it ran.
    pub changes: Changes,
}

/// The lateness of a link of a network, which only ports measure: no number,
/// which meets no requirement.
const UNMEASURED: Lateness = Lateness {
    p50: f64::NAN,
    p99: f64::NAN,
    p999: f64::NAN,
    max: f64::NAN,
    mean: f64::NAN,
    stddev: f64::NAN,
};

impl NetworkReport {
    /// The report of a network with these links.
    pub fn new(fabric: FabricReport, network: &Numbered) -> NetworkReport {
        let rows = network.links().iter().map(|link| {
            let totals = link.cells.totals();
            let reasons = DropReason::ALL.iter().zip(totals.drops);
            let reasons = reasons.filter(|(_, count)| *count > 0);
            LinkRow {
                name: link.name.clone(),
                removed: link.removed,
                dropped: reasons
                    .map(|(reason, count)| (reason.name(), count))
                    .collect(),
                totals,
            }
        });
        NetworkReport {
            links: rows.collect(),
            fabric,
            changes: Changes::default(),
        }
    }

    /// Returns the rows that `--require` judges: ports with their artifacts and
    /// lateness, and links with their drops, by name.
    pub fn judged(&self) -> RunReport {
        let ports = self.fabric.ports.iter().map(|port| LinkReport {
            name: port.name.clone(),
            packets_in: port.packets_in,
            packets_out: port.packets_out,
            bytes_in: port.bytes_in,
            bytes_out: port.bytes_out,
            artifacts: port.artifacts.clone(),
            lateness_us: port.lateness_us,
            lateness_own_us: port.lateness_own_us,
            memory_max: port.memory_max,
            ..LinkReport::default()
        });
        let links = self.links.iter().map(|row| LinkReport {
            name: row.name.clone(),
            packets_in: row.totals.packets_in,
            packets_out: row.totals.packets_out,
            bytes_in: row.totals.bytes_in,
            bytes_out: row.totals.bytes_out,
            drops: DropReason::ALL
                .iter()
                .map(|reason| (reason.name(), row.totals.drops[reason.index()]))
                .collect(),
            artifacts: [
                (Artifact::Late.name(), row.totals.late),
                (Artifact::Overload.name(), row.totals.overload),
            ]
            .into_iter()
            .collect(),
            lateness_us: UNMEASURED,
            lateness_own_us: UNMEASURED,
            raised: row.totals.raised,
            ecn_marked: row.totals.ecn_marked,
            corrupted: row.totals.corrupted,
            duplicated: row.totals.duplicated,
            ..LinkReport::default()
        });
        RunReport {
            seed: self.fabric.seed,
            duration_s: self.fabric.duration_s,
            error: self.fabric.error.clone(),
            pauses: self.fabric.pauses,
            stops: self.fabric.stops,
            core_wait_s: self.fabric.core_wait_s,
            links: ports.chain(links).chain(self.unrecorded()).collect(),
            ..RunReport::default()
        }
    }

    /// The events that the recording lost, as a link of this name.
    fn unrecorded(&self) -> Option<LinkReport> {
        let lost = self.fabric.counts.unrecorded;
        (lost > 0).then(|| LinkReport {
            name: "recording".to_owned(),
            artifacts: [(Artifact::Unrecorded.name(), lost)].into_iter().collect(),
            ..LinkReport::default()
        })
    }
}
