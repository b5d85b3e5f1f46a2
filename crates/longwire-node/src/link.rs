//! Links of an attachment while its target exists: a separate run of the engine.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::time::{SystemTime, UNIX_EPOCH};

use longwire_attach::{FoundTarget, Target};
use longwire_client::node::FailSpec;
use longwire_engine::LinkSpec;
use longwire_fabric::shard_plan::ShardCount;
use longwire_fabric::{Controller, NetworkReport, Numbered};
use longwire_io::attach::PreparedLink;
use longwire_runtime::{Faults, NetworkPlan, RunConfig, RunningNetwork, network};
use longwire_topology::steps::Steps;

use crate::attached::AttachedLinks;
use crate::request::AttachmentRequest;
use crate::store::Facts;
use crate::{LinkFailure, files, place};

/// Number of links in a node above which rings start small.
const FEW: usize = 16;

/// Links in the interfaces of a target. Dropping it restores the interfaces.
pub(crate) struct AttachedLink {
    // Dropped first, so that no frame enters a run that has ended.
    pub attached: AttachedLinks,
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
        let found = request.place.find()?;
        let started = start_of(&found, &request.place.target, facts.started)?;
        let FoundTarget {
            namespace,
            description,
            ..
        } = found;
        let prepared = request
            .place
            .prepare(&namespace, &facts.claims(), sharing)?;
        // An open descriptor would keep an abandoned namespace alive.
        drop(namespace);
        let interfaces = prepared
            .iter()
            .map(|prepared| prepared.interface().to_owned());
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
            description,
            interfaces,
            since_unix: since.unwrap_or_default().as_secs(),
        })
    }

    /// Removes links whose interface is gone. Returns the reason once no link is left.
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

    /// Ends the links. New frames bypass them, and frames in flight drain for at most 2 s.
    pub fn end(mut self) -> NetworkReport {
        self.attached.drain(&self.running);
        let mut report = NetworkReport::stop(self.running, &self.controller, &self.options);
        self.attached.forgive_lost_ports(&mut report.run);
        self.attached.remove();
        report
    }
}

/// Returns the start of a target's process by which later runs recognise it; `known` is that of the
/// first run. Containers and pods may be another process each time.
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
