//! Recording of arrivals, verdicts and handovers.
//!
//! Stages batch events for a separate writer thread. A live stage never blocks on it: if the writer
//! is too slow, events are dropped and counted as an artifact.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use longwire_capture::log::{LogError, RowSink, VerdictLog};
use longwire_capture::{CaptureError, CaptureWriter, complete_block, push_frame};
use longwire_engine::{Bytes, Delivery, FrameMeta, LinkId, Nanos, Packets, Verdict};
use longwire_packet::bridge::PortIndex;

use crate::clock::monotonic_now;
use crate::host;
use crate::shutdown::is_hurried;
use crate::start_error::StartError;
use crate::sync::locked;

mod merge;

use merge::{Merge, PendingTime};

/// An event. Events keep the order in which their stage processed them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A wire frame arrived at a port.
    Entered {
        /// The port.
        port: PortIndex,
        /// The arrival assigned by the network.
        arrival: Nanos,
        /// Wire length in bytes, without framing.
        wire_len: u32,
        /// The frame's bytes, among those of its batch.
        bytes: Range<usize>,
    },
    /// A wire frame was offered to a link.
    Arrived {
        /// The link.
        link: LinkId,
        /// The frame's number on its link, from 0 in order of offers.
        frame: u64,
        /// The arrival assigned by the link.
        arrival: Nanos,
        /// Wire length in bytes.
        len: u32,
        /// The queue's occupancy right after the offer.
        queue: (Packets, Bytes),
    },
    /// A link's verdict on a frame. Later verdicts on the same frame are for its duplicates.
    Decided {
        /// The link.
        link: LinkId,
        /// The frame's number.
        frame: u64,
        /// The verdict; never [`Verdict::Queued`].
        verdict: Verdict,
    },
    /// A wire frame was handed to the output port.
    Left {
        /// The handover.
        handover: Nanos,
        /// Wire length in bytes, without framing.
        wire_len: u32,
        /// The frame's bytes, among those of its batch.
        bytes: Range<usize>,
    },
}

impl Event {
    /// Returns the arrival or handover of a frame at a port; `None` for events of links.
    fn port_time(&self) -> Option<Nanos> {
        match self {
            Event::Entered { arrival, .. } => Some(*arrival),
            Event::Left { handover, .. } => Some(*handover),
            Event::Arrived { .. } | Event::Decided { .. } => None,
        }
    }
}

/// Events of one stage.
#[derive(Debug)]
struct Batch {
    /// The stage's link; for departing frames, the output port's number.
    of: LinkId,
    side: Side,
    /// Number of the handle among those of this side.
    source: usize,
    events: Vec<Event>,
    /// The frames' bytes, each with [room](push_frame) for its capture record.
    bytes: Vec<u8>,
}

/// The side of a network, each with a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    In,
    Out,
}

/// Origin of a run's schedules, on two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch {
    /// On CLOCK_MONOTONIC, the run's clock.
    pub monotonic: Nanos,
    /// As time since the Unix epoch.
    pub wall: Nanos,
}

impl Epoch {
    /// The start of virtual time.
    pub const ZERO: Epoch = Epoch {
        monotonic: Nanos::ZERO,
        wall: Nanos::ZERO,
    };

    /// Returns the current instant.
    pub fn now() -> Epoch {
        let wall = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Epoch {
            monotonic: monotonic_now(),
            wall: wall.map_or(
                Nanos::ZERO,
                |wall| Nanos::from_nanos(wall.as_nanos() as u64),
            ),
        }
    }

    /// Converts a time on the run's clock to time since the Unix epoch.
    pub fn wall_time(&self, time: Nanos) -> Nanos {
        let since = time.saturating_sub(self.monotonic);
        let before = self.monotonic.saturating_sub(time);
        self.wall.saturating_add(since).saturating_sub(before)
    }

    /// Converts a verdict's times to time since the Unix epoch. `Nanos::MAX` stays.
    pub fn wall_verdict(&self, verdict: &Verdict) -> Verdict {
        let wall = |time| match time {
            Nanos::MAX => Nanos::MAX,
            time => self.wall_time(time),
        };
        match verdict {
            Verdict::Deliver(delivery) => Verdict::Deliver(Delivery {
                departure: wall(delivery.departure),
                release: wall(delivery.release),
                ..*delivery
            }),
            other => *other,
        }
    }
}

