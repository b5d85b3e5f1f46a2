//! Recording of arrivals, verdicts and handovers.
//!
//! Stages batch events for a separate writer thread. A live stage never blocks on it: if
//! the writer is too slow, events are dropped and counted as an artifact.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use longwire_engine::{Bytes, Delivery, LinkId, Nanos, Packets, Verdict};
use longwire_packet::bridge::PortIndex;

use crate::host;
use crate::shutdown::is_hurried;
use crate::start_error::StartError;

/// An event; events keep the order in which their stage saw them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A wire frame arrived at a port.
    Entered {
        /// The port.
        port: PortIndex,
        /// The arrival assigned by the network.
        arrival: Nanos,
        /// Length on the wire in bytes, without framing.
        wire_len: u32,
        /// Its bytes, in [`Batch::bytes`].
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
        /// Length on the wire in bytes.
        len: u32,
        /// Occupancy of the queue right after the offer.
        queue: (Packets, Bytes),
    },
    /// A link's verdict about a frame or, after the first, about a duplicate of it.
    Decided {
        /// The link.
        link: LinkId,
        /// The frame's number.
        frame: u64,
        /// Never [`Verdict::Queued`].
        verdict: Verdict,
    },
    /// A wire frame was handed to the output port.
    Left {
        /// The handover.
        handover: Nanos,
        /// Its bytes, in [`Batch::bytes`].
        bytes: Range<usize>,
    },
}

/// Events of one stage.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The stage's link; for departing frames, the number of the output port.
    pub link: LinkId,
    /// The events.
    pub events: Vec<Event>,
    /// Concatenated bytes of the frames.
    pub bytes: Vec<u8>,
}

/// Origin of a run's schedules, on two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch {
    /// On CLOCK_MONOTONIC, the clock of a run.
    pub monotonic: Nanos,
    /// Since the Unix epoch.
    pub wall: Nanos,
}

impl Epoch {
    /// The start of virtual time.
    pub(crate) const ZERO: Epoch = Epoch {
        monotonic: Nanos::ZERO,
        wall: Nanos::ZERO,
    };

    /// Returns the current instant.
    pub fn now() -> Epoch {
        let wall = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Epoch {
            monotonic: crate::clock::monotonic_now(),
            wall: wall.map_or(
                Nanos::ZERO,
                |wall| Nanos::from_nanos(wall.as_nanos() as u64),
            ),
        }
    }

    /// Converts a run time to time since the Unix epoch.
    pub fn wall_time(&self, time: Nanos) -> Nanos {
        let since = time.saturating_sub(self.monotonic);
        let before = self.monotonic.saturating_sub(time);
        self.wall.saturating_add(since).saturating_sub(before)
    }

    /// Converts a verdict's times to time since the Unix epoch; `Nanos::MAX` stays.
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

/// Writes the events of stages, on a separate thread.
pub trait Recorder: Send {
    /// Receives the start of the run.
    fn start(&mut self, epoch: Epoch);

    /// Whether it needs frames at ports in addition to verdicts.
    fn wants_frames(&self) -> bool {
        true
    }

    /// Writes a batch.
    ///
    /// # Errors
    /// The batch cannot be written; the run continues and reports the error at its end.
    fn record(&mut self, batch: &Batch) -> Result<(), String>;

    /// Ends the recording.
    ///
    /// # Errors
    /// The remaining data cannot be written.
    fn finish(&mut self) -> Result<(), String>;
}

/// Maximum number of batches queued for the recorder; beyond it, a stage extends its
/// current batch.
const BATCHES: usize = 256;

/// Size in bytes and events above which a batch is dropped if the queue is full.
const GATHERED_BYTES_MAX: usize = 16 << 20;
const GATHERED_EVENTS_MAX: usize = 1 << 18;

/// Size in bytes and events at which a batch is handed over before the end of a burst.
const BATCH_BYTES: usize = 256 * 1024;
const BATCH_EVENTS: usize = 4096;

/// Written batches for reuse: fresh memory costs a page fault per 4 KiB of frames.
#[derive(Clone, Debug, Default)]
struct SpareBatches(Arc<Mutex<Vec<Batch>>>);

/// Maximum number of spare batches, and of bytes in each.
const SPARE: usize = 32;
const SPARE_BYTES_MAX: usize = 4 * BATCH_BYTES;

impl SpareBatches {
    /// Returns an empty batch without blocking.
    fn take(&self, link: LinkId) -> Batch {
        let spare = self.0.try_lock().ok().and_then(|mut spare| spare.pop());
        match spare {
            Some(batch) => Batch { link, ..batch },
            None => empty(link),
        }
    }

