//! Random early detection, including gentle and adaptive RED.

use longwire_units::parse_ratio;

use super::fifo::FrameLine;
use super::parameters::{self, BOOLEAN};
use super::ticks::Ticks;
use super::{Discipline, HeaderFields, LinkFacts, Queue, QueueContext, QueueLimit, QueuedFrame};
use crate::models::prelude::*;

pub(super) const ENTRY: Entry<Queue> = Entry::new(
    "red",
    "random early detection (Floyd and Jacobson 1993), gentle (Floyd 2000) and adaptive (Floyd, \
     Gummadi and Shenker 2001)",
    &[
        parameters::limit("1000p"),
        parameters::LIMIT_BYTES,
        MIN,
        MAX,
        MAXP,
        Param::new("weight", Unit::Ratio).help(
            "EWMA weight of the average queue length; default: 0.002, or 1 - exp(-1 / packets per \
             second) with adaptive=true",
        ),
        Param::with_default("gentle", BOOLEAN, "true")
            .help("gentle mode: raise the probability from maxp to 1 between max and 2·max"),
        Param::with_default("adaptive", BOOLEAN, "false")
            .help("adapt maxp every 500ms to keep the average midway between min and max"),
        Param::with_default("unit", Unit::Choice(&["packets", "bytes"]), "packets").help(
            "unit of the queue length; with bytes, min and max count mean packets, and drops are \
             proportional to frame length",
        ),
        PACKET,
        Param::new("bandwidth", Unit::Rate).help(
            "service rate assumed while idle; default: the link's rate, or 10mbit if unknown",
        ),
        parameters::ecn("false"),
    ],
    build,
);

const MIN: Param = Param::with_default("min", Unit::Packets, "5p")
    .help("average queue length below which nothing is dropped");

const MAX: Param = Param::with_default("max", Unit::Packets, "15p")
    .help("average queue length at which the probability is maxp");

const MAXP: Param = Param::with_default("maxp", Unit::Probability, "10%")
    .help("drop probability at max; with adaptive=true, its initial value");

const PACKET: Param = Param::with_default("packet", Unit::Size, "1000b")
    .help("mean packet length, used for idle periods, weights and unit=bytes");

fn build(arguments: &Arguments) -> Result<Queue, SpecError> {
    let limit = parameters::read_limit(arguments)?;
    let weight = arguments.word("weight");
    let weight = weight.map(|_| arguments.read("weight", parse_ratio));
    let weight = weight.transpose()?;
    let (min, max): (Packets, Packets) = (arguments.required("min")?, arguments.required("max")?);
    if max < min {
        return Err(arguments.invalid("max is below min; a common value is 3·min"));
    }
    if max == Packets(0) {
        return Err(arguments.invalid("max=0p drops all frames; the minimum is max=1p"));
    }
    if weight == Some(0.0) {
        return Err(arguments.invalid("weight=0 freezes the average; a common value is 0.002"));
    }
    let in_bytes = arguments.choice("unit")? == 1;
    let packet = parameters::read_size(arguments, "packet")?.0 as f64;
    let unit = if in_bytes { packet } else { 1.0 };
    let model = Red {
        limit,
        given_weight: weight,
        gentle: parameters::read_bool(arguments, "gentle")?,
        adaptive: parameters::read_bool(arguments, "adaptive")?,
        in_bytes,
        packet,
        bandwidth: arguments.optional("bandwidth")?,
        ecn: parameters::read_bool(arguments, "ecn")?,
        line: FrameLine::default(),
        min: min.0 as f64 * unit,
        max: max.0 as f64 * unit,
        weight: WEIGHT,
        decay: 0.0,
        maxp: arguments.required::<Probability>("maxp")?.as_f64(),
        average: 0.0,
        count: -1,
        idle_since: Nanos::ZERO,
        ticks: Ticks::new(INTERVAL),
    };
    let text = format!(
        "red:{}{},{}",
        arguments.pairs(["limit", "limit-bytes", "min", "max", "maxp"]),
        weight.map_or(String::new(), |weight| format!(",weight={weight}")),
        arguments.pairs(["gentle", "adaptive", "unit", "packet", "bandwidth", "ecn"])
    );
    Ok(Queue::Managed(Described::new(text, Box::new(model))))
}

/// Weight recommended in the 1993 paper (section 6).
const WEIGHT: f64 = 0.002;

