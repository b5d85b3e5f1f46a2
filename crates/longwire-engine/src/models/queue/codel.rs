//! CoDel: controlled delay.

use super::fifo::FrameLine;
use super::{Discipline, HeaderFields, Queue, QueueContext, QueueLimit, QueuedFrame, parameters};
use crate::models::prelude::*;

pub(super) const ENTRY: Entry<Queue> = Entry::new(
    "codel",
    "controlled delay (RFC 8289): drops the head once all frames have waited longer than target \
     for an interval, and again after interval / sqrt(drops)",
    &[
        parameters::limit("1000p"),
        parameters::LIMIT_BYTES,
        TARGET,
        INTERVAL,
        MTU,
        parameters::ecn("false"),
    ],
    |arguments| {
        Ok(Queue::Managed(arguments.described(Box::new(Codel {
            limit: parameters::read_limit(arguments)?,
            law: CodelLaw::read(arguments)?,
            line: FrameLine::default(),
            state: CodelState::NEW,
        }))))
    },
);

/// Tolerated standing delay.
pub(super) const TARGET: Param = Param::with_default("target", Unit::Time, "5ms")
    .help("tolerated standing delay, 5 to 10 % of interval (RFC 8289, section 4.3)");

/// Time for which the delay must exceed the target before frames are dropped.
pub(super) const INTERVAL: Param = Param::with_default("interval", Unit::Time, "100ms").help(
    "time for which the delay must exceed target before drops start; about the longest round trip \
     (RFC 8289, section 4.2)",
);

/// Backlog up to which no frame is dropped.
pub(super) const MTU: Param = Param::with_default("mtu", Unit::Size, "1514b")
    .help("backlog in bytes up to which nothing is dropped; usually the longest frame");

/// Parameters of CoDel's control law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CodelLaw {
    /// Tolerated standing delay.
    pub target: Nanos,
    /// Time for which the delay must exceed the target before frames are dropped; not zero.
    pub interval: Nanos,
    /// Backlog after a dequeue up to which no frame is dropped.
    pub mtu: Bytes,
    /// Whether ECN-capable frames are marked instead of dropped.
    pub ecn: bool,
}

impl CodelLaw {
    pub(super) fn read(arguments: &Arguments) -> Result<CodelLaw, SpecError> {
        let target: Nanos = arguments.required("target")?;
        let interval = parameters::read_time(arguments, "interval", Nanos::from_nanos(1))?;
        if target > interval {
            arguments.doubt(format!(
                "target={target} is above interval={interval}; use 5 to 10 % of interval (RFC \
                 8289, section 4.3)"
            ));
        }
        Ok(CodelLaw {
            target,
            interval,
            mtu: arguments.required("mtu")?,
            ecn: parameters::read_bool(arguments, "ecn")?,
        })
    }

    /// Returns the time of the next drop: `t + interval / sqrt(count)`, rounded down to whole
    /// nanoseconds.
    fn next_drop(&self, t: Nanos, count: u32) -> Nanos {
        let step = self.interval.as_nanos() as f64 / libm::sqrt(f64::from(count));
        t.saturating_add(Nanos::from_nanos(step as u64))
    }
}

/// The queue from which CoDel dequeues.
pub(super) trait CodelLine {
    /// Removes and returns the head.
    fn pop(&mut self) -> Option<QueuedFrame>;

    /// Returns the backlog in bytes.
    fn bytes(&self) -> u64;
}

impl CodelLine for FrameLine {
    #[inline]
    fn pop(&mut self) -> Option<QueuedFrame> {
        FrameLine::pop(self)
    }

    #[inline]
    fn bytes(&self) -> u64 {
        self.occupancy().1.0
    }
}

/// Per-queue state of CoDel's control law (RFC 8289, section 5.2).
#[derive(Clone, Copy, Debug)]
pub(super) struct CodelState {
    /// Time at which the delay will have exceeded the target for an interval; `MAX` while it is
    /// below.
    above_until: Nanos,
    /// Time of the next drop, while dropping.
    drop_next: Nanos,
    /// Drops since entering the dropping state.
    count: u32,
    /// `count` on entering the dropping state.
    count_before: u32,
    dropping: bool,
}

/// A dequeued frame, and whether its delay has been above target for an interval.
struct DequeuedFrame {
    frame: QueuedFrame,
    may_drop: bool,
}

impl CodelState {
    pub const NEW: CodelState = CodelState {
        above_until: Nanos::MAX,
        drop_next: Nanos::ZERO,
        count: 0,
        count_before: 0,
        dropping: false,
    };

