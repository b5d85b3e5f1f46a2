//! Corruption: bit errors in delivered frames.

use alloc::boxed::Box;
use core::fmt;

use dyn_clone::DynClone;

use longwire_packet::edit::Corruption;
use longwire_packet::transport_payload;
use longwire_units::random::Stream;
use longwire_units::{Nanos, Probability, parse_count, parse_ratio};

use crate::frame_context::FrameContext;
use crate::models::{Entry, Kind, PartModel};
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};

/// A process that flips bits in delivered frames.
pub trait CorruptionModel: DynClone + fmt::Debug + Send + Sync {
    /// Called once, before any other method. `epoch` is the origin of schedules.
    fn start(&mut self, _epoch: Nanos) {}

    /// Decides whether and how this frame is corrupted. Called for every frame that reaches the
    /// medium, even if it is lost there.
    fn judge(&mut self, frame: &FrameContext<'_>, stream: &mut Stream) -> Option<Corruption>;

    /// Writes the model's specification text.
    ///
    /// # Errors
    /// If writing to `f` fails.
    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

dyn_clone::clone_trait_object!(CorruptionModel);

impl PartModel for Box<dyn CorruptionModel> {}

impl fmt::Display for dyn CorruptionModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe(f)
    }
}

/// Corruption models.
pub static KIND: Kind<Box<dyn CorruptionModel>> = Kind {
    name: "corrupt",
    example: "1%",
    entries: &[RANDOM, BIT_ERROR, OFFSET],
};

const RANDOM: Entry<Box<dyn CorruptionModel>> = Entry {
    info: &ModelInfo {
        name: "random",
        summary: "corrupts frames independently, inverting a fixed number of random bits in each \
                  (netem's corrupt: one bit)",
        params: &[
            Param::new("rate", Unit::Probability).help("probability that a frame is corrupted"),
            BITS.help("number of inverted bits per corrupted frame"),
            PART,
            CHECKSUM,
        ],
    },
    build: build_random,
};

fn build_random(arguments: &Arguments<'_>) -> Result<Box<dyn CorruptionModel>, SpecError> {
    Ok(Box::new(RandomCorruption {
        rate: arguments.required("rate")?,
        bits: arguments.read(BITS.name, parse_count)? as u32,
        target: Target::read(arguments)?,
    }))
}

/// Independent corruption.
#[derive(Clone, Copy, Debug)]
struct RandomCorruption {
    rate: Probability,
    bits: u32,
    target: Target,
}

impl CorruptionModel for RandomCorruption {
    fn judge(&mut self, frame: &FrameContext<'_>, stream: &mut Stream) -> Option<Corruption> {
        let (is_corrupted, seed) = (stream.chance(self.rate), stream.next_u64());
        if !is_corrupted {
            return None;
        }
        let within = self.target.range(frame)?;
        Some(self.target.corruption(self.bits, within, Some(seed)))
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RandomCorruption { rate, bits, target } = self;
        write!(f, "random:rate={rate},bits={bits}{target}")
    }
}

const OFFSET: Entry<Box<dyn CorruptionModel>> = Entry {
    info: &ModelInfo {
        name: "offset",
        summary: "inverts bits at a fixed offset; shorter frames are unchanged",
        params: &[
            Param::new("offset", Unit::Count)
                .within(
                    "0",
                    "65534",
                    "0 to 65534, the last byte of the longest frame",
                )
                .help("offset in bytes from the start of the part, 0 to 65534"),
            BITS.help(
                "number of bits to invert, starting at the most significant bit of that \
                 byte",
            ),
            Param::with_default("rate", Unit::Probability, "100%")
                .help("probability that a frame is corrupted"),
            PART,
            CHECKSUM,
        ],
    },
    build: build_offset,
};

fn build_offset(arguments: &Arguments<'_>) -> Result<Box<dyn CorruptionModel>, SpecError> {
    Ok(Box::new(OffsetCorruption {
        offset: arguments.read("offset", parse_count)? as u32,
        bits: arguments.read(BITS.name, parse_count)? as u32,
        rate: arguments.required("rate")?,
        target: Target::read(arguments)?,
    }))
}

/// Corruption at a fixed offset.
#[derive(Clone, Copy, Debug)]
struct OffsetCorruption {
    offset: u32,
    bits: u32,
    rate: Probability,
    target: Target,
}

impl CorruptionModel for OffsetCorruption {
    fn judge(&mut self, frame: &FrameContext<'_>, stream: &mut Stream) -> Option<Corruption> {
        let is_corrupted = stream.chance(self.rate);
        let (start, end) = self.target.range(frame)?;
        let first = start + self.offset;
        let is_there = first < end.min(frame.frame.len);
        let within = (is_corrupted && is_there).then_some((first, end))?;
        Some(self.target.corruption(self.bits, within, None))
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OffsetCorruption {
            offset,
            bits,
            rate,
            target,
        } = self;
        write!(f, "offset:offset={offset},bits={bits},rate={rate}{target}")
    }
}

const BIT_ERROR: Entry<Box<dyn CorruptionModel>> = Entry {
    info: &ModelInfo {
        name: "ber",
        summary: "independent bit errors; the loss model ber drops the affected frames instead",
        params: &[
            Param::new("rate", Unit::Ratio)
                .within("0", "0.5", "0 to 0.5")
                .help("bit error rate, a ratio from 0 to 0.5, such as 1e-6"),
            PART,
            CHECKSUM,
        ],
    },
    build: build_bit_error,
};

