//! One direction end to end in virtual time: the stages of a live run, as fast as two cores permit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use longwire_engine::{LinkId, Nanos};
use longwire_io::{PortError, RxPort, TxPort};

use crate::clock::Clock;
use crate::config::LinkSetup;
use crate::counters::LinkShared;
use crate::deciding::EventRecorder;
use crate::host;
use crate::network::{Direction, DirectionConfig};
use crate::record::{Epoch, RecordHandle, Recorder, RecordingParts};
use crate::report::LinkReport;
use crate::stage::{Egress, Ingress, OutputStage};
use crate::start_error::StartError;
use crate::sync::SetOnDrop;

/// A pipeline's configuration.
#[derive(Clone, Copy, Debug)]
pub struct PipelineConfig {
    /// Seed of the link's random streams.
    pub seed: u64,
    /// Memory in use, in bytes, above which ingress pauses, so that a full arena never drops
    /// frames.
    pub memory_soft: u64,
    /// The arena's hard limit.
    pub budget: longwire_engine::Bytes,
    /// Whether frames may stay in the source's memory.
    pub lend: bool,
    /// Cores of the ingress and the egress stage.
    pub cores: Option<(usize, usize)>,
}

/// The result of a pipeline's run.
#[derive(Debug)]
pub struct PipelineEnd<T> {
    /// The output port.
    pub port: T,
    /// The report, with all counters.
    pub report: LinkReport,
    /// Time from the first release to the end of input, while both stages work.
    pub steady: Duration,
    /// Number of frames released in that time.
    pub steady_frames: u64,
    /// Peak memory of frames and descriptors, in bytes.
    pub memory_max: u64,
}

/// Failure of a link or a network in virtual time.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum PipelineError {
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Port(#[from] PortError),
    #[error("recorder: {0}")]
    Recorder(String),
}

/// Runs `source` through a link into `sink` until the source has ended and every frame has left,
/// with a thread per stage. The clock follows the arrivals.
///
/// # Errors
/// [`PipelineError::Start`] if the memory for frames cannot be allocated; [`PipelineError::Port`]
/// with the first port error.
pub fn run_to_end<R, T>(
    source: R,
    sink: T,
    setup: LinkSetup,
    config: PipelineConfig,
) -> Result<PipelineEnd<T>, PipelineError>
where
    R: RxPort + Send,
    T: TxPort + Send,
{
    let drive = |ingress, egress, shared: &_| drive(ingress, egress, config, shared);
    run((source, sink), setup, (config, None), drive)
}

/// Like [`run_to_end`], with both stages on the calling thread, as on a machine with few cores. The
/// steady time covers the whole run. The stages block while the recorder is full.
///
/// # Errors
/// As for [`run_to_end`]; [`PipelineError::Recorder`] if the recorder fails.
pub fn run_on_one_thread<R: RxPort, T: TxPort>(
    source: R,
    sink: T,
    setup: LinkSetup,
    config: PipelineConfig,
    recorder: Option<Box<dyn Recorder>>,
) -> Result<PipelineEnd<T>, PipelineError> {
    run((source, sink), setup, (config, recorder), drive_in_turn)
}

/// Builds a link's stages and runs them with `drive`, which returns the output port, the steady
/// time and the frames released in it.
fn run<R: RxPort, T: TxPort>(
    (rx, sink): (R, T),
    setup: LinkSetup,
    (config, recorder): (PipelineConfig, Option<Box<dyn Recorder>>),
    drive: impl FnOnce(Ingress<R>, Egress<T>, &LinkShared) -> Result<(T, Duration, u64), PipelineError>,
) -> Result<PipelineEnd<T>, PipelineError> {
    let recorded = RecordingParts::by(recorder);
    let clock = Clock::arrivals();
    let direction = DirectionConfig {
        seed: config.seed,
        link_id: LinkId(0),
        clock: clock.clone(),
        budget: config.budget,
        tolerance: Nanos::MAX,
        grace_until: Nanos::ZERO,
        shared: Arc::default(),
        icmp: None,
        log: None,
    };
    let arrivals = recorded.recorder_of(LinkId(0)).map(EventRecorder::waiting);
    let departures = recorded.departures(LinkId(0)).map(RecordHandle::waiting);
    let direction = Direction::new(sink, setup, direction, (arrivals, departures))?;
    let (ingress, egress, source) = direction.of_port(rx, clock, config.lend);
    let writer = recorded.start(Epoch::ZERO)?;
    let (port, steady, steady_frames) = drive(ingress, egress, &source.shared)?;
    if let Some(writer) = writer {
        writer.end().map_err(PipelineError::Recorder)?;
    }
    let report = source.report();
    Ok(PipelineEnd {
        port,
        steady,
        steady_frames,
        memory_max: report.memory.memory_max,
        report,
    })
}

