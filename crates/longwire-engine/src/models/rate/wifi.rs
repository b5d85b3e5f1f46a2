//! A Wi-Fi station: waits for the medium, then sends queued frames as an aggregate.

use longwire_units::parse_count;

use super::varying::{NANOBITS, divide};
use super::{Aggregate, Rate, RateModel};
use crate::models::prelude::*;

pub(super) const ENTRY: Entry<Rate> = Entry::new(
    "wifi",
    "best-effort Wi-Fi station: contends for the medium, then sends queued frames as one A-MPDU, \
     whose frames all arrive when it ends (IEEE 802.11-2020, clauses 9.7 and 10.23.2)",
    &[
        Param::new("rate", Unit::Rate).help("physical layer (PHY) rate"),
        // The 802.11be block ack covers 1024 frames.
        Param::with_default("frames", Unit::Count, "64")
            .within("1", "1024", "1 to 1024")
            .help(
                "maximum frames in an aggregate: 64 with a basic block ack, 1 for no aggregation",
            ),
        Param::with_default("bytes", Unit::Size, "65535b").help(
            "maximum bytes in an aggregate, for frames of up to 1514 bytes: 65535b in 802.11n, \
             1048575b in 802.11ac",
        ),
        Param::with_default("duration", Unit::Time, "5484us")
            .help("maximum duration of an aggregate's frames: aPPDUMaxTime"),
        Param::with_default("preamble", Unit::Time, "40us").help("preamble before each aggregate"),
        Param::with_default("ack", Unit::Time, "48us")
            .help("time after each aggregate: SIFS of 16us and a block ack"),
        Param::with_default("aifs", Unit::Time, "43us")
            .help("idle time of the medium before the backoff counts down"),
        Param::with_default("slot", Unit::Time, "9us").help("slot time of the backoff"),
        Param::with_default("window", Unit::Count, "15")
            .within("0", "32767", "0 to 32767")
            .help("contention window: the backoff is uniform from 0 to this number of slots"),
        Param::with_default("contention", Unit::Time, "0")
            .help("mean of the exponential wait for other stations"),
    ],
    build,
);

/// Length of a full frame in bytes; an aggregate is closed once less room is left.
const FRAME: u64 = 1514;

fn build(arguments: &Arguments<'_>) -> Result<Rate, SpecError> {
    let time = |key| arguments.required::<Nanos>(key);
    let rate: BitRate = arguments.required("rate")?;
    let bytes: Bytes = arguments.required("bytes")?;
    let duration = time("duration")?;
    if bytes.0 == 0 || duration == Nanos::ZERO {
        return Err(arguments.invalid("aggregates with no bytes or no duration send no frames"));
    }
    Ok(Rate::Model(arguments.described(Box::new(Wifi {
        rate,
        frames: arguments.read("frames", parse_count)? as u32,
        bytes,
        duration,
        preamble: time("preamble")?,
        ack: time("ack")?,
        aifs: time("aifs")?,
        slot: time("slot")?,
        window: arguments.read("window", parse_count)?,
        contention: time("contention")?,
        epoch: 0,
        end: 0,
        carry: 0,
        gap: 0,
    }))))
}

/// A Wi-Fi station. Exact: an aggregate ends at `end + carry / rate`; the next starts at least
/// `gap` later.
#[derive(Clone, Debug)]
struct Wifi {
    rate: BitRate,
    frames: u32,
    bytes: Bytes,
    duration: Nanos,
    preamble: Nanos,
    ack: Nanos,
    aifs: Nanos,
    slot: Nanos,
    window: u64,
    contention: Nanos,
    epoch: u64,
    end: u64,
    carry: u64,
    /// Acknowledgement, interframe space, backoff and other stations' transmissions after an
    /// aggregate, drawn when it is served. A station counts down its backoff even without frames
    /// (post-backoff), so a station that has been idle for longer sends immediately.
    gap: u64,
}

impl Wifi {
    /// Returns the maximum aggregate size in bytes.
    fn bytes_max(&self) -> u64 {
        let bits = u128::from(self.rate.bits_per_sec()) * u128::from(self.duration.as_nanos());
        let of_duration = u64::try_from(bits / u128::from(8 * NANOBITS)).unwrap_or(u64::MAX);
        self.bytes.0.min(of_duration)
    }

    /// Returns the earliest start of the next aggregate.
    fn free(&self) -> u64 {
        self.end.saturating_add(self.gap)
    }

    fn draw_gap(&mut self, stream: &mut Stream) {
        let slots = match self.window {
            0 => 0,
            window => stream.up_to(window),
        };
        let mut gap = self.ack.saturating_add(self.aifs);
        gap = gap.saturating_add(self.slot.saturating_mul(slots));
        if self.contention > Nanos::ZERO {
            gap = gap.saturating_add(stream.exponential(self.contention));
        }
        self.gap = gap.as_nanos();
    }
}

impl RateModel for Wifi {
    fn start(&mut self, epoch: Nanos) {
        self.epoch = epoch.as_nanos();
    }

    #[inline]
    fn ready(&mut self, from: Nanos, _stream: &mut Stream) -> Nanos {
        from.max(Nanos::from_nanos(self.epoch.saturating_add(self.free())))
    }

    #[inline]
    fn serve(&mut self, frame: &FrameContext<'_>, wire_bits: u64, stream: &mut Stream) -> Nanos {
        let at = frame.at.as_nanos().saturating_sub(self.epoch);
        let mut begin = self.free();
        if at > begin {
            begin = at;
            self.carry = 0;
        }
        let (time, carry) = divide(wire_bits, self.carry, self.rate);
        self.carry = carry;
        let begun = begin.saturating_add(self.preamble.as_nanos());
        self.end = begun.saturating_add(time);
        self.draw_gap(stream);
        Nanos::from_nanos(self.epoch.saturating_add(self.end))
    }

    /// Returns the aggregation limits. Dequeued frames cannot be put back, so an aggregate is
    /// closed once a full frame might not fit.
    fn aggregate(&self) -> Aggregate {
        match self.frames {
            1 => Aggregate::ONE,
            frames => Aggregate {
                frames,
                bytes: self.bytes_max().saturating_sub(FRAME - 1).max(1),
            },
        }
    }

    /// Returns the mean rate of a saturated station with full aggregates of 1514-byte frames,
    /// excluding framing overhead.
    fn mean(&self) -> Option<BitRate> {
        let frames = (self.bytes_max() / FRAME).clamp(1, u64::from(self.frames));
        let bits = (frames * FRAME * 8) as f64;
        let gap = self.ack.as_secs_f64() + self.aifs.as_secs_f64() + self.preamble.as_secs_f64();
        let backoff = self.slot.as_secs_f64() * self.window as f64 / 2.0;
        let waits = gap + backoff + self.contention.as_secs_f64();
        let time = waits + bits / self.rate.bits_per_sec() as f64;
        BitRate::from_bits_per_sec((bits / time) as u64)
    }
}
