//! Links of an attachment while its target exists: a separate run of the engine.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use longwire_attach::{FoundTarget, Target};
use longwire_client::node::FailSpec;
use longwire_engine::LinkSpec;
use longwire_fabric::shard_plan::ShardCount;
use longwire_fabric::{Controller, NetworkReport, Numbered};
use longwire_io::attach::{Attachment, LoadedSelection, PreparedLink, Selector, engage_all};
use longwire_runtime::{Faults, NetworkPlan, RunConfig, RunningNetwork, network};
use longwire_topology::steps::Steps;

use crate::request::AttachmentRequest;
use crate::store::Facts;
use crate::{LinkFailure, files, place};

/// Time limit for draining the links at the end.
const DRAIN: Duration = Duration::from_secs(2);

/// Number of links in a node above which rings start small.
const FEW: usize = 16;

/// Links in the interfaces of a target. Dropping it restores the interfaces.
pub(crate) struct AttachedLink {
    // Dropped first, so that no frame enters a run that has ended.
    attached: Vec<Attachment>,
    /// Attachments whose interface is gone; frames in flight count as lost.
    left: Vec<Attachment>,
    running: RunningNetwork,
    pub controller: Arc<Controller>,
    /// Options of the links at the start, for the report.
    options: Vec<Arc<LinkSpec>>,
    pub description: String,
    pub interfaces: Vec<String>,
    pub since_unix: u64,
    pub facts: Facts,
}

impl AttachedLink {
    /// Attaches links to the interfaces of the target. Memory is divided among `sharing` links. Before
    /// an interface fails closed, `store` receives what is needed to open it.
    ///
    /// # Errors
    /// If the target does not exist, or takes no link.
    pub fn attach(
        request: &AttachmentRequest,
        facts: Facts,
        sharing: usize,
        config: &RunConfig,
        store: impl FnOnce(&Facts) -> io::Result<()>,
    ) -> Result<AttachedLink, LinkFailure> {
        let found = request.target.resolve()?;
        check(&found, request, facts.started)?;
        let is_process = matches!(request.target, Target::Pid(_));
        let started = found.started.filter(|_| is_process);
        let FoundTarget {
            namespace,
            description,
            ..
        } = found;
        let interface = request.spec.interface.as_deref();
        let mut part = request.part.clone();
        part.claims = facts.claims();
        part.sharing = sharing;
        let prepared = place::prepare_all(&namespace, interface, &part)?;
        // An open descriptor would keep an abandoned namespace alive.
        drop(namespace);
        let interfaces = prepared
            .iter()
            .map(|prepared| prepared.interface().to_owned());
        let interfaces: Vec<String> = interfaces.collect();
        facts.open_others(&interfaces)?;
        let claims = prepared.iter().map(PreparedLink::claim);
        let mut facts = Facts::new(facts.started.or(started), &interfaces, claims);
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
        let attached = engage_all(engages)?;
        let claims = attached.iter().map(Attachment::claim);
        facts = Facts::new(facts.started, &interfaces, claims);
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Ok(AttachedLink {
            facts,
            attached,
            left: Vec::new(),
            running,
            controller: Arc::new(controller),
            options,
            description,
            interfaces,
            since_unix: since.unwrap_or_default().as_secs(),
        })
    }

    /// Returns the loader of selections for each interface.
    pub fn selectors(&self) -> Vec<Selector> {
        self.attached.iter().map(Attachment::selector).collect()
    }

    /// Changes the selection of traffic.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn select(&mut self, loaded: Vec<LoadedSelection>) -> Result<(), LinkFailure> {
        for (attachment, loaded) in self.attached.iter_mut().zip(loaded) {
            attachment.select(loaded)?;
        }
        Ok(())
    }

    /// Removes links whose interface is gone. Returns the reason once no link is left.
    pub fn drop_lost(&mut self) -> Option<String> {
        self.controller.tidy();
        for mut gone in self.attached.extract_if(.., |one| !one.is_attached()) {
            gone.release();
            self.left.push(gone);
        }
        if self.attached.is_empty() {
            let gone: Vec<&str> = self.left.iter().map(Attachment::interface).collect();
            return Some(format!("'{}' went away", gone.join("', '")));
        }
        if self.running.ended() {
            let error = self.running.snapshot().error;
            return Some(error.unwrap_or_else(|| "its run has ended".to_owned()));
        }
        let lost = self.running.handle()?.lost_ports();
        let (name, lost) = lost.first()?;
        Some(format!("port {name}: {}", lost.error))
    }

    /// Ends the links. New frames bypass them, and frames in flight drain for at most 2 s.
    pub fn end(mut self) -> NetworkReport {
        self.attached.iter_mut().for_each(Attachment::release);
        let since = Instant::now();
        while self.running.snapshot().in_flight > 0 && since.elapsed() < DRAIN {
            if self.running.wait(Duration::from_millis(1)) {
                break;
            }
        }
        for attachment in self.attached.iter().chain(&self.left) {
            attachment.note_losses();
        }
        let until = self.controller.elapsed();
        let run = self.running.stop();
        let mut report = self
            .controller
            .look(|network| NetworkReport::new(run, network));
        place::forgive_lost_ports(&mut report.run, &self.attached);
        report.set_options(&self.options);
        report.changes = self.controller.changes().until(until);
        let attached = self.attached.into_iter().chain(self.left);
        attached.for_each(Attachment::remove);
        report
    }
}

/// Refuses a target in the machine's own namespace, unless permitted.
fn check(
    found: &FoundTarget,
    request: &AttachmentRequest,
    started: Option<u64>,
) -> Result<(), LinkFailure> {
    if let (Target::Pid(pid), Some(_)) = (&request.target, started)
        && found.started != started
    {
        return Err(LinkFailure::OtherProcess { pid: *pid });
    }
    if found.is_host && !request.spec.host_network {
        return Err(LinkFailure::HostNetwork {
            description: found.description.clone(),
        });
    }
    Ok(())
}
