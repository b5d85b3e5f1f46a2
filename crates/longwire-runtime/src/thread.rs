//! Threads: their stages, and the loop that runs them.

use std::any::Any;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use longwire_engine::Nanos;
use longwire_io::port::AnyRx;
use longwire_io::{PortError, RxPort};

use crate::clock::monotonic_now;
use crate::config::{RunConfig, WaitMode};
use crate::deciding::InsideCounts;
use crate::faults::Faults;
use crate::host;
use crate::report::Pauses;
use crate::stage::{Ingress, OutputStage, Step};
use crate::sync::locked;
use crate::threads::ThreadPlan;
use crate::waiting::{POLL, PauseLog, Waiter};
use crate::witness::PauseHistory;

pub(crate) use longwire_io::Bell;

/// The stages that a thread runs in turn.
#[derive(Default)]
pub(crate) struct Stages {
    pub ingress: Vec<Ingress<AnyRx>>,
    pub outputs: Vec<Box<dyn OutputStage + Send>>,
}

impl Stages {
    /// Returns the stages of a thread with these inputs and one output.
    pub fn new(ingress: Vec<Ingress<AnyRx>>, output: impl OutputStage + Send + 'static) -> Stages {
        let outputs: Vec<Box<dyn OutputStage + Send>> = vec![Box::new(output)];
        Stages { ingress, outputs }
    }

    /// Reads a burst from an input. If the thread has a single sending stage, that stage decides
    /// frames as they are read, if possible.
    fn read(&mut self, port: usize) -> Result<Step, PortError> {
        let ingress = &mut self.ingress[port];
        match &mut self.outputs[..] {
            [only] => only.read(ingress, port),
            _ => ingress.step(),
        }
    }
}

/// State that a run's threads share.
#[derive(Debug, Default)]
pub(crate) struct Control {
    pub stop: AtomicBool,
    /// Whether a thread lost a port or panicked.
    pub failed: AtomicBool,
    /// Number of threads whose inputs have all ended.
    pub inputs_ended: AtomicU64,
    /// Plugin faults. Any fault ends the run.
    pub faults: Faults,
    /// The deciding stage's counters at its end.
    pub last_inside: OnceLock<InsideCounts>,
    /// Each thread's pause history.
    pub pauses: Mutex<Vec<Arc<PauseHistory>>>,
}

impl Control {
    /// Returns whether the run must end: a port or thread was lost, or a plugin failed.
    pub fn must_end(&self) -> bool {
        self.failed.load(Ordering::SeqCst) || self.faults.any()
    }

    /// Includes these threads' pauses in reports.
    pub fn count_pauses(&self, of: &[Arc<PauseHistory>]) {
        locked(&self.pauses).extend_from_slice(of);
    }

    /// Returns the machine pauses that threads have witnessed so far.
    pub fn pauses(&self) -> Pauses {
        let mut sum = Pauses::default();
        for history in locked(&self.pauses).iter() {
            add_pauses(&mut sum, &history.log());
        }
        sum
    }
}

/// Adds a pause log to a report, which is in microseconds.
pub(crate) fn add_pauses(pauses: &mut Pauses, log: &PauseLog) {
    pauses.count += log.count;
    pauses.total_us += log.total.as_micros_f64();
    pauses.max_us = pauses.max_us.max(log.max.as_micros_f64());
}

/// A thread's result.
#[derive(Debug, Default)]
pub(crate) struct ThreadEnd {
    pub error: Option<PortError>,
    pub margin: Nanos,
    /// Time spent waiting for a busy core.
    pub core_wait: Nanos,
    /// CPU time of this thread.
    pub cpu: Nanos,
    /// Remarks of its output ports.
    pub remarks: Vec<String>,
}

impl ThreadEnd {
    /// Returns a panicked thread's result: a defect in Longwire, reported like other errors.
    pub fn panicked(panic: &(dyn Any + Send)) -> ThreadEnd {
        let message = panic.downcast_ref::<&str>().copied();
        let message = message.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let message = message.unwrap_or("without a message");
        ThreadEnd::failed(format!("a thread panicked: {message}; please report this"))
    }

    /// Returns the result for a stuck thread, which is not joined.
    pub fn left_behind() -> ThreadEnd {
        ThreadEnd::failed("a thread did not stop with the run".to_owned())
    }

    fn failed(reason: String) -> ThreadEnd {
        ThreadEnd {
            error: Some(PortError::Unsupported {
                port: "emulator".to_owned(),
                reason,
            }),
            ..ThreadEnd::default()
        }
    }
}

/// A thread's stages and environment, and the loop that runs them.
pub(crate) struct Worker {
    pub stages: Stages,
    pub wait: WaitMode,
    pub bell: Arc<Bell>,
    /// Witnessed pauses, which the thread publishes.
    pub pauses: Arc<PauseHistory>,
    /// The bell of a thread that may sleep until this thread's ingress stages publish.
    pub fed: Option<Arc<Bell>>,
    /// The bells of all threads in the run.
    pub all: Vec<Arc<Bell>>,
    pub control: Arc<Control>,
    /// Number of threads with inputs.
    pub inputs: u64,
}

impl Worker {
    /// Returns the plan for thread `index` of a run, pinned to `core` if given.
    pub fn plan(self, index: usize, core: Option<usize>, config: &RunConfig) -> ThreadPlan {
        let realtime = config.realtime;
        ThreadPlan {
            name: format!("longwire-{index}"),
            bell: Arc::clone(&self.bell),
            prepare: Box::new(move || host::prepare_thread(core, realtime)),
            body: Box::new(move || self.run(realtime)),
        }
    }

