//! Queue disciplines: service order, and which frames to drop or mark.

use alloc::collections::VecDeque;

use dyn_clone::DynClone;

use longwire_packet::frame::FrameMeta;
use longwire_packet::header::Ecn;

use crate::models::prelude::*;
use crate::verdict::{DropReason, Verdict};

mod codel;
mod drr;
mod dualpi2;
pub mod fifo;
mod fq_codel;
pub mod limit;
mod pie;
mod priority;
mod red;

mod classes;
mod parameters;
mod pool;
mod tail_drop;
mod ticks;

pub use classes::{Class, Classes};
pub use limit::{QueueLengths, QueueLimit};
pub use tail_drop::TailDrop;

/// A link's queue.
#[derive(Clone, Debug)]
pub enum Queue {
    /// Tail-drop FIFO, decided on arrival from the departures of earlier frames.
    TailDrop(QueueLimit),
    /// A discipline, which decides about accepted frames at dequeue.
    Managed(Described<dyn Discipline>),
}

impl Queue {
    /// Returns the limit.
    pub fn limit(&self) -> QueueLimit {
        match self {
            Queue::TailDrop(limit) => *limit,
            Queue::Managed(discipline) => discipline.limit(),
        }
    }
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Queue::TailDrop(limit) => limit.fmt(f),
            Queue::Managed(discipline) => discipline.fmt(f),
        }
    }
}

/// A frame in a managed queue, with the properties that disciplines may use.
// 32 bytes, copied at every step. Its fields have no niches, so `Option` has a separate tag and
// copies move whole words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuedFrame {
    /// Sequence number on the link.
    pub number: u64,
    /// Time of arrival.
    pub arrival: Nanos,
    /// Hash of addresses, protocol and ports; 0 if the discipline does not use it.
    pub flow: u64,
    /// Length without framing.
    pub len: u32,
    /// DSCP and ECN, in the layout of the IP header.
    traffic_class: u8,
    /// 1 if the frame will be marked Congestion Experienced.
    mark: u8,
    /// PCP in the outermost VLAN tag.
    pcp: u8,
}

impl QueuedFrame {
    /// Creates the queue entry for an arriving frame.
    #[inline]
    pub fn new(number: u64, frame: FrameMeta) -> QueuedFrame {
        QueuedFrame {
            number,
            arrival: frame.arrival,
            flow: 0,
            len: frame.len,
            traffic_class: 0,
            mark: 0,
            pcp: 0,
        }
    }

    /// Sets DSCP and ECN.
    #[inline]
    pub fn set_class(&mut self, dscp: u8, ecn: Ecn) {
        self.traffic_class = dscp << 2 | ecn as u8;
    }

    /// Marks the frame before it enters the queue; to disciplines, the mark is part of the header.
    #[inline]
    pub(crate) fn arrive_marked(&mut self) {
        self.set_class(self.dscp(), Ecn::Marked);
        self.mark = 1;
    }

    /// Returns the DSCP; 0 without IP.
    #[inline]
    pub fn dscp(&self) -> u8 {
        self.traffic_class >> 2
    }

    /// Sets the PCP.
    #[inline]
    pub fn set_pcp(&mut self, pcp: u8) {
        self.pcp = pcp;
    }

    /// Returns the PCP in the outermost VLAN tag; 0 without a tag.
    #[inline]
    pub fn pcp(&self) -> u8 {
        self.pcp
    }

    /// Returns the ECN field; not ECN-capable without IP.
    #[inline]
    pub fn ecn(&self) -> Ecn {
        Ecn::of_bits(self.traffic_class)
    }

    /// Marks the frame if it is ECN-capable, and returns whether it is. Frames already marked count
    /// as marked again.
    #[inline]
    pub fn try_mark(&mut self) -> bool {
        self.mark |= u8::from(self.ecn().capable());
        self.is_marked()
    }

    /// Whether the frame will be marked Congestion Experienced.
    #[inline]
    pub fn is_marked(&self) -> bool {
        self.mark != 0
    }

    /// Returns the sojourn time at `now`.
    #[inline]
    pub fn sojourn(&self, now: Nanos) -> Nanos {
        now.saturating_sub(self.arrival)
    }
}

/// Properties of the link that a discipline serves.
#[derive(Clone, Copy, Debug)]
pub struct LinkFacts {
    /// Link start, the origin of schedules.
    pub epoch: Nanos,
    /// Rate, or mean of a varying rate; `None` if infinite or unknown.
    pub rate: Option<BitRate>,
}

