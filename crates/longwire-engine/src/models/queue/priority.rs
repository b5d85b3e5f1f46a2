//! Strict priority between classes of traffic.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use super::fifo::FrameLine;
use super::{Classes, Discipline, Queue, QueueContext, QueueLimit, QueuedFrame, Reads, parameters};
use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};
use crate::units::Nanos;
use crate::verdict::DropReason;

/// The registry line.
pub const ENTRY: Entry<Queue> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "priority",
    summary: "strict priority: a class of code points (DSCP, RFC 2474) is served only while those \
              before it have nothing waiting; each is first in, first out with tail drop",
    params: &[
        Param {
            name: "classes",
            unit: Unit::Text("ef+va@100p/rest/le"),
            default: Some("cs6+cs7+ef+va/rest/le"),
            help: "code points of each class, highest first, between slashes: numbers, ranges \
                   32-39, names, or rest; @ and a limit of its own may follow",
        },
        parameters::limit("1000p"),
        parameters::LIMIT_BYTES,
    ],
};

fn build(arguments: &Arguments) -> Result<Queue, SpecError> {
    let limit = parameters::read_limit(arguments)?;
    let classes = Classes::read(arguments)?;
    if classes.list().iter().any(|class| class.weight != 1) {
        return Err(arguments.unfit("classes have an order, not weights; drr has weights"));
    }
    Ok(Queue::Managed(Box::new(Priority::new(classes, limit))))
}

/// Strict priority. A frame's class is that of its code point; frames without
/// IP count as code point 0. Drops are [`DropReason::QueueFull`].
#[derive(Debug)]
pub struct Priority {
    classes: Classes,
    /// Of a class without a limit of its own; for the description.
    limit: QueueLimit,
    lines: Vec<FrameLine>,
    /// A bit for each class with frames, the first the lowest.
    waiting: u64,
}

impl Priority {
    /// An empty queue. `limit` is what was given for classes without one.
    pub fn new(classes: Classes, limit: QueueLimit) -> Priority {
        let lines = classes.list().iter().map(|_| FrameLine::default());
        Priority {
            lines: lines.collect(),
            classes,
            limit,
            waiting: 0,
        }
    }
}

impl Discipline for Priority {
    fn reads(&self) -> Reads {
        Reads::Class
    }

    fn enqueue(&mut self, _now: Nanos, frame: QueuedFrame, context: &mut QueueContext) {
        let class = self.classes.of(frame.dscp());
        let (line, limit) = (&mut self.lines[class], &self.classes.list()[class].limit);
        if line.fits(limit, frame.len) {
            line.push(frame);
            self.waiting |= 1 << class;
        } else {
            context.dropped(&frame, DropReason::QueueFull);
        }
    }

    fn dequeue(&mut self, _now: Nanos, _context: &mut QueueContext) -> Option<QueuedFrame> {
        let class = self.waiting.trailing_zeros() as usize;
        let line = self.lines.get_mut(class)?;
        let frame = line.pop();
        if line.is_empty() {
            self.waiting &= !(1 << class);
        }
        frame
    }

    fn give_up(&mut self, frames: &mut Vec<QueuedFrame>) {
        for line in &mut self.lines {
            line.give_up(frames);
        }
        self.waiting = 0;
    }

    fn limit(&self) -> QueueLimit {
        self.classes.limit()
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(INFO.name)?;
        parameters::write_limit(f, &self.limit)?;
        write!(f, ",classes={}", self.classes)
    }
}
