//! Stages and threads of a network on live ports.

use std::sync::Arc;
use std::sync::mpsc::channel;

use longwire_engine::models::mtu::Mtu;
use longwire_engine::{Bytes, Link, LinkConfig, LinkId, Nanos, PathId};
use longwire_io::delay_line::{DelayLineConfig, DelayLineReader, delay_line};
use longwire_io::port::Port;
use longwire_io::{RxPort, TxPort, collapse_heap};
use longwire_packet::bridge::{Bridge, BridgeConfig};
use longwire_packet::classify::Classifier;

use super::core::Core;
use super::frames::Frames;
use super::orders::{Operation, Order, Task};
use super::recorder::EventRecorder;
use super::remote::RemoteParts;
use super::shards::{Sharding, Shards};
use super::stage::DecidingStage;
use super::state::Target;
use crate::clock::Clock;
use crate::counters::{LinkCells, LinkShared};
use crate::host;
use crate::network::{Assembly, Foundation, ReportSources, memory_held, memory_of};
use crate::placement::{Layout, workers};
use crate::port_loss::OnPortLoss;
use crate::stage::{AddressWatch, AdmissionParts, CutForm, Ingress, SLACK_MAX};
use crate::start_error::StartError;
use crate::thread::Stages;

/// The parts of a network, without its ports.
pub struct NetworkParts {
    /// The switch that chooses the output ports of frames.
    pub switch: BridgeConfig,
    /// The classifier that chooses their paths.
    pub classifier: Classifier<Target>,
    /// Links with their counters, numbered from 0. `epoch` is set at the start.
    pub links: Vec<(LinkConfig, Arc<LinkCells>)>,
    /// Paths numbered from 0.
    pub paths: Vec<Vec<LinkId>>,
    /// Orders and their times after the start.
    pub orders: Vec<(Nanos, Operation)>,
    /// The reaction to a port loss.
    pub on_port_loss: OnPortLoss,
    /// The distribution of the links over shards.
    pub sharding: Sharding,
    /// The network's other hosts, whose ports neither receive nor send here. With other hosts, the
    /// network is not sharded.
    pub remote: Option<RemoteParts>,
}

/// Maximum default memory for the frames of one input port.
const MEMORY_MAX: Bytes = Bytes(8 << 30);

/// Number of links above which cache misses dominate.
const LINKS_MANY: usize = 4_096;

/// Number of configurations freed per step.
const CONFIGS_FREED: usize = 65_536;

impl NetworkParts {
    /// Builds the switch, the links and the paths. The links start at `epoch`.
    pub(super) fn build(self, frames: Frames, seed: u64, epoch: Nanos) -> Result<Core, StartError> {
        let bridge = Bridge::new(self.switch)?;
        let shards = Shards::new(self.sharding, frames).map_err(StartError::Thread)?;
        let mut core = Core::new(bridge, self.classifier, shards);
        let many = self.links.len() >= LINKS_MANY;
        core.epoch = epoch;
        // Free each configuration once its link is built. A million links and their configurations
        // together would need hundreds of megabytes more.
        let mut links = self.links;
        links.reverse();
        for index in 0.. {
            let Some((mut link, cells)) = links.pop() else {
                break;
            };
            link.epoch = epoch;
            let id = LinkId(index);
            let link = Link::new_changeable(link, seed, id);
            core.add_link(id, link, cells);
            if links.len().is_multiple_of(CONFIGS_FREED) {
                links.shrink_to_fit();
            }
        }
        for (index, links) in self.paths.into_iter().enumerate() {
            if !core.add_path(PathId(index as u32), &links) {
                return Err(StartError::Path(index));
            }
        }
        if many {
            // The configurations leave gaps of many pages.
            host::release_free_memory();
            collapse_heap();
        }
        for (after, work) in self.orders {
            let at = epoch.saturating_add(after);
            let task = Task::Change(work);
            core.order(Order { at, task });
        }
        Ok(core)
    }

