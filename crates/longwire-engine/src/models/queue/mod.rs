//! Queue disciplines: the order in which queued frames are sent, and which of them are
//! dropped or marked.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;

use dyn_clone::DynClone;

use longwire_packet::frame::FrameMeta;
use longwire_packet::header::Ecn;
use longwire_units::random::Stream;
use longwire_units::{BitRate, Bytes, Nanos, Packets};

use crate::models::{Kind, PartModel};
use crate::verdict::{DropReason, Verdict};

pub mod codel;
pub mod drr;
pub mod dualpi2;
pub mod fifo;
pub mod fq_codel;
pub mod head_drop;
pub mod limit;
pub mod pie;
pub mod priority;
pub mod red;

mod classes;
mod parameters;
mod pool;
mod tail_drop;
mod ticks;

pub use classes::{Class, Classes};
pub use limit::QueueLimit;
pub use tail_drop::TailDrop;

/// A link's queue.
#[derive(Clone, Debug)]
pub enum Queue {
    /// First in, first out, with tail drop: decided as a frame arrives, from the
    /// departures of previous frames.
    TailDrop(QueueLimit),
    /// Decided when the link dequeues a frame.
    Managed(Box<dyn Discipline>),
}

impl Queue {
    /// Returns its limit.
    pub fn limit(&self) -> QueueLimit {
        match self {
            Queue::TailDrop(limit) => *limit,
            Queue::Managed(discipline) => discipline.limit(),
        }
    }
}

impl PartModel for Queue {}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Queue::TailDrop(limit) => limit.fmt(f),
            Queue::Managed(discipline) => discipline.describe(f),
        }
    }
}

/// A frame in a managed queue: all facts that a discipline may use.
//
// 32 bytes, copied at every step. Without fields that leave bit patterns
// unused, `Option` keeps its tag outside, and copies are of whole words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuedFrame {
    /// Its number on its link.
    pub number: u64,
    /// When it arrived.
    pub arrival: Nanos,
    /// A hash of its flow's addresses, protocol and ports; 0 if the
    /// discipline does not read it.
    pub flow: u64,
    /// Its length, without framing.
    pub len: u32,
    /// Code point and congestion notification, as in the IP header.
    traffic_class: u8,
    /// 1 if the frame will carry a congestion mark.
    mark: u8,
    /// Priority code point of its outermost VLAN tag.
    pcp: u8,
}

impl QueuedFrame {
    /// Creates the record of an arriving frame.
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

    /// Sets the fields of its IP header.
    #[inline]
    pub fn set_class(&mut self, dscp: u8, ecn: Ecn) {
        self.traffic_class = dscp << 2 | ecn as u8;
    }

    /// Marks the frame before it enters the queue: disciplines see the mark in its header.
    #[inline]
    pub(crate) fn arrive_marked(&mut self) {
        self.set_class(self.dscp(), Ecn::Marked);
        self.mark = 1;
    }

    /// Returns its differentiated services code point; 0 without IP.
    #[inline]
    pub fn dscp(&self) -> u8 {
        self.traffic_class >> 2
    }

    /// Sets the priority code point of its outermost VLAN tag.
    #[inline]
    pub fn set_pcp(&mut self, pcp: u8) {
        self.pcp = pcp;
    }

    /// Returns the priority code point of its outermost VLAN tag; 0 without a tag.
    #[inline]
    pub fn pcp(&self) -> u8 {
        self.pcp
    }

    /// Returns its congestion notification; not capable without IP.
    #[inline]
    pub fn ecn(&self) -> Ecn {
        Ecn::of_bits(self.traffic_class)
    }

    /// Marks the frame if its sender is ECN-capable, and returns whether it did. A
    /// frame that another queue has marked before counts as marked.
    #[inline]
    pub fn try_mark(&mut self) -> bool {
        self.mark |= u8::from(self.ecn().capable());
        self.is_marked()
    }

    /// Whether it will carry a congestion mark.
    #[inline]
    pub fn is_marked(&self) -> bool {
        self.mark != 0
    }

    /// Returns how long it has waited.
    #[inline]
    pub fn sojourn(&self, now: Nanos) -> Nanos {
        now.saturating_sub(self.arrival)
    }
}

