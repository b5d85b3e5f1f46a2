//! Links at interfaces in use, from attaching to removal.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{io, thread};

use longwire_attach::{FoundTarget, Target};
use longwire_client::node::FailSpec;
use longwire_engine::LinkSpec;
use longwire_io::attach::{
    AttachClaim, AttachError, Attachment, Engage, LoadedSelection, PreparedLink, Selector,
    engage_all,
};
use longwire_io::net::grace::ExpeditedGrace;
use longwire_network::shard_plan::ShardCount;
use longwire_network::{Controller, NetworkReport, Numbered};
use longwire_runtime::{Faults, NetworkPlan, RunConfig, RunReport, RunningNetwork, network};
use longwire_topology::steps::Steps;

use crate::request::AttachmentRequest;
use crate::store::Facts;
use crate::{LinkFailure, files, place};

/// Time limit for draining a network that is ending.
const DRAIN: Duration = Duration::from_secs(2);

/// Maximum time between the loss of a link's device and that of its interface while a namespace is
/// being removed.
const REMOVAL: Duration = Duration::from_secs(1);

/// Attached links of a run. On drop, restores the interfaces, except fail-closed ones.
#[derive(Debug)]
pub struct AttachedLinks {
    present: Vec<Attachment>,
    /// Links whose interface is gone; their frames in flight count as lost.
    gone: Vec<Attachment>,
    /// Expedites RCU grace periods from the drain on, because the kernel waits for one before it
    /// frees each BPF program and ring. Dropped last.
    hurry: Option<ExpeditedGrace>,
}

impl AttachedLinks {
    /// Starts capturing frames at all of these interfaces, or at none.
    ///
    /// # Errors
    /// See [`engage_all`].
    pub fn engage(engages: Vec<Engage>) -> Result<AttachedLinks, AttachError> {
        Ok(AttachedLinks {
            present: engage_all(engages)?,
            gone: Vec::new(),
            hurry: None,
        })
    }

    /// Returns the interfaces that still have their link.
    pub fn interfaces(&self) -> Vec<&str> {
        self.present.iter().map(Attachment::interface).collect()
    }

    /// Returns the interfaces that no longer have their link.
    pub fn lost(&self) -> Vec<&str> {
        self.gone.iter().map(Attachment::interface).collect()
    }

    /// Returns the interfaces that remain closed after a drop.
    pub fn closed(&self) -> Vec<&str> {
        let closed = self.present.iter().filter(|one| one.stays_closed());
        closed.map(Attachment::interface).collect()
    }

    /// Returns the claims, for a later process.
    pub fn claims(&self) -> impl Iterator<Item = AttachClaim> {
        self.present.iter().map(Attachment::claim)
    }

    /// Returns the loader for traffic selections of each interface.
    pub fn selectors(&self) -> Vec<Selector> {
        self.present.iter().map(Attachment::selector).collect()
    }

    /// Changes the traffic selection.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn select(&mut self, loaded: Vec<LoadedSelection>) -> Result<(), AttachError> {
        let mut links = self.present.iter_mut().zip(loaded);
        links.try_for_each(|(link, loaded)| link.select(loaded))
    }

    /// Releases links whose interface is gone, and returns their number.
    pub fn drop_lost(&mut self) -> usize {
        let before = self.gone.len();
        let lost = self.present.extract_if(.., |link| !link.is_attached());
        self.gone.extend(lost);
        let lost = &mut self.gone[before..];
        lost.iter_mut().for_each(Attachment::release);
        lost.len()
    }

    /// Stops capturing frames, and delivers frames in flight for at most 2 s.
    pub fn drain(&mut self, running: &RunningNetwork) {
        self.hurry = Some(ExpeditedGrace::begin());
        self.present.iter_mut().for_each(Attachment::release);
        drain(running, || {
            for link in self.present.iter().chain(&self.gone) {
                link.note_losses();
            }
        });
    }

    /// Clears the port losses in the report if all interfaces are gone, as when their namespace was
    /// removed. Waits up to one second for the interfaces to disappear. Returns whether losses were
    /// cleared.
    pub fn forgive_lost_ports(&self, run: &mut RunReport) -> bool {
        if run.ports.iter().all(|port| port.lost.is_none()) {
            return false;
        }
        let since = Instant::now();
        while self.present.iter().any(Attachment::is_attached) {
            if since.elapsed() > REMOVAL {
                return false;
            }
            thread::sleep(Duration::from_millis(5));
        }
        run.ports.iter_mut().for_each(|port| port.lost = None);
        true
    }

    /// Removes all devices and waits for completion. Requires the run to have ended.
    pub fn remove(self) {
        let links = self.present.into_iter().chain(self.gone);
        links.for_each(Attachment::remove);
    }
}

/// Waits until no frame is in flight, at most 2 s. Calls `note_losses` after each poll.
pub fn drain(running: &RunningNetwork, note_losses: impl Fn()) {
    let since = Instant::now();
    loop {
        let ended = running.wait(Duration::from_millis(1));
        let is_drained = running.snapshot().in_flight == 0;
        note_losses();
        if ended || is_drained || since.elapsed() > DRAIN {
            return;
        }
    }
}

