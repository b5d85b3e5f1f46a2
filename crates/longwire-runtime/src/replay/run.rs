//! Starting, watching and stopping a replay.

use std::sync::Arc;
use std::time::Duration;

use longwire_engine::Nanos;
use longwire_io::port::AnyTx;

use super::build::ReplayBuilder;
use super::pacer::Pacer;
use super::pump::Pump;
use super::reader::Reader;
use super::summary::ReplayInput;
use super::{ReplayConfig, ReplayOutput, Start};
use crate::clock::monotonic_now;
use crate::config::WaitMode;
use crate::feed::Feed;
use crate::host::{self, StayAwake};
use crate::record::{Epoch, Recorder, Recording};
use crate::report::RunReport;
use crate::run::ReportSource;
use crate::stage::{Egress, Feeding};
use crate::start_error::StartError;
use crate::thread::Bell;
use crate::threads::Threads;
use crate::witness::PauseHistory;

/// Time for reading the first frames before the first one is due.
const PREPARE: Nanos = Nanos::from_millis(100);

/// Reading begins this long before a requested start.
const READ_BEFORE_START: Nanos = Nanos::from_secs(2);

/// A running replay. Dropped, it is stopped, and its report is lost.
pub struct Replaying {
    seed: u64,
    epoch: Epoch,
    outputs: Vec<ReportSource>,
    inputs: Vec<ReplayInput>,
    threads: Threads,
    notes: Vec<String>,
    _awake: Option<StayAwake>,
}

/// Starts to send the frames of `feeds`: the outputs are the first feed's, in
/// its order, then the second one's, and so on. With a `recorder`, the frames
/// that enter and leave every link are recorded.
///
/// # Errors
/// Memory or threads cannot be obtained, or the number of outputs does not
/// match the feeds.
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
    let mut building = ReplayBuilder {
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
    let ReplayBuilder {
        watched,
        egress,
        notes,
        ..
    } = building;
    let inputs = feedings.iter().map(|feeding| ReplayInput(feeding.shared()));
    let mut replaying = Replaying {
        seed: config.seed,
        epoch,
        outputs: watched,
        inputs: inputs.collect(),
        threads: Threads::new(config.faults.clone()),
        notes,
        _awake: None,
    };
    if let (Some(recording), Some(recorder)) = (recording, recorder) {
        replaying.threads.record(recording, recorder, epoch)?;
    }
    let sleeps = config.wait != WaitMode::Spin && paced;
    if config.realtime && sleeps {
        replaying.stay_awake();
    }
    replaying.spawn_threads(feedings, egress, &config, sleeps)?;
    Ok(replaying)
}

/// Returns the start on both clocks.
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
    /// Requests cores that wake quickly.
    fn stay_awake(&mut self) {
        match StayAwake::ask() {
            Ok(request) => {
                self._awake = Some(request);
                self.notes
                    .push("idle cores are kept from deep sleep during the replay".to_owned());
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
        // A separate thread for each output where there are cores for them, for
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
        for (index, mut egress) in groups.into_iter().enumerate() {
            let pauses = Arc::new(PauseHistory::default());
            for stage in &mut egress {
                stage.excuse_by(&pauses);
            }
            let core = apart.then(|| cores[cores.len() - 1 - index]);
            let pump = Pump {
                egress,
                pacer: Pacer::new(config.wait, pauses)?,
                bell: Arc::new(Bell::new()?),
                control: Arc::clone(self.threads.control()),
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
            control: Arc::clone(self.threads.control()),
            begin: self.epoch.monotonic.saturating_sub(READ_BEFORE_START),
        };
        let realtime = config.realtime;
        let prepare = move || {
            host::prepare_thread(None, realtime);
            // The senders report the same.
            Vec::new()
        };
        let bell = Arc::new(Bell::new()?);
        self.threads
            .spawn("longwire-read", bell, &mut self.notes, prepare, || {
                reader.run()
            })
    }

    fn spawn_pump(
        &mut self,
        pump: Pump,
        index: usize,
        (core, realtime, fifo): (Option<usize>, bool, bool),
    ) -> Result<(), StartError> {
        let bell = Arc::clone(&pump.bell);
        let name = format!("longwire-{index}");
        let prepare = move || host::prepare_sender(core, realtime, fifo);
        self.threads
            .spawn(&name, bell, &mut self.notes, prepare, || pump.run())
    }

    /// Returns the notes made at the start, as sentences.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the start, on both clocks.
    pub fn start(&self) -> Epoch {
        self.epoch
    }

    /// Whether all frames have been sent, a port was lost, or a plugin failed.
    pub fn ended(&self) -> bool {
        self.threads.ended()
    }

    /// Waits for the end, for `timeout` at most; returns whether it has ended.
    pub fn wait(&self, timeout: Duration) -> bool {
        self.threads.wait(timeout)
    }

    /// Returns the current report.
    pub fn snapshot(&self) -> RunReport {
        let now = monotonic_now();
        RunReport {
            seed: self.seed,
            epoch_ns: self.epoch.wall.as_nanos(),
            duration_s: now.saturating_sub(self.epoch.monotonic).as_secs_f64(),
            links: self.outputs.iter().map(ReportSource::report).collect(),
            inputs: self.inputs.iter().map(ReplayInput::report).collect(),
            notes: self.notes.clone(),
            ..RunReport::default()
        }
    }

    /// Ends the replay and returns its complete report. Frames that were read
    /// and not sent count as in flight.
    pub fn stop(mut self) -> RunReport {
        let stopped = self.threads.stop();
        let mut report = self.snapshot();
        stopped.add_to(&mut report);
        report
    }
}
