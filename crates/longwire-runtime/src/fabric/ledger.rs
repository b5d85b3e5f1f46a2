//! Recording of a fabric: frames at their arrival, and the verdicts of each
//! link.

use longwire_engine::{Bytes, FrameMeta, Link, LinkId, Nanos, Packets, Verdict};
use longwire_packet::bridge::PortIndex;

use crate::record::{Event, RecordHandle};

pub(super) use crate::record::RecordingParts;

impl RecordingParts {
    /// Returns a ledger that records arrivals and verdicts.
    pub(super) fn ledger(&self) -> Option<Ledger> {
        let sink = Sink::Recorder {
            handle: self.handle(LinkId(0))?,
            with_frames: self.wants_frames(),
        };
        Some(Ledger::new(sink))
    }
}

/// An event of a link, and its time on the emulated network.
#[derive(Debug)]
pub(super) struct LinkEvent {
    pub at: Nanos,
    pub link: LinkId,
    pub event: Event,
}

/// Where a ledger passes events.
#[derive(Debug)]
enum Sink {
    Recorder {
        handle: RecordHandle,
        /// Arriving frames are recorded, too.
        with_frames: bool,
    },
    /// To a list, until the events of several shards are put in order.
    List(Vec<LinkEvent>),
}

/// Numbers frames on their links and passes events to the recorder.
///
/// The events of a network have the order of their times, those of one time that of
/// their links' numbers: an order that does not depend on the number of shards.
#[derive(Debug)]
pub(super) struct Ledger {
    sink: Sink,
    /// The number of frames offered to each link.
    offered: Vec<u64>,
    /// Events that happen now, unless events are passed on as they come.
    group: Option<Vec<LinkEvent>>,
    now: Nanos,
    /// Links are advanced one after the other: time goes back with each.
    in_turn: bool,
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

    /// Returns a ledger for a shard, whose events are taken with [`Ledger::take`].
    pub fn of_shard() -> Ledger {
        Ledger::new(Sink::List(Vec::new())).in_order()
    }

    /// Makes the ledger put the events of one time in order, for a network.
    pub fn in_order(self) -> Ledger {
        Ledger {
            group: Some(Vec::new()),
            ..self
        }
    }

    /// Notes that the next events happen at `now`: earlier ones are complete, unless links
    /// are advanced in turn.
    #[inline]
    pub fn at(&mut self, now: Nanos) {
        if self.in_turn {
            self.now = now;
        } else if now > self.now {
            self.pass_on_before(now);
            self.now = now;
        }
    }

    /// Notes that links are advanced one after the other from now on, or all together.
    pub fn advance_in_turn(&mut self, in_turn: bool) {
        self.in_turn = in_turn;
        // Some may not be advanced as far as others.
        self.now = Nanos::ZERO;
    }

    /// Passes on all events before `until`: there will be no others.
    pub fn pass_on_before(&mut self, until: Nanos) {
        let Some(group) = &mut self.group else {
            return;
        };
        if group.len() > 1 {
            // Those of one time and link keep their order.
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

    /// Whether events wait until those of their time are complete.
    pub fn holds_events(&self) -> bool {
        self.group.as_ref().is_some_and(|group| !group.is_empty())
    }

    /// Returns the complete events of a shard, to be drained.
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

    /// Whether arriving frames are recorded, too.
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

    /// Records that a frame was offered to a link, which is in the state right after that.
    /// Returns the frame's number there, truncated.
    #[cold]
    pub fn offered(&mut self, id: LinkId, meta: FrameMeta, link: &Link) -> u32 {
        self.offered_into(id, meta, link.occupancy())
    }

    /// As [`Ledger::offered`], with the content of the queue right after.
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

    /// Records a verdict of a link about the frame of a truncated number.
    #[cold]
    pub fn decided(&mut self, link: LinkId, number: u32, verdict: Verdict) {
        let offered = self.offered.get(link.0 as usize).copied().unwrap_or(0);
        // No link holds 2^32 frames: the distance to the last frame determines
        // the truncated part of the number.
        let behind = (offered as u32).wrapping_sub(number);
        let frame = offered.saturating_sub(behind.into());
        let decided = Event::Decided {
            link,
            frame,
            verdict,
        };
        self.add(link, decided);
    }

    /// Makes the ledger wait for the recorder rather than lose events, for
    /// virtual time.
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

    /// Hands over the complete events of a burst.
    pub fn flush(&mut self) {
        if let Sink::Recorder { handle, .. } = &mut self.sink {
            handle.flush();
        }
    }

    /// Hands over the last events of the run.
    pub fn finish(&mut self) {
        self.pass_on_before(Nanos::MAX);
        if let Sink::Recorder { handle, .. } = &mut self.sink {
            handle.finish();
        }
    }

    /// Returns the number of events that the recorder did not take.
    pub fn lost(&self) -> u64 {
        match &self.sink {
            Sink::Recorder { handle, .. } => handle.lost(),
            Sink::List(_) => 0,
        }
    }
}
