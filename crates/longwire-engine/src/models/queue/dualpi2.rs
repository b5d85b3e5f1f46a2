//! DualPI2: coupled AQM for an L4S queue and a classic queue.

use longwire_packet::header::Ecn;
use longwire_units::{parse_count, parse_real};

use super::fifo::FrameLine;
use super::ticks::Ticks;
use super::{Discipline, HeaderFields, LinkFacts, Queue, QueueContext, QueueLimit, QueuedFrame};
use super::{difference, parameters};
use crate::models::prelude::*;

pub(super) const ENTRY: Entry<Queue> = Entry::new(
    "dualpi2",
    "two queues with coupled control (RFC 9332): a shallow one for L4S, ECT(1) and CE, and a \
     classic one under PI2",
    &[
        parameters::limit("10000p"),
        parameters::LIMIT_BYTES
            .help("maximum bytes in both queues, including one mtu kept free; default: unlimited"),
        Param::with_default("target", Unit::Time, "15ms").help("target delay of the classic queue"),
        Param::with_default("rtt-max", Unit::Time, "100ms")
            .help("longest expected round trip; determines the gains"),
        TUPDATE,
        COUPLING,
        Param::with_default("l4s-min", Unit::Time, "800us")
            .help("sojourn time above which L4S frames may be marked"),
        Param::with_default("l4s-range", Unit::Time, "400us")
            .help("delay range over which the marking probability rises from 0 to 1; 0: a step"),
        Param::with_default("l4s-packets", Unit::Packets, "1p")
            .help("L4S backlog up to which no frame is marked for its delay"),
        Param::with_default("scheduler", Unit::Choice(&["wrr", "ts-fifo"]), "wrr")
            .help("wrr: weighted round robin; ts-fifo: time-shifted FIFO"),
        Param::with_default("weight", Unit::Count, "15")
            .within("1", "1000", "1 to 1000")
            .help("wrr: L4S bytes per classic byte while both queues are backlogged, 1 to 1000"),
        TSHIFT,
        Param::with_default("mtu", Unit::Size, "1514b")
            .help("longest frame; limit-bytes keeps this free"),
    ],
    build,
);

const TUPDATE: Param = Param::new("tupdate", Unit::Time).help(
    "probability update interval, at least 10us; default: the smaller of target and rtt-max/3",
);

const COUPLING: Param = Param::with_default("coupling", Unit::Real, "2")
    .within("0.1", "100", "0.1 to 100")
    .help("coupling factor k between the two queues, 0.1 to 100");

const TSHIFT: Param = Param::with_default("tshift", Unit::Time, "50ms")
    .help("ts-fifo: time added to the sojourn time of L4S frames");

/// Scheduler for the two queues (RFC 9332, section 4.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DualScheduler {
    /// Weighted round robin: L4S bytes per classic byte while both queues are backlogged; not zero.
    WeightedRoundRobin(u32),
    /// Serves the head with the longer waiting time, after adding this time to the L4S head's.
    TimeShiftedFifo(Nanos),
}

/// Maximum ticks for a probability of 1 to decay on an idle link. Bounds the computation after the
/// longest pause to tens of milliseconds.
const DRAIN_TICKS_MAX: f64 = 1e7;

