//! The report of a network.

use std::sync::Arc;

use longwire_engine::LinkSpec;
use longwire_hosts::{HostsReport, PeerReport};
use longwire_runtime::fabric::LinkTotals;
use longwire_runtime::ledger::{NamedCounts, Traffic};
use longwire_runtime::report::NetworkDocument;
use longwire_runtime::{Artifact, LinkReport, RunReport, Spread};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{Changes, Numbered, json};

/// One link's row.
#[derive(Clone, Debug, Serialize)]
pub struct LinkRow {
    /// Its name.
    pub name: String,
    /// Whether it was taken away while the network ran.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
    /// Its options at the start, as a user would write them; of a link that was added,
    /// those at the end.
    pub config: Map<String, Value>,
    /// Its counters.
    #[serde(flatten)]
    pub totals: LinkTotals,
    /// Drops by reason, those that there were: what `drops` was called by name
    /// before that had names itself. To be left out in the next version.
    pub dropped: NamedCounts,
}

impl LinkRow {
    /// Frames handed over later than the tolerance, for any reason.
    pub fn late(&self) -> u64 {
        self.totals.handovers.late + self.totals.handovers.overload
    }
}

/// The report of a network.
#[derive(Clone, Debug, Serialize)]
pub struct NetworkReport {
    /// Ports, switch and all.
    #[serde(flatten, serialize_with = "NetworkDocument::serialize")]
    pub run: RunReport,
    /// Every link.
    pub links: Vec<LinkRow>,
    /// The changes of the network while it ran.
    pub changes: Changes,
    /// The exchange with other hosts, if the network is divided among several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<HostsReport>,
}

impl NetworkReport {
    /// The report of a network with these links.
    pub fn new(run: RunReport, network: &Numbered) -> NetworkReport {
        let rows = network.links().iter().map(|link| {
            let totals = link.cells.totals();
            LinkRow {
                name: link.name.clone(),
                removed: link.removed,
                config: json::options(&link.options),
                dropped: totals.drops.nonzero(),
                totals,
            }
        });
        NetworkReport {
            links: rows.collect(),
            run,
            changes: Changes::default(),
            hosts: None,
        }
    }

    /// Replaces the options of the first links by those that they had at the start
    /// ([`Numbered::options`]).
    pub fn set_options(&mut self, options: &[Arc<LinkSpec>]) {
        for (row, options) in self.links.iter_mut().zip(options) {
            row.config = json::options(options);
        }
    }

    /// Returns the rows that `--require` judges: ports with their artifacts and
    /// lateness, and links with their drops, by name.
    pub fn judged(&self) -> RunReport {
        let ports = self.run.ports.iter().map(|port| LinkReport {
            name: port.name.clone(),
            traffic: port.traffic,
            artifacts: port.artifacts.clone(),
            lateness_us: port.lateness_us,
            lateness_own_us: port.lateness_own_us,
            memory: port.memory,
            ..LinkReport::default()
        });
        let links = self.links.iter().map(|row| LinkReport {
            name: row.name.clone(),
            traffic: row.totals.traffic,
            drops: row.totals.drops.iter().collect(),
            artifacts: NamedCounts::from([
                (Artifact::Late.name(), row.totals.handovers.late),
                (Artifact::Overload.name(), row.totals.handovers.overload),
            ]),
            // Only ports measure it.
            lateness_us: Spread::UNMEASURED,
            lateness_own_us: Spread::UNMEASURED,
            effects: row.totals.effects,
            ..LinkReport::default()
        });
        RunReport {
            links: ports
                .chain(links)
                .chain(self.unrecorded())
                .chain(self.host_rows())
                .collect(),
            ..self.run.clone()
        }
    }

    /// Frames that were lost between this host and others, as a link for each of those.
    fn host_rows(&self) -> impl Iterator<Item = LinkReport> {
        let peers = self.hosts.iter().flat_map(|hosts| &hosts.peers);
        let lossy = peers.filter(|peer| host_artifacts(peer).any(|(_, count)| count > 0));
        lossy.map(|peer| LinkReport {
            name: format!("host {}", peer.name),
            traffic: Traffic {
                packets_in: peer.frames_received
                    + host_artifacts(peer).map(|(_, count)| count).sum::<u64>(),
                packets_out: peer.frames_received,
                ..Traffic::default()
            },
            artifacts: host_artifacts(peer).collect(),
            lateness_us: Spread::UNMEASURED,
            lateness_own_us: Spread::UNMEASURED,
            ..LinkReport::default()
        })
    }

    /// The events that the recording lost, as a link of this name.
    fn unrecorded(&self) -> Option<LinkReport> {
        let lost = self.run.counts.unrecorded;
        (lost > 0).then(|| LinkReport {
            name: "recording".to_owned(),
            // Of which the artifacts are a share.
            traffic: Traffic {
                packets_in: self
                    .run
                    .ports
                    .iter()
                    .map(|port| port.traffic.packets_in)
                    .sum(),
                ..Traffic::default()
            },
            artifacts: [(Artifact::Unrecorded.name(), lost)].into_iter().collect(),
            ..LinkReport::default()
        })
    }
}

/// Returns the artifacts of the exchange with another host, by kind.
pub fn host_artifacts(peer: &PeerReport) -> impl Iterator<Item = (&'static str, u64)> {
    [
        (
            Artifact::UnderlayLost.name(),
            peer.frames_lost + peer.frames_unconfirmed,
        ),
        (Artifact::Memory.name(), peer.frames_dropped),
    ]
    .into_iter()
}