/// Default if neither the parameter nor the link rate is known: 10 Mbit/s.
const BANDWIDTH: u64 = 10_000_000;

/// Adaptation interval of `maxp` (Floyd, Gummadi and Shenker 2001, section 4).
const INTERVAL: Nanos = Nanos::from_millis(500);

/// RED over one queue.
///
/// On each arrival, with `q` frames (or bytes) queued and `m` the number of mean packets that could
/// have been sent since the queue became empty (Floyd and Jacobson 1993, figure 2):
///
/// ```text
/// average := average + weight (q - average)             if frames are queued
/// average := average exp(m ln(1 - weight))              if the queue is empty
/// min <= average < max:      pb := maxp (average - min) / (max - min)
/// max <= average < 2 max:    pb := maxp + (1 - maxp) (average - max) / max     (gentle)
/// pb := pb len / packet                                                        (in bytes)
/// pa := pb / (1 - count pb)
/// ```
///
/// `count` is the number of arrivals since the last drop while the average is at least `min`. The
/// frame is dropped with probability `pa`, and always above `max`, or above `2 max` if gentle. With
/// `ecn`, random drops of ECN-capable frames become marks; above that range, these frames are
/// dropped too (RFC 3168, section 7). A frame that does not fit is always dropped, and counts as a
/// drop.
///
/// Adaptive RED (Floyd, Gummadi and Shenker 2001, section 4) adjusts `maxp` every 500 ms from the
/// link's epoch on. An average above `min + 0.6 (max - min)` raises a `maxp` of at most 0.5 by a
/// quarter, but at most 0.01. An average below `min + 0.4 (max - min)` multiplies a `maxp` of at
/// least 0.01 by 0.9. While the queue is empty, the average is computed as for an arrival at the
/// tick. The paper's automatic thresholds are not implemented; its automatic weight,
/// `1 - exp(-1 / C)` for `C` mean packets per second, is the default.
///
/// One number is drawn per frame that may be dropped at random. Drops are [`DropReason::Aqm`] or,
/// at the limit, [`DropReason::QueueFull`].
#[derive(Clone, Debug)]
struct Red {
    limit: QueueLimit,
    /// Weight of a new sample in the average, if specified.
    given_weight: Option<f64>,
    /// Whether the probability continues to rise above `max`.
    gentle: bool,
    /// Whether `maxp` adapts.
    adaptive: bool,
    /// Whether the queue and the drop probability are counted in bytes.
    in_bytes: bool,
    /// Mean packet size in bytes; not zero.
    packet: f64,
    /// Rate used to convert idle time to packets; `None` for the link's rate.
    bandwidth: Option<BitRate>,
    /// Whether ECN-capable frames are marked instead of dropped.
    ecn: bool,
    line: FrameLine,
    /// Average queue below which no frame is dropped.
    min: f64,
    /// Average queue at which the probability is `maxp`.
    max: f64,
    /// Weight of a new sample in the average, 0 to 1.
    weight: f64,
    /// ln(1 - weight) per nanosecond of an empty queue.
    decay: f64,
    maxp: f64,
    /// Average as of the last arrival.
    average: f64,
    /// Arrivals since the last drop, or -1 while the average is below `min`.
    count: i64,
    /// Start of the idle time not yet included in the average.
    idle_since: Nanos,
    ticks: Ticks,
}

/// RED's decision about an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decision {
    Pass,
    /// Drop or mark.
    Signal,
    Drop,
}

impl Red {
    /// Returns the average for an arrival at `now`, before counting that arrival.
    fn average_at(&self, now: Nanos) -> f64 {
        if !self.line.is_empty() || self.average == 0.0 {
            return self.average;
        }
        let idle = now.saturating_sub(self.idle_since);
        if idle == Nanos::ZERO {
            // Checked first, because a weight of 1 has an infinite decay.
            return self.average;
        }
        self.average * libm::exp(idle.as_nanos() as f64 * self.decay)
    }

    fn update_average(&mut self, now: Nanos) {
        if self.line.is_empty() {
            self.average = self.average_at(now);
            self.idle_since = now;
        } else {
            let (packets, bytes) = self.line.occupancy();
            let waiting = if self.in_bytes {
                bytes.0 as f64
            } else {
                packets.0 as f64
            };
            self.average += self.weight * (waiting - self.average);
        }
    }

