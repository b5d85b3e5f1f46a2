//! Starting, changing and stopping a fabric.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Instant;

use longwire_engine::models::mtu::Mtu;
use longwire_engine::{Bytes, LinkConfig, LinkId, Nanos};
use longwire_io::delay_line::{DelayLineConfig, DelayLineReader, delay_line};
use longwire_io::port::{AnyRx, Port};
use longwire_packet::bridge::{BridgeConfig, BridgeError};
use longwire_packet::classify::Classifier;

use super::core::Target;
use super::frames::Frames;
use super::handle::{FabricHandle, Facts};
use super::ledger::RecordingParts;
use super::orders::Work;
use super::pipeline;
use super::report::FabricReport;
use super::stage::Fabric;
use crate::clock::{Clock, monotonic_now};
use crate::config::{Placement, RunConfig, WaitMode};
use crate::counters::LinkShared;
use crate::host;
use crate::ledger::LinkCells;
use crate::port_loss::OnPortLoss;
use crate::record::{Epoch, Recorder};
use crate::report::RunReport;
use crate::run::memory_held;
use crate::stage::{AddressWatch, Ingress, IngressParts};
use crate::start_error::StartError;
use crate::thread::{Bell, Control, Stages, Worker};
use crate::threads::Threads;
use crate::witness::PauseHistory;

/// The parts of a fabric, without its ports.
pub struct FabricParts {
    /// The switch that chooses the output ports of frames.
    pub switch: BridgeConfig,
    /// The classifier that chooses their paths.
    pub classifier: Classifier<Target>,
    /// Its links, numbered from 0, with their counters. Their `epoch` is set
    /// at the start.
    pub links: Vec<(LinkConfig, Arc<LinkCells>)>,
    /// Its paths, numbered from 0.
    pub paths: Vec<Vec<LinkId>>,
    /// Orders with their times after the start.
    pub orders: Vec<(Nanos, Work)>,
    /// The reaction to a port that goes away.
    pub on_port_loss: OnPortLoss,
}

/// Why a fabric could not start.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum FabricStartError {
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("switch: {0}")]
    Switch(#[from] BridgeError),
    #[error("path {0} has no links, or one that does not exist")]
    Path(usize),
}

/// A running fabric.
pub struct FabricRunning {
    handle: FabricHandle,
    threads: Threads,
    addresses: Arc<AddressWatch>,
}

/// The range of the default memory for frames that arrived by one port.
const MEMORY_MIN: u64 = 256 << 20;
const MEMORY_MAX: u64 = 8 << 30;

/// Maximum time between an event and its decision.
const SLACK_MAX: Nanos = Nanos::from_micros(200);

/// Starts a fabric between these ports, each with its name.
///
/// # Errors
/// If its parts do not fit together, or memory or threads cannot be had.
pub fn start(
    named: Vec<(String, Port)>,
    parts: FabricParts,
    config: RunConfig,
) -> Result<FabricRunning, FabricStartError> {
    start_recorded(named, parts, config, None)
}

/// Like [`start`], and records the whole run.
///
/// # Errors
/// As [`start`].
pub fn start_recorded(
    named: Vec<(String, Port)>,
    parts: FabricParts,
    config: RunConfig,
    recorder: Option<Box<dyn Recorder>>,
) -> Result<FabricRunning, FabricStartError> {
    let recorded = RecordingParts::by(recorder);
    let epoch = Epoch::now();
    let mut notes: Vec<String> = Vec::new();
    let on_port_loss = parts.on_port_loss;
    let held = parts.links.iter().map(|(link, _)| memory_held(link));
    let held = held.fold(0u64, u64::saturating_add).saturating_mul(4);
    let budget = config
        .memory
        .unwrap_or(Bytes(held.clamp(MEMORY_MIN, MEMORY_MAX)));
    let names = named.iter().map(|(name, _)| format!("port {name}"));
    let addresses = AddressWatch::new(names.collect());
    let mut ingress = Vec::new();
    let mut outputs = Vec::new();
    let mut lines = Vec::new();
    let mut ports = Vec::new();
    for (index, (name, port)) in named.into_iter().enumerate() {
        notes.extend(port.notes.iter().cloned());
        let shared = Arc::new(LinkShared::new());
        let (mut stage, line) = ingress_stage(port.rx, budget, &shared)?;
        stage.watch_addresses(addresses.port(index));
        ingress.push(stage.on_port_loss(on_port_loss));
        lines.push(line);
        outputs.push((port.tx, Arc::clone(&shared), recorded.output(index)));
        ports.push((name, shared));
    }
    let mut core = pipeline::build(parts, Frames::new(lines), config.seed, epoch.monotonic)?;
    core.state.ledger = recorded.ledger();
    let (orders, given) = channel();
    let grace_until = epoch.monotonic.saturating_add(config.grace);
    let times = (config.tolerance, grace_until, SLACK_MAX);
    let fabric = Fabric::new(core, outputs, given, Clock::Monotonic, times);
    let mut fabric = fabric.on_port_loss(on_port_loss);
    fabric.watch_addresses(&addresses);
    let mut threads = Threads::new(config.faults.clone());
    let (workers, bell) = workers(ingress, fabric, &config, threads.control())?;
    notes.push(placement_note(workers.len()));
    threads.keep(recorded.start(epoch)?);
    for (index, worker) in workers.into_iter().enumerate() {
        let (bell, realtime) = (Arc::clone(&worker.bell), config.realtime);
        let prepare = move || host::prepare_thread(None, realtime);
        let name = format!("longwire-{index}");
        threads.spawn(&name, bell, &mut notes, prepare, || worker.run())?;
    }
    let facts = Facts {
        bell,
        control: Arc::clone(threads.control()),
        epoch,
        ports,
        seed: config.seed,
        started: Instant::now(),
        notes,
    };
    Ok(FabricRunning {
        handle: FabricHandle::new(orders, facts),
        threads,
        addresses,
    })
}