/// Maximum number of links sharing memory for which runs use huge pages.
const FEW: usize = 16;

/// Links at the interfaces of a target. Restores the interfaces on drop.
pub(crate) struct AttachedLink {
    // Drop this field first, so that no frame enters a run that has ended.
    pub attached: AttachedLinks,
    running: RunningNetwork,
    pub controller: Arc<Controller>,
    /// Initial options of the links, for the report.
    options: Vec<Arc<LinkSpec>>,
    pub description: String,
    pub interfaces: Vec<String>,
    pub since_unix: u64,
    pub facts: Facts,
}

impl AttachedLink {
    /// Attaches links to the target's interfaces. `sharing` is the number of links that share
    /// memory. Before an interface becomes fail-closed, `store` receives the facts needed to open
    /// it.
    ///
    /// # Errors
    /// If the target does not exist, or cannot have a link.
    pub fn attach(
        request: &AttachmentRequest,
        facts: Facts,
        sharing: usize,
        config: &RunConfig,
        store: impl FnOnce(&Facts) -> io::Result<()>,
    ) -> Result<AttachedLink, LinkFailure> {
        let found = request.place.find()?;
        let started = start_of(&found, &request.place.target, facts.started)?;
        let (place, claims) = (&request.place, facts.claims());
        let prepared = place.prepare(&found.namespace, &claims, sharing)?;
        // Close the descriptor, which would keep an abandoned namespace alive.
        drop(found.namespace);
        let interfaces = prepared.iter().map(|link| link.interface().to_owned());
        let interfaces: Vec<String> = interfaces.collect();
        facts.open_others(&interfaces)?;
        let claims = prepared.iter().map(PreparedLink::claim);
        let mut facts = Facts::new(started, &interfaces, claims);
        let topology = place::topology(&interfaces, request.link.clone(), None);
        let numbered = Numbered::new(topology.map_err(LinkFailure::Topology)?);
        let faults = Faults::new();
        let loader = || files::loader(request.spec.files, &faults);
        let stop = AtomicBool::new(false);
        let mut parts = numbered.parts_in_steps(&loader(), Steps::ignored(), &stop)?;
        let one = ShardCount::exactly(1).unwrap_or(ShardCount::Auto);
        parts.sharding = numbered.shard_plan(one, 1).sharding();
        let (ports, engages) = place::split(prepared);
        let config = RunConfig {
            seed: request.spec.seed.unwrap_or(config.seed),
            faults: faults.clone(),
            huge_pages: sharing <= FEW,
            ..config.clone()
        };
        let running = network::start(NetworkPlan::changeable(ports, parts), config, None)?;
        let handle = running.handle().cloned();
        let handle = handle.unwrap_or_else(|| unreachable!("its plan is changeable"));
        let options = numbered.options();
        let controller = Controller::new(numbered, handle, loader(), channel());
        if request.spec.fail == FailSpec::Closed {
            store(&facts).map_err(LinkFailure::Store)?;
        }
        let attached = AttachedLinks::engage(engages)?;
        facts = Facts::new(facts.started, &interfaces, attached.claims());
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Ok(AttachedLink {
            facts,
            attached,
            running,
            controller: Arc::new(controller),
            options,
            description: found.description,
            interfaces,
            since_unix: since.unwrap_or_default().as_secs(),
        })
    }

    /// Removes links whose interface is gone. Returns the reason once no link is left, the run has
    /// ended or a port is lost.
    pub fn drop_lost(&mut self) -> Option<String> {
        self.controller.tidy();
        self.attached.drop_lost();
        if self.attached.interfaces().is_empty() {
            return Some(format!("'{}' is gone", self.attached.lost().join("', '")));
        }
        if self.running.ended() {
            let error = self.running.snapshot().error;
            return Some(error.unwrap_or_else(|| "its run has ended".to_owned()));
        }
        let lost = self.running.handle()?.lost_ports();
        let (name, lost) = lost.first()?;
        Some(format!("port {name}: {}", lost.error))
    }

    /// Ends the links. New frames bypass the links, and frames in flight drain for at most 2 s.
    pub fn end(mut self) -> NetworkReport {
        self.attached.drain(&self.running);
        let mut report = NetworkReport::stop(self.running, &self.controller, &self.options);
        self.attached.forgive_lost_ports(&mut report.run);
        self.attached.remove();
        report
    }
}

/// Returns the start time of the target's process, which identifies it in later runs. `known` is
/// the start time in the first run. Containers and pods may have a different process each time.
fn start_of(
    found: &FoundTarget,
    target: &Target,
    known: Option<u64>,
) -> Result<Option<u64>, LinkFailure> {
    match target {
        Target::Pid(pid) if known.is_some() && found.started != known => {
            Err(LinkFailure::OtherProcess { pid: *pid })
        }
        Target::Pid(_) => Ok(found.started),
        _ => Ok(known),
    }
}
