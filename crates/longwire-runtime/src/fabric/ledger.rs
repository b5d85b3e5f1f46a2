//! Recording of a fabric's arrivals and verdicts.

use longwire_engine::{
    Bytes, Delivery, DropReason, FrameMeta, Link, LinkId, Nanos, Packets, Verdict,
};
use longwire_packet::bridge::PortIndex;

use crate::ledger::LinkCells;
use crate::record::{Event, RecordHandle};

pub(super) use crate::record::RecordingParts;

impl RecordingParts {
    /// Returns a ledger that records arrivals and verdicts.
    pub(super) fn ledger(&self) -> Option<Ledger> {
        self.ledger_of(LinkId(0))
    }

    /// Returns the ledger of one link, for a stage that drives it alone.
    pub(crate) fn ledger_of(&self, link: LinkId) -> Option<Ledger> {
        let sink = Sink::Recorder {
            handle: self.handle(link)?,
            with_frames: self.wants_frames(),
        };
        Some(Ledger::new(sink))
    }
}

/// An event of a link, with its emulated time.
#[derive(Debug)]
pub(crate) struct LinkEvent {
    pub at: Nanos,
    pub link: LinkId,
    pub event: Event,
}

/// Destination of a ledger's events.
#[derive(Debug)]
enum Sink {
    Recorder {
        handle: RecordHandle,
        /// Also records arriving frames.
        with_frames: bool,
    },
    /// A list, until the events of all shards are merged.
    List(Vec<LinkEvent>),
}

/// Numbers frames per link and passes events to the recorder.
///
/// Events of a network are sorted by time, then by link number: the order is independent
/// of the number of shards.
#[derive(Debug)]
pub(crate) struct Ledger {
    sink: Sink,
    /// Frames offered, by link.
    offered: Vec<u64>,
    /// Events of the present time, awaiting their order; `None` if events are passed on
    /// at once.
    group: Option<Vec<LinkEvent>>,
    now: Nanos,
    /// Links advance one after the other, so time restarts with each.
    in_turn: bool,
}

/// Counters and records of one link's verdicts.
pub(crate) struct LinkAccount<'a> {
    pub link: LinkId,
    pub cells: Option<&'a LinkCells>,
    pub ledger: Option<&'a mut Ledger>,
}

impl LinkAccount<'_> {
    /// Whether offers and verdicts are recorded.
    #[inline]
    pub fn records(&self) -> bool {
        self.ledger.is_some()
    }

    /// Records an offer, with the queue's occupancy right after it. Returns the frame's
    /// number on the link, truncated.
    #[cold]
    pub fn offered(&mut self, meta: FrameMeta, queue: (Packets, Bytes)) -> u32 {
        let ledger = self.ledger.as_mut();
        ledger.map_or(0, |ledger| ledger.offered_into(self.link, meta, queue))
    }

    /// Counts and records a delivery of the frame with a truncated number. `arrival` is
    /// that of a frame whose delay counts.
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
            if let Some((frame, delays)) = arrival.zip(cells.delays()) {
                delays.delivered(frame.arrival, frame.len, delivery);
            }
        }
        if let Some(ledger) = &mut self.ledger {
            ledger.decided(self.link, number, Verdict::Deliver(*delivery));
        }
    }

    /// Counts and records a drop.
    #[inline]
    pub fn dropped(&mut self, number: u32, reason: DropReason) {
        if let Some(cells) = self.cells {
            cells.dropped(reason);
        }
        if let Some(ledger) = &mut self.ledger {
            ledger.decided(self.link, number, Verdict::Drop(reason));
        }
    }
}

impl Ledger {
    fn new(sink: Sink) -> Ledger {
        Ledger {
            sink,
            offered: Vec::new(),
            group: None,
            now: Nanos::ZERO,
            in_turn: false,
        }
    }

    /// Returns a shard's ledger; read it with [`Ledger::list`].
    pub fn of_shard() -> Ledger {
        Ledger::new(Sink::List(Vec::new())).in_order()
    }

    /// Sorts events of one time, for a network.
    pub fn in_order(self) -> Ledger {
        Ledger {
            group: Some(Vec::new()),
            ..self
        }
    }

    /// Sets the time of the next events. Earlier events are complete, unless links
    /// advance in turn.
    #[inline]
    pub fn at(&mut self, now: Nanos) {
        if self.in_turn {
            self.now = now;
        } else if now > self.now {
            self.pass_on_before(now);
            self.now = now;
        }
    }

