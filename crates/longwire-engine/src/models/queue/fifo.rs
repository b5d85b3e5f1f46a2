//! Managed FIFOs. The tail-drop FIFO serves changeable links and rates that aggregate frames, where
//! verdicts on arrival are impossible.

use super::{Discipline, Queue, QueueContext, QueueLimit, QueuedFrame, parameters};
use crate::fifo::Fifo;
use crate::models::prelude::*;

/// A tail-drop FIFO.
#[derive(Clone, Debug)]
pub struct ManagedFifo {
    limit: QueueLimit,
    line: FrameLine,
}

impl ManagedFifo {
    /// Creates an empty queue.
    pub fn new(limit: QueueLimit) -> ManagedFifo {
        ManagedFifo {
            limit,
            line: FrameLine::default(),
        }
    }

    /// Whether a frame of `len` bytes fits after adding `more` (frames, bytes) to the queue and
    /// removing `less`.
    #[inline]
    pub(crate) fn fits(&self, len: u32, more: (u64, u64), less: (u64, u64)) -> bool {
        let (Packets(packets), Bytes(bytes)) = self.line.occupancy();
        let packets = packets + more.0 - less.0;
        let bytes = bytes + more.1 - less.1 + u64::from(len);
        self.limit.packets.is_none_or(|most| packets < most.0)
            && self.limit.bytes.is_none_or(|most| bytes <= most.0)
    }

    /// Whether the queue would exceed its limit with `more` frames and bytes.
    pub(crate) fn exceeds(&self, more: (u64, u64)) -> bool {
        let (Packets(packets), Bytes(bytes)) = self.line.occupancy();
        self.limit.is_exceeded_by(packets + more.0, bytes + more.1)
    }

    /// Sets the limit for later arrivals.
    pub(crate) fn set_limit(&mut self, limit: QueueLimit) {
        self.limit = limit;
    }

    /// Adds a frame regardless of the limit.
    #[inline]
    pub(crate) fn push(&mut self, frame: QueuedFrame) {
        self.line.push(frame);
    }

    /// Removes and returns the head.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<QueuedFrame> {
        self.line.pop()
    }

    /// Returns the frame lengths, head first.
    pub(crate) fn lengths(&self) -> impl Iterator<Item = u32> {
        self.line.frames().map(|frame| frame.len)
    }

    /// Returns the frame numbers, head first.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u64> {
        self.line.frames().map(|frame| frame.number)
    }
}

impl Discipline for ManagedFifo {
    fn enqueue(&mut self, _now: Nanos, frame: QueuedFrame, context: &mut QueueContext) {
        if self.line.fits(&self.limit, frame.len) {
            self.line.push(frame);
        } else {
            context.dropped(&frame, DropReason::QueueFull);
        }
    }

    fn dequeue(&mut self, _now: Nanos, _context: &mut QueueContext) -> Option<QueuedFrame> {
        self.line.pop()
    }

    fn give_up(&mut self, frames: &mut Vec<QueuedFrame>) {
        self.line.give_up(frames);
    }

    fn limit(&self) -> QueueLimit {
        self.limit
    }
}

pub(super) const HEAD_DROP: Entry<Queue> = Entry::new(
    "head-drop",
    "FIFO that drops the oldest frames when full, so senders notice losses one queueing delay \
     earlier (Yin and Hluchyj 1990)",
    &[parameters::limit("1000p"), parameters::LIMIT_BYTES],
    |arguments| {
        Ok(Queue::Managed(arguments.described(Box::new(HeadDrop {
            limit: parameters::read_limit(arguments)?,
            line: FrameLine::default(),
        }))))
    },
);

/// FIFO with head drop. A frame that does not fit even in an empty queue is dropped instead of the
/// head. Drops are [`DropReason::QueueFull`].
#[derive(Clone, Debug)]
struct HeadDrop {
    limit: QueueLimit,
    line: FrameLine,
}

impl Discipline for HeadDrop {
    fn enqueue(&mut self, _now: Nanos, frame: QueuedFrame, context: &mut QueueContext) {
        let hopeless = |most: Bytes| u64::from(frame.len) > most.0;
        if self.limit.bytes.is_some_and(hopeless) {
            return context.dropped(&frame, DropReason::QueueFull);
        }
        while !self.line.fits(&self.limit, frame.len) {
            match self.line.pop() {
                Some(oldest) => context.dropped(&oldest, DropReason::QueueFull),
                None => return context.dropped(&frame, DropReason::QueueFull),
            }
        }
        self.line.push(frame);
    }

    fn dequeue(&mut self, _now: Nanos, _context: &mut QueueContext) -> Option<QueuedFrame> {
        self.line.pop()
    }

    fn give_up(&mut self, frames: &mut Vec<QueuedFrame>) {
        self.line.give_up(frames);
    }

    fn limit(&self) -> QueueLimit {
        self.limit
    }
}

/// A byte-counting frame queue, the building block of disciplines. Memory grows and shrinks with
/// its length; the head is stored inline, so a queue of at most one frame allocates nothing.
#[derive(Clone, Debug, Default)]
pub struct FrameLine {
    head: Option<QueuedFrame>,
    rest: Fifo<QueuedFrame>,
    packets: u64,
    bytes: u64,
}

impl FrameLine {
    /// Whether one more frame of `len` bytes fits.
    #[inline]
    pub fn fits(&self, limit: &QueueLimit, len: u32) -> bool {
        let bytes = self.bytes + u64::from(len);
        limit.packets.is_none_or(|most| self.packets < most.0)
            && limit.bytes.is_none_or(|most| bytes <= most.0)
    }

    /// Adds a frame at the tail.
    #[inline]
    pub fn push(&mut self, frame: QueuedFrame) {
        self.packets += 1;
        self.bytes += u64::from(frame.len);
        match self.head {
            None => self.head = Some(frame),
            Some(_) => self.rest.push_back(frame),
        }
    }

    /// Removes and returns the head.
    #[inline]
    pub fn pop(&mut self) -> Option<QueuedFrame> {
        let frame = self.head.take()?;
        self.packets -= 1;
        self.bytes -= u64::from(frame.len);
        if self.packets > 0 {
            self.head = self.rest.pop_front();
        }
        Some(frame)
    }

    /// Removes and returns the tail.
    pub fn pop_back(&mut self) -> Option<QueuedFrame> {
        let frame = self.rest.pop_back().or_else(|| self.head.take())?;
        self.packets -= 1;
        self.bytes -= u64::from(frame.len);
        Some(frame)
    }

    /// Moves all frames to `frames`, head first.
    pub fn give_up(&mut self, frames: &mut Vec<QueuedFrame>) {
        frames.extend(core::iter::from_fn(|| self.pop()));
    }

    /// Returns the head.
    #[inline]
    pub fn head(&self) -> Option<&QueuedFrame> {
        self.head.as_ref()
    }

    /// Returns the frames, head first.
    fn frames(&self) -> impl Iterator<Item = &QueuedFrame> {
        self.head.iter().chain(self.rest.iter())
    }

    /// Whether the queue is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.packets == 0
    }

    /// Returns the occupancy in frames and bytes.
    #[inline]
    pub fn occupancy(&self) -> (Packets, Bytes) {
        (Packets(self.packets), Bytes(self.bytes))
    }
}
