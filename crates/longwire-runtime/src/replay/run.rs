//! Starting, watching and stopping a replay.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use longwire_engine::Nanos;
use longwire_io::port::AnyTx;

use super::build::Building;
use super::pacer::Pacer;
use super::pump::Pump;
use super::reader::Reader;
use super::summary::Input;
use super::{ReplayConfig, ReplayOutput, Start};
use crate::clock::monotonic_now;
use crate::config::WaitMode;
use crate::feed::Feed;
use crate::host::{self, StayAwake};
use crate::record::{Epoch, Recorder, Recording};
use crate::report::RunReport;
use crate::run::{StartError, Watched};
use crate::stage::{Egress, Feeding};
use crate::thread::{Bell, Control, ThreadEnd};

/// Time to read the first frames before the first one is due.
const PREPARE: Nanos = Nanos::from_millis(100);

/// Before a start that was asked for, reading begins so early.
const READ_BEFORE_START: Nanos = Nanos::from_secs(2);

/// A running replay.
pub struct Replaying {
    seed: u64,
    epoch: Epoch,
    outputs: Vec<Watched>,
    inputs: Vec<Input>,
    threads: Vec<(Arc<Bell>, JoinHandle<ThreadEnd>)>,
    control: Arc<Control>,
    recorder: Option<JoinHandle<Result<(), String>>>,
    notes: Vec<String>,
    _awake: Option<StayAwake>,
}

/// Starts to send what `feeds` hand out: the outputs are the first feed's, in
/// its order, then the second one's, and so on. With a `recorder`, what enters
/// and leaves every link is recorded.
///
/// # Errors
/// If memory or threads cannot be had, or the outputs are not as many as the
/// feeds need.
pub fn start(
    feeds: Vec<Box<dyn Feed>>,
    outputs: Vec<ReplayOutput>,
    config: ReplayConfig,
    recorder: Option<Box<dyn Recorder>>,
) -> Result<Replaying, StartError> {
    let needed = feeds.iter().map(|feed| feed.outputs()).sum();
    if needed != outputs.len() {
        return Err(StartError::Outputs {
            needed,
            given: outputs.len(),
        });
    }
    let epoch = epoch(config.start);
    let recording = recorder.is_some().then(Recording::new);
    let paced = feeds.iter().all(|feed| feed.is_paced());
    let mut building = Building {
        config: &config,
        epoch,
        recording: recording.as_ref(),
        paced,
        watched: Vec::new(),
        egress: Vec::new(),
        notes: Vec::new(),
    };
    let mut outputs = outputs.into_iter();
    let mut feedings = Vec::new();
    for feed in feeds {
        let count = feed.outputs();
        feedings.push(building.feeding(feed, outputs.by_ref().take(count))?);
    }
    let Building {
        watched,
        egress,
        notes,
        ..
    } = building;
    let inputs = feedings.iter().map(|feeding| Input(feeding.shared()));
    let mut replaying = Replaying {
        seed: config.seed,
        epoch,
        outputs: watched,
        inputs: inputs.collect(),
        threads: Vec::new(),
        control: Arc::new(Control {
            faults: config.faults.clone(),
            ..Control::default()
        }),
        recorder: None,
        notes,
        _awake: None,
    };
    if let (Some(recording), Some(mut recorder)) = (recording, recorder) {
        recorder.start(epoch);
        replaying.recorder = Some(spawn("longwire-record", move || recording.write(recorder))?);
    }
    let sleeps = config.wait != WaitMode::Spin && paced;
    if config.realtime && sleeps {
        replaying.stay_awake();
    }
    replaying.spawn_threads(feedings, egress, &config, sleeps)?;
    Ok(replaying)
}

/// The start on both clocks.
fn epoch(start: Start) -> Epoch {
    let now = Epoch::now();
    let soon = Epoch {
        monotonic: now.monotonic.saturating_add(PREPARE),
        wall: now.wall.saturating_add(PREPARE),
    };
    match start {
        Start::Soon => soon,
        Start::At(wall) => Epoch {
            monotonic: now.monotonic.saturating_add(wall).saturating_sub(now.wall),
            wall,
        },
    }
}

impl Replaying {
    /// Asks for cores that wake quickly.
    fn stay_awake(&mut self) {
        match StayAwake::ask() {
            Ok(request) => {
                self._awake = Some(request);
                self.notes
                    .push("idle cores are kept from sleeping deeply meanwhile".to_owned());
            }
            Err(error) => self.notes.push(format!(
                "cores may sleep deeply ({error}: /dev/cpu_dma_latency): waking takes longer and costs more spinning"
            )),
        }
    }

