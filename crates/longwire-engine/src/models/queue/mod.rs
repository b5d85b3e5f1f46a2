//! Queue disciplines: what waits for the rate, what leaves it next, and what
//! is dropped or marked on the way.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use crate::header::Ecn;
use crate::models::Kind;
use crate::random::Stream;
use crate::units::{BitRate, Bytes, Nanos, Packets};
use crate::verdict::DropReason;

pub mod fifo;
pub mod limit;
mod tail_drop;

pub use limit::QueueLimit;
pub use tail_drop::TailDrop;

/// A link's queue.
#[derive(Debug)]
pub enum Queue {
    /// First in, first out, with tail drop: decided as a frame arrives, from
    /// the departures of those before it.
    TailDrop(QueueLimit),
    /// Decided when the link takes a frame out.
    Managed(Box<dyn Discipline>),
}

impl Queue {
    /// The most it holds.
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
            Queue::Managed(discipline) => discipline.describe(f),
        }
    }
}

/// A frame in a managed queue: all that a discipline may go by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuedFrame {
    /// Its number on its link.
    pub number: u64,
    /// When it came.
    pub arrival: Nanos,
    /// Its length, without framing.
    pub len: u32,
    /// Its differentiated services code point; 0 without IP.
    pub dscp: u8,
    /// What it says of congestion; not capable without IP.
    pub ecn: Ecn,
    /// A hash of its flow's addresses, protocol and ports.
    pub flow: u64,
    /// Set by the discipline: the frame is to carry a congestion mark.
    pub mark: bool,
}

/// What a discipline is told of the link it serves.
#[derive(Clone, Copy, Debug)]
pub struct LinkFacts {
    /// When the link came to be: schedules count from it.
    pub epoch: Nanos,
    /// The link's rate, or its mean; `None` if it is infinite or unknown.
    pub rate: Option<BitRate>,
}

/// A queue discipline, in event time: it is called for every event in order,
/// with the time at which that event happens on the emulated link, however
/// late the caller is.
pub trait Discipline: fmt::Debug + Send {
    /// Called once, before anything else.
    fn start(&mut self, _facts: &LinkFacts) {}

    /// Whether [`QueuedFrame::flow`] is looked at: reading it costs time.
    fn tells_flows_apart(&self) -> bool {
        false
    }

    /// A frame arrives. It, or others, may be dropped:
    /// [`QueueContext::dropped`].
    fn enqueue(&mut self, now: Nanos, frame: QueuedFrame, context: &mut QueueContext);

    /// The link is ready to send a frame. `None` if none is left; those
    /// dropped on the way are told to the context. A discipline that holds
    /// frames must give or drop at least one.
    fn dequeue(&mut self, now: Nanos, context: &mut QueueContext) -> Option<QueuedFrame>;

    /// Frames and bytes held now.
    fn occupancy(&self) -> (Packets, Bytes);

    /// The most it holds; for reports and memory.
    fn limit(&self) -> QueueLimit;

    /// The discipline as its user would write it.
    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

/// What a discipline draws from, and where it tells what it dropped.
#[derive(Debug)]
pub struct QueueContext {
    /// The discipline's own random stream.
    pub stream: Stream,
    drops: Vec<(u64, DropReason)>,
}

impl QueueContext {
    /// A context that draws from this stream.
    pub fn new(stream: Stream) -> QueueContext {
        QueueContext {
            stream,
            drops: Vec::new(),
        }
    }

    /// The discipline drops a frame.
    #[inline]
    pub fn dropped(&mut self, frame: &QueuedFrame, reason: DropReason) {
        self.drops.push((frame.number, reason));
    }

    /// Takes what was dropped since the last call, in order.
    pub fn take_drops(&mut self) -> alloc::vec::Drain<'_, (u64, DropReason)> {
        self.drops.drain(..)
    }

    /// Whether something was dropped since the last call.
    #[inline]
    pub fn has_drops(&self) -> bool {
        !self.drops.is_empty()
    }
}

/// Queue disciplines.
pub static KIND: Kind<Queue> = Kind {
    name: "queue",
    example: "100p",
    entries: &[limit::ENTRY, limit::UNLIMITED_ENTRY],
};