fn placement_note(threads: usize) -> String {
    let stages = match threads {
        1 => "one thread for all ports",
        _ => "a thread that receives and one that decides and sends",
    };
    format!("placement: {stages} ({} cores)", host::cores())
}

fn ingress_stage(
    port: AnyRx,
    budget: Bytes,
    shared: &Arc<LinkShared>,
) -> Result<(Ingress<AnyRx>, DelayLineReader), StartError> {
    let (writer, reader) = delay_line(&DelayLineConfig {
        budget,
        huge_pages: true,
    })?;
    let parts = IngressParts {
        port,
        link: None,
        link_id: LinkId(0),
        // The links of a network fragment frames at their arrival.
        mtu: Mtu::None,
        line: writer,
        clock: Clock::Monotonic,
        keep_offload: false,
        lend_from: None,
    };
    Ok((Ingress::new(parts, Arc::clone(shared)), reader))
}

/// From this number of cores on, receiving has a separate thread.
const CORES_APART: usize = 4;

/// Builds one worker for all, or one that receives and one that decides and
/// sends; also returns the bell of the deciding one.
fn workers(
    ingress: Vec<Ingress<AnyRx>>,
    fabric: Fabric<longwire_io::port::AnyTx>,
    config: &RunConfig,
    control: &Arc<Control>,
) -> Result<(Vec<Worker>, Arc<Bell>), StartError> {
    let mut together = Stages {
        ingress,
        egress: Vec::new(),
        fabric: Some(Box::new(fabric)),
    };
    let mut spread = Vec::new();
    let apart = match config.placement {
        Placement::Auto => host::cores() >= CORES_APART,
        Placement::Together => false,
        Placement::PerDirection | Placement::PerStage => true,
    };
    if apart {
        let receiving = std::mem::take(&mut together.ingress);
        spread.push(Stages {
            ingress: receiving,
            ..Stages::default()
        });
    }
    spread.push(together);
    let bells = spread.iter().map(|_| Bell::new().map(Arc::new));
    let bells: Vec<_> = bells.collect::<Result<_, _>>()?;
    let last = bells.len() - 1;
    let pauses: Vec<Arc<PauseHistory>> = bells.iter().map(|_| Arc::default()).collect();
    if let Some(fabric) = &mut spread[last].fabric {
        fabric.excuse_by(&pauses);
    }
    let worker = |(index, stages)| Worker {
        stages,
        wait: config.wait,
        bell: Arc::clone(&bells[index]),
        pauses: Arc::clone(&pauses[index]),
        fed: (index < last && config.wait != WaitMode::Spin)
            .then(|| Arc::clone(&bells[last]))
            .into_iter()
            .collect(),
        all: bells.clone(),
        control: Arc::clone(control),
        inputs: 1,
    };
    let workers = spread.into_iter().enumerate().map(worker).collect();
    Ok((workers, Arc::clone(&bells[last])))
}

impl FabricRunning {
    /// Returns the handle for orders.
    pub fn handle(&self) -> &FabricHandle {
        &self.handle
    }

    /// Whether it has ended by itself: every input has ended, a port was lost,
    /// or a plugin failed.
    pub fn ended(&self) -> bool {
        self.threads.ended()
    }

    /// Stops the fabric and returns its complete report.
    pub fn stop(mut self) -> FabricReport {
        // While the deciding thread still answers.
        let before = if self.ended() {
            self.handle.without_core()
        } else {
            self.handle.report()
        };
        let mut threads = RunReport::default();
        self.threads.stop().add_to(&mut threads);
        let mut report = FabricReport {
            switch: before.switch,
            counts: before.counts,
            in_flight: before.in_flight,
            cpu_s: threads.cpu_s,
            pauses: threads.pauses,
            stops: threads.stops,
            core_wait_s: threads.core_wait_s,
            error: threads.error,
            ..self.handle.without_core()
        };
        report.notes.extend(threads.notes);
        report.notes.extend(self.addresses.notes(monotonic_now()));
        report
    }
}
