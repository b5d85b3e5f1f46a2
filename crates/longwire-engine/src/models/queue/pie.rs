//! PIE: Proportional Integral controller Enhanced.

use longwire_units::parse_real;

use super::fifo::FrameLine;
use super::ticks::Ticks;
use super::{Discipline, HeaderFields, LinkFacts, Queue, QueueContext, QueueLimit, QueuedFrame};
use super::{difference, parameters};
use crate::models::prelude::*;

pub(super) const ENTRY: Entry<Queue> = Entry::new(
    "pie",
    "proportional integral controller enhanced (RFC 8033): drops arrivals with a probability \
     controlled by the queueing delay",
    &[
        parameters::limit("1000p"),
        parameters::LIMIT_BYTES,
        Param::with_default("target", Unit::Time, "15ms").help("target delay"),
        Param::with_default("tupdate", Unit::Time, "15ms")
            .help("probability update interval; at least 10us"),
        // The bounds are far above practical values and keep products finite.
        Param::with_default("alpha", Unit::Real, "0.125")
            .within("0", "1000000", "0 to 1000000 Hz")
            .help("probability change per second of deviation from target, in Hz"),
        Param::with_default("beta", Unit::Real, "1.25")
            .within("0", "1000000", "0 to 1000000 Hz")
            .help("probability change per second of change in delay, in Hz"),
        MAX_BURST,
        MEAN_PACKET,
        parameters::ecn("false"),
        Param::with_default("ecn-threshold", Unit::Probability, "10%").help(
            "drop probability from which ECN-capable frames are dropped too (RFC 8033, section \
             5.1)",
        ),
    ],
    build,
);

const MAX_BURST: Param = Param::with_default("max-burst", Unit::Time, "150ms")
    .help("burst allowance: no drops for this long after an uncongested period");

const MEAN_PACKET: Param = Param::with_default("mean-packet", Unit::Size, "1000b")
    .help("mean packet length; nothing is dropped while the backlog is at most twice this");

fn build(arguments: &Arguments) -> Result<Queue, SpecError> {
    let tupdate = parameters::read_time(arguments, "tupdate", Nanos::from_micros(10))?;
    let max_burst = arguments.required("max-burst")?;
    let ecn_threshold: Probability = arguments.required("ecn-threshold")?;
    Ok(Queue::Managed(arguments.described(Box::new(Pie {
        limit: parameters::read_limit(arguments)?,
        target: arguments.required("target")?,
        tupdate,
        alpha: arguments.read("alpha", parse_real)?,
        beta: arguments.read("beta", parse_real)?,
        max_burst,
        mean_packet: arguments.required("mean-packet")?,
        ecn: parameters::read_bool(arguments, "ecn")?,
        ecn_threshold: ecn_threshold.as_f64(),
        line: FrameLine::default(),
        ticks: Ticks::new(tupdate),
        delay: Nanos::ZERO,
        state: PieState {
            probability: 0.0,
            delay_before: Nanos::ZERO,
            burst: max_burst,
        },
        accumulated: 0.0,
    }))))
}

/// Bounds on the probability accumulated since the last drop: no frame is dropped below the first,
/// every frame from the second on (RFC 8033, section 5.4).
const SPREAD: (f64, f64) = (0.85, 8.5);

/// PIE over one queue (RFC 8033, appendix A, with ECN, derandomization and capped adjustment from
/// sections 5.1, 5.4 and 5.5).
///
/// Delay is measured by timestamps, as the sojourn time of the last dequeued frame. Every
/// `tupdate`, counted from the link's epoch, with delays in seconds:
///
/// ```text
/// p := alpha (delay - target) + beta (delay - delay before)
/// p := p / 2048, 512, 128, 32, 8, 2    while the probability is below
///          1e-6, 1e-5, 1e-4, 0.001, 0.01, 0.1
/// p := min(p, 0.02)                    if the probability is at least 0.1
/// probability := probability + p, times 0.98 if both delays are 0, within 0..=1
/// ```
///
/// One number is drawn per frame whose accumulated probability lies between the bounds in section
/// 5.4; the sum restarts after a drop, a mark or a full queue. Drops are [`DropReason::Aqm`] or, at
/// the limit, [`DropReason::QueueFull`].
///
/// Differences from the RFC's pseudocode:
///
/// * A departure that empties the queue counts as a delay of 0: with timestamps alone, the last
///   sample would persist while the link is idle.
/// * PIE is always on; switching by queue length (section 5.3) is omitted.
/// * Following appendix A, frames within the burst allowance do not change the sums of section 5.4;
///   in appendix B, they do.
/// * `MEAN_PKTSIZE`, which the RFC leaves open, is a parameter.
#[derive(Clone, Debug)]
struct Pie {
    limit: QueueLimit,
    /// Target delay (`QDELAY_REF`).
    target: Nanos,
    /// Update interval of the probability (`T_UPDATE`); not zero.
    tupdate: Nanos,
    /// Integral gain in Hz; not negative.
    alpha: f64,
    /// Proportional gain in Hz; not negative.
    beta: f64,
    /// Burst allowance: maximum burst that passes without drops (`MAX_BURST`).
    max_burst: Nanos,
    /// Mean packet size (`MEAN_PKTSIZE`); no frame is dropped up to a backlog of twice this.
    mean_packet: Bytes,
    /// Whether ECN-capable frames are marked instead of dropped.
    ecn: bool,
    /// Probability above which ECN-capable frames are dropped too (`mark_ecnth`).
    ecn_threshold: f64,
    line: FrameLine,
    ticks: Ticks,
    /// Delay sample from the last departure.
    delay: Nanos,
    state: PieState,
    /// Accumulated probability since the last drop.
    accumulated: f64,
}

