//! Networks in virtual time: the stages of a live run, as fast as one core permits. Equal inputs
//! give equal outputs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use longwire_engine::{Bytes, LinkId, Nanos};
use longwire_io::{PortError, RxPort, TxPort};

use super::core::Core;
use super::frames::Frames;
use super::live::{NetworkParts, form_for, ingress_stage, line_of};
use super::recorder::{EventRecorder, RecordingParts};
use super::report::PortReport;
use super::stage::DecidingStage;
use crate::clock::Clock;
use crate::counters::LinkShared;
use crate::pipeline::PipelineError;
use crate::record::{Epoch, RecordHandle, Recorder};
use crate::stage::{Ingress, OutputStage};
use crate::start_error::StartError;

/// The result of a run.
#[derive(Debug)]
pub struct NetworkEnd<T> {
    /// The output ports.
    pub ports: Vec<T>,
    /// The report of each port.
    pub reports: Vec<PortReport>,
    /// Duration of the run, without building the network.
    pub took: Duration,
    /// Time to build links, paths and switch.
    pub built: Duration,
}

/// Builds a network without ports and passes it to `look`, to measure idle links.
///
/// # Errors
/// If the parts do not fit together.
pub fn look_at_idle<R>(
    parts: NetworkParts,
    seed: u64,
    look: impl FnOnce(&Core) -> R,
) -> Result<R, StartError> {
    let core = parts.build(Frames::new(Vec::new()), seed, Nanos::ZERO)?;
    Ok(look(&core))
}

/// An input, whose clock shows its last arrival.
struct PipelineInput<R> {
    stage: Ingress<R>,
    clock: Clock,
}

/// Runs frames from `ports` through a network until all inputs have ended and all frames
/// have left. Orders use the time scale of the arrivals. Each input may use `memory` for
/// its frames. The network blocks while the recorder is full.
///
/// # Errors
/// If the parts do not fit together, memory cannot be allocated, a port or the recorder fails, or
/// the recorder's thread cannot be started.
pub fn run_to_end<R: RxPort, T: TxPort>(
    ports: Vec<(R, T)>,
    parts: NetworkParts,
    (seed, memory): (u64, Bytes),
    recorder: Option<Box<dyn Recorder>>,
) -> Result<NetworkEnd<T>, PipelineError> {
    let recorded = RecordingParts::by(recorder);
    let mut inputs = Vec::new();
    let mut outputs = Vec::new();
    let mut lines = Vec::new();
    let form = form_for(ports.iter().map(|(_, tx)| tx));
    for (index, (rx, tx)) in ports.into_iter().enumerate() {
        let shared = Arc::new(LinkShared::default());
        let clock = Clock::arrivals();
        let (stage, reader) =
            ingress_stage(rx, (clock.clone(), line_of(memory, 2, true), form), &shared)?;
        inputs.push(PipelineInput { stage, clock });
        lines.push(reader);
        let output = recorded.departures(LinkId(index as u32));
        let output = output.filter(|_| recorded.wants_frames());
        outputs.push((tx, shared, output.map(RecordHandle::waiting)));
    }
    let shared: Vec<_> = outputs
        .iter()
        .map(|(_, shared, _)| Arc::clone(shared))
        .collect();
    let started = Instant::now();
    let mut core = parts.build(Frames::new(lines), seed, Nanos::ZERO)?;
    let recorder = recorded.recorder().map(EventRecorder::waiting);
    core.shards.record(recorder.map(EventRecorder::in_order));
    let writer = recorded.start(Epoch::ZERO)?;
    let built = started.elapsed();
    let clock = Clock::arrivals();
    let (_, orders) = std::sync::mpsc::channel();
    // No frame is late in virtual time.
    let times = (Nanos::MAX, Nanos::ZERO, Nanos::ZERO);
    let mut network = DecidingStage::new(core, outputs, orders, clock.clone(), times);
    let started = Instant::now();
    drive(&mut inputs, &mut network, &clock)?;
    let took = started.elapsed();
    inputs.iter_mut().for_each(|input| input.stage.finish());
    network.finish();
    let reports = shared.iter().enumerate();
    let reports = reports.map(|(index, shared)| {
        let of = (&**shared, &shared.port_totals());
        PortReport::of(&index.to_string(), of, Nanos::ZERO)
    });
    let reports = reports.collect();
    let ports = network.into_ports();
    if let Some(writer) = writer {
        writer.end().map_err(PipelineError::Recorder)?;
    }
    Ok(NetworkEnd {
        reports,
        ports,
        took,
        built,
    })
}

/// Reads the input with the earliest clock, then runs the network.
fn drive<R: RxPort, T: TxPort>(
    inputs: &mut [PipelineInput<R>],
    network: &mut DecidingStage<T>,
    clock: &Clock,
) -> Result<(), PortError> {
    loop {
        let behind = inputs.iter_mut().enumerate();
        let behind = behind.filter(|(_, input)| !input.stage.ended());
        if let Some((port, input)) = behind.min_by_key(|(_, input)| input.clock.now()) {
            network.read(&mut input.stage, port)?;
        }
        let times = inputs.iter().map(|input| input.clock.now());
        clock.advance(times.min().unwrap_or(Nanos::MAX));
        let step = network.step()?;
        let ended = inputs.iter().all(|input| input.stage.ended());
        if ended && step.frames == 0 && network.is_empty() {
            return Ok(());
        }
    }
}
