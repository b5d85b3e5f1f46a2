//! Network reports.

use std::sync::Arc;

use longwire_engine::LinkSpec;
use longwire_runtime::{LinkReport, RunReport, RunningNetwork};
use serde::Serialize;

use crate::{Changes, Controller, Numbered, json};

/// A network's report, with its changes.
#[derive(Clone, Debug, Serialize)]
pub struct NetworkReport {
    /// The run's report: links, ports and hosts.
    #[serde(flatten)]
    pub run: RunReport,
    /// Changes to the network during the run.
    pub changes: Changes,
}

impl NetworkReport {
    /// Returns the report of a run with the network's links. Keeps the links that the run itself
    /// reports, because these cannot change.
    pub fn new(mut run: RunReport, network: &Numbered) -> NetworkReport {
        if run.links.is_empty() {
            let links = network.links().iter().map(|link| LinkReport {
                removed: link.removed,
                config: json::options(&link.options),
                ..LinkReport::of_network(&link.name, &link.cells.totals())
            });
            run.links = links.collect();
        }
        NetworkReport {
            run,
            changes: Changes::default(),
        }
    }

    /// Stops a run and returns its report. Changeable links are reported with their options at the
    /// start ([`Numbered::options`]); the changes follow.
    pub fn stop(
        running: RunningNetwork,
        controller: &Controller,
        options: &[Arc<LinkSpec>],
    ) -> NetworkReport {
        let until = controller.elapsed();
        let run = running.stop();
        let is_fixed = !run.links.is_empty();
        let mut report = controller.look(|network| NetworkReport::new(run, network));
        let links = report.run.links.iter_mut().filter(|_| !is_fixed);
        for (link, options) in links.zip(options) {
            link.config = json::options(options);
        }
        report.changes = controller.changes().until(until);
        report
    }
}
