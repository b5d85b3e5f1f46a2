//! DualPI2: coupled control of an L4S queue and a classic queue.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

mod law;

pub use law::{DualPi2Law, DualScheduler};

use longwire_packet::header::Ecn;
use longwire_units::Nanos;

use super::fifo::FrameLine;
use super::ticks::Ticks;
use super::{Discipline, HeaderFields, LinkFacts, Queue, QueueContext, QueueLimit, QueuedFrame};
use super::{difference, parameters};
use crate::models::Entry;
use crate::verdict::DropReason;

/// Registry entry.
pub const ENTRY: Entry<Queue> = Entry {
    info: &law::INFO,
    build: |arguments| {
        let limit = parameters::read_limit(arguments)?;
        let law = DualPi2Law::read(arguments)?;
        Ok(Queue::Managed(Box::new(DualPi2::new(limit, law))))
    },
};

/// DualPI2 (RFC 9332, appendix A with its second pass, figures 2, 3, 5, 7 and 8).
///
/// ECT(1) and CE go to the L queue, all other frames to the C queue. Every `tupdate`,
/// counted from the link's epoch, with delays in seconds:
///
/// ```text
/// delay := the longer waiting time of the heads of both queues; 0 if none waits
/// p     := p + alpha (delay - target) + beta (delay - delay before), within 0..=1
/// p_C   := p^2
/// p_CL  := k p
/// alpha := 0.1 tupdate / rtt_max^2,  beta := 0.3 / rtt_max
/// ```
///
/// A frame at the head of C is dropped, or marked if it is ECT(0), with likelihood `p_C`;
/// from `p_C = min(1/k^2, 1)` on, any frame is dropped. A frame at the head of L is marked
/// with likelihood `max(p_CL, native)`, where `native` rises from 0 to 1 as its waiting
/// time rises from `l4s_min` to `l4s_min + l4s_range`; once `p_CL` reaches 1, it is dropped
/// with likelihood `p_C` and otherwise marked. Likelihoods accumulate, and the event occurs
/// each time the sum exceeds 1; no random number is drawn.
///
/// The control law's drops are [`DropReason::Aqm`], those at the limits
/// [`DropReason::QueueFull`]. Marking is essential to the discipline and cannot be
/// disabled.
///
/// Interpretation where the RFC is ambiguous:
/// * `lq.time()` in `laqm` is the waiting time of the frame just dequeued (note a of A.1),
///   and `lq.len()` counts that frame: a queue of one frame is not marked for its delay.
/// * The weighted round robin counts bytes: L sends `weight` bytes per byte of C while both
///   are backlogged. The account does not change while only one is, a dropped frame is
///   free, and the account is cleared in favour of L when the link becomes idle (A.1).
/// * `p_CL` is capped at 1: a higher likelihood would accumulate without bound.
/// * The limit in bytes is that of figure 3, with one `mtu` kept free; a limit in frames is
///   added.
#[derive(Clone, Debug)]
pub struct DualPi2 {
    limit: QueueLimit,
    law: DualPi2Law,
    alpha: f64,
    beta: f64,
    classic_max: f64,
    low_latency: CountedLine,
    classic: CountedLine,
    ticks: Ticks,
    p: f64,
    p_classic: f64,
    p_coupled: f64,
    delay_before: Nanos,
    /// Debt of the round robin to C, in bytes times the weights.
    owed: i64,
}

/// A queue and its accumulated likelihood.
#[derive(Clone, Debug, Default)]
struct CountedLine {
    line: FrameLine,
    count: f64,
}

impl CountedLine {
    /// `recur()` of figure 4.
    #[inline]
    fn happens(&mut self, likelihood: f64) -> bool {
        self.count += likelihood;
        if self.count > 1.0 {
            self.count -= 1.0;
            return true;
        }
        false
    }

    /// Returns the head's waiting time; 0 if empty.
    #[inline]
    fn waited(&self, now: Nanos) -> Nanos {
        self.line
            .head()
            .map_or(Nanos::ZERO, |head| head.sojourn(now))
    }
}

impl DualPi2 {
    /// Creates an empty queue.
    pub fn new(limit: QueueLimit, law: DualPi2Law) -> DualPi2 {
        DualPi2 {
            limit,
            law,
            alpha: law.alpha(),
            beta: law.beta(),
            classic_max: law.classic_max(),
            low_latency: CountedLine::default(),
            classic: CountedLine::default(),
            ticks: Ticks::new(law.tupdate),
            p: 0.0,
            p_classic: 0.0,
            p_coupled: 0.0,
            delay_before: Nanos::ZERO,
            owed: 0,
        }
    }

    /// Processes the ticks due at `now`.
    #[inline]
    fn update(&mut self, now: Nanos) {
        if self.ticks.due(now) {
            self.update_late(now);
        }
    }

    #[inline(never)]
    fn update_late(&mut self, now: Nanos) {
        while let Some(tick) = self.ticks.take(now) {
            let (before, delay_before) = (self.p, self.delay_before);
            let delay = self.delay(tick);
            let change = self.alpha * difference(delay, self.law.target)
                + self.beta * difference(delay, delay_before);
            self.p = (self.p + change).clamp(0.0, 1.0);
            self.delay_before = delay;
            let calm = delay == Nanos::ZERO && delay_before == Nanos::ZERO && self.p == before;
            let saturated = self.p == 1.0 && delay >= self.law.target;
            // Until the next event, delays only grow or stay 0. A settled state stays
            // settled, so an idle link costs only the ticks until then.
            if (calm || saturated)
                && let Some(last) = self.ticks.skip(now)
            {
                self.delay_before = self.delay(last);
            }
        }
        self.p_coupled = f64::min(self.p * self.law.coupling, 1.0);
        self.p_classic = self.p * self.p;
    }