fn build(arguments: &Arguments) -> Result<Queue, SpecError> {
    let limit = parameters::read_limit(arguments)?;
    let least = Nanos::from_micros(10);
    let target = parameters::read_time(arguments, "target", Nanos::from_nanos(1))?;
    let rtt_max = parameters::read_time(arguments, "rtt-max", least)?;
    let tupdate = match arguments.word("tupdate") {
        Some(_) => parameters::read_time(arguments, "tupdate", least)?,
        None => target
            .min(Nanos::from_nanos(rtt_max.as_nanos() / 3))
            .max(least),
    };
    let weight = arguments.read("weight", parse_count)? as u32;
    let coupling = arguments.read("coupling", parse_real)?;
    let (scheduler, of_scheduler) = match arguments.choice("scheduler")? {
        0 => (DualScheduler::WeightedRoundRobin(weight), "weight"),
        _ => (
            DualScheduler::TimeShiftedFifo(arguments.required("tshift")?),
            "tshift",
        ),
    };
    let seconds = |time| difference(time, Nanos::ZERO);
    let alpha = 0.1 * seconds(tupdate) / (seconds(rtt_max) * seconds(rtt_max));
    let model = DualPi2 {
        limit,
        target,
        coupling,
        l4s_min: arguments.required("l4s-min")?,
        l4s_range: arguments.required("l4s-range")?,
        l4s_packets: arguments.required("l4s-packets")?,
        scheduler,
        mtu: arguments.required("mtu")?,
        alpha,
        beta: 0.3 / seconds(rtt_max),
        classic_max: f64::min(1.0 / (coupling * coupling), 1.0),
        low_latency: CountedLine::default(),
        classic: CountedLine::default(),
        ticks: Ticks::new(tupdate),
        p: 0.0,
        p_classic: 0.0,
        p_coupled: 0.0,
        delay_before: Nanos::ZERO,
        owed: 0,
    };
    if alpha * seconds(target) * DRAIN_TICKS_MAX < 1.0 {
        return Err(arguments.invalid(format!(
            "target={target} and tupdate={tupdate} are too short for rtt-max={rtt_max}: the \
             controller would need more than 10 million updates to settle"
        )));
    }
    let l4s = ["coupling", "l4s-min", "l4s-range", "l4s-packets"];
    let text = format!(
        "dualpi2:{},tupdate={tupdate},{}",
        arguments.pairs(["limit", "limit-bytes", "target", "rtt-max"]),
        arguments.pairs(l4s.into_iter().chain(["scheduler", of_scheduler, "mtu"]))
    );
    Ok(Queue::Managed(Described::new(text, Box::new(model))))
}

/// DualPI2 (RFC 9332, appendix A with its second pass, figures 2, 3, 5, 7 and 8).
///
/// ECT(1) and CE frames go to the L queue, other frames to the C queue. Every `tupdate`, counted from
/// the link's epoch, with delays in seconds:
///
/// ```text
/// delay := the longer waiting time of the heads of both queues; 0 if both are empty
/// p     := p + alpha (delay - target) + beta (delay - delay before), within 0..=1
/// p_C   := p^2
/// p_CL  := k p
/// alpha := 0.1 tupdate / rtt_max^2,  beta := 0.3 / rtt_max
/// ```
///
/// The frame at the head of C is dropped, or marked if it is ECT(0), with likelihood `p_C`; from
/// `p_C = min(1/k^2, 1)` on, it is dropped regardless of ECN. The frame at the head of L is marked
/// with likelihood `max(p_CL, native)`, where `native` rises from 0 to 1 as the waiting time rises
/// from `l4s_min` to `l4s_min + l4s_range`. Once `p_CL` reaches 1, the frame is dropped with
/// likelihood `p_C` and otherwise marked. Likelihoods accumulate, and the event occurs each time
/// the sum exceeds 1; no random numbers are drawn.
///
/// Drops by the control law are [`DropReason::Aqm`], drops at the limits [`DropReason::QueueFull`].
/// Marking is essential to the discipline and cannot be disabled.
///
/// Interpretation where the RFC is ambiguous:
///
/// * `lq.time()` in `laqm` is the waiting time of the frame just dequeued (note a in A.1), and
///   `lq.len()` counts that frame: a queue of one frame is not marked for its delay.
/// * The weighted round robin counts bytes: L sends `weight` bytes per byte of C while both are
///   backlogged. The balance stays constant while only one is backlogged, dropped frames are not
///   charged, and the balance is reset in favour of L when the link becomes idle (A.1).
/// * `p_CL` is capped at 1: a higher likelihood would accumulate without bound.
/// * A limit in bytes follows figure 3, with one `mtu` kept free; a limit in frames is an addition.
#[derive(Clone, Debug)]
struct DualPi2 {
    limit: QueueLimit,
    /// Target delay of the classic queue.
    target: Nanos,
    /// Coupling factor `k`.
    coupling: f64,
    /// Delay above which L4S frames may be marked (`minTh`).
    l4s_min: Nanos,
    /// Range of delays over which the marking probability rises to 1 (`range`).
    l4s_range: Nanos,
    /// Number of queued L4S frames up to which none is marked for its delay (`Th_len`).
    l4s_packets: Packets,
    scheduler: DualScheduler,
    /// Maximum frame length, used by a limit in bytes.
    mtu: Bytes,
    /// Integral gain, in Hz: `0.1 tupdate / rtt_max^2`.
    alpha: f64,
    /// Proportional gain, in Hz: `0.3 / rtt_max`.
    beta: f64,
    /// Probability above which ECN-capable classic frames are dropped too (`p_Cmax`):
    /// `min(1 / k^2, 1)`.
    classic_max: f64,
    low_latency: CountedLine,
    classic: CountedLine,
    ticks: Ticks,
    p: f64,
    p_classic: f64,
    p_coupled: f64,
    delay_before: Nanos,
    /// Weighted bytes that the round robin owes to C.
    owed: i64,
}

