//! Recording of a network's arrivals and verdicts.

use longwire_engine::{Bytes, Delivery, DropReason, FrameMeta, LinkId, Nanos, Packets, Verdict};
use longwire_packet::bridge::PortIndex;

use crate::counters::LinkCells;
use crate::record::{Event, RecordHandle};

pub(super) use crate::record::RecordingParts;

impl RecordingParts {
    /// Returns a recorder that records arrivals and verdicts.
    pub(super) fn recorder(&self) -> Option<EventRecorder> {
        self.recorder_of(LinkId(0))
    }

    /// Returns the recorder of one link, for a stage that drives it alone.
    pub(crate) fn recorder_of(&self, link: LinkId) -> Option<EventRecorder> {
        let handle = self.arrivals(link)?;
        Some(EventRecorder {
            with_frames: self.wants_frames(),
            without_verdicts: !self.wants_verdicts(),
            ..EventRecorder::of(Some(handle))
        })
    }
}

/// A link event with its emulated time.
#[derive(Debug)]
struct LinkEvent {
    at: Nanos,
    link: LinkId,
    event: Event,
}

/// Numbers frames per link and passes events to the recorder.
///
/// Events of a network are sorted by time, then by link number, so their order does not
/// depend on the number of shards.
#[derive(Debug, Default)]
pub(crate) struct EventRecorder {
    /// The recorder. `None` in secondary shards, whose events the first shard gathers.
    handle: Option<RecordHandle>,
    /// Whether arriving frames are recorded.
    with_frames: bool,
    /// Whether events of links are not recorded.
    without_verdicts: bool,
    /// Frames offered, by link.
    offered: Vec<u64>,
    /// Events of the current time, to be sorted. `None` if events are passed on
    /// immediately.
    group: Option<Vec<LinkEvent>>,
    now: Nanos,
    /// Whether links advance one after another, so that time restarts with each link.
    in_turn: bool,
    /// Whether the recorders of all shards pass on their events together, at the end of a
    /// window.
    is_shared: bool,
}

/// Counters and records of one link's verdicts.
pub(crate) struct LinkAccount<'a> {
    pub link: LinkId,
    pub cells: Option<&'a LinkCells>,
    pub recorder: Option<&'a mut EventRecorder>,
}

impl LinkAccount<'_> {
    /// Returns whether offers and verdicts are recorded.
    #[inline]
    pub fn records(&self) -> bool {
        self.recorder.is_some()
    }

    /// Records an offer, with the queue's occupancy right after it. Returns the frame's
    /// truncated number on the link.
    #[cold]
    pub fn offered(&mut self, meta: FrameMeta, queue: (Packets, Bytes)) -> u32 {
        let recorder = self.recorder.as_mut();
        recorder.map_or(0, |recorder| recorder.offered(self.link, meta, queue))
    }

    /// Counts and records a delivery of the frame with this truncated number. `arrival` is
    /// set for frames whose delays are counted.
    #[inline(always)]
    pub fn delivered(
        &mut self,
        number: u32,
        arrival: Option<FrameMeta>,
        delivery: &Delivery,
        is_duplicate: bool,
    ) {
        if let Some(cells) = self.cells {
            cells.delivered(delivery, is_duplicate);
            if let Some(frame) = arrival
                && let Some(delays) = cells.delays()
            {
                delays.delivered(frame.arrival, frame.len, delivery);
            }
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.decided(self.link, number, Verdict::Deliver(*delivery));
        }
    }

    /// Counts and records a drop.
    #[inline]
    pub fn dropped(&mut self, number: u32, reason: DropReason) {
        if let Some(cells) = self.cells {
            cells.dropped(reason);
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.decided(self.link, number, Verdict::Drop(reason));
        }
    }
}

impl EventRecorder {
    fn of(handle: Option<RecordHandle>) -> EventRecorder {
        EventRecorder {
            handle,
            ..EventRecorder::default()
        }
    }

    /// Creates the recorder of a secondary shard, whose events the first shard's recorder
    /// [gathers](EventRecorder::gather).
    pub fn of_shard() -> EventRecorder {
        EventRecorder::of(None).in_order().shared()
    }

    /// Sorts simultaneous events, for a network.
    pub fn in_order(mut self) -> EventRecorder {
        self.group = Some(Vec::new());
        self
    }

    /// Keeps events until they are passed on with those of other shards.
    pub fn shared(mut self) -> EventRecorder {
        self.is_shared = true;
        self
    }