    fn delay(&self, now: Nanos) -> Nanos {
        let classic = self.classic.waited(now);
        classic.max(self.low_latency.waited(now))
    }

    fn fits(&self, len: u32) -> bool {
        let ((low_packets, low_bytes), (packets, bytes)) = (
            self.low_latency.line.occupancy(),
            self.classic.line.occupancy(),
        );
        let (packets, bytes) = (low_packets.0 + packets.0, low_bytes.0 + bytes.0);
        // A frame longer than the MTU must not exceed the limit either.
        let room = self.law.mtu.0.max(u64::from(len));
        self.limit.packets.is_none_or(|most| packets < most.0)
            && self.limit.bytes.is_none_or(|most| bytes + room <= most.0)
    }

    /// Whether the L queue is next.
    #[inline]
    fn schedule(&self, now: Nanos) -> bool {
        if self.classic.line.is_empty() || self.low_latency.line.is_empty() {
            return self.classic.line.is_empty();
        }
        match self.law.scheduler {
            DualScheduler::WeightedRoundRobin(_) => self.owed <= 0,
            DualScheduler::TimeShiftedFifo(tshift) => {
                let low_latency = self.low_latency.waited(now).saturating_add(tshift);
                low_latency >= self.classic.waited(now)
            }
        }
    }

    /// Dequeues the head of L, and marks or drops it.
    #[inline]
    fn take_low_latency(&mut self, now: Nanos, context: &mut QueueContext) -> Option<QueuedFrame> {
        let waiting = self.low_latency.line.occupancy().0;
        let mut frame = self.low_latency.line.pop()?;
        if self.p_coupled < 1.0 {
            let native = if waiting > self.law.l4s_packets {
                self.native(frame.sojourn(now))
            } else {
                0.0
            };
            let likelihood = f64::max(native, self.p_coupled);
            if self.low_latency.happens(likelihood) {
                frame.try_mark();
            }
            return Some(frame);
        }
        if self.low_latency.happens(self.p_classic) {
            context.dropped(&frame, DropReason::Aqm);
            return None;
        }
        if self.low_latency.happens(self.p_coupled) {
            frame.try_mark();
        }
        Some(frame)
    }

    /// `laqm()` of figure 5.
    #[inline]
    fn native(&self, delay: Nanos) -> f64 {
        let (min, range) = (self.law.l4s_min, self.law.l4s_range);
        if delay >= min.saturating_add(range) {
            1.0
        } else if delay > min {
            delay.saturating_sub(min).as_nanos() as f64 / range.as_nanos() as f64
        } else {
            0.0
        }
    }

    /// Dequeues the head of C, and marks or drops it.
    #[inline]
    fn take_classic(&mut self, context: &mut QueueContext) -> Option<QueuedFrame> {
        let mut frame = self.classic.line.pop()?;
        if self.classic.happens(self.p_classic) {
            let overload = self.p_classic >= self.classic_max;
            if overload || !frame.try_mark() {
                context.dropped(&frame, DropReason::Aqm);
                return None;
            }
        }
        Some(frame)
    }
}

impl Discipline for DualPi2 {
    fn start(&mut self, facts: &LinkFacts) {
        self.ticks.start(facts.epoch);
    }

    fn reads(&self) -> HeaderFields {
        HeaderFields::Class
    }

    fn enqueue(&mut self, now: Nanos, frame: QueuedFrame, context: &mut QueueContext) {
        self.update(now);
        if !self.fits(frame.len) {
            return context.dropped(&frame, DropReason::QueueFull);
        }
        match frame.ecn() {
            Ecn::Capable1 | Ecn::Marked => self.low_latency.line.push(frame),
            Ecn::NotCapable | Ecn::Capable0 => self.classic.line.push(frame),
        }
    }

    fn dequeue(&mut self, now: Nanos, context: &mut QueueContext) -> Option<QueuedFrame> {
        self.update(now);
        while !(self.low_latency.line.is_empty() && self.classic.line.is_empty()) {
            let both = !self.low_latency.line.is_empty() && !self.classic.line.is_empty();
            let low_latency = self.schedule(now);
            let taken = if low_latency {
                self.take_low_latency(now, context)
            } else {
                self.take_classic(context)
            };
            let Some(frame) = taken else { continue };
            if both && let DualScheduler::WeightedRoundRobin(weight) = self.law.scheduler {
                self.owed += if low_latency {
                    i64::from(frame.len)
                } else {
                    -i64::from(frame.len) * i64::from(weight)
                };
            }
            return Some(frame);
        }
        self.idle();
        None
    }

    fn idle(&mut self) {
        self.owed = 0;
    }

    fn give_up(&mut self, frames: &mut Vec<QueuedFrame>) {
        self.low_latency.line.give_up(frames);
        self.classic.line.give_up(frames);
    }

    fn limit(&self) -> QueueLimit {
        self.limit
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(law::INFO.name)?;
        parameters::write_limit(f, &self.limit)?;
        write!(f, ",{}", self.law)
    }
}