    fn spawn_threads(
        &mut self,
        feedings: Vec<Feeding>,
        egress: Vec<Egress<AnyTx>>,
        config: &ReplayConfig,
        fifo: bool,
    ) -> Result<(), StartError> {
        let cores = host::allowed_cores();
        // Each output a thread of its own where there are cores for them, for
        // the reader and for the rest of the machine.
        let apart = cores.len() >= egress.len() + 2;
        let mut groups: Vec<Vec<_>> = Vec::new();
        for stage in egress {
            match groups.last_mut() {
                Some(group) if !apart => group.push(stage),
                _ => groups.push(vec![stage]),
            }
        }
        let pumps = groups.len();
        let mut bells = Vec::new();
        for (index, egress) in groups.into_iter().enumerate() {
            let core = apart.then(|| cores[cores.len() - 1 - index]);
            let pump = Pump {
                egress,
                pacer: Pacer::new(config.wait)?,
                bell: Arc::new(Bell::new()?),
                control: Arc::clone(&self.control),
                readers: 1,
                fifo: config.realtime && fifo,
            };
            bells.push(Arc::clone(&pump.bell));
            self.spawn_pump(pump, index, (core, config.realtime, fifo))?;
        }
        let placed = if apart { "a core each" } else { "together" };
        self.notes.push(format!(
            "placement: 1 reading and {pumps} sending threads, senders {placed} ({} cores)",
            cores.len()
        ));
        let reader = Reader {
            feedings,
            fed: bells,
            control: Arc::clone(&self.control),
            begin: self.epoch.monotonic.saturating_sub(READ_BEFORE_START),
        };
        let realtime = config.realtime;
        let thread = spawn("longwire-read", move || {
            host::prepare_thread(None, realtime);
            reader.run()
        })?;
        self.threads.push((Arc::new(Bell::new()?), thread));
        Ok(())
    }

    fn spawn_pump(
        &mut self,
        pump: Pump,
        index: usize,
        (core, realtime, fifo): (Option<usize>, bool, bool),
    ) -> Result<(), StartError> {
        let bell = Arc::clone(&pump.bell);
        let (tell, told) = std::sync::mpsc::channel();
        let thread = spawn(&format!("longwire-{index}"), move || {
            let _ = tell.send(host::prepare_sender(core, realtime, fifo));
            pump.run()
        })?;
        for note in told.recv().unwrap_or_default() {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        self.threads.push((bell, thread));
        Ok(())
    }

    /// What was decided or found at start, in sentences.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// When it starts, on both clocks.
    pub fn start(&self) -> Epoch {
        self.epoch
    }

    /// Whether everything has been sent, a port was lost, or a plugin failed.
    pub fn ended(&self) -> bool {
        self.control.failed.load(Ordering::SeqCst)
            || self.control.faults.any()
            || self.threads.iter().all(|(_, thread)| thread.is_finished())
    }

    /// Waits for the end, for so long at the most.
    pub fn wait(&self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        while !self.ended() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            std::thread::sleep(left.min(Duration::from_millis(20)));
        }
        true
    }

    /// The report as of now.
    pub fn snapshot(&self) -> RunReport {
        let now = monotonic_now();
        RunReport {
            seed: self.seed,
            epoch_ns: self.epoch.wall.as_nanos(),
            duration_s: now.saturating_sub(self.epoch.monotonic).as_secs_f64(),
            links: self.outputs.iter().map(Watched::report).collect(),
            inputs: self.inputs.iter().map(Input::report).collect(),
            notes: self.notes.clone(),
            ..RunReport::default()
        }
    }

    /// Ends the replay and reports on all of it. What was read and not sent
    /// counts as in flight.
    pub fn stop(mut self) -> RunReport {
        let ends = self.end_threads();
        let recorded = self.recorder.take().map(JoinHandle::join);
        let mut report = self.snapshot();
        report.error = self.control.faults.first();
        if let Some(Ok(Err(error))) = recorded {
            report.error.get_or_insert(format!("recording: {error}"));
        }
        for end in ends {
            crate::summary::add_thread_end(&mut report, end);
        }
        report
    }

    fn end_threads(&mut self) -> Vec<ThreadEnd> {
        self.control.stop.store(true, Ordering::SeqCst);
        for (bell, _) in &self.threads {
            bell.ring();
        }
        let threads = self.threads.drain(..);
        threads
            .map(|(_, thread)| thread.join().unwrap_or_else(|_| ThreadEnd::panicked()))
            .collect()
    }
}

impl Drop for Replaying {
    /// A replay that is dropped is stopped; its report is lost.
    fn drop(&mut self) {
        self.end_threads();
    }
}

fn spawn<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, StartError> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(body)
        .map_err(StartError::Thread)
}