/// Header fields that a discipline uses; parsing them takes time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HeaderFields {
    /// None: DSCP, ECN and flow are not set.
    Nothing,
    /// [`QueuedFrame::pcp`].
    Tag,
    /// [`QueuedFrame::dscp`] and [`QueuedFrame::ecn`].
    Class,
    /// [`QueuedFrame::flow`], [`QueuedFrame::dscp`] and [`QueuedFrame::ecn`].
    Flow,
}

/// A queue discipline in event time: called for every event in order, with its emulated time,
/// regardless of how late the caller is.
pub trait Discipline: DynClone + fmt::Debug + Send + Sync {
    /// Called once, before any other method.
    fn start(&mut self, _facts: &LinkFacts) {}

    /// Returns the header fields used; called once, after [`Discipline::start`].
    fn reads(&self) -> HeaderFields {
        HeaderFields::Nothing
    }

    /// Enqueues an arriving frame. May drop this or other frames ([`QueueContext::dropped`]).
    fn enqueue(&mut self, now: Nanos, frame: QueuedFrame, context: &mut QueueContext);

    /// Returns the next frame to send, or `None` if empty; reports drops to `context`. If frames
    /// are queued, it must return or drop at least one.
    fn dequeue(&mut self, now: Nanos, context: &mut QueueContext) -> Option<QueuedFrame>;

    /// Moves all frames to `frames`, in any order and undecided, when the discipline is replaced or
    /// the link is turned off. Keeps other state; frames may be enqueued again later.
    fn give_up(&mut self, frames: &mut Vec<QueuedFrame>);

    /// Called at most once before an arrival, if the link became idle after the last frame.
    /// Replaces a call to [`Discipline::dequeue`] that would have found the queue empty.
    fn idle(&mut self) {}

    /// Returns the limit, for reports and memory sizing.
    fn limit(&self) -> QueueLimit;
}

dyn_clone::clone_trait_object!(Discipline);

/// A discipline's random stream and drop reports.
#[derive(Clone, Debug)]
pub struct QueueContext {
    /// The discipline's random stream.
    pub stream: Stream,
    /// Unreported decisions, in order.
    pub(crate) decided: VecDeque<(u64, Verdict)>,
    /// Frames and bytes queued in the discipline.
    held: (u64, u64),
}

impl QueueContext {
    /// Creates a context with this random stream.
    pub fn new(stream: Stream) -> QueueContext {
        QueueContext {
            stream,
            decided: VecDeque::new(),
            held: (0, 0),
        }
    }

    /// Reports that the discipline dropped a frame.
    #[inline]
    pub fn dropped(&mut self, frame: &QueuedFrame, reason: DropReason) {
        self.left(frame);
        self.decided
            .push_back((frame.number, Verdict::Drop(reason)));
    }

    /// Returns `true` with probability `p`: if `u <= p` for the stream's next `u`, uniform in (0,
    /// 1] in steps of 2^-53. Always draws exactly once.
    #[inline]
    pub fn happens(&mut self, p: f64) -> bool {
        self.stream.unit() <= p
    }

    /// Returns the frames and bytes queued in the discipline.
    #[inline]
    pub fn occupancy(&self) -> (Packets, Bytes) {
        (Packets(self.held.0), Bytes(self.held.1))
    }

    /// Whether the discipline exceeds `limit`, counting a frame just added.
    #[inline]
    pub(crate) fn exceeds(&self, limit: &QueueLimit) -> bool {
        limit.is_exceeded_by(self.held.0, self.held.1)
    }

    /// Counts a frame that enters the discipline.
    #[inline]
    pub(crate) fn entered(&mut self, frame: &QueuedFrame) {
        self.held.0 += 1;
        self.held.1 += u64::from(frame.len);
    }

    /// Counts a frame that leaves the discipline.
    #[inline]
    pub(crate) fn left(&mut self, frame: &QueuedFrame) {
        self.held.0 -= 1;
        self.held.1 -= u64::from(frame.len);
    }
}

/// Returns `a - b` in seconds; computed in nanoseconds and rounded once.
fn difference(a: Nanos, b: Nanos) -> f64 {
    let (a, b) = (a.as_nanos(), b.as_nanos());
    let nanos = if a >= b {
        (a - b) as f64
    } else {
        -((b - a) as f64)
    };
    nanos / 1e9
}

/// Queue disciplines.
pub static KIND: Kind<Queue> = Kind {
    name: "queue",
    example: "100p",
    entries: &[
        limit::ENTRY,
        limit::UNLIMITED_ENTRY,
        fifo::HEAD_DROP,
        red::ENTRY,
        codel::ENTRY,
        fq_codel::ENTRY,
        pie::ENTRY,
        dualpi2::ENTRY,
        priority::ENTRY,
        drr::ENTRY,
    ],
};