/// Writes the stages' events, on a separate thread.
pub trait Recorder: Send {
    /// Receives the start of the run.
    fn start(&mut self, epoch: Epoch);

    /// Returns whether the recorder needs frames at ports.
    fn wants_frames(&self) -> bool {
        true
    }

    /// Returns whether the recorder needs the events of links.
    fn wants_verdicts(&self) -> bool {
        true
    }

    /// Returns the maximum number of bytes recorded per frame.
    fn snap_len(&self) -> u32 {
        u32::MAX
    }

    /// Writes events of the link or output port `of`, whose frames are in `bytes`, each with
    /// [room](push_frame) for its capture record.
    ///
    /// # Errors
    /// The events cannot be written. The run continues and reports the error at its end.
    fn record(&mut self, of: LinkId, events: &[Event], bytes: &mut [u8]) -> Result<(), String>;

    /// Ends the recording.
    ///
    /// # Errors
    /// The remaining data cannot be written.
    fn finish(&mut self) -> Result<(), String>;
}

/// Maximum number of batches queued for the recorder. While the queue is full, a stage extends its
/// current batch.
const BATCHES: usize = 256;

/// Batch sizes, in bytes and in events, above which a batch is dropped if the queue is full.
const GATHERED_BYTES_MAX: usize = 16 << 20;
const GATHERED_EVENTS_MAX: usize = 1 << 18;

/// Batch sizes, in bytes and in events, at which a batch is handed over before the end of a burst.
const BATCH_BYTES: usize = 256 * 1024;
const BATCH_EVENTS: usize = 4096;

/// Written batches for reuse, because fresh memory costs a page fault per 4 KiB of frames.
#[derive(Clone, Debug, Default)]
struct SpareBatches(Arc<Mutex<Vec<Batch>>>);

/// Initial bytes of a batch, which the last frame may exceed.
const FRESH_BYTES: usize = BATCH_BYTES + 16 * 1024;

/// Maximum number of spare batches, and of bytes in each.
const SPARE: usize = 128;
const SPARE_BYTES_MAX: usize = 2 * BATCH_BYTES;

impl SpareBatches {
    /// Replaces a batch by an empty one of the same stage, and returns it. Does not block.
    fn replace(&self, batch: &mut Batch) -> Batch {
        let spare = self.0.try_lock().ok().and_then(|mut spare| spare.pop());
        let (events, bytes) =
            spare.map_or_else(Default::default, |spare| (spare.events, spare.bytes));
        let next = Batch {
            events,
            bytes,
            ..*batch
        };
        std::mem::replace(batch, next)
    }

    /// Keeps a written batch for reuse.
    fn keep(&self, mut batch: Batch) {
        if batch.bytes.capacity() > SPARE_BYTES_MAX {
            return;
        }
        batch.bytes.clear();
        batch.events.clear();
        let mut spare = locked(&self.0);
        if spare.len() < SPARE {
            spare.push(batch);
        }
    }
}

/// A stage's sending end of a recording.
#[derive(Debug)]
pub struct RecordHandle {
    sender: SyncSender<Batch>,
    spare: SpareBatches,
    batch: Batch,
    pending: Arc<PendingTime>,
    /// Time of the last frame.
    last: Nanos,
    lost: u64,
    /// Maximum number of bytes recorded per frame.
    snap_len: usize,
    /// Whether to block instead of dropping events. In virtual time, that delays no frame.
    waits: bool,
}

/// The writer thread.
pub(crate) struct RecordWriter {
    thread: JoinHandle<Result<(), String>>,
    /// Set if the remaining record handles will not be used again.
    no_more: Arc<AtomicBool>,
}

impl RecordWriter {
    /// Lets the writer thread end although stuck threads still have record handles.
    pub fn no_more(&self) {
        self.no_more.store(true, Ordering::Release);
    }

