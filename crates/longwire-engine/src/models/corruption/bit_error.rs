//! Independent bit errors in delivered frames.

use alloc::boxed::Box;
use core::fmt;

use longwire_packet::edit::Corruption;
use longwire_units::parse_ratio;
use longwire_units::random::Stream;

use super::CorruptionModel;
use super::target::{CHECKSUM, PART, Target};
use crate::frame_context::FrameContext;
use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};

/// Registry entry.
pub const ENTRY: Entry<Box<dyn CorruptionModel>> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "ber",
    summary: "inverts each bit independently with the same probability; loss ber drops such \
              frames instead",
    params: &[
        Param::new("rate", Unit::Ratio)
            .within("0", "0.5", "0 to 0.5")
            .help("bit error rate, a ratio from 0 to 0.5, such as 1e-6"),
        PART,
        CHECKSUM,
    ],
};

fn build(arguments: &Arguments<'_>) -> Result<Box<dyn CorruptionModel>, SpecError> {
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
    /// Distribution for the last number of bits: traffic repeats its lengths, and the
    /// exponential is expensive.
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
/// Sampled by inversion (Kachitvichyanukul and Schmeiser 1988, algorithm BINV), in as many
/// steps as successes. Trials are split into parts, to keep the probability of no success
/// in a part well above the smallest float.
#[derive(Clone, Copy, Debug)]
struct Binomial {
    trials: u32,
    probability: f64,
    /// Number of trials and probability of no success, for a full part and for the last
    /// one.
    part: (u32, f64),
    last: (u32, f64),
}

/// Maximum expected successes per part: e^-200 is well above the smallest float.
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
