//! Transmission slots, like netem's `slot`.

use super::varying::NANOBITS;
use super::{Rate, RateModel, Serializer};
use crate::models::delay::{self, DelayModel};
use crate::models::framing::Framing;
use crate::models::is_scheduled;
use crate::models::prelude::*;
use crate::models::queue::limit::FULL_FRAME;

pub(super) const ENTRY: Entry<Rate> = Entry::new(
    "slots",
    "frames wait in the queue for the next slot and leave together, as on a shared medium with \
     aggregation (netem's slot, Linux 4.16); a slot ends when the queue is empty, or after a \
     number of packets or bytes",
    &[
        Param::new("wait", Unit::Text("10ms..20ms")).help(
            "time to the next slot, from the end of the previous slot or, on an idle link, from \
             the next arrival: 10ms, a range 10ms..20ms, or a delay distribution, with ; between \
             its parameters and quoted for the shell: 'normal:mean=10ms;stddev=2ms'",
        ),
        Param::new("packets", Unit::Packets).help("maximum packets per slot; default: unlimited"),
        Param::new("bytes", Unit::Size).help(
            "bytes after which a slot ends, including framing; the last frame is sent whole; \
             default: unlimited",
        ),
        Param::new("rate", Unit::Rate).help("rate within a slot; default: infinite"),
    ],
    build,
);

fn build(arguments: &Arguments<'_>) -> Result<Rate, SpecError> {
    let text = arguments.required_text("wait")?;
    let caps = Caps::read(arguments)?;
    if caps.packets == Some(Packets(0)) || caps.bytes == Some(Bytes(0)) {
        return Err(arguments.invalid("a slot of 0 passes no frames; the minimum is 1p or 1b"));
    }
    Ok(Rate::Model(arguments.described(Box::new(Slots {
        wait: read_wait(arguments, text)?,
        caps,
        line: Serializer::new(arguments.optional("rate")?, Framing::NONE),
        until: None,
        left: Left::default(),
    }))))
}

/// Reads the distribution of slot intervals.
fn read_wait(
    arguments: &Arguments<'_>,
    text: &str,
) -> Result<Described<dyn DelayModel>, SpecError> {
    let range = text.split_once("..").filter(|_| !text.contains(':'));
    let model = match range {
        Some((min, max)) => format!("uniform:min={min},max={max}"),
        None => text.replace(';', ","),
    };
    if is_scheduled(&model) {
        return Err(arguments.invalid(format!(
            "wait={text} is not a distribution; write 10ms, 10ms..20ms, or a distribution such as \
             normal:mean=10ms;stddev=2ms"
        )));
    }
    let mut doubts = Vec::new();
    let wait = delay::KIND.parse_noting(&model, arguments.loader(), &mut doubts)?;
    if wait.mean() == Nanos::ZERO {
        return Err(arguments.invalid(format!(
            "wait={text} is zero; write a longer time, such as 10ms"
        )));
    }
    doubts.into_iter().for_each(|doubt| arguments.doubt(doubt));
    Ok(wait)
}

/// Limits on one slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caps {
    packets: Option<Packets>,
    bytes: Option<Bytes>,
}

impl Caps {
    /// Reads the limits from the model's arguments.
    pub fn read(arguments: &Arguments<'_>) -> Result<Caps, SpecError> {
        Ok(Caps {
            packets: arguments.optional("packets")?,
            bytes: arguments.optional("bytes")?,
        })
    }

    /// Returns a slot's full allowance.
    fn left(&self) -> Left {
        Left {
            packets: self.packets.map_or(u64::MAX, |packets| packets.0),
            bytes: self.bytes.map_or(u64::MAX, |bytes| bytes.0),
        }
    }

    /// Returns the bytes in a slot of full frames; `None` if unlimited.
    pub fn full_bytes(&self) -> Option<u64> {
        let by_bytes = self.bytes.map(|bytes| bytes.0.div_ceil(FULL_FRAME.0));
        let frames = self.packets.map(|packets| packets.0);
        let frames = frames.into_iter().chain(by_bytes).min()?;
        Some(frames.saturating_mul(FULL_FRAME.0))
    }
}

/// Remaining allowance of a slot.
#[derive(Clone, Copy, Debug, Default)]
struct Left {
    packets: u64,
    bytes: u64,
}

/// Slots, following `get_slot_next` in Linux's net/sched/sch_netem.c.
///
/// A slot opens when its wait ends, for the frames queued by then. It closes when its packets or
/// bytes are used up, or when the queue is empty. The next wait begins immediately in the first
/// case, and with the next arrival in the second. netem sends a slot's frames at one instant; with
/// a rate, frames that arrive while the slot is sending belong to it.
#[derive(Clone, Debug)]
struct Slots {
    wait: Described<dyn DelayModel>,
    caps: Caps,
    /// Transmitter within a slot.
    line: Serializer,
    /// Time at which the slot opens or, after that, at which it sent its last frame; later arrivals
    /// find it closed. `None` before the first slot.
    until: Option<Nanos>,
    left: Left,
}

impl Slots {
    /// Starts the wait for the next slot at `after` and returns the slot's opening time.
    fn next_slot(&mut self, after: Nanos, stream: &mut Stream) -> Nanos {
        let wait = self.wait.draw(&FrameContext::alone(after, 0), stream);
        let opens = after.saturating_add(wait);
        self.until = Some(opens);
        self.left = self.caps.left();
        opens
    }
}

impl RateModel for Slots {
    fn start(&mut self, epoch: Nanos) {
        self.wait.start(epoch);
    }

    #[inline]
    fn ready(&mut self, from: Nanos, stream: &mut Stream) -> Nanos {
        match self.until {
            Some(until) if until >= from => until,
            _ => self.next_slot(from, stream),
        }
    }

    #[inline]
    fn serve(&mut self, frame: &FrameContext<'_>, wire_bits: u64, stream: &mut Stream) -> Nanos {
        let work = u128::from(wire_bits) * u128::from(NANOBITS);
        // The previous frame may depart a fraction of a nanosecond after `free_at`.
        let busy = frame.at <= self.line.free_at();
        let rest = self.line.unsent(frame.at).filter(|_| busy).unwrap_or(0);
        let departure = self.line.resume(frame.at, rest + work);
        self.until = Some(departure);
        self.left.packets = self.left.packets.saturating_sub(1);
        self.left.bytes = self.left.bytes.saturating_sub(wire_bits / 8);
        if self.left.packets == 0 || self.left.bytes == 0 {
            self.next_slot(departure, stream);
        }
        departure
    }

    fn unsent(&self, at: Nanos) -> Option<u128> {
        self.line.rate().and_then(|_| self.line.unsent(at))
    }

    fn rewind(&mut self, at: Nanos) {
        // Otherwise, the frame was the last in its slot, and the next wait has begun.
        if self.until == Some(self.line.free_at()) {
            self.until = Some(at);
        }
        self.line.resume(at, 0);
    }

    fn mean(&self) -> Option<BitRate> {
        let Some(bytes) = self.caps.full_bytes() else {
            return self.line.rate();
        };
        let work = u128::from(bytes) * 8 * u128::from(NANOBITS);
        let sending = self.line.rate().map(|rate| u128::from(rate.bits_per_sec()));
        let sending = sending.map_or(0, |rate| work / rate);
        let time = u128::from(self.wait.mean().as_nanos()) + sending;
        let mean = u64::try_from(work / time).unwrap_or(u64::MAX);
        BitRate::from_bits_per_sec(mean.clamp(1, BitRate::MAX.bits_per_sec()))
    }
}