/// A queue with its accumulated likelihood.
#[derive(Clone, Debug, Default)]
struct CountedLine {
    line: FrameLine,
    count: f64,
}

impl CountedLine {
    /// Accumulates a likelihood and returns whether the event occurs: `recur()` in figure 4.
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
            let change = self.alpha * difference(delay, self.target)
                + self.beta * difference(delay, delay_before);
            self.p = (self.p + change).clamp(0.0, 1.0);
            self.delay_before = delay;
            let calm = delay == Nanos::ZERO && delay_before == Nanos::ZERO && self.p == before;
            let saturated = self.p == 1.0 && delay >= self.target;
            // Until the next event, delays only grow or stay 0. A settled state stays settled, so
            // an idle link costs only the ticks until it settles.
            if (calm || saturated)
                && let Some(last) = self.ticks.skip(now)
            {
                self.delay_before = self.delay(last);
            }
        }
        self.p_coupled = f64::min(self.p * self.coupling, 1.0);
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
        let room = self.mtu.0.max(u64::from(len));
        self.limit.packets.is_none_or(|most| packets < most.0)
            && self.limit.bytes.is_none_or(|most| bytes + room <= most.0)
    }

    /// Whether the L queue is served next.
    #[inline]
    fn schedule(&self, now: Nanos) -> bool {
        if self.classic.line.is_empty() || self.low_latency.line.is_empty() {
            return self.classic.line.is_empty();
        }
        match self.scheduler {
            DualScheduler::WeightedRoundRobin(_) => self.owed <= 0,
            DualScheduler::TimeShiftedFifo(tshift) => {
                let low_latency = self.low_latency.waited(now).saturating_add(tshift);
                low_latency >= self.classic.waited(now)
            }
        }
    }

    /// Dequeues the head of L, marking or dropping frames as needed.
    #[inline]
    fn take_low_latency(&mut self, now: Nanos, context: &mut QueueContext) -> Option<QueuedFrame> {
        let waiting = self.low_latency.line.occupancy().0;
        let mut frame = self.low_latency.line.pop()?;
        if self.p_coupled < 1.0 {
            let native = if waiting > self.l4s_packets {
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

    /// Returns the native marking likelihood: `laqm()` in figure 5.
    #[inline]
    fn native(&self, delay: Nanos) -> f64 {
        let (min, range) = (self.l4s_min, self.l4s_range);
        if delay >= min.saturating_add(range) {
            1.0
        } else if delay > min {
            delay.saturating_sub(min).as_nanos() as f64 / range.as_nanos() as f64
        } else {
            0.0
        }
    }

    /// Dequeues the head of C, marking or dropping frames as needed.
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
            if both && let DualScheduler::WeightedRoundRobin(weight) = self.scheduler {
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
}