    /// Waits until all events are written, or gives up in a hurried stop.
    ///
    /// # Errors
    /// Some events were not written.
    pub fn end(self) -> Result<(), String> {
        const LOOK: Duration = Duration::from_millis(2);
        while !self.thread.is_finished() {
            if is_hurried() {
                return Err("incomplete, since the run was stopped twice".to_owned());
            }
            std::thread::sleep(LOOK);
        }
        let panicked = "the recorder panicked; please report this";
        self.thread
            .join()
            .unwrap_or_else(|_| Err(panicked.to_owned()))
    }
}

/// The parts of a recording before the run starts, if the run is recorded.
pub(crate) struct RecordingParts(Option<Recording>);

/// A recorder and both ends of its queue.
struct Recording {
    recorder: Box<dyn Recorder>,
    sender: SyncSender<Batch>,
    receiver: Receiver<Batch>,
    spare: SpareBatches,
    /// Pending times of the handles, by side.
    pending: [RefCell<Vec<Arc<PendingTime>>>; 2],
}

impl RecordingParts {
    /// Prepares a recording with this recorder.
    pub fn by(recorder: Option<Box<dyn Recorder>>) -> RecordingParts {
        let (sender, receiver) = sync_channel(BATCHES);
        RecordingParts(recorder.map(|recorder| Recording {
            recorder,
            sender,
            receiver,
            spare: SpareBatches::default(),
            pending: Default::default(),
        }))
    }

    /// Returns whether frames at ports are recorded.
    pub fn wants_frames(&self) -> bool {
        let recording = self.0.as_ref();
        recording.is_some_and(|recording| recording.recorder.wants_frames())
    }

    /// Returns whether events of links are recorded.
    pub fn wants_verdicts(&self) -> bool {
        let recording = self.0.as_ref();
        recording.is_some_and(|recording| recording.recorder.wants_verdicts())
    }

    /// Returns a handle for arrivals at a port and for verdicts of its link.
    pub fn arrivals(&self, of: LinkId) -> Option<RecordHandle> {
        self.handle(of, Side::In)
    }

    /// Returns a handle for frames handed to an output port.
    pub fn departures(&self, of: LinkId) -> Option<RecordHandle> {
        self.handle(of, Side::Out)
    }

    fn handle(&self, of: LinkId, side: Side) -> Option<RecordHandle> {
        let recording = self.0.as_ref()?;
        let mut handles = recording.pending[side as usize].borrow_mut();
        let pending = Arc::<PendingTime>::default();
        handles.push(Arc::clone(&pending));
        let source = handles.len() - 1;
        let batch = Batch {
            of,
            side,
            source,
            events: Vec::new(),
            bytes: Vec::new(),
        };
        Some(RecordHandle {
            sender: recording.sender.clone(),
            spare: recording.spare.clone(),
            batch,
            pending,
            last: Nanos::ZERO,
            lost: 0,
            snap_len: recording.recorder.snap_len() as usize,
            waits: false,
        })
    }

    /// Starts the writer thread, which runs until all record handles are dropped.
    pub fn start(self, epoch: Epoch) -> Result<Option<RecordWriter>, StartError> {
        let Some(mut recording) = self.0 else {
            return Ok(None);
        };
        recording.recorder.start(epoch);
        let no_more = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&no_more);
        let thread = std::thread::Builder::new()
            .name("longwire-record".to_owned())
            .spawn(move || {
                host::give_up_rights();
                recording.write(&ends)
            })
            .map_err(StartError::Thread)?;
        Ok(Some(RecordWriter { thread, no_more }))
    }
}