    /// Sets the time of the next events. Earlier events are then complete, unless links
    /// advance one after another or other shards have events.
    #[inline]
    pub fn at(&mut self, now: Nanos) {
        if self.in_turn || self.is_shared {
            self.now = now;
        } else if now > self.now {
            self.pass_on_before(now);
            self.now = now;
        }
    }

    /// Sets whether links advance one after another or together.
    pub fn advance_in_turn(&mut self, in_turn: bool) {
        self.in_turn = in_turn;
        // Links may have advanced to different times.
        self.now = Nanos::ZERO;
    }

    /// Passes on all events before `until`, which must be complete.
    pub fn pass_on_before(&mut self, until: Nanos) {
        let Some(group) = &mut self.group else {
            return;
        };
        if group.len() > 1 {
            // The sort is stable: simultaneous events of a link keep their order.
            group.sort_by_key(|event| (event.at, event.link));
        }
        let complete = group.partition_point(|event| event.at < until);
        let complete = group.drain(..complete);
        if let Some(handle) = &mut self.handle {
            complete.for_each(|event| handle.push_event(event.event));
        }
    }

    /// Moves the events of another shard to this recorder.
    pub fn gather(&mut self, shard: &mut EventRecorder) {
        if let (Some(group), Some(events)) = (&mut self.group, &mut shard.group) {
            group.append(events);
        }
    }

    /// Returns whether incomplete events are pending.
    pub fn holds_events(&self) -> bool {
        self.group.as_ref().is_some_and(|group| !group.is_empty())
    }

    fn add(&mut self, link: LinkId, event: Event) {
        let at = self.now;
        match (&mut self.group, &mut self.handle) {
            _ if self.without_verdicts => {}
            (Some(group), _) => group.push(LinkEvent { at, link, event }),
            (None, Some(handle)) => handle.push_event(event),
            (None, None) => {}
        }
    }

    /// Returns whether arriving frames are recorded.
    #[inline]
    pub fn with_frames(&self) -> bool {
        self.with_frames
    }

    /// Records the arrival of a frame.
    #[cold]
    pub fn entered(&mut self, port: PortIndex, frame: FrameMeta, bytes: &[u8]) {
        if self.with_frames
            && let Some(handle) = &mut self.handle
        {
            handle.push(bytes, |bytes| Event::Entered {
                port,
                arrival: frame.arrival,
                wire_len: frame.len,
                bytes,
            });
        }
    }

    /// Records an offer, with the queue's occupancy right after it. Returns the frame's
    /// truncated number on the link.
    #[cold]
    pub fn offered(&mut self, id: LinkId, meta: FrameMeta, queue: (Packets, Bytes)) -> u32 {
        let index = id.0 as usize;
        if index >= self.offered.len() {
            self.offered.resize(index + 1, 0);
        }
        let number = self.offered[index];
        self.offered[index] += 1;
        let arrived = Event::Arrived {
            link: id,
            frame: number,
            arrival: meta.arrival,
            len: meta.len,
            queue,
        };
        self.add(id, arrived);
        number as u32
    }

    /// Records a verdict on the frame with this truncated number.
    #[cold]
    pub fn decided(&mut self, link: LinkId, number: u32, verdict: Verdict) {
        let offered = self.offered.get(link.0 as usize).copied().unwrap_or(0);
        // No link holds 2^32 frames, so the distance to the last offer determines the full
        // number.
        let behind = (offered as u32).wrapping_sub(number);
        let frame = offered.saturating_sub(behind.into());
        let decided = Event::Decided {
            link,
            frame,
            verdict,
        };
        self.add(link, decided);
    }

    /// Makes stages block while the writer thread's queue is full, instead of losing events. For
    /// virtual time.
    pub fn waiting(mut self) -> EventRecorder {
        self.handle = self.handle.map(RecordHandle::waiting);
        self
    }

    /// Flushes the complete events of a burst.
    pub fn flush(&mut self) {
        if let Some(handle) = &mut self.handle {
            handle.flush();
        }
    }

    /// Flushes the last events of the run.
    pub fn finish(&mut self) {
        self.pass_on_before(Nanos::MAX);
        if let Some(handle) = &mut self.handle {
            handle.finish();
        }
    }

    /// Returns the number of events lost because the writer thread was too slow or gone.
    pub fn lost(&self) -> u64 {
        self.handle.as_ref().map_or(0, RecordHandle::lost)
    }
}
