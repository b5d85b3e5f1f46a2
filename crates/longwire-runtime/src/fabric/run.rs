//! Starting, changing and stopping a fabric.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use longwire_engine::bridge::{BridgeConfig, BridgeError};
use longwire_engine::classify::Classifier;
use longwire_engine::{Bytes, LinkConfig, LinkId, Nanos};
use longwire_io::delay_line::{DelayLineConfig, DelayLineReader, delay_line};
use longwire_io::port::{AnyRx, Port};

use super::cells::LinkCells;
use super::core::{Core, Order, Target, Work};
use super::frames::Frames;
use super::ledger::Recorded;
use super::pipeline;
use super::report::{FabricReport, PortReport, SwitchReport};
use super::stage::Fabric;
use crate::clock::Clock;
use crate::config::{Placement, RunConfig};
use crate::counters::LinkShared;
use crate::host;
use crate::record::{Epoch, Recorder, Writing};
use crate::run::{StartError, memory_held};
use crate::stage::{Ingress, IngressParts};
use crate::summary;
use crate::thread::{Bell, Control, Stages, ThreadEnd, Worker};

/// What a fabric is made of, its ports apart.
pub struct FabricParts {
    /// How frames find their ports.
    pub switch: BridgeConfig,
    /// How they find their paths.
    pub classifier: Classifier<Target>,
    /// Its links, numbered from 0, with their counters. Their `epoch` is set
    /// at the start.
    pub links: Vec<(LinkConfig, Arc<LinkCells>)>,
    /// Its paths, numbered from 0.
    pub paths: Vec<Vec<LinkId>>,
    /// What is to be done, and when after the start.
    pub orders: Vec<(Nanos, Work)>,
}

/// Why a fabric could not start.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum FabricStartError {
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("switch: {0}")]
    Switch(#[from] BridgeError),
    #[error("path {0} has no links, or one that is not there")]
    Path(usize),
}

/// Gives orders to a running fabric. May be cloned and sent to other threads.
#[derive(Clone)]
pub struct FabricHandle {
    orders: Sender<Order>,
    bell: Arc<Bell>,
    control: Arc<Control>,
    epoch: Epoch,
}

/// A running fabric.
pub struct FabricRunning {
    handle: FabricHandle,
    ports: Vec<(String, Arc<LinkShared>)>,
    threads: Vec<(Arc<Bell>, JoinHandle<ThreadEnd>)>,
    seed: u64,
    started: Instant,
    /// The thread that writes what is recorded.
    recorder: Option<Writing>,
    notes: Vec<String>,
}

/// The most memory that frames which came by one port may take, unless it is
/// given.
const MEMORY_MIN: u64 = 256 << 20;
const MEMORY_MAX: u64 = 8 << 30;

/// Decisions come no later than this after their events.
const SLACK_MAX: Nanos = Nanos::from_micros(200);

/// An answer is waited for so long; a fabric that does not give it has ended.
const PATIENCE: Duration = Duration::from_secs(10);

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

/// Like [`start`], with everything recorded.
///
/// # Errors
/// As [`start`].
pub fn start_recorded(
    named: Vec<(String, Port)>,
    parts: FabricParts,
    config: RunConfig,
    recorder: Option<Box<dyn Recorder>>,
) -> Result<FabricRunning, FabricStartError> {
    let recorded = Recorded::by(recorder);
    let epoch = Epoch::now();
    let mut notes: Vec<String> = Vec::new();
    let held = parts.links.iter().map(|(link, _)| memory_held(link));
    let held = held.fold(0u64, u64::saturating_add).saturating_mul(4);
    let budget = config
        .memory
        .unwrap_or(Bytes(held.clamp(MEMORY_MIN, MEMORY_MAX)));
    let mut ingress = Vec::new();
    let mut outputs = Vec::new();
    let mut lines = Vec::new();
    let mut ports = Vec::new();
    for (index, (name, port)) in named.into_iter().enumerate() {
        notes.extend(port.notes.iter().cloned());
        let shared = Arc::new(LinkShared::new());
        let (stage, line) = ingress_stage(port.rx, budget, &shared)?;
        ingress.push(stage);
        lines.push(line);
        outputs.push((port.tx, Arc::clone(&shared), recorded.output(index)));
        ports.push((name, shared));
    }
    let (mut core, slack) =
        pipeline::build(parts, Frames::new(lines), config.seed, epoch.monotonic)?;
    core.yard.ledger = recorded.ledger();
    let (orders, given) = channel();
    let times = (config.tolerance, slack.min(SLACK_MAX));
    let fabric = Fabric::new(core, outputs, given, Clock::Monotonic, times);
    let control = Arc::new(Control {
        faults: config.faults.clone(),
        ..Control::default()
    });
    let mut workers = workers(ingress, fabric, &config, &control)?;
    let together = workers.len() == 1;
    notes.push(format!(
        "placement: {} ({} cores)",
        match together {
            true => "one thread for all ports",
            false => "a thread that receives and one that decides and sends",
        },
        host::cores()
    ));
    let bell = workers.last().map(|worker| Arc::clone(&worker.bell));
    let mut running = FabricRunning {
        handle: FabricHandle {
            orders,
            bell: bell
                .map_or_else(|| Bell::new().map(Arc::new), Ok)
                .map_err(StartError::Event)?,
            control,
            epoch,
        },
        ports,
        threads: Vec::new(),
        seed: config.seed,
        started: Instant::now(),
        recorder: None,
        notes,
    };
    running.recorder = recorded.start(epoch)?;
    for (index, worker) in workers.drain(..).enumerate() {
        running.spawn(worker, index, config.realtime)?;
    }
    Ok(running)
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
        line: writer,
        clock: Clock::Monotonic,
        keep_offload: false,
        lend_from: None,
    };
    Ok((Ingress::new(parts, Arc::clone(shared)), reader))
}