fn build_bit_error(arguments: &Arguments<'_>) -> Result<Box<dyn CorruptionModel>, SpecError> {
    let rate = arguments.read("rate", parse_ratio)?;
    Ok(Box::new(BitErrorCorruption {
        rate,
        target: Target::read(arguments)?,
        last: Binomial::new(0, rate),
    }))
}

/// Corruption by bit errors.
#[derive(Clone, Copy, Debug)]
struct BitErrorCorruption {
    rate: f64,
    target: Target,
    /// Distribution for the most recent number of bits: frame lengths repeat, and the exponential
    /// is expensive.
    last: Binomial,
}

impl CorruptionModel for BitErrorCorruption {
    fn judge(&mut self, frame: &FrameContext<'_>, stream: &mut Stream) -> Option<Corruption> {
        let within = self.target.range(frame)?;
        let bytes = within.1.min(frame.frame.len).saturating_sub(within.0);
        let trials = bytes.saturating_mul(8);
        if trials != self.last.trials {
            self.last = Binomial::new(trials, self.rate);
        }
        let bits = self.last.draw(stream);
        let corruption = |seed| self.target.corruption(bits, within, Some(seed));
        (bits > 0).then(|| corruption(stream.next_u64()))
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ber:rate={:e}{}", self.rate, self.target)
    }
}

/// Binomial distribution: the number of successes in independent trials.
///
/// Sampled by inversion (Kachitvichyanukul and Schmeiser 1988, algorithm BINV), in as many steps as
/// successes. Trials are split into parts, so that each part's probability of no success stays far
/// above the smallest `f64`.
#[derive(Clone, Copy, Debug)]
struct Binomial {
    trials: u32,
    probability: f64,
    /// Number of trials and probability of no success, in each full part and in the last.
    part: (u32, f64),
    last: (u32, f64),
}

/// Maximum expected successes per part; e^-200 is far above the smallest `f64`.
const EXPECTED_MAX: f64 = 200.0;

impl Binomial {
    fn new(trials: u32, probability: f64) -> Binomial {
        let most = (EXPECTED_MAX / probability).max(1.0);
        // The conversion saturates.
        let part = (most as u32).min(trials).max(1);
        let none = |trials: u32| libm::exp(f64::from(trials) * libm::log1p(-probability));
        let last = trials % part;
        Binomial {
            trials,
            probability,
            part: (part, none(part)),
            last: (last, none(last)),
        }
    }

    #[inline]
    fn draw(&self, stream: &mut Stream) -> u32 {
        let mut successes = 0;
        for _ in 0..self.trials / self.part.0 {
            successes += self.draw_part(self.part, stream);
        }
        if self.last.0 > 0 {
            successes += self.draw_part(self.last, stream);
        }
        successes
    }

    #[inline]
    fn draw_part(&self, (trials, none): (u32, f64), stream: &mut Stream) -> u32 {
        let mut left = stream.unit();
        if left <= none {
            return 0;
        }
        let odds = self.probability / (1.0 - self.probability);
        let (mut successes, mut probability) = (0, none);
        while left > probability && successes < trials {
            left -= probability;
            probability *= f64::from(trials - successes) / f64::from(successes + 1) * odds;
            successes += 1;
        }
        successes
    }
}

/// Region of the frame that may be corrupted.
const PART: Param = Param::with_default("part", Unit::Choice(&["frame", "payload"]), "frame").help(
    "frame: all bytes; payload: bytes after the TCP, UDP, UDP-Lite, SCTP or ICMP header, or after \
     the IP header in later fragments; frames without payload are unchanged",
);

/// Whether checksums are kept or repaired.
const CHECKSUM: Param = Param::with_default("checksum", Unit::Choice(&["keep", "repair"]), "keep")
    .help(
        "keep: the receiver can detect corruption; repair: update IP, TCP, UDP, SCTP, ICMP and \
         IGMP checksums. A frame corrupted only in its checksums is then intact, and not counted",
    );

/// Number of bits to flip, up to all bits of the longest frame.
const BITS: Param = Param::with_default("bits", Unit::Count, "1").within(
    "1",
    "524280",
    "1 to 524280, the bits of \
                                                                         the longest frame",
);

/// Values of [`PART`] and [`CHECKSUM`].
#[derive(Clone, Copy, Debug)]
struct Target {
    payload_only: bool,
    repair: bool,
}

impl Target {
    fn read(arguments: &Arguments<'_>) -> Result<Target, SpecError> {
        Ok(Target {
            payload_only: arguments.choice(PART.name)? == 1,
            repair: arguments.choice(CHECKSUM.name)? == 1,
        })
    }

    /// Returns the corruptible byte range as start and end; `None` if empty.
    #[inline]
    fn range(&self, frame: &FrameContext<'_>) -> Option<(u32, u32)> {
        if !self.payload_only {
            return Some(Corruption::ALL);
        }
        let payload = transport_payload(frame.bytes)?;
        Some((payload.start as u32, payload.end as u32))
    }

    /// Returns a corruption that flips bits within a byte range.
    fn corruption(&self, bits: u32, within: (u32, u32), seed: Option<u64>) -> Corruption {
        Corruption {
            bits,
            within,
            seed,
            repair: self.repair,
        }
    }
}

/// Writes the target as trailing model parameters.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.payload_only {
            f.write_str(",part=payload")?;
        }
        let checksum = if self.repair { "repair" } else { "keep" };
        write!(f, ",checksum={checksum}")
    }
}
