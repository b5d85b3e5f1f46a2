//! Independent bit errors; a frame with an error is lost.

use core::fmt;

use longwire_units::random::Stream;
use longwire_units::{Probability, parse_ratio};

use super::{ECN, LossDecision, LossModel, PLACE, PlacedLoss, placed};
use crate::frame_context::FrameContext;
use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};
use crate::verdict::DropReason;

/// Registry entry.
pub const ENTRY: Entry<PlacedLoss> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "ber",
    summary: "drops frames with a bit error: probability 1 - (1 - ber)^bits",
    params: &[
        Param::new("rate", Unit::Ratio).help("bit error rate, a ratio such as 1e-6"),
        PLACE,
        ECN,
    ],
};

fn build(arguments: &Arguments) -> Result<PlacedLoss, SpecError> {
    let rate = arguments.read("rate", parse_ratio)?;
    placed(arguments, BitErrorLoss::new(rate))
}

/// Loss by bit errors.
#[derive(Clone, Copy, Debug)]
pub struct BitErrorLoss {
    rate: f64,
    /// The last frame length and its probability: traffic repeats its lengths, and the
    /// exponential is expensive.
    last: (u32, Probability),
}

impl BitErrorLoss {
    /// Creates a model with a bit error rate in 0..=1.
    pub fn new(rate: f64) -> BitErrorLoss {
        BitErrorLoss {
            rate,
            last: (0, Probability::ZERO),
        }
    }

    /// Returns the probability that a frame of `len` bytes is lost.
    pub fn frame_loss(rate: f64, len: u32) -> Probability {
        // 1 - (1 - r)^n, without cancellation for small r.
        let bits = f64::from(len) * 8.0;
        Probability::from_f64(-libm::expm1(bits * libm::log1p(-rate)))
    }
}

impl LossModel for BitErrorLoss {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn judge(&mut self, frame: &FrameContext<'_>, stream: &mut Stream) -> LossDecision {
        if frame.frame.len != self.last.0 {
            let len = frame.frame.len;
            self.last = (len, BitErrorLoss::frame_loss(self.rate, len));
        }
        stream.chance(self.last.1).then_some(DropReason::BitError)
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ber:rate={:e}", self.rate)
    }
}