    /// Keeps a written batch for reuse.
    fn keep(&self, mut batch: Batch) {
        if batch.bytes.capacity() > SPARE_BYTES_MAX {
            return;
        }
        batch.bytes.clear();
        batch.events.clear();
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.len() < SPARE {
            spare.push(batch);
        }
    }
}

/// A stage's end of a recording.
#[derive(Debug)]
pub struct RecordHandle {
    sender: SyncSender<Batch>,
    spare: SpareBatches,
    batch: Batch,
    lost: u64,
    /// Block instead of dropping events; in virtual time that delays no frame.
    waits: bool,
}

/// The writer thread.
pub(crate) struct RecordWriter {
    thread: JoinHandle<Result<(), String>>,
    /// Set if the remaining record handles will not be used again.
    no_more: Arc<AtomicBool>,
}

impl RecordWriter {
    /// Lets the thread end despite remaining record handles, whose threads do not end.
    pub fn no_more(&self) {
        self.no_more.store(true, Ordering::Release);
    }

    /// Waits until everything is written or the program must end.
    ///
    /// # Errors
    /// Some events were not written.
    pub fn end(self) -> Result<(), String> {
        const LOOK: Duration = Duration::from_millis(2);
        while !self.thread.is_finished() {
            if is_hurried() {
                return Err("incomplete: the run was stopped twice".to_owned());
            }
            std::thread::sleep(LOOK);
        }
        let panicked = "the recorder panicked; please report this";
        self.thread
            .join()
            .unwrap_or_else(|_| Err(panicked.to_owned()))
    }
}

/// The parts of a recording before the run starts, if it is recorded.
pub(crate) struct RecordingParts(Option<Recording>);

/// A recorder and both ends of its queue.
struct Recording {
    recorder: Box<dyn Recorder>,
    sender: SyncSender<Batch>,
    receiver: Receiver<Batch>,
    spare: SpareBatches,
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
        }))
    }

    /// Whether frames at ports are recorded in addition to verdicts.
    pub fn wants_frames(&self) -> bool {
        let recording = self.0.as_ref();
        recording.is_some_and(|recording| recording.recorder.wants_frames())
    }

    /// Returns a handle that records the events of a link or an output port.
    pub fn handle(&self, link: LinkId) -> Option<RecordHandle> {
        let recording = self.0.as_ref()?;
        Some(RecordHandle {
            sender: recording.sender.clone(),
            spare: recording.spare.clone(),
            batch: empty(link),
            lost: 0,
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
        /// Interval of checks whether the handles will be used again.
        const LOOK: Duration = Duration::from_millis(100);
        drop(self.sender);
        let mut outcome = Ok(());
        // After a failure, batches are drained and discarded, so that later events are
        // lost in one place.
        loop {
            match self.receiver.recv_timeout(LOOK) {
                Ok(batch) if outcome.is_ok() => {
                    outcome = self.recorder.record(&batch);
                    self.spare.keep(batch);
                }
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) if !no_more.load(Ordering::Acquire) => {}
                Err(_) => break,
            }
        }
        outcome.and_then(|()| self.recorder.finish())
    }
}

fn empty(link: LinkId) -> Batch {
    Batch {
        link,
        events: Vec::new(),
        bytes: Vec::new(),
    }
}

impl RecordHandle {
    /// Makes the handle block on a full queue instead of dropping events; for virtual
    /// time.
    pub(crate) fn waiting(self) -> RecordHandle {
        RecordHandle {
            waits: true,
            ..self
        }
    }

    /// Adds an event with the bytes of its frame.
    pub(crate) fn push(&mut self, bytes: &[u8], event: impl FnOnce(Range<usize>) -> Event) {
        let start = self.batch.bytes.len();
        self.batch.bytes.extend_from_slice(bytes);
        self.batch.events.push(event(start..start + bytes.len()));
        if self.batch.bytes.len() >= BATCH_BYTES || self.batch.events.len() >= BATCH_EVENTS {
            self.flush();
        }
    }

    /// Adds a link's event, which has no bytes.
    pub(crate) fn push_event(&mut self, event: Event) {
        self.batch.events.push(event);
        if self.batch.events.len() >= BATCH_EVENTS {
            self.flush();
        }
    }

    /// Hands over the current batch at the end of a burst.
    pub(crate) fn flush(&mut self) {
        if self.batch.events.is_empty() {
            return;
        }
        if self.waits {
            return self.finish();
        }
        let next = self.spare.take(self.batch.link);
        let batch = std::mem::replace(&mut self.batch, next);
        if let Err(error) = self.sender.try_send(batch) {
            let (TrySendError::Full(batch) | TrySendError::Disconnected(batch)) = error;
            let full = batch.bytes.len() > GATHERED_BYTES_MAX;
            if full || batch.events.len() > GATHERED_EVENTS_MAX {
                self.lost += batch.events.len() as u64;
            } else {
                self.batch = batch;
            }
        }
    }

    /// Hands over the remaining events, blocking until there is space.
    pub(crate) fn finish(&mut self) {
        let next = self.spare.take(self.batch.link);
        let last = std::mem::replace(&mut self.batch, next);
        let events = last.events.len() as u64;
        if events > 0 && self.sender.send(last).is_err() {
            self.lost += events;
        }
    }

    /// Returns the number of events that the recorder rejected.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }
}
