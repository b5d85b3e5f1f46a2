//! FQ-CoDel: round robin among flows, each with its own CoDel.

use longwire_units::parse_count;

use super::codel::{self, CodelLaw, CodelLine, CodelState};
use super::pool::{Pool, PoolLine};
use super::{Discipline, HeaderFields, Queue, QueueContext, QueueLimit, QueuedFrame, parameters};
use crate::models::prelude::*;

pub(super) const ENTRY: Entry<Queue> = Entry::new(
    "fq-codel",
    "per-flow queues with CoDel (RFC 8290): sparse flows first, the others by deficit round robin; \
     each flow queue has its own CoDel state",
    &[
        parameters::limit("10240p"),
        parameters::LIMIT_BYTES
            .default("32mb")
            .help("maximum bytes in the queue"),
        codel::TARGET,
        codel::INTERVAL,
        codel::MTU,
        // 65536 queues take 4.5 MiB.
        Param::with_default("flows", Unit::Count, "1024")
            .within("1", "65536", "1 to 65536")
            .help("number of flow queues, 1 to 65536"),
        Param::with_default("quantum", Unit::Size, "1514b")
            .help("bytes per round for each flow queue; at least 64b"),
        Param::new("ce-threshold", Unit::Time).help(
            "queueing delay above which ECN-capable frames are marked (RFC 8290, section 5.2.7); \
             default: off",
        ),
        parameters::ecn("true"),
    ],
    build,
);

/// Minimum quantum; a smaller one only costs more turns.
const QUANTUM_MIN: Bytes = Bytes(64);

fn build(arguments: &Arguments) -> Result<Queue, SpecError> {
    let quantum: Bytes = arguments.required("quantum")?;
    if quantum < QUANTUM_MIN {
        let message = format!("quantum={quantum} is too small; the minimum is {QUANTUM_MIN}");
        return Err(arguments.invalid(message));
    }
    let flows = arguments.read("flows", parse_count)? as usize;
    let flow = Flow {
        line: PoolLine::EMPTY,
        codel: CodelState::NEW,
        credits: 0,
        next: NONE,
        active: false,
    };
    let model = FqCodel {
        limit: parameters::read_limit(arguments)?,
        law: CodelLaw::read(arguments)?,
        quantum: quantum.0 as i64,
        ce_threshold: arguments.optional("ce-threshold")?,
        pool: Pool::new(),
        flows: vec![flow; flows],
        backlogs: vec![0; flows],
        new: FlowList::EMPTY,
        old: FlowList::EMPTY,
    };
    let codel = ["limit", "limit-bytes", "target", "interval", "mtu", "ecn"];
    let pairs = arguments.pairs(
        codel
            .into_iter()
            .chain(["flows", "quantum", "ce-threshold"]),
    );
    let text = format!("fq-codel:{pairs}");
    Ok(Queue::Managed(Described::new(text, Box::new(model))))
}

/// Maximum number of frames dropped together at a limit (RFC 8290, section 4.1).
const BATCH: u32 = 64;

/// Null index of a queue.
const NONE: u32 = u32::MAX;

/// FQ-CoDel (RFC 8290, section 4).
///
/// A frame's queue is its flow hash modulo the number of queues. The hash is
/// [`flow_hash`](longwire_packet::flow_hash::flow_hash) mixed with the first number of the
/// discipline's random stream, the only one drawn. Memory is 72 bytes per queue and 40 per frame,
/// and never shrinks.
///
/// Drops by CoDel are [`DropReason::Aqm`], drops at the limits [`DropReason::QueueFull`]. CoDel
/// works like [`super::codel::Codel`], with the same differences from the RFC; each queue has its
/// own backlog.
///
/// Interpretation where the RFC is ambiguous:
///
/// * A queue's turn ends when its credits are zero or less (section 3); section 4.2 says negative.
/// * Over a limit, half of the frames in the queue with the most bytes are dropped, rounded down,
///   but at least one and at most 64 (section 4.1); ties go to the first queue. The limit in bytes,
///   absent from the RFC, works the same way, repeatedly if necessary.
/// * When the link becomes idle, it has found every active queue empty, so none is active at the
///   next arrival (section 4.2).
#[derive(Clone, Debug)]
struct FqCodel {
    limit: QueueLimit,
    /// CoDel parameters of each queue.
    law: CodelLaw,
    /// Bytes that a queue may send per turn; not zero.
    quantum: i64,
    /// Sojourn time above which ECN-capable frames are marked.
    ce_threshold: Option<Nanos>,
    pool: Pool,
    flows: Vec<Flow>,
    /// Backlog of each queue in bytes; contiguous, for a fast search for the largest.
    backlogs: Vec<u64>,
    new: FlowList,
    old: FlowList,
}

/// One queue.
#[derive(Clone, Copy, Debug)]
struct Flow {
    line: PoolLine,
    codel: CodelState,
    credits: i64,
    /// Next queue in the same list.
    next: u32,
    active: bool,
}

// RFC 8290, section 5.4, recommends little memory per queue.
const _: () = assert!(size_of::<Flow>() <= 64);

/// A list of queues in round-robin order.
#[derive(Clone, Copy, Debug)]
struct FlowList {
    head: u32,
    tail: u32,
}