impl Recording {
    /// Writes until all record handles are dropped or will not be used again.
    fn write(mut self, no_more: &AtomicBool) -> Result<(), String> {
        /// Interval at which the thread checks whether the handles will be used again.
        const LOOK: Duration = Duration::from_millis(100);
        drop(self.sender);
        let mut outcome = Ok(());
        let recorder = &mut *self.recorder;
        let pending = self.pending.map(RefCell::into_inner);
        let mut merges = pending.map(|pending| Merge::new(pending, self.spare.clone()));
        // After a failure, discard the remaining batches. Otherwise, the queue would fill, and
        // stages would drop events too.
        loop {
            let received = self.receiver.recv_timeout(LOOK);
            let is_last = match received {
                Ok(_) => false,
                Err(RecvTimeoutError::Timeout) => no_more.load(Ordering::Acquire),
                Err(RecvTimeoutError::Disconnected) => true,
            };
            let now = monotonic_now();
            merges.iter_mut().for_each(|merge| merge.look(now));
            // All batches that were handed over before the look are among the next ones.
            let queued = self.receiver.try_iter().take(BATCHES);
            for batch in received.into_iter().chain(queued) {
                merges[batch.side as usize].add(batch);
            }
            for merge in &mut merges {
                if outcome.is_ok() {
                    outcome = merge.write(is_last, recorder);
                } else {
                    merge.discard();
                }
            }
            if is_last {
                break;
            }
        }
        // Also end the files that did not fail.
        let finished = recorder.finish();
        outcome.and(finished)
    }
}

impl RecordHandle {
    /// Makes the handle block on a full queue instead of dropping events. For virtual time.
    pub(crate) fn waiting(mut self) -> RecordHandle {
        self.waits = true;
        self
    }

    /// Adds an event with its frame's first bytes.
    pub(crate) fn push(&mut self, bytes: &[u8], event: impl FnOnce(Range<usize>) -> Event) {
        let all = &mut self.batch.bytes;
        if all.capacity() == 0 {
            all.reserve(FRESH_BYTES);
        }
        let kept = &bytes[..bytes.len().min(self.snap_len)];
        let event = event(push_frame(all, kept));
        self.last = event.port_time().unwrap_or(self.last);
        self.begin();
        self.batch.events.push(event);
        if self.batch.bytes.len() >= BATCH_BYTES || self.batch.events.len() >= BATCH_EVENTS {
            self.flush();
        }
    }

    /// Adds a link event, which has no bytes.
    pub(crate) fn push_event(&mut self, event: Event) {
        self.begin();
        self.batch.events.push(event);
        if self.batch.events.len() >= BATCH_EVENTS {
            self.flush();
        }
    }

    /// Announces the first event of a batch to the writer.
    fn begin(&self) {
        if self.batch.events.is_empty() {
            self.pending.set(self.last);
        }
    }

    /// Hands over the current batch. If the queue is full, keeps the batch, or drops it above the
    /// limits.
    pub(crate) fn flush(&mut self) {
        if self.batch.events.is_empty() {
            return;
        }
        if self.waits {
            return self.finish();
        }
        let batch = self.spare.replace(&mut self.batch);
        if let Err(error) = self.sender.try_send(batch) {
            let (TrySendError::Full(batch) | TrySendError::Disconnected(batch)) = error;
            let full = batch.bytes.len() > GATHERED_BYTES_MAX;
            if full || batch.events.len() > GATHERED_EVENTS_MAX {
                self.lost += batch.events.len() as u64;
            } else {
                self.batch = batch;
                return;
            }
        }
        self.pending.set(Nanos::MAX);
    }

    /// Hands over the remaining events, blocking until there is room.
    pub(crate) fn finish(&mut self) {
        let last = self.spare.replace(&mut self.batch);
        let events = last.events.len() as u64;
        if events > 0 && self.sender.send(last).is_err() {
            self.lost += events;
        }
        self.pending.set(Nanos::MAX);
    }

    /// Returns the number of events lost because the writer thread was too slow or gone.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }
}

/// Writes the recording of a live or virtual-time run.
pub struct FileRecorder {
    epoch: Epoch,
    /// Captures of arrived and departed frames, with an interface per port.
    captures: Option<[CaptureWriter; 2]>,
    /// Maximum number of bytes captured per frame.
    snap_len: u32,
    log: Option<VerdictLog>,
}

