//! FIFO that drops the oldest frame when full.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use longwire_units::{Bytes, Nanos};

use super::fifo::FrameLine;
use super::{Discipline, Queue, QueueContext, QueueLimit, QueuedFrame, parameters};
use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, SpecError};
use crate::verdict::DropReason;

/// Registry entry.
pub const ENTRY: Entry<Queue> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "head-drop",
    summary: "FIFO; a full queue drops the oldest frames, so senders learn of losses one queueing \
              delay earlier (Yin and Hluchyj 1990)",
    params: &[parameters::limit("1000p"), parameters::LIMIT_BYTES],
};

fn build(arguments: &Arguments) -> Result<Queue, SpecError> {
    let limit = parameters::read_limit(arguments)?;
    Ok(Queue::Managed(Box::new(HeadDrop::new(limit))))
}

/// FIFO with head drop. A frame that would not fit into the empty queue is dropped itself,
/// and no other. Drops are [`DropReason::QueueFull`].
#[derive(Clone, Debug)]
pub struct HeadDrop {
    limit: QueueLimit,
    line: FrameLine,
}

impl HeadDrop {
    /// Creates an empty queue.
    pub fn new(limit: QueueLimit) -> HeadDrop {
        HeadDrop {
            limit,
            line: FrameLine::default(),
        }
    }
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

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(INFO.name)?;
        parameters::write_limit(f, &self.limit)
    }
}