/// Facts about the link that a discipline serves.
#[derive(Clone, Copy, Debug)]
pub struct LinkFacts {
    /// Time at which the link starts: schedules count from it.
    pub epoch: Nanos,
    /// The link's rate, or its mean; `None` if it is infinite or unknown.
    pub rate: Option<BitRate>,
}

/// The header fields that a discipline reads: parsing them costs time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HeaderFields {
    /// None: code points, congestion notification and flow are not filled in.
    Nothing,
    /// [`QueuedFrame::pcp`].
    Tag,
    /// [`QueuedFrame::dscp`] and [`QueuedFrame::ecn`].
    Class,
    /// The flow too: [`QueuedFrame::flow`].
    Flow,
}

/// A queue discipline, in event time: it is called for every event in order, with the
/// time of that event on the emulated link, however late the caller is.
pub trait Discipline: DynClone + fmt::Debug + Send + Sync {
    /// Called once, before anything else.
    fn start(&mut self, _facts: &LinkFacts) {}

    /// Returns the header fields that it reads; called once, after
    /// [`Discipline::start`].
    fn reads(&self) -> HeaderFields {
        HeaderFields::Nothing
    }

    /// Adds an arriving frame. It, or others, may be dropped:
    /// [`QueueContext::dropped`].
    fn enqueue(&mut self, now: Nanos, frame: QueuedFrame, context: &mut QueueContext);

    /// Returns the next frame to be sent. `None` if none is left; drops on the way are
    /// reported to the context. A discipline that holds frames must return or drop at
    /// least one.
    fn dequeue(&mut self, now: Nanos, context: &mut QueueContext) -> Option<QueuedFrame>;

    /// Moves all frames to `frames`, in any order, without decisions: another
    /// discipline takes them over, or the link is down. It may receive frames again;
    /// all its other state stays.
    fn give_up(&mut self, frames: &mut Vec<QueuedFrame>);

    /// Called before an arrival if the link had become free before it with an empty
    /// queue: the link would then have asked for a frame without result, for which
    /// [`Discipline::dequeue`] is not called. At most once before the next frame.
    fn idle(&mut self) {}

    /// Returns its limit; for reports and memory.
    fn limit(&self) -> QueueLimit;

    /// Writes the discipline as its user would write it.
    ///
    /// # Errors
    /// An error of the formatter `f`; a model adds none.
    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

dyn_clone::clone_trait_object!(Discipline);

/// The random stream of a discipline, and the recipient of its drops.
#[derive(Clone, Debug)]
pub struct QueueContext {
    /// The discipline's random stream.
    pub stream: Stream,
    /// Decisions not yet returned, in order.
    pub(crate) decided: VecDeque<(u64, Verdict)>,
    /// Frames and bytes that the discipline holds.
    held: (u64, u64),
}

impl QueueContext {
    /// Creates a context that draws from this stream.
    pub fn new(stream: Stream) -> QueueContext {
        QueueContext {
            stream,
            decided: VecDeque::new(),
            held: (0, 0),
        }
    }

    /// Reports that the discipline drops a frame.
    #[inline]
    pub fn dropped(&mut self, frame: &QueuedFrame, reason: DropReason) {
        self.left(frame);
        self.decided
            .push_back((frame.number, Verdict::Drop(reason)));
    }

    /// True with probability `p`: `u <= p` for the stream's next `u`, uniform in (0, 1]
    /// in steps of 2^-53. Draws once for every `p`.
    #[inline]
    pub fn happens(&mut self, p: f64) -> bool {
        self.stream.unit() <= p
    }

    /// Returns the frames and bytes that the discipline holds.
    #[inline]
    pub fn occupancy(&self) -> (Packets, Bytes) {
        (Packets(self.held.0), Bytes(self.held.1))
    }

    /// Whether the discipline holds more than this, including a frame just added.
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

/// Returns `a - b` in seconds: exact in whole nanoseconds, then rounded once.
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
        head_drop::ENTRY,
        red::ENTRY,
        codel::ENTRY,
        fq_codel::ENTRY,
        pie::ENTRY,
        dualpi2::ENTRY,
        priority::ENTRY,
        drr::ENTRY,
    ],
};