/// Failure to create or write a recording's file.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum RecordError {
    #[error(transparent)]
    Capture(#[from] CaptureError),
    #[error(transparent)]
    Log(#[from] LogError),
}

impl FileRecorder {
    /// Creates the captures `PREFIX.in.pcapng` and `PREFIX.out.pcapng` with an interface per port
    /// and at most `snap_len` bytes per frame, and writes rows for these links to each of `log`.
    /// Returns `None` without prefix and log.
    ///
    /// # Errors
    /// A file cannot be created.
    pub fn create<'a>(
        (prefix, snap_len): (Option<&str>, u32),
        log: Vec<Box<dyn RowSink>>,
        ports: &[&str],
        links: impl IntoIterator<Item = &'a str>,
    ) -> Result<Option<Box<dyn Recorder>>, RecordError> {
        let log = (!log.is_empty()).then(|| VerdictLog::new(log, links));
        let create = |prefix: &str, end: &str| {
            CaptureWriter::create_for(&format!("{prefix}.{end}.pcapng"), ports, snap_len)
        };
        let captures = match prefix {
            Some(prefix) => Some([create(prefix, "in")?, create(prefix, "out")?]),
            None => None,
        };
        if log.is_none() && captures.is_none() {
            return Ok(None);
        }
        Ok(Some(Box::new(FileRecorder {
            epoch: Epoch::now(),
            captures,
            snap_len,
            log,
        })))
    }

    /// Writes events of the link or output port `of`. The frames of one call are all arrivals or
    /// all departures.
    fn write(
        &mut self,
        of: LinkId,
        events: &[Event],
        all_bytes: &mut [u8],
    ) -> Result<(), RecordError> {
        // The side, and the range of the frames' blocks.
        let mut blocks: Option<(Side, Range<usize>)> = None;
        for event in events {
            let (side, interface, time, bytes, wire_len) = match event {
                Event::Entered {
                    port,
                    arrival,
                    wire_len,
                    bytes,
                } => (Side::In, port.0.into(), arrival, bytes, *wire_len),
                Event::Left {
                    handover,
                    wire_len,
                    bytes,
                } => (Side::Out, of.0, handover, bytes, *wire_len),
                event => {
                    self.log(event)?;
                    continue;
                }
            };
            let stamp = self.epoch.wall_time(*time);
            let block = complete_block(all_bytes, bytes.clone(), interface, stamp, wire_len);
            let start = blocks.map_or(block.start, |(_, earlier)| earlier.start);
            blocks = Some((side, start..block.end));
        }
        if let (Some((side, range)), Some(captures)) = (blocks, &mut self.captures) {
            captures[side as usize].write_blocks(&all_bytes[range])?;
        }
        Ok(())
    }

    /// Logs a link event.
    fn log(&mut self, event: &Event) -> Result<(), RecordError> {
        let Some(log) = &mut self.log else {
            return Ok(());
        };
        match event {
            Event::Arrived {
                link,
                frame,
                arrival,
                len,
                queue,
            } => {
                let meta = FrameMeta::new(self.epoch.wall_time(*arrival), *len);
                log.offered(link.0 as usize, *frame, meta, *queue);
            }
            Event::Decided {
                link,
                frame,
                verdict,
            } => log.decided(link.0 as usize, *frame, &self.epoch.wall_verdict(verdict))?,
            Event::Entered { .. } | Event::Left { .. } => {}
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), RecordError> {
        if let Some(log) = self.log.take() {
            log.finish()?;
        }
        if let Some([entered, left]) = self.captures.take() {
            entered.finish()?;
            left.finish()?;
        }
        Ok(())
    }
}

impl Recorder for FileRecorder {
    fn start(&mut self, epoch: Epoch) {
        self.epoch = epoch;
        if let Some(log) = &mut self.log {
            log.set_epoch(epoch.wall);
        }
    }

    fn wants_frames(&self) -> bool {
        self.captures.is_some()
    }

    fn wants_verdicts(&self) -> bool {
        self.log.is_some()
    }

    fn snap_len(&self) -> u32 {
        self.snap_len
    }

    fn record(&mut self, of: LinkId, events: &[Event], bytes: &mut [u8]) -> Result<(), String> {
        let written = self.write(of, events, bytes);
        written.map_err(|error| error.to_string())
    }

    fn finish(&mut self) -> Result<(), String> {
        self.end().map_err(|error| error.to_string())
    }
}
