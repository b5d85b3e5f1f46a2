//! Strict priority among traffic classes.

use super::fifo::FrameLine;
use super::{
    Classes, Discipline, HeaderFields, Queue, QueueContext, QueueLimit, QueuedFrame, parameters,
};
use crate::models::prelude::*;

pub(super) const ENTRY: Entry<Queue> = Entry::new(
    "priority",
    "strict priority by DSCP (RFC 2474) or VLAN PCP (802.1Q), one FIFO per class. When full, an \
     arrival evicts the newest frames of lower classes, or is dropped",
    &[
        Param::with_default(
            "classes",
            Unit::Text("ef+va@100p/rest/le"),
            "cs6+cs7+ef+va/rest/le",
        )
        .help(
            "code points of each class, highest first, separated by slashes: numbers, ranges \
             32-39, names, or rest; optionally @ and a limit. Or VLAN priorities: pcp0 to pcp7, \
             pcp4-5, or be bk ee ca vi vo ic nc (be, 0, is above bk, 1); untagged frames are be; \
             pcp stands for nc/ic/vo/vi/ca/ee/be/bk",
        ),
        parameters::limit_of_all("1000p"),
        parameters::LIMIT_BYTES_OF_ALL,
    ],
    build,
);

fn build(arguments: &Arguments) -> Result<Queue, SpecError> {
    let limit = parameters::read_limit(arguments)?;
    let classes = Classes::read(arguments, "nc/ic/vo/vi/ca/ee/be/bk")?;
    if classes.list().iter().any(|class| class.weight != 1) {
        return Err(arguments.invalid("classes have an order, not weights; for weights, use drr"));
    }
    let lines = classes.list().iter().map(|_| FrameLine::default());
    let model = Priority {
        lines: lines.collect(),
        classes,
        limit,
        waiting: 0,
    };
    let pairs = arguments.pairs(["limit", "limit-bytes", "classes"]);
    let text = format!("priority:{pairs}");
    Ok(Queue::Managed(Described::new(text, Box::new(model))))
}

/// Strict priority. Code points determine the class; frames without IP, or without a VLAN tag, have
/// code point 0.
///
/// The limit applies to all classes together. A frame that does not fit displaces the newest frames
/// of the lowest backlogged classes below its own; if that would free too little space, only the
/// frame itself is dropped. Drops are [`DropReason::QueueFull`].
#[derive(Clone, Debug)]
struct Priority {
    classes: Classes,
    /// Combined limit of all classes.
    limit: QueueLimit,
    lines: Vec<FrameLine>,
    /// Bitmap of backlogged classes; bit 0 is the first class.
    waiting: u64,
}

impl Priority {
    /// Drops frames from classes below `class` until the queue is within its limit, including an
    /// arriving frame of `len` bytes. Returns `false`, without effect, if that is impossible.
    #[cold]
    fn push_out(&mut self, class: usize, len: u32, context: &mut QueueContext) -> bool {
        let mut kept = (1, u64::from(len));
        for line in &self.lines[..=class] {
            let (packets, bytes) = line.occupancy();
            kept = (kept.0 + packets.0, kept.1 + bytes.0);
        }
        if self.limit.is_exceeded_by(kept.0, kept.1) {
            return false;
        }
        while context.exceeds(&self.limit) {
            let Some(lowest) = self.waiting.checked_ilog2() else {
                return false;
            };
            let line = &mut self.lines[lowest as usize];
            if let Some(latest) = line.pop_back() {
                context.dropped(&latest, DropReason::QueueFull);
            }
            if line.is_empty() {
                self.waiting &= !(1 << lowest);
            }
        }
        true
    }
}

impl Discipline for Priority {
    fn reads(&self) -> HeaderFields {
        self.classes.reads()
    }

    fn enqueue(&mut self, _now: Nanos, frame: QueuedFrame, context: &mut QueueContext) {
        let class = self.classes.of(&frame);
        let own = &self.classes.list()[class].limit;
        let fits = self.lines[class].fits(own, frame.len)
            && (!context.exceeds(&self.limit) || self.push_out(class, frame.len, context));
        if fits {
            self.lines[class].push(frame);
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
        self.classes.limit(&self.limit)
    }
}