/// With so many cores, receiving has a thread of its own.
const CORES_APART: usize = 4;

/// One thread for all, or one that receives and one that decides and sends.
fn workers(
    ingress: Vec<Ingress<AnyRx>>,
    fabric: Fabric<longwire_io::port::AnyTx>,
    config: &RunConfig,
    control: &Arc<Control>,
) -> Result<Vec<Worker>, StartError> {
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
    let worker = |(index, stages)| Worker {
        stages,
        wait: config.wait,
        bell: Arc::clone(&bells[index]),
        fed: (index < last)
            .then(|| Arc::clone(&bells[last]))
            .into_iter()
            .collect(),
        control: Arc::clone(control),
        inputs: 1,
    };
    Ok(spread.into_iter().enumerate().map(worker).collect())
}

impl FabricHandle {
    /// Has something done at a time after the start, or now. Whoever builds
    /// what the work needs does so before: the deciding thread only applies
    /// it.
    pub fn order(&self, after: Option<Nanos>, work: Work) {
        let at = match after {
            Some(after) => self.epoch.monotonic.saturating_add(after),
            None => crate::clock::monotonic_now(),
        };
        // A fabric that has ended takes no orders, and nobody waits for them.
        let _ = self.orders.send(Order { at, work });
        self.bell.ring();
    }

    /// Asks the deciding thread; `None` if the fabric has ended.
    pub fn ask<R: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Core) -> R + Send + 'static,
    ) -> Option<R> {
        let (answer, answered) = channel();
        let work = move |core: &mut Core, _: Nanos| {
            let _ = answer.send(question(core));
        };
        self.order(None, Box::new(work));
        answered.recv_timeout(PATIENCE).ok()
    }

    /// How long the fabric has run.
    pub fn elapsed(&self) -> Nanos {
        crate::clock::monotonic_now().saturating_sub(self.epoch.monotonic)
    }
}

impl FabricRunning {
    fn spawn(&mut self, worker: Worker, index: usize, realtime: bool) -> Result<(), StartError> {
        let bell = Arc::clone(&worker.bell);
        let (tell, told) = channel();
        let thread = std::thread::Builder::new()
            .name(format!("longwire-{index}"))
            .spawn(move || {
                let _ = tell.send(host::prepare_thread(None, realtime));
                worker.run()
            })
            .map_err(StartError::Thread)?;
        for note in told.recv().unwrap_or_default() {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        self.threads.push((bell, thread));
        Ok(())
    }

    /// Gives orders.
    pub fn handle(&self) -> &FabricHandle {
        &self.handle
    }

    /// What was decided or found at start, in sentences.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Whether it has ended by itself: every input at its end, a port lost, or
    /// a plugin failed.
    pub fn ended(&self) -> bool {
        let control = &self.handle.control;
        let mut threads = self.threads.iter();
        control.failed.load(Ordering::SeqCst)
            || control.faults.any()
            || threads.all(|(_, thread)| thread.is_finished())
    }

    /// Its ports as of their last bursts.
    pub fn ports(&self) -> Vec<PortReport> {
        let ports = self.ports.iter();
        ports
            .map(|(name, shared)| PortReport::of(name, shared))
            .collect()
    }

    /// The report as of now.
    pub fn snapshot(&self) -> FabricReport {
        let asked = self.handle.ask(|core| {
            let switch = SwitchReport::of(&core.bridge.counters());
            (switch, core.counts(), core.frames())
        });
        let (switch, counts, in_flight) = asked.unwrap_or_default();
        FabricReport {
            switch,
            counts,
            in_flight,
            ..self.without_core()
        }
    }

    fn without_core(&self) -> FabricReport {
        FabricReport {
            seed: self.seed,
            epoch_ns: self.handle.epoch.wall.as_nanos(),
            duration_s: self.started.elapsed().as_secs_f64(),
            ports: self.ports(),
            notes: self.notes.clone(),
            ..FabricReport::default()
        }
    }

    /// Stops it and reports on all of it.
    pub fn stop(mut self) -> FabricReport {
        // While the deciding thread still answers.
        let before = match self.ended() {
            true => self.without_core(),
            false => self.snapshot(),
        };
        let ends = self.end_threads();
        // Its last batches count too.
        let recorded = self.recorder.take().map(JoinHandle::join);
        let mut report = FabricReport {
            switch: before.switch,
            counts: before.counts,
            in_flight: before.in_flight,
            ..self.without_core()
        };
        report.error = self.handle.control.faults.first();
        let mut threads = crate::report::RunReport::default();
        for end in ends {
            summary::add_thread_end(&mut threads, end);
        }
        report.cpu_s = threads.cpu_s;
        report.pauses = threads.pauses;
        report.notes.extend(threads.notes);
        report.error = report.error.or(threads.error);
        if let Some(Ok(Err(error))) = recorded {
            report.error.get_or_insert(format!("recording: {error}"));
        }
        report
    }

    fn end_threads(&mut self) -> Vec<ThreadEnd> {
        self.handle.control.stop.store(true, Ordering::SeqCst);
        for (bell, _) in &self.threads {
            bell.ring();
        }
        let threads = self.threads.drain(..);
        threads
            .map(|(_, thread)| thread.join().unwrap_or_else(|_| ThreadEnd::panicked()))
            .collect()
    }
}

impl Drop for FabricRunning {
    /// A fabric that is dropped is stopped; its report is lost.
    fn drop(&mut self) {
        self.end_threads();
    }
}