impl FlowList {
    const EMPTY: FlowList = FlowList {
        head: NONE,
        tail: NONE,
    };

    fn push(&mut self, flows: &mut [Flow], index: u32) {
        flows[index as usize].next = NONE;
        match self.head {
            NONE => self.head = index,
            _ => flows[self.tail as usize].next = index,
        }
        self.tail = index;
    }

    fn pop(&mut self, flows: &[Flow]) -> Option<u32> {
        let index = self.head;
        self.head = flows.get(index as usize)?.next;
        Some(index)
    }
}

/// One queue in the pool, as CoDel's frame source.
struct FlowLine<'a> {
    pool: &'a mut Pool,
    line: &'a mut PoolLine,
    backlog: &'a mut u64,
}

impl CodelLine for FlowLine<'_> {
    #[inline]
    fn pop(&mut self) -> Option<QueuedFrame> {
        let frame = self.pool.pop(self.line)?;
        *self.backlog -= u64::from(frame.len);
        Some(frame)
    }

    #[inline]
    fn bytes(&self) -> u64 {
        *self.backlog
    }
}

impl FqCodel {
    /// Returns the queue index for a flow hash.
    #[inline]
    fn flow_of(&self, hash: u64) -> u32 {
        let flows = self.flows.len() as u64;
        // Avoids the division, which would account for a quarter of the time per arrival.
        if flows.is_power_of_two() {
            (hash & (flows - 1)) as u32
        } else {
            (hash % flows) as u32
        }
    }

    #[cold]
    fn drop_from_largest(&mut self, context: &mut QueueContext) {
        let mut largest = 0;
        for (index, bytes) in self.backlogs.iter().enumerate() {
            if *bytes > self.backlogs[largest] {
                largest = index;
            }
        }
        let batch = (self.flows[largest].line.len() / 2).clamp(1, BATCH);
        for _ in 0..batch {
            if let Some(frame) = self.line(largest).pop() {
                context.dropped(&frame, DropReason::QueueFull);
            }
        }
    }

    fn line(&mut self, index: usize) -> FlowLine<'_> {
        FlowLine {
            pool: &mut self.pool,
            line: &mut self.flows[index].line,
            backlog: &mut self.backlogs[index],
        }
    }

    /// Dequeues a frame from one queue through CoDel.
    #[inline]
    fn take(&mut self, index: u32, now: Nanos, context: &mut QueueContext) -> Option<QueuedFrame> {
        let flow = &mut self.flows[index as usize];
        let mut line = FlowLine {
            pool: &mut self.pool,
            line: &mut flow.line,
            backlog: &mut self.backlogs[index as usize],
        };
        let mut frame = flow.codel.dequeue(&self.law, now, &mut line, context)?;
        if let Some(threshold) = self.ce_threshold
            && frame.sojourn(now) > threshold
        {
            frame.try_mark();
        }
        flow.credits -= i64::from(frame.len);
        Some(frame)
    }
}

impl Discipline for FqCodel {
    fn reads(&self) -> HeaderFields {
        HeaderFields::Flow
    }

    fn enqueue(&mut self, _now: Nanos, frame: QueuedFrame, context: &mut QueueContext) {
        let index = self.flow_of(frame.flow);
        let flow = &mut self.flows[index as usize];
        self.pool.push(&mut flow.line, frame);
        self.backlogs[index as usize] += u64::from(frame.len);
        if !flow.active {
            flow.active = true;
            flow.credits = self.quantum;
            self.new.push(&mut self.flows, index);
        }
        while context.exceeds(&self.limit) {
            self.drop_from_largest(context);
        }
    }

    fn dequeue(&mut self, now: Nanos, context: &mut QueueContext) -> Option<QueuedFrame> {
        loop {
            let is_new = self.new.head != NONE;
            let index = if is_new { self.new.head } else { self.old.head };
            if index == NONE {
                return None;
            }
            let exhausted = self.flows[index as usize].credits <= 0;
            if !exhausted && let Some(frame) = self.take(index, now, context) {
                return Some(frame);
            }
            if is_new {
                self.new.pop(&self.flows)
            } else {
                self.old.pop(&self.flows)
            };
            if exhausted {
                self.flows[index as usize].credits += self.quantum;
                self.old.push(&mut self.flows, index);
            } else if is_new {
                // The queue is empty, but every old queue gets a turn first; otherwise, it could
                // immediately return as a new queue (RFC 8290, section 4.2).
                self.old.push(&mut self.flows, index);
            } else {
                self.flows[index as usize].active = false;
            }
        }
    }

    fn idle(&mut self) {
        loop {
            let (new, old) = (&mut self.new, &mut self.old);
            let flows = &self.flows;
            let Some(index) = new.pop(flows).or_else(|| old.pop(flows)) else {
                return;
            };
            let flow = &mut self.flows[index as usize];
            flow.codel.found_empty();
            flow.active = false;
        }
    }

    fn give_up(&mut self, frames: &mut Vec<QueuedFrame>) {
        for index in 0..self.flows.len() {
            frames.extend(core::iter::from_fn(|| self.line(index).pop()));
        }
        self.idle();
    }

    fn limit(&self) -> QueueLimit {
        self.limit
    }
}
