//! A network's stages and threads before it runs, and the sources of its reports.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use longwire_engine::Nanos;

use crate::clock::monotonic_now;
use crate::config::RunConfig;
use crate::counters::{LinkShared, StageTotals};
use crate::deciding::{InsideCounts, Order, PortReport};
use crate::host::StayAwake;
use crate::record::{Epoch, RecordingParts};
use crate::replay::ObservedOutput;
use crate::report::{LinkReport, RunReport};
use crate::stage::{AddressWatch, FeedShared};
use crate::summary;
use crate::sync::locked;
use crate::thread::{Bell, Control};
use crate::threads::ThreadPlan;

/// Common inputs for building a network's stages.
pub(crate) struct Foundation<'a> {
    pub config: &'a RunConfig,
    pub epoch: Epoch,
    pub recorded: &'a RecordingParts,
    pub control: &'a Arc<Control>,
}

impl Foundation<'_> {
    /// Returns the end of the grace period.
    pub fn grace_until(&self) -> Nanos {
        self.epoch.monotonic.saturating_add(self.config.grace)
    }
}

/// A network's threads before they run, and the sources of its reports.
#[derive(Default)]
pub(crate) struct Assembly {
    pub threads: Vec<ThreadPlan>,
    pub notes: Vec<String>,
    pub sources: ReportSources,
    pub addresses: Arc<AddressWatch>,
    /// The deciding thread's channel and bell.
    pub orders: Option<(Sender<Order>, Arc<Bell>)>,
    /// Keeps cores out of deep sleep.
    pub awake: Option<StayAwake>,
}

/// Counters for reports.
#[derive(Default)]
pub(crate) struct ReportSources {
    pub links: Vec<ReportSource>,
    pub inputs: Vec<Arc<FeedShared>>,
    pub ports: Vec<(String, Arc<LinkShared>)>,
    /// Port names of a pair, whose port counters are those of its links.
    pub pair: Option<[String; 2]>,
    /// A replay's outputs, if it has clients.
    pub observed: Vec<Arc<ObservedOutput>>,
}

/// A direction's data for reports.
pub(crate) struct ReportSource {
    pub name: String,
    pub config: Vec<(&'static str, String)>,
    pub shared: Arc<LinkShared>,
}

impl ReportSource {
    pub fn report(&self) -> LinkReport {
        summary::link(&self.name, &self.config, &self.shared)
    }
}

/// A run's constants and counters for its reports.
pub(crate) struct RunFacts {
    pub seed: u64,
    pub epoch: Epoch,
    /// Maximum lateness; later handovers are artifacts.
    pub tolerance: Nanos,
    /// Time from which the run's duration counts.
    pub began: Nanos,
    pub notes: Vec<String>,
    pub sources: ReportSources,
    /// The state of the threads.
    pub control: Arc<Control>,
}

impl RunFacts {
    /// Reads the counters of the ports. On the deciding thread, they are consistent with
    /// that thread's own.
    pub fn port_counts(&self) -> Vec<StageTotals> {
        let ports = self.sources.ports.iter();
        ports.map(|(_, shared)| shared.port_totals()).collect()
    }

    /// Updates the counters of a replay's outputs.
    pub fn refresh(&self) {
        let now = monotonic_now();
        for output in &self.sources.observed {
            output.refresh(now);
        }
    }

    /// Returns the report as of the stages' last bursts.
    pub fn report(&self) -> RunReport {
        self.report_of(&self.port_counts(), None)
    }

    /// Returns the report for these counters. Without `inside`, uses the deciding thread's final
    /// counters.
    pub fn report_of(&self, ports: &[StageTotals], inside: Option<InsideCounts>) -> RunReport {
        let (links, inputs) = (self.sources.links.iter(), self.sources.inputs.iter());
        let put_on_lines: u64 = ports.iter().map(|totals| totals.put_on_line).sum();
        let inside = inside.or_else(|| self.control.last_inside.get().cloned());
        let in_flight = inside.as_ref().map_or(0, |inside| {
            (inside.frames + put_on_lines).saturating_sub(inside.taken)
        });
        let InsideCounts { switch, counts, .. } = inside.unwrap_or_default();
        let links: Vec<LinkReport> = links.map(ReportSource::report).collect();
        RunReport {
            seed: self.seed,
            epoch_ns: self.epoch.wall.as_nanos(),
            duration_s: monotonic_now().saturating_sub(self.began).as_secs_f64(),
            ports: self.port_reports(ports, &links),
            in_flight: in_flight + links.iter().map(|link| link.in_flight).sum::<u64>(),
            links,
            inputs: inputs.map(|input| locked(&input.report).clone()).collect(),
            switch,
            counts,
            tolerance: self.tolerance,
            notes: self.notes.clone(),
            error: self.control.faults.first(),
            pauses: self.control.pauses(),
            ..RunReport::default()
        }
    }

    fn port_reports(&self, counts: &[StageTotals], links: &[LinkReport]) -> Vec<PortReport> {
        let epoch = self.epoch.monotonic;
        if let Some(names) = &self.sources.pair {
            let link = |from: usize| self.sources.links.get(from).map(|link| &*link.shared);
            let report =
                |port: usize| PortReport::of_pair(&names[port], link(port), link(1 - port));
            return [0, 1].map(report).into();
        }
        let ports = self.sources.ports.iter().zip(counts);
        let ports =
            ports.map(|((name, shared), totals)| PortReport::of(name, (shared, totals), epoch));
        // A replay's outputs are its links.
        ports
            .chain(links.iter().map(PortReport::of_output))
            .collect()
    }
}
