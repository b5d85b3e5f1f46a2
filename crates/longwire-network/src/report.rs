//! Network reports.

use std::sync::Arc;

use longwire_engine::LinkSpec;
use longwire_runtime::{LinkReport, RunReport, RunningNetwork};
use serde::Serialize;
use serde_json::{Map, Value};

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
    pub fn new(run: RunReport, network: &Numbered) -> NetworkReport {
        NetworkReport::with_options(run, network, &[])
    }

    /// Returns the report with these options of the first links, instead of the current ones.
    fn with_options(
        mut run: RunReport,
        network: &Numbered,
        options: &[Arc<LinkSpec>],
    ) -> NetworkReport {
        if run.links.is_empty() {
            let mut last: Option<(&Arc<LinkSpec>, Map<String, Value>)> = None;
            let links = network.links().iter().enumerate().map(|(index, link)| {
                let options = options.get(index).unwrap_or(&link.options);
                // The directions of a link share their options.
                let shared = last.take().filter(|(last, _)| Arc::ptr_eq(last, options));
                let config = shared.map_or_else(|| json::options(options), |(_, config)| config);
                last = Some((options, config.clone()));
                LinkReport {
                    removed: link.removed,
                    config,
                    ..LinkReport::of_network(&link.name, &link.cells.totals())
                }
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
        let report = |network: &_| NetworkReport::with_options(run, network, options);
        let mut report = controller.look(report);
        report.changes = controller.changes().until(until);
        report
    }
}
