//! Recording a run: arrivals, verdicts, handovers.
//!
//! Stages gather events in batches and hand them to a separate thread, which
//! writes them. A stage never waits for it: events for which the writer is too
//! slow are lost and counted as an artifact.

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

/// An event, in the order in which one stage saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A wire frame came in at a port.
    Entered {
        /// The port.
        port: PortIndex,
        /// The arrival as the network assigned it.
        arrival: Nanos,
        /// Its length on the wire, in bytes, without framing.
        wire_len: u32,
        /// Its bytes, in [`Batch::bytes`].
        bytes: Range<usize>,
    },
    /// A wire frame was offered to a link.
    Arrived {
        /// The link.
        link: LinkId,
        /// The frame's number on its link, from 0 on in the order of offers.
        frame: u64,
        /// The arrival as the link assigned it.
        arrival: Nanos,
        /// Its length on the wire, in bytes.
        len: u32,
        /// Frames and bytes in the queue right after.
        queue: (Packets, Bytes),
    },
    /// A link decided about a frame: a verdict for itself, then one for each
    /// duplicate.
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

/// Events that one stage saw.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The link of the stage, or for frames that leave the number of the output port.
    pub link: LinkId,
    /// The events.
    pub events: Vec<Event>,
    /// The bytes of their frames, one after the other.
    pub bytes: Vec<u8>,
}

/// The instant that a run's schedules count from, on two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch {
    /// On CLOCK_MONOTONIC, the scale of all of a run's times.
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

    /// Returns the present instant.
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

    /// Converts a time of the run to a time since the Unix epoch.
    pub fn wall_time(&self, time: Nanos) -> Nanos {
        let since = time.saturating_sub(self.monotonic);
        let before = self.monotonic.saturating_sub(time);
        self.wall.saturating_add(since).saturating_sub(before)
    }

    /// Converts the times of a verdict to times since the Unix epoch;
    /// `Nanos::MAX` stays.
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

/// Writes the events of stages. Called on a separate thread.
pub trait Recorder: Send {
    /// Receives the start of the run.
    fn start(&mut self, epoch: Epoch);

    /// Whether it needs the frames at ports, not only verdicts.
    fn wants_frames(&self) -> bool {
        true
    }

    /// Writes a batch.
    ///
    /// # Errors
    /// The batch cannot be written; the run continues, and reports the error at
    /// its end.
    fn record(&mut self, batch: &Batch) -> Result<(), String>;

    /// Ends the recording after the run.
    ///
    /// # Errors
    /// The remaining data cannot be written.
    fn finish(&mut self) -> Result<(), String>;
}

/// The maximum number of batches waiting for the recorder. When it is reached,
/// a stage extends its current batch.
const BATCHES: usize = 256;

/// Beyond this many bytes or events, a batch that the recorder cannot take is
/// lost.
const GATHERED_BYTES_MAX: usize = 16 << 20;
const GATHERED_EVENTS_MAX: usize = 1 << 18;

/// A batch is handed over at this many bytes or events, or at the end of a
/// burst.
const BATCH_BYTES: usize = 256 * 1024;
const BATCH_EVENTS: usize = 4096;

/// Written batches whose memory stages use again: fresh memory costs a page fault for
/// each 4 KiB of frames.
#[derive(Clone, Debug, Default)]
struct SpareBatches(Arc<Mutex<Vec<Batch>>>);

/// The maximum number of spare batches, and of bytes in each.
const SPARE: usize = 32;
const SPARE_BYTES_MAX: usize = 4 * BATCH_BYTES;

impl SpareBatches {
    /// Returns an empty batch. Never waits for another thread.
    fn take(&self, link: LinkId) -> Batch {
        let spare = self.0.try_lock().ok().and_then(|mut spare| spare.pop());
        match spare {
            Some(batch) => Batch { link, ..batch },
            None => empty(link),
        }
    }

    /// Keeps the memory of a written batch.
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
    /// The stage waits for the recorder: in virtual time that delays no frame.
    waits: bool,
}

/// The thread that writes.
pub(crate) struct RecordWriter {
    thread: JoinHandle<Result<(), String>>,
    /// The remaining record handles will not be used again.
    no_more: Arc<AtomicBool>,
}

impl RecordWriter {
    /// Lets the thread end although record handles are left: the threads that
    /// own them do not end.
    pub fn no_more(&self) {
        self.no_more.store(true, Ordering::Release);
    }

    /// Waits until everything is written, or until the program must end without
    /// it.
    ///
    /// # Errors
    /// Not everything was written.
    pub fn end(self) -> Result<(), String> {
        const LOOK: Duration = Duration::from_millis(2);
        while !self.thread.is_finished() {
            if is_hurried() {
                return Err(
                    "the rest was not written, because the run was stopped twice".to_owned(),
                );
            }
            std::thread::sleep(LOOK);
        }
        let panicked = "the thread that writes panicked; please report this";
        self.thread
            .join()
            .unwrap_or_else(|_| Err(panicked.to_owned()))
    }
}

/// A recording before the run starts, if the run is recorded.
pub(crate) struct RecordingParts(Option<Recording>);

/// A recorder and the two ends of its queue.
struct Recording {
    recorder: Box<dyn Recorder>,
    sender: SyncSender<Batch>,
    receiver: Receiver<Batch>,
    spare: SpareBatches,
}

impl RecordingParts {
    /// Prepares a recording by this recorder.
    pub fn by(recorder: Option<Box<dyn Recorder>>) -> RecordingParts {
        let (sender, receiver) = sync_channel(BATCHES);
        RecordingParts(recorder.map(|recorder| Recording {
            recorder,
            sender,
            receiver,
            spare: SpareBatches::default(),
        }))
    }

    /// Whether the frames at ports are recorded, not only verdicts.
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

    /// Starts the thread that writes until all record handles are gone.
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
    /// Writes until all record handles are gone or will not be used again.
    fn write(mut self, no_more: &AtomicBool) -> Result<(), String> {
        /// Interval between checks whether the handles will be used again.
        const LOOK: Duration = Duration::from_millis(100);
        drop(self.sender);
        let mut outcome = Ok(());
        // Batches are taken also after a failure: later events are lost in one
        // place only.
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
    /// Makes the handle wait for the recorder rather than lose events, for
    /// virtual time.
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

    /// Adds an event of a link, which has no bytes.
    pub(crate) fn push_event(&mut self, event: Event) {
        self.batch.events.push(event);
        if self.batch.events.len() >= BATCH_EVENTS {
            self.flush();
        }
    }

    /// Hands over the gathered events, at the end of a burst.
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

    /// Hands over the remaining events, and waits until they are taken.
    pub(crate) fn finish(&mut self) {
        let next = self.spare.take(self.batch.link);
        let last = std::mem::replace(&mut self.batch, next);
        let events = last.events.len() as u64;
        if events > 0 && self.sender.send(last).is_err() {
            self.lost += events;
        }
    }

    /// Returns the number of events that the recorder did not take.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }
}