/// State updated by a tick.
#[derive(Clone, Copy, Debug, PartialEq)]
struct PieState {
    probability: f64,
    delay_before: Nanos,
    /// Remaining burst allowance.
    burst: Nanos,
}

impl Pie {
    /// Processes the ticks due at `now`.
    #[inline]
    fn update(&mut self, now: Nanos) {
        if self.ticks.due(now) {
            self.update_late(now);
        }
    }

    #[inline(never)]
    fn update_late(&mut self, now: Nanos) {
        while self.ticks.take(now).is_some() {
            let after = self.after_tick();
            if after == self.state {
                // The delay is constant until the next departure, so the remaining ticks have no
                // effect. An idle link costs only the ticks until the probability is 0.
                self.ticks.skip(now);
            }
            self.state = after;
        }
    }

    /// Returns the state after a tick: `calculate_drop_prob()` in appendix A.
    fn after_tick(&self) -> PieState {
        let PieState {
            mut probability,
            delay_before,
            burst,
        } = self.state;
        let mut p = self.alpha * difference(self.delay, self.target)
            + self.beta * difference(self.delay, delay_before);
        p /= match probability {
            low if low < 0.000001 => 2048.0,
            low if low < 0.00001 => 512.0,
            low if low < 0.0001 => 128.0,
            low if low < 0.001 => 32.0,
            low if low < 0.01 => 8.0,
            low if low < 0.1 => 2.0,
            _ => 1.0,
        };
        if probability >= 0.1 && p > 0.02 {
            p = 0.02;
        }
        probability += p;
        if self.delay == Nanos::ZERO && delay_before == Nanos::ZERO {
            probability *= 0.98;
        }
        PieState {
            probability: probability.clamp(0.0, 1.0),
            delay_before: self.delay,
            burst: burst.saturating_sub(self.tupdate),
        }
    }

    /// Whether a delay is below half the target.
    fn is_short(&self, delay: Nanos) -> bool {
        delay.saturating_mul(2) < self.target
    }

    /// Whether to drop or mark the arriving frame (`drop_early()`).
    fn drops_early(&mut self, context: &mut QueueContext) -> bool {
        let probability = self.state.probability;
        let few = self.line.occupancy().1.0 <= 2 * self.mean_packet.0;
        if self.is_short(self.state.delay_before) && probability < 0.2 || few {
            return false;
        }
        if probability == 0.0 {
            self.accumulated = 0.0;
        }
        self.accumulated += probability;
        if self.accumulated < SPREAD.0 {
            return false;
        }
        self.accumulated >= SPREAD.1 || context.happens(probability)
    }
}

impl Discipline for Pie {
    fn start(&mut self, facts: &LinkFacts) {
        self.ticks.start(facts.epoch);
    }

    fn reads(&self) -> HeaderFields {
        parameters::read_for_marks(self.ecn)
    }

    fn enqueue(&mut self, now: Nanos, mut frame: QueuedFrame, context: &mut QueueContext) {
        self.update(now);
        if !self.line.fits(&self.limit, frame.len) {
            self.accumulated = 0.0;
            return context.dropped(&frame, DropReason::QueueFull);
        }
        let PieState {
            probability,
            delay_before,
            ..
        } = self.state;
        if probability == 0.0 && self.is_short(self.delay) && self.is_short(delay_before) {
            self.state.burst = self.max_burst;
        }
        if self.state.burst == Nanos::ZERO && self.drops_early(context) {
            self.accumulated = 0.0;
            let marks = self.ecn && probability < self.ecn_threshold;
            if !(marks && frame.try_mark()) {
                return context.dropped(&frame, DropReason::Aqm);
            }
        }
        self.line.push(frame);
    }

    fn dequeue(&mut self, now: Nanos, _context: &mut QueueContext) -> Option<QueuedFrame> {
        self.update(now);
        let frame = self.line.pop()?;
        self.delay = if self.line.is_empty() {
            Nanos::ZERO
        } else {
            frame.sojourn(now)
        };
        Some(frame)
    }

    fn give_up(&mut self, frames: &mut Vec<QueuedFrame>) {
        self.line.give_up(frames);
    }

    fn limit(&self) -> QueueLimit {
        self.limit
    }
}
