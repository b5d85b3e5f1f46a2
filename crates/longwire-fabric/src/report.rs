//! Reports of networks.

use std::sync::Arc;

use longwire_engine::LinkSpec;
use longwire_runtime::{LinkReport, RunReport};
use serde::Serialize;

use crate::{Changes, Numbered, json};

/// The report of a network, with its changes.
#[derive(Clone, Debug, Serialize)]
pub struct NetworkReport {
    /// Links, ports, hosts and all.
    #[serde(flatten)]
    pub run: RunReport,
    /// The changes of the network while it ran.
    pub changes: Changes,
}

impl NetworkReport {
    /// Returns the report of a network with these links, unless its run reports links that
    /// nothing changes.
    pub fn new(mut run: RunReport, network: &Numbered) -> NetworkReport {
        if !run.links.is_empty() {
            return NetworkReport {
                run,
                changes: Changes::default(),
            };
        }
        let links = network.links().iter().map(|link| LinkReport {
            removed: link.removed,
            config: json::options(&link.options),
            ..LinkReport::of_network(&link.name, &link.cells.totals())
        });
        run.links = links.collect();
        NetworkReport {
            run,
            changes: Changes::default(),
        }
    }

    /// Replaces the options of the first links by those at the start
    /// ([`Numbered::options`]).
    pub fn set_options(&mut self, options: &[Arc<LinkSpec>]) {
        for (link, options) in self.run.links.iter_mut().zip(options) {
            link.config = json::options(options);
        }
    }
}