/// Alternates between the stages until the end.
fn drive_in_turn<R: RxPort, T: TxPort>(
    mut ingress: Ingress<R>,
    mut egress: Egress<T>,
    shared: &LinkShared,
) -> Result<(T, Duration, u64), PipelineError> {
    let started = Instant::now();
    loop {
        let ended = ingress.step()?.ended;
        let step = egress.step()?;
        if ended && step.frames == 0 && egress.is_empty() {
            break;
        }
    }
    let took = started.elapsed();
    ingress.finish();
    egress.finish();
    Ok((egress.into_port(), took, released(shared)))
}

/// Runs each stage on a thread until the end.
fn drive<R: RxPort + Send, T: TxPort + Send>(
    mut ingress: Ingress<R>,
    mut egress: Egress<T>,
    config: PipelineConfig,
    shared: &LinkShared,
) -> Result<(T, Duration, u64), PipelineError> {
    let input_ended = AtomicBool::new(false);
    let emptying_ended = AtomicBool::new(false);
    let (fed, emptied) = std::thread::scope(|scope| {
        // Use new threads, because pinning must not outlast the run.
        let feeding = scope.spawn(|| {
            let _ended = SetOnDrop(&input_ended);
            config.cores.map(|(core, _)| host::pin(core));
            let fed = feed(&mut ingress, config.memory_soft, &emptying_ended);
            let at_end = (Instant::now(), released(shared));
            ingress.finish();
            fed.map(|()| at_end)
        });
        let emptying = scope.spawn(|| {
            let _ended = SetOnDrop(&emptying_ended);
            config.cores.map(|(_, core)| host::pin(core));
            empty(&mut egress, &input_ended)
        });
        (joined(feeding), joined(emptying))
    });
    egress.finish();
    let first_release = emptied?;
    let (input_end, frames) = fed?;
    let steady = first_release.map_or(Duration::ZERO, |first| {
        input_end.saturating_duration_since(first)
    });
    Ok((egress.into_port(), steady, frames))
}

/// Joins a thread and resumes any panic.
fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn feed<R: RxPort>(
    ingress: &mut Ingress<R>,
    memory_soft: u64,
    emptying_ended: &AtomicBool,
) -> Result<(), PortError> {
    loop {
        while ingress.memory_in_use() > memory_soft {
            if emptying_ended.load(Ordering::Relaxed) {
                return Ok(());
            }
            std::hint::spin_loop();
        }
        for _ in 0..BURSTS_AHEAD {
            if ingress.step()?.ended {
                return Ok(());
            }
        }
    }
}

/// Bursts between checks of the memory in use, each of which moves a cache line between cores.
const BURSTS_AHEAD: u32 = 8;

/// Drains the line and returns the time of the first departure.
fn empty<T: TxPort>(
    egress: &mut Egress<T>,
    input_ended: &AtomicBool,
) -> Result<Option<Instant>, PortError> {
    let mut first = None;
    loop {
        let ended = input_ended.load(Ordering::Acquire);
        let step = egress.step()?;
        if step.frames > 0 {
            first.get_or_insert_with(Instant::now);
        } else if ended && egress.is_empty() {
            return Ok(first);
        } else {
            std::hint::spin_loop();
        }
    }
}

fn released(shared: &LinkShared) -> u64 {
    shared.egress.crossed.get()
}