    /// Builds the stages between named ports and distributes them over threads.
    pub(crate) fn assemble(
        mut self,
        named: Vec<(String, Port)>,
        foundation: &Foundation<'_>,
    ) -> Result<Assembly, StartError> {
        let (config, epoch) = (foundation.config, foundation.epoch.monotonic);
        let mut notes: Vec<String> = Vec::new();
        let on_port_loss = self.on_port_loss;
        let budget = config.memory.unwrap_or_else(|| self.memory());
        let names = named.iter().map(|(name, _)| format!("port {name}"));
        let addresses = AddressWatch::new(names.collect());
        let mut ingress = Vec::new();
        let mut outputs = Vec::new();
        let mut lines = Vec::new();
        let mut sources = ReportSources::default();
        let form = form_for(named.iter().map(|(_, port)| &port.tx));
        let line_config = line_of(budget, named.len(), config.huge_pages);
        for (index, (name, port)) in named.into_iter().enumerate() {
            notes.extend(port.notes);
            let shared = Arc::new(LinkShared::default());
            let place = (Clock::Monotonic, line_config, form);
            let (mut stage, line) = ingress_stage(port.rx, place, &shared)?;
            stage.admission.addresses = Some(addresses.port(index));
            stage.on_port_loss = on_port_loss;
            ingress.push(stage);
            lines.push(line);
            let output = foundation.recorded.departures(LinkId(index as u32));
            let output = output.filter(|_| foundation.recorded.wants_frames());
            outputs.push((port.tx, Arc::clone(&shared), output));
            sources.ports.push((name, shared));
        }
        self.sharding.memory = Bytes(budget.0.saturating_mul(lines.len() as u64));
        self.sharding.realtime = config.realtime;
        let shards = self.sharding.placement();
        let remote = self.remote.take();
        let mut core = self.build(Frames::new(lines), config.seed, epoch)?;
        core.shards
            .record(foundation.recorded.recorder().map(EventRecorder::in_order));
        let (orders, given) = channel();
        let times = (config.tolerance, foundation.grace_until(), SLACK_MAX);
        let mut network = DecidingStage::new(core, outputs, given, Clock::Monotonic, times);
        network.on_port_loss = on_port_loss;
        network.watch_addresses(&addresses);
        let decided_by = remote.map(|remote| network.connect(remote));
        let layout = Layout::choose(config.placement, config.wait).of_one_group();
        let stages = Stages::new(ingress, network);
        let workers = workers(vec![stages], layout, config.wait, foundation.control)?;
        let deciding = workers.last().map(|worker| Arc::clone(&worker.bell));
        if let (Some(decided_by), Some(bell)) = (decided_by, &deciding) {
            // A network starts only once.
            let _ = decided_by.set(Arc::clone(bell));
        }
        let stages = match workers.len() {
            1 => "one thread for all ports",
            _ => "one thread receives, one decides and sends",
        };
        let cores = host::cores();
        notes.push(format!("placement: {stages}{shards} ({cores} cores)"));
        let threads = workers.into_iter().enumerate();
        Ok(Assembly {
            threads: threads
                .map(|(index, worker)| worker.plan(index, None, config))
                .collect(),
            notes,
            sources,
            addresses,
            orders: deciding.map(|bell| (orders, bell)),
            ..Assembly::default()
        })
    }

    /// Returns the default memory for the frames of one input port.
    fn memory(&self) -> Bytes {
        let held = self.links.iter().map(|(link, _)| memory_held(link));
        memory_of(held.fold(0, u64::saturating_add), MEMORY_MAX)
    }
}

/// Returns the form of offloaded frames that all of these ports accept, because a frame may
/// leave by any of them.
pub(super) fn form_for<'a, T: TxPort + 'a>(mut ports: impl Iterator<Item = &'a T>) -> CutForm {
    if ports.all(TxPort::takes_offload) {
        CutForm::Unfinished
    } else {
        CutForm::Finished
    }
}

/// Maximum number of ports whose lines use huge pages. With more ports, lines use ordinary pages
/// and start small.
const PORTS_FEW: usize = 32;

/// Returns the line configuration of a port in a network with `ports` ports.
pub(super) fn line_of(budget: Bytes, ports: usize, huge_pages: bool) -> DelayLineConfig {
    DelayLineConfig {
        budget,
        huge_pages: huge_pages && ports <= PORTS_FEW,
    }
}

/// Builds the ingress stage of a port, and the line to the deciding stage.
pub(super) fn ingress_stage<R: RxPort>(
    port: R,
    (clock, line, form): (Clock, DelayLineConfig, CutForm),
    shared: &Arc<LinkShared>,
) -> Result<(Ingress<R>, DelayLineReader), StartError> {
    let (writer, reader) = delay_line(&line)?;
    let parts = AdmissionParts {
        link: None,
        // In a network, the links fragment frames at arrival.
        mtu: Mtu::None,
        line: writer,
        form,
        lend_from: None,
        shared: Arc::clone(shared),
    };
    Ok((Ingress::new(port, clock, parts), reader))
}
