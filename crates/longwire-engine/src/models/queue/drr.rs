//! Deficit round robin among traffic classes.

use alloc::collections::VecDeque;

use super::fifo::FrameLine;
use super::{
    Classes, Discipline, HeaderFields, Queue, QueueContext, QueueLimit, QueuedFrame, parameters,
};
use crate::models::prelude::*;

pub(super) const ENTRY: Entry<Queue> = Entry::new(
    "drr",
    "deficit round robin (Shreedhar and Varghese 1996): classes of code points (DSCP, or PCP of \
     the VLAN tag) share the link by weight; each is a FIFO. A full queue drops the newest frame \
     of the class with the most bytes per weight",
    &[
        Param::with_default(
            "classes",
            Unit::Text("ef+va*4@100p/rest*8/le"),
            "cs6+cs7+ef+va*4/rest*8/le",
        )
        .help(
            "code points of each class, separated by slashes: numbers, ranges 32-39, names, or \
             rest; optionally * and a weight, @ and a limit. Or VLAN priorities: pcp0 to pcp7, \
             pcp4-5, or be bk ee ca vi vo ic nc; untagged frames are be; pcp stands for \
             nc+ic+vo*4/rest*8/bk",
        ),
        parameters::limit_of_all("1000p"),
        parameters::LIMIT_BYTES_OF_ALL,
        Param::with_default("quantum", Unit::Size, "1514b")
            .help("bytes per round for a class of weight 1"),
    ],
    build,
);

fn build(arguments: &Arguments) -> Result<Queue, SpecError> {
    let limit = parameters::read_limit(arguments)?;
    let classes = Classes::read(arguments, "nc+ic+vo*4/rest*8/bk")?;
    let quantum = parameters::read_size(arguments, "quantum")?;
    let lines = classes.list().iter().map(|class| ClassLine {
        frames: FrameLine::default(),
        weight: class.weight,
        quantum: quantum.0.saturating_mul(u64::from(class.weight)),
        deficit: 0,
    });
    let model = DeficitRoundRobin {
        lines: lines.collect(),
        active: VecDeque::with_capacity(classes.list().len()),
        classes,
        limit,
        in_turn: false,
    };
    let pairs = arguments.pairs(["limit", "limit-bytes", "classes", "quantum"]);
    let text = format!("drr:{pairs}");
    Ok(Queue::Managed(Described::new(text, Box::new(model))))
}

/// Deficit round robin (Shreedhar and Varghese, IEEE/ACM Transactions on Networking, June 1996).
///
/// Backlogged classes take turns. A turn adds the quantum times the class's weight to the class's
/// deficit; the class sends frames while the deficit covers them. The remainder carries over to the
/// next turn unless the class is empty. A quantum below the frame length only costs more turns.
/// Code points determine the class; frames without IP, or without a VLAN tag, have code point 0.
///
/// The limit applies to all classes together. While the queue, including an arriving frame, exceeds
/// it, the newest frame in the class with the most bytes per weight is dropped (longest queue drop;
/// McKenney, "Stochastic Fairness Queueing", 1990). Ties go to the arriving frame's class, which
/// drops that frame, then to the first class. Drops are [`DropReason::QueueFull`].
#[derive(Clone, Debug)]
struct DeficitRoundRobin {
    classes: Classes,
    /// Combined limit of all classes.
    limit: QueueLimit,
    lines: Vec<ClassLine>,
    /// Backlogged classes in round-robin order.
    active: VecDeque<usize>,
    /// Whether the first class has received this turn's quantum.
    in_turn: bool,
}

#[derive(Clone, Debug)]
struct ClassLine {
    frames: FrameLine,
    weight: u32,
    quantum: u64,
    deficit: u64,
}

impl ClassLine {
    /// Returns the bytes by which the deficit falls short of the head's length.
    #[inline]
    fn lacks(&self) -> u64 {
        let len = self.frames.head().map_or(0, |head| u64::from(head.len));
        len.saturating_sub(self.deficit)
    }

