//! Corruption: bit errors in delivered frames.

use dyn_clone::DynClone;

use longwire_packet::edit::Corruption;
use longwire_packet::transport_payload;
use longwire_units::{parse_count, parse_ratio};

use crate::models::prelude::*;

/// A process that flips bits in delivered frames.
pub trait CorruptionModel: DynClone + fmt::Debug + Send + Sync {
    /// Called once, before any other method. `epoch` is the origin of schedules.
    fn start(&mut self, _epoch: Nanos) {}

    /// Decides whether and how this frame is corrupted. Called for every frame that reaches the
    /// medium, even if it is lost there.
    fn judge(&mut self, frame: &FrameContext<'_>, stream: &mut Stream) -> Option<Corruption>;
}

dyn_clone::clone_trait_object!(CorruptionModel);

/// Corruption models.
pub static KIND: Kind<Described<dyn CorruptionModel>> = Kind {
    name: "corrupt",
    example: "1%",
    entries: &[RANDOM, BIT_ERROR, OFFSET],
};

const RANDOM: Entry<Described<dyn CorruptionModel>> = Entry::new(
    "random",
    "corrupts frames independently, inverting a fixed number of random bits in each (netem's \
     corrupt: one bit)",
    &[
        Param::new("rate", Unit::Probability).help("probability that a frame is corrupted"),
        BITS.help("number of inverted bits per corrupted frame"),
        PART,
        CHECKSUM,
    ],
    |arguments| {
        let rate = arguments.required("rate")?;
        let bits = arguments.read(BITS.name, parse_count)? as u32;
        corruption(arguments, Pattern::Random { rate, bits })
    },
);

const OFFSET: Entry<Described<dyn CorruptionModel>> = Entry::new(
    "offset",
    "inverts bits at a fixed offset; shorter frames are unchanged",
    &[
        Param::new("offset", Unit::Count)
            .within(
                "0",
                "65534",
                "0 to 65534, the last byte of the longest frame",
            )
            .help("offset in bytes from the start of the part, 0 to 65534"),
        BITS.help("number of bits to invert, starting at the most significant bit of that byte"),
        Param::with_default("rate", Unit::Probability, "100%")
            .help("probability that a frame is corrupted"),
        PART,
        CHECKSUM,
    ],
    |arguments| {
        let pattern = Pattern::Offset {
            offset: arguments.read("offset", parse_count)? as u32,
            bits: arguments.read(BITS.name, parse_count)? as u32,
            rate: arguments.required("rate")?,
        };
        corruption(arguments, pattern)
    },
);

const BIT_ERROR: Entry<Described<dyn CorruptionModel>> = Entry::new(
    "ber",
    "independent bit errors; the loss model ber drops the affected frames instead",
    &[
        Param::new("rate", Unit::Ratio)
            .within("0", "0.5", "0 to 0.5")
            .help("bit error rate, a ratio from 0 to 0.5, such as 1e-6"),
        PART,
        CHECKSUM,
    ],
    |arguments| {
        let last = Binomial::new(0, arguments.read("rate", parse_ratio)?);
        corruption(arguments, Pattern::BitErrors { last })
    },
);

/// Where bits are inverted.
#[derive(Clone, Copy, Debug)]
enum Pattern {
    Random {
        rate: Probability,
        bits: u32,
    },
    Offset {
        offset: u32,
        bits: u32,
        rate: Probability,
    },
    BitErrors {
        /// Distribution for the most recent number of bits: frame lengths repeat, and the
        /// exponential is expensive.
        last: Binomial,
    },
}

/// Inversion of bits of the frame or of its payload.
#[derive(Clone, Debug)]
struct BitCorruption {
    pattern: Pattern,
    /// Whether only payload bits are eligible ([`PART`]).
    payload_only: bool,
    /// Whether checksums are repaired ([`CHECKSUM`]).
    repair: bool,
}

fn corruption(
    arguments: &Arguments<'_>,
    pattern: Pattern,
) -> Result<Described<dyn CorruptionModel>, SpecError> {
    let payload_only = arguments.choice(PART.name)? == 1;
    let omitted: &[Param] = if payload_only { &[] } else { &[PART] };
    let model = BitCorruption {
        pattern,
        payload_only,
        repair: arguments.choice(CHECKSUM.name)? == 1,
    };
    Ok(Described::new(arguments.notation(omitted), Box::new(model)))
}

impl BitCorruption {
    /// Returns the corruptible byte range as start and end; `None` if empty.
    #[inline]
    fn range(&self, frame: &FrameContext<'_>) -> Option<(u32, u32)> {
        if !self.payload_only {
            return Some(Corruption::ALL);
        }
        let payload = transport_payload(frame.bytes)?;
        Some((payload.start as u32, payload.end as u32))
    }
}

impl CorruptionModel for BitCorruption {
    fn judge(&mut self, frame: &FrameContext<'_>, stream: &mut Stream) -> Option<Corruption> {
        let (bits, within, seed) = match self.pattern {
            Pattern::Random { rate, bits } => {
                let (is_corrupted, seed) = (stream.chance(rate), stream.next_u64());
                let within = is_corrupted.then(|| self.range(frame))??;
                (bits, within, Some(seed))
            }
            Pattern::Offset { offset, bits, rate } => {
                let is_corrupted = stream.chance(rate);
                let (start, end) = self.range(frame)?;
                let first = start + offset;
                let is_there = first < end.min(frame.frame.len);
                (is_corrupted && is_there).then_some((bits, (first, end), None))?
            }
            Pattern::BitErrors { mut last } => {
                let within = self.range(frame)?;
                let bytes = within.1.min(frame.frame.len).saturating_sub(within.0);
                let trials = bytes.saturating_mul(8);
                if trials != last.trials {
                    last = Binomial::new(trials, last.probability);
                    self.pattern = Pattern::BitErrors { last };
                }
                let bits = last.draw(stream);
                (bits > 0).then(|| (bits, within, Some(stream.next_u64())))?
            }
        };
        Some(Corruption {
            bits,
            within,
            seed,
            repair: self.repair,
        })
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
    /// Number of trials in each full part, and its probability of no success.
    part: (u32, f64),
    /// The same for the last part.
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
         IGMP checksums. A frame corrupted only in its checksums is then intact and not counted",
    );

/// Number of bits to flip, up to all bits of the longest frame.
const BITS: Param = Param::with_default("bits", Unit::Count, "1").within(
    "1",
    "524280",
    "1 to 524280, the bits of the longest frame",
);
