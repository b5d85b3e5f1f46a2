//! Fabrics in virtual time: the stages of a live run, as fast as one core permits. Equal inputs
//! give equal outputs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use longwire_engine::{Bytes, Link, LinkId, Nanos, PathId};
use longwire_io::collapse_heap;
use longwire_io::{PortError, RxPort, TxPort};
use longwire_packet::bridge::Bridge;

use super::core::Core;
use super::frames::Frames;
use super::ledger::{Ledger, RecordingParts};
use super::live::{FabricParts, form_for, ingress_stage, line_of};
use super::orders::{Order, Task};
use super::report::PortReport;
use super::shards::Shards;
use super::stage::Fabric;
use crate::clock::Clock;
use crate::counters::LinkShared;
use crate::record::{Epoch, RecordHandle, Recorder};
use crate::stage::{Ingress, OutputStage};
use crate::start_error::StartError;

/// The result of a run.
#[derive(Debug)]
pub struct FabricEnd<T> {
    /// The output ports.
    pub ports: Vec<T>,
    /// The report of each port.
    pub reports: Vec<PortReport>,
    /// Duration of the run, without building the fabric.
    pub took: Duration,
    /// Time to build links, paths and switch.
    pub built: Duration,
}

/// Failure of a run.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum FabricPipelineError {
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Port(#[from] PortError),
    #[error("recorder: {0}")]
    Recorder(String),
}

/// Builds a fabric without ports and passes it to `look`, to measure idle links.
///
/// # Errors
/// If the parts do not fit together.
pub fn look_at_idle<R>(
    parts: FabricParts,
    seed: u64,
    look: impl FnOnce(&Core) -> R,
) -> Result<R, StartError> {
    let core = build(parts, Frames::new(Vec::new()), seed, Nanos::ZERO)?;
    Ok(look(&core))
}

/// An input, whose clock shows its last arrival.
struct PipelineInput<R> {
    stage: Ingress<R>,
    clock: Clock,
}

/// Runs frames from `ports` through a fabric until all inputs have ended and all frames
/// have left. Orders use the time scale of the arrivals. Each input may use `memory` for
/// its frames.
///
/// # Errors
/// If the parts do not fit together, memory cannot be allocated, or a port fails.
pub fn run_to_end<R: RxPort, T: TxPort>(
    ports: Vec<(R, T)>,
    parts: FabricParts,
    seed: u64,
    memory: Bytes,
) -> Result<FabricEnd<T>, FabricPipelineError> {
    run_recorded(ports, parts, (seed, memory), None)
}

/// Like [`run_to_end`], with a recorder. The fabric blocks while the recorder is full.
///
/// # Errors
/// As for [`run_to_end`], or if the recorder's thread cannot be started.
pub fn run_recorded<R: RxPort, T: TxPort>(
    ports: Vec<(R, T)>,
    parts: FabricParts,
    (seed, memory): (u64, Bytes),
    recorder: Option<Box<dyn Recorder>>,
) -> Result<FabricEnd<T>, FabricPipelineError> {
    let recorded = RecordingParts::by(recorder);
    let mut inputs = Vec::new();
    let mut outputs = Vec::new();
    let mut lines = Vec::new();
    let form = form_for(ports.iter().map(|(_, tx)| tx));
    for (index, (rx, tx)) in ports.into_iter().enumerate() {
        let shared = Arc::new(LinkShared::new());
        let clock = Clock::arrivals();
        let (stage, reader) =
            ingress_stage(rx, (clock.clone(), line_of(memory, 2, true), form), &shared)?;
        inputs.push(PipelineInput { stage, clock });
        lines.push(reader);
        let output = recorded.handle(LinkId(index as u32));
        let output = output.filter(|_| recorded.wants_frames());
        outputs.push((tx, shared, output.map(RecordHandle::waiting)));
    }
    let shared: Vec<_> = outputs
        .iter()
        .map(|(_, shared, _)| Arc::clone(shared))
        .collect();
    let started = Instant::now();
    let mut core = build(parts, Frames::new(lines), seed, Nanos::ZERO)?;
    let ledger = recorded.ledger().map(Ledger::waiting);
    core.shards.record(ledger.map(Ledger::in_order));
    let writer = recorded.start(Epoch::ZERO)?;
    let built = started.elapsed();
    let clock = Clock::arrivals();
    let (_, orders) = std::sync::mpsc::channel();
    // No frame is late in virtual time.
    let times = (Nanos::MAX, Nanos::ZERO, Nanos::ZERO);
    let mut fabric = Fabric::new(core, outputs, orders, clock.clone(), times);
    let started = Instant::now();
    drive(&mut inputs, &mut fabric, &clock)?;
    let took = started.elapsed();
    inputs.iter_mut().for_each(|input| input.stage.finish());
    fabric.finish();
    let reports = shared.iter().enumerate();
    let reports = reports.map(|(index, shared)| {
        let of = (&**shared, &shared.port_totals());
        PortReport::of(&index.to_string(), of, Nanos::ZERO)
    });
    let reports = reports.collect();
    let ports = fabric.into_ports();
    if let Some(writer) = writer {
        writer.end().map_err(FabricPipelineError::Recorder)?;
    }
    Ok(FabricEnd {
        reports,
        ports,
        took,
        built,
    })
}

/// Reads the input with the earliest clock, then runs the fabric.
fn drive<R: RxPort, T: TxPort>(
    inputs: &mut [PipelineInput<R>],
    fabric: &mut Fabric<T>,
    clock: &Clock,
) -> Result<(), PortError> {
    loop {
        let behind = inputs.iter_mut().enumerate();
        let behind = behind.filter(|(_, input)| !input.stage.ended());
        if let Some((port, input)) = behind.min_by_key(|(_, input)| input.clock.now()) {
            fabric.read(&mut input.stage, port)?;
        }
        let times = inputs.iter().map(|input| input.clock.now());
        clock.advance(times.min().unwrap_or(Nanos::MAX));
        let step = fabric.step()?;
        let ended = inputs.iter().all(|input| input.stage.ended());
        if ended && step.frames == 0 && fabric.is_empty() {
            return Ok(());
        }
    }
}

/// Number of links above which cache misses dominate.
const LINKS_MANY: usize = 4_096;

/// Number of configurations freed per step.
const CONFIGS_FREED: usize = 65_536;

/// Builds the core, with links that start at `epoch`.
pub(super) fn build(
    parts: FabricParts,
    frames: Frames,
    seed: u64,
    epoch: Nanos,
) -> Result<Core, StartError> {
    let bridge = Bridge::new(parts.switch)?;
    let shards = Shards::new(parts.sharding, frames).map_err(StartError::Thread)?;
    let mut core = Core::new(bridge, parts.classifier, shards);
    let many = parts.links.len() >= LINKS_MANY;
    core.epoch = epoch;
    // Free each configuration once its link is built. A million links and their configurations
    // together would need hundreds of megabytes more.
    let mut links = parts.links;
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
    for (index, links) in parts.paths.iter().enumerate() {
        if !core.add_path(PathId(index as u32), links) {
            return Err(StartError::Path(index));
        }
    }
    if many {
        collapse_heap();
    }
    for (after, work) in parts.orders {
        let at = epoch.saturating_add(after);
        let task = Task::Change(work);
        core.order(Order { at, task });
    }
    Ok(core)
}