    /// Returns `pb` if the frame may be dropped at random.
    fn base_probability(&self, len: u32) -> Option<f64> {
        let base = if self.average < self.max {
            self.maxp * (self.average - self.min) / (self.max - self.min)
        } else if self.gentle && self.average < 2.0 * self.max {
            self.maxp + (1.0 - self.maxp) * (self.average - self.max) / self.max
        } else {
            return None;
        };
        Some(if self.in_bytes {
            base * f64::from(len) / self.packet
        } else {
            base
        })
    }

    fn decide(&mut self, len: u32, context: &mut QueueContext) -> Decision {
        if self.average < self.min {
            self.count = -1;
            return Decision::Pass;
        }
        let Some(base) = self.base_probability(len) else {
            self.count = 0;
            return Decision::Drop;
        };
        self.count += 1;
        let left = 1.0 - self.count as f64 * base;
        let spread = if left > 0.0 { base / left } else { 1.0 };
        if !context.happens(spread) {
            return Decision::Pass;
        }
        self.count = 0;
        Decision::Signal
    }

    /// Processes the ticks due at `now`.
    #[inline]
    fn adapt(&mut self, now: Nanos) {
        if self.adaptive && self.ticks.due(now) {
            self.adapt_late(now);
        }
    }

    #[inline(never)]
    fn adapt_late(&mut self, now: Nanos) {
        let span = self.max - self.min;
        let (low, high) = (self.min + 0.4 * span, self.min + 0.6 * span);
        while let Some(tick) = self.ticks.take(now) {
            let average = self.average_at(tick);
            let before = self.maxp;
            if average > high && self.maxp <= 0.5 {
                self.maxp += f64::min(0.01, self.maxp / 4.0);
            } else if average < low && self.maxp >= 0.01 {
                self.maxp *= 0.9;
            }
            if self.maxp != before {
                continue;
            }
            let due = self.ticks.count_due(now);
            self.ticks.skip_some(if average < low {
                due
            } else {
                // Ticks have no effect until the average falls below `low`.
                self.ticks_until_below(low, due)
            });
        }
    }

    /// Returns how many of the next `due` ticks find the average at `low` or above. Without
    /// arrivals, the average only falls.
    fn ticks_until_below(&self, low: f64, due: u64) -> u64 {
        let (mut found, mut end) = (0, due);
        while found < end {
            let middle = found + (end - found) / 2;
            if self.average_at(self.ticks.nth(middle)) >= low {
                found = middle + 1;
            } else {
                end = middle;
            }
        }
        found
    }
}

impl Discipline for Red {
    fn start(&mut self, facts: &LinkFacts) {
        let rate = self.bandwidth.or(facts.rate);
        let rate = rate.map_or(BANDWIDTH, BitRate::bits_per_sec) as f64;
        let packets_per_sec = rate / (self.packet * 8.0);
        self.weight = match self.given_weight {
            Some(weight) => weight,
            None if self.adaptive => -libm::expm1(-1.0 / packets_per_sec),
            None => WEIGHT,
        };
        self.decay = libm::log1p(-self.weight) * packets_per_sec / 1e9;
        self.idle_since = facts.epoch;
        self.ticks.start(facts.epoch);
    }

    fn reads(&self) -> HeaderFields {
        parameters::read_for_marks(self.ecn)
    }

    fn enqueue(&mut self, now: Nanos, mut frame: QueuedFrame, context: &mut QueueContext) {
        self.adapt(now);
        self.update_average(now);
        let decision = self.decide(frame.len, context);
        let passes = match decision {
            Decision::Pass => true,
            Decision::Signal => self.ecn && frame.try_mark(),
            Decision::Drop => false,
        };
        if !passes {
            context.dropped(&frame, DropReason::Aqm);
        } else if self.line.fits(&self.limit, frame.len) {
            self.line.push(frame);
        } else {
            self.count = 0;
            context.dropped(&frame, DropReason::QueueFull);
        }
    }

    fn dequeue(&mut self, now: Nanos, _context: &mut QueueContext) -> Option<QueuedFrame> {
        self.adapt(now);
        let frame = self.line.pop();
        if self.line.is_empty() {
            self.idle_since = now;
        }
        frame
    }

    fn give_up(&mut self, frames: &mut Vec<QueuedFrame>) {
        self.line.give_up(frames);
    }

    fn limit(&self) -> QueueLimit {
        self.limit
    }
}