    /// Runs the stages until the run is stopped, all inputs have ended and drained, or a port or
    /// plugin fails.
    pub fn run(mut self, realtime: bool) -> ThreadEnd {
        let slack = self.stages.ingress.iter().map(|ingress| ingress.slack);
        let slack = slack.min().unwrap_or_default();
        let waiter = Waiter::new(self.wait, realtime, Arc::clone(&self.pauses));
        let mut waiter = waiter.gather_within(slack);
        waiter.witness.begin();
        let error = self.turns(&mut waiter).err();
        self.control
            .failed
            .fetch_or(error.is_some(), Ordering::SeqCst);
        for ingress in &mut self.stages.ingress {
            ingress.finish();
        }
        let outputs = self.stages.outputs.iter_mut();
        if let Some(inside) = outputs.map(|output| output.finish()).fold(None, Option::or) {
            // Set this before the query channel closes, because reports read it afterwards.
            let _ = self.control.last_inside.set(inside);
        }
        ThreadEnd {
            error,
            core_wait: waiter.witness.waited(),
            margin: waiter.margin_max(),
            cpu: thread_cpu_time(),
            remarks: self
                .stages
                .outputs
                .iter()
                .flat_map(|output| output.remarks())
                .collect(),
        }
    }

    fn turns(&mut self, waiter: &mut Waiter) -> Result<(), PortError> {
        let mut counted_end = false;
        while !self.control.stop.load(Ordering::Relaxed) && !self.control.faults.any() {
            let turn = self.turn()?;
            if turn.input_ended && !counted_end {
                counted_end = true;
                self.control.inputs_ended.fetch_add(1, Ordering::SeqCst);
                // Another thread may be waiting only for this one.
                self.all.iter().for_each(|bell| bell.ring());
            }
            if turn.frames > 0 {
                waiter.active();
                waiter.arrived(turn.arrived);
                continue;
            }
            if self.is_done() {
                break;
            }
            self.wait(waiter, turn.next_at);
        }
        Ok(())
    }

    /// Runs each stage once.
    fn turn(&mut self) -> Result<WorkerTurn, PortError> {
        let mut turn = WorkerTurn {
            input_ended: !self.stages.ingress.is_empty(),
            ..WorkerTurn::default()
        };
        for port in 0..self.stages.ingress.len() {
            let step = self.stages.read(port)?;
            turn.arrived += step.frames;
            turn.input_ended &= step.ended;
        }
        turn.frames = turn.arrived;
        if turn.arrived > 0 {
            self.fed.iter().for_each(|bell| bell.ring_if_asleep());
        }
        for output in &mut self.stages.outputs {
            let step = output.step()?;
            turn.frames += step.frames;
            turn.next_at = turn.next_at.into_iter().chain(step.next_at).min();
        }
        Ok(turn)
    }

    /// Returns whether all inputs have ended and all frames have left.
    fn is_done(&mut self) -> bool {
        self.control.inputs_ended.load(Ordering::SeqCst) == self.inputs
            && self
                .stages
                .outputs
                .iter_mut()
                .all(|output| output.is_empty())
    }

    fn wait(&mut self, waiter: &mut Waiter, next_at: Option<Nanos>) {
        let Some(mut until) = waiter.plan(next_at) else {
            return;
        };
        // Announce the sleep, then check once more. Otherwise, a frame published between check and
        // announcement would be missed.
        self.bell.asleep();
        let outputs = self.stages.outputs.iter_mut();
        let releases = outputs.filter_map(|output| output.next_release());
        if let Some(next) = releases.min() {
            until = until.min(waiter.wake_at(monotonic_now(), next));
        }
        if let Some(gathering) = waiter.gathering() {
            // The ports were polled in this turn.
            until = until.min(monotonic_now().saturating_add(gathering));
            waiter.sleep(until, &[], self.bell.event());
        } else {
            let sources = self.sources(&mut until);
            for ingress in &self.stages.ingress {
                ingress.before_sleep();
            }
            waiter.sleep(until, &sources, self.bell.event());
        }
        self.bell.awake();
    }

    /// Returns the descriptors of the input ports that have not ended. A port without a descriptor
    /// limits `until` to one polling interval from now.
    fn sources(&self, until: &mut Nanos) -> Vec<BorrowedFd<'_>> {
        let ports = self.stages.ingress.iter().filter(|stage| !stage.ended());
        let mut sources = Vec::with_capacity(self.stages.ingress.len());
        for port in ports.map(Ingress::port) {
            match port.readable() {
                Some(source) => sources.push(source),
                None => *until = (*until).min(monotonic_now().saturating_add(POLL)),
            }
        }
        sources
    }
}

/// Result of one turn of the loop.
#[derive(Debug, Default)]
struct WorkerTurn {
    /// Frames that arrived or left.
    frames: usize,
    /// Frames that arrived.
    arrived: usize,
    next_at: Option<Nanos>,
    input_ended: bool,
}

/// Returns the calling thread's CPU time.
pub(crate) fn thread_cpu_time() -> Nanos {
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID);
    time.map_or(Nanos::ZERO, |time| {
        Nanos::from_nanos(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
    })
}
