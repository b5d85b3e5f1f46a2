//! The stages and threads of a network before it runs, and the facts that its
//! reports read.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use longwire_engine::Nanos;

use crate::clock::monotonic_now;
use crate::config::RunConfig;
use crate::counters::LinkShared;
use crate::fabric::{Order, PortReport, SwitchReport};
use crate::host::StayAwake;
use crate::ledger::CoreCounts;
use crate::record::{Epoch, RecordingParts};
use crate::replay::ReplayInput;
use crate::report::{LinkReport, RunReport};
use crate::stage::AddressWatch;
use crate::summary;
use crate::thread::{Bell, Control};
use crate::threads::ThreadPlan;

/// The common part of all networks, on which their stages are built.
pub(crate) struct Foundation<'a> {
    pub config: &'a RunConfig,
    pub epoch: Epoch,
    pub recorded: &'a RecordingParts,
    pub control: &'a Arc<Control>,
}

impl Foundation<'_> {
    /// Returns the end of the grace at the start.
    pub fn grace_until(&self) -> Nanos {
        self.epoch.monotonic.saturating_add(self.config.grace)
    }
}

/// The threads of a network before they run, and what observes them.
#[derive(Default)]
pub(crate) struct Assembly {
    pub threads: Vec<ThreadPlan>,
    pub notes: Vec<String>,
    pub sources: ReportSources,
    pub addresses: Arc<AddressWatch>,
    /// Takes orders to the deciding thread, which the bell wakes.
    pub orders: Option<(Sender<Order>, Arc<Bell>)>,
    /// Keeps cores from deep sleep.
    pub awake: Option<StayAwake>,
}

/// Counters that reports read.
#[derive(Default)]
pub(crate) struct ReportSources {
    pub links: Vec<ReportSource>,
    pub inputs: Vec<ReplayInput>,
    pub ports: Vec<(String, Arc<LinkShared>)>,
}

/// Data of a direction for reports.
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

/// Facts of a run for its reports: constants and counters.
pub(crate) struct RunFacts {
    pub seed: u64,
    pub epoch: Epoch,
    /// The time from which its duration counts.
    pub began: Nanos,
    pub notes: Vec<String>,
    pub sources: ReportSources,
}

/// Counters of a deciding thread: its switch, all links together, and the
/// frames inside.
pub(crate) type InsideCounts = (SwitchReport, CoreCounts, u64);

impl RunFacts {
    /// Returns the report as of the last bursts of the stages.
    pub fn report(&self, inside: Option<InsideCounts>) -> RunReport {
        let (links, inputs) = (self.sources.links.iter(), self.sources.inputs.iter());
        let (ports, epoch) = (self.sources.ports.iter(), self.epoch.monotonic);
        let ports = ports.map(|(name, shared)| PortReport::of(name, shared, epoch));
        let (switch, counts, in_flight) = inside.unwrap_or_default();
        RunReport {
            seed: self.seed,
            epoch_ns: self.epoch.wall.as_nanos(),
            duration_s: monotonic_now().saturating_sub(self.began).as_secs_f64(),
            links: links.map(ReportSource::report).collect(),
            inputs: inputs.map(ReplayInput::report).collect(),
            ports: ports.collect(),
            switch,
            counts,
            in_flight,
            notes: self.notes.clone(),
            ..RunReport::default()
        }
    }
}