    /// Sets whether links advance one after the other or together.
    pub fn advance_in_turn(&mut self, in_turn: bool) {
        self.in_turn = in_turn;
        // Links may have advanced unevenly.
        self.now = Nanos::ZERO;
    }

    /// Passes on all events before `until`; they are complete.
    pub fn pass_on_before(&mut self, until: Nanos) {
        let Some(group) = &mut self.group else {
            return;
        };
        if group.len() > 1 {
            // A stable sort: events of one time and link keep their order.
            group.sort_by_key(|event| (event.at, event.link));
        }
        let complete = group.partition_point(|event| event.at < until);
        let complete = group.drain(..complete);
        match &mut self.sink {
            Sink::List(list) => list.extend(complete),
            Sink::Recorder { handle, .. } => {
                complete.for_each(|event| handle.push_event(event.event));
            }
        }
    }

    /// Whether incomplete events are held.
    pub fn holds_events(&self) -> bool {
        self.group.as_ref().is_some_and(|group| !group.is_empty())
    }

    /// Returns the complete events of a shard, for the caller to drain.
    pub fn list(&mut self) -> Option<&mut Vec<LinkEvent>> {
        match &mut self.sink {
            Sink::List(list) => Some(list),
            Sink::Recorder { .. } => None,
        }
    }

    /// Records an event of a shard.
    pub fn record(&mut self, event: LinkEvent) {
        if let Sink::Recorder { handle, .. } = &mut self.sink {
            handle.push_event(event.event);
        }
    }

    fn add(&mut self, link: LinkId, event: Event) {
        let at = self.now;
        match (&mut self.group, &mut self.sink) {
            (Some(group), _) => group.push(LinkEvent { at, link, event }),
            (None, Sink::Recorder { handle, .. }) => handle.push_event(event),
            (None, Sink::List(list)) => list.push(LinkEvent { at, link, event }),
        }
    }

    /// Whether arriving frames are recorded.
    #[inline]
    pub fn with_frames(&self) -> bool {
        matches!(
            self.sink,
            Sink::Recorder {
                with_frames: true,
                ..
            }
        )
    }

    /// Records the arrival of a frame.
    #[cold]
    pub fn entered(&mut self, port: PortIndex, frame: FrameMeta, bytes: &[u8]) {
        if let Sink::Recorder {
            handle,
            with_frames: true,
        } = &mut self.sink
        {
            handle.push(bytes, |bytes| Event::Entered {
                port,
                arrival: frame.arrival,
                wire_len: frame.len,
                bytes,
            });
        }
    }

    /// Records an offer, right after the link has processed it. Returns the frame's
    /// number on the link, truncated.
    #[cold]
    pub fn offered(&mut self, id: LinkId, meta: FrameMeta, link: &Link) -> u32 {
        self.offered_into(id, meta, link.occupancy())
    }

    /// Like [`Ledger::offered`], with the queue's occupancy right after the offer.
    pub fn offered_into(&mut self, id: LinkId, meta: FrameMeta, queue: (Packets, Bytes)) -> u32 {
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

    /// Records a verdict about the frame with a truncated number.
    #[cold]
    pub fn decided(&mut self, link: LinkId, number: u32, verdict: Verdict) {
        let offered = self.offered.get(link.0 as usize).copied().unwrap_or(0);
        // No link holds 2^32 frames, so the distance to the last offer recovers the full
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

    /// Makes the ledger block on a full recorder instead of losing events; for virtual
    /// time.
    pub fn waiting(self) -> Ledger {
        let sink = match self.sink {
            Sink::Recorder {
                handle,
                with_frames,
            } => Sink::Recorder {
                handle: handle.waiting(),
                with_frames,
            },
            list @ Sink::List(_) => list,
        };
        Ledger { sink, ..self }
    }

    /// Flushes the complete events of a burst.
    pub fn flush(&mut self) {
        if let Sink::Recorder { handle, .. } = &mut self.sink {
            handle.flush();
        }
    }

    /// Flushes the last events of the run.
    pub fn finish(&mut self) {
        self.pass_on_before(Nanos::MAX);
        if let Sink::Recorder { handle, .. } = &mut self.sink {
            handle.finish();
        }
    }

    /// Returns the number of events that the recorder rejected.
    pub fn lost(&self) -> u64 {
        match &self.sink {
            Sink::Recorder { handle, .. } => handle.lost(),
            Sink::List(_) => 0,
        }
    }
}