    /// Returns the next frame to send at `now`, after any drops (section 5.5).
    #[inline]
    pub fn dequeue(
        &mut self,
        law: &CodelLaw,
        now: Nanos,
        line: &mut impl CodelLine,
        context: &mut QueueContext,
    ) -> Option<QueuedFrame> {
        let Some(taken) = self.take(law, now, line) else {
            self.found_empty();
            return None;
        };
        if !taken.may_drop {
            self.dropping = false;
            return Some(taken.frame);
        }
        if self.dropping {
            self.go_on_dropping(law, now, taken, line, context)
        } else {
            self.begin_dropping(law, now, taken.frame, line, context)
        }
    }

    /// Records that a dequeue found the queue empty.
    pub fn found_empty(&mut self) {
        self.above_until = Nanos::MAX;
        self.dropping = false;
    }

    /// Dequeues a frame and checks for a standing delay (section 5.6).
    #[inline]
    fn take(
        &mut self,
        law: &CodelLaw,
        now: Nanos,
        line: &mut impl CodelLine,
    ) -> Option<DequeuedFrame> {
        let Some(frame) = line.pop() else {
            self.above_until = Nanos::MAX;
            return None;
        };
        let mut may_drop = false;
        if frame.sojourn(now) < law.target || line.bytes() <= law.mtu.0 {
            self.above_until = Nanos::MAX;
        } else if self.above_until == Nanos::MAX {
            self.above_until = now.saturating_add(law.interval);
        } else {
            may_drop = now >= self.above_until;
        }
        Some(DequeuedFrame { frame, may_drop })
    }

    fn go_on_dropping(
        &mut self,
        law: &CodelLaw,
        now: Nanos,
        mut taken: DequeuedFrame,
        line: &mut impl CodelLine,
        context: &mut QueueContext,
    ) -> Option<QueuedFrame> {
        while now >= self.drop_next && self.dropping {
            self.count = self.count.saturating_add(1);
            if law.ecn && taken.frame.try_mark() {
                self.drop_next = law.next_drop(self.drop_next, self.count);
                break;
            }
            context.dropped(&taken.frame, DropReason::Aqm);
            let Some(next) = self.take(law, now, line) else {
                self.dropping = false;
                return None;
            };
            taken = next;
            if taken.may_drop {
                self.drop_next = law.next_drop(self.drop_next, self.count);
            } else {
                self.dropping = false;
            }
        }
        Some(taken.frame)
    }

    fn begin_dropping(
        &mut self,
        law: &CodelLaw,
        now: Nanos,
        mut frame: QueuedFrame,
        line: &mut impl CodelLine,
        context: &mut QueueContext,
    ) -> Option<QueuedFrame> {
        let sent = if law.ecn && frame.try_mark() {
            Some(frame)
        } else {
            context.dropped(&frame, DropReason::Aqm);
            self.take(law, now, line).map(|taken| taken.frame)
        };
        self.dropping = true;
        // Shortly after leaving the dropping state, resume near its drop rate.
        let recent = law.interval.saturating_mul(16);
        let delta = self.count.wrapping_sub(self.count_before);
        self.count = if delta > 1 && now < self.drop_next.saturating_add(recent) {
            delta
        } else {
            1
        };
        self.drop_next = law.next_drop(now, self.count);
        self.count_before = self.count;
        sent
    }
}

/// CoDel over one queue (RFC 8289, section 5).
///
/// The sojourn time runs from arrival to dequeue; the backlog is the bytes that remain queued.
/// Drops by the control law are [`DropReason::Aqm`]. Drops at the limit are
/// [`DropReason::QueueFull`], which the control law does not count.
///
/// Differences from the RFC's pseudocode:
///
/// * `maxpacket` is the parameter `mtu` instead of 512. It defaults to 1514 bytes, the interface's
///   maximum frame length, as section 5.3 requires.
/// * With `ecn`, an ECN-capable frame is marked and sent instead of dropped, which section 1 allows
///   without giving pseudocode. A dequeue marks at most one frame, and the next mark or drop is
///   scheduled as after a drop.
/// * The difference of `now` and `drop_next` is signed: a future `drop_next` counts as recent.
#[derive(Clone, Debug)]
struct Codel {
    limit: QueueLimit,
    law: CodelLaw,
    line: FrameLine,
    state: CodelState,
}

impl Discipline for Codel {
    fn reads(&self) -> HeaderFields {
        parameters::read_for_marks(self.law.ecn)
    }

    fn enqueue(&mut self, _now: Nanos, frame: QueuedFrame, context: &mut QueueContext) {
        if self.line.fits(&self.limit, frame.len) {
            self.line.push(frame);
        } else {
            context.dropped(&frame, DropReason::QueueFull);
        }
    }

    fn dequeue(&mut self, now: Nanos, context: &mut QueueContext) -> Option<QueuedFrame> {
        self.state.dequeue(&self.law, now, &mut self.line, context)
    }

    fn give_up(&mut self, frames: &mut Vec<QueuedFrame>) {
        self.line.give_up(frames);
    }

    fn limit(&self) -> QueueLimit {
        self.limit
    }
}