    fn turns_needed(&self) -> u64 {
        self.lacks().div_ceil(self.quantum)
    }
}

impl DeficitRoundRobin {
    /// Skips rounds in which no class could send: adds their quanta to every backlogged class.
    #[cold]
    fn pass_rounds(&mut self) {
        let needed = self.active.iter().map(|class| &self.lines[*class]);
        let needed = needed.map(ClassLine::turns_needed).min().unwrap_or(0);
        for class in &self.active {
            let line = &mut self.lines[*class];
            line.deficit += line.quantum.saturating_mul(needed.saturating_sub(1));
        }
    }

    /// Drops frames until the queue is within its limit, including an arriving frame of `len` bytes
    /// in class `own`. Returns `false` if the arriving frame itself must be dropped.
    #[cold]
    fn push_out(&mut self, own: usize, len: u32, context: &mut QueueContext) -> bool {
        while context.exceeds(&self.limit) {
            let longest = self.longest(own, len);
            if longest == own {
                return false;
            }
            let line = &mut self.lines[longest];
            if let Some(latest) = line.frames.pop_back() {
                context.dropped(&latest, DropReason::QueueFull);
            }
            if line.frames.is_empty() {
                line.deficit = 0;
                self.in_turn &= self.active.front() != Some(&longest);
                self.active.retain(|class| *class != longest);
            }
        }
        true
    }

    /// Returns the class with the most bytes per weight, counting a further frame of `len` bytes in
    /// class `own`.
    fn longest(&self, own: usize, len: u32) -> usize {
        let share = |class: usize| {
            let line = &self.lines[class];
            let more = if class == own { u64::from(len) } else { 0 };
            let bytes = line.frames.occupancy().1.0 + more;
            (u128::from(bytes), u128::from(line.weight))
        };
        let exceeds = |one: usize, other: usize| {
            let (one, other) = (share(one), share(other));
            one.0 * other.1 > other.0 * one.1
        };
        let classes = 0..self.lines.len();
        classes.fold(own, |longest, class| {
            if exceeds(class, longest) {
                class
            } else {
                longest
            }
        })
    }
}

impl Discipline for DeficitRoundRobin {
    fn reads(&self) -> HeaderFields {
        self.classes.reads()
    }

    fn enqueue(&mut self, _now: Nanos, frame: QueuedFrame, context: &mut QueueContext) {
        let class = self.classes.of(&frame);
        let own = &self.classes.list()[class].limit;
        let fits = self.lines[class].frames.fits(own, frame.len)
            && (!context.exceeds(&self.limit) || self.push_out(class, frame.len, context));
        if !fits {
            return context.dropped(&frame, DropReason::QueueFull);
        }
        let line = &mut self.lines[class];
        if line.frames.is_empty() {
            self.active.push_back(class);
        }
        line.frames.push(frame);
    }

    fn dequeue(&mut self, _now: Nanos, _context: &mut QueueContext) -> Option<QueuedFrame> {
        let mut turns = 0;
        loop {
            let class = *self.active.front()?;
            let line = &mut self.lines[class];
            if !self.in_turn {
                line.deficit = line.deficit.saturating_add(line.quantum);
                self.in_turn = true;
            }
            if line.lacks() == 0 {
                let frame = line.frames.pop()?;
                line.deficit -= u64::from(frame.len);
                if line.frames.is_empty() {
                    line.deficit = 0;
                    self.active.pop_front();
                    self.in_turn = false;
                }
                return Some(frame);
            }
            self.active.rotate_left(1);
            self.in_turn = false;
            turns += 1;
            if turns == self.active.len() {
                self.pass_rounds();
            }
        }
    }

    fn give_up(&mut self, frames: &mut Vec<QueuedFrame>) {
        for line in &mut self.lines {
            line.frames.give_up(frames);
            line.deficit = 0;
        }
        self.active.clear();
        self.in_turn = false;
    }

    fn limit(&self) -> QueueLimit {
        self.classes.limit(&self.limit)
    }
}
