//! Independent frame loss, optionally with a maximum run length, and bit-error loss.

use longwire_units::{parse_count, parse_ratio};

use super::{ECN, LossDecision, LossEcn, LossModel, LossPlace, PLACE, PlacedLoss, placed};
use crate::models::prelude::*;

pub(super) const PACKET: Entry<PlacedLoss> = Entry::new(
    "packet",
    "drops frames independently with a fixed probability",
    &[
        Param::new("rate", Unit::Probability).help("probability that a frame is lost"),
        Param::new("run-max", Unit::Count).help(
            "maximum number k of consecutive losses (the QUIC interop runner's burst); the loss \
             rate is then rate·(1 - rate^k)/(1 - rate^(k + 1)); default: no limit",
        ),
        PLACE,
        ECN,
    ],
    build,
);

fn build(arguments: &Arguments) -> Result<PlacedLoss, SpecError> {
    let mut model = PacketLoss::new(arguments.required("rate")?);
    if arguments.word("run-max").is_some() {
        model.run_max = arguments.read("run-max", parse_count)?;
        if model.run_max == 0 {
            return Err(arguments.invalid("run-max=0 drops no frame; the minimum is 1"));
        }
        model.doubt_limit(arguments);
    }
    placed(arguments, model)
}

/// Returns independent loss on the medium.
pub(crate) fn independent(probability: Probability) -> PlacedLoss {
    PlacedLoss {
        name: PACKET.info.name,
        text: format!("packet:rate={probability}"),
        place: LossPlace::Medium,
        ecn: LossEcn::Drop,
        model: Box::new(PacketLoss::new(probability)),
    }
}

/// No limit on consecutive losses.
const UNLIMITED: u64 = u64::MAX;

#[derive(Clone, Copy, Debug)]
struct PacketLoss {
    rate: Probability,
    /// Maximum number of consecutive losses.
    run_max: u64,
    /// Losses since a frame last passed.
    run: u64,
}

impl PacketLoss {
    fn new(rate: Probability) -> PacketLoss {
        PacketLoss {
            rate,
            run_max: UNLIMITED,
            run: 0,
        }
    }

    /// Warns if the limit lowers the loss ratio by more than a tenth.
    fn doubt_limit(&self, arguments: &Arguments<'_>) {
        let (rate, run_max) = (self.rate.as_f64(), self.run_max as f64);
        let lost = if rate < 1.0 {
            let full = libm::pow(rate, run_max);
            rate * (1.0 - full) / (1.0 - rate * full)
        } else {
            run_max / (run_max + 1.0)
        };
        if lost < 0.9 * rate {
            arguments.doubt(format!(
                "run-max={} reduces the loss rate from {} to {:.3}%; remove run-max for the full \
                 rate",
                self.run_max,
                self.rate,
                lost * 100.0
            ));
        }
    }
}

impl LossModel for PacketLoss {
    fn fixed(&self) -> Option<(Probability, DropReason)> {
        (self.run_max == UNLIMITED).then_some((self.rate, DropReason::Loss))
    }

    /// Draws for every frame, so that the limit does not shift the draws.
    fn judge(&mut self, _frame: &FrameContext<'_>, stream: &mut Stream) -> LossDecision {
        let lost = stream.chance(self.rate) && self.run < self.run_max;
        self.run = if lost { self.run + 1 } else { 0 };
        lost.then_some(DropReason::Loss)
    }
}

pub(super) const BIT_ERROR: Entry<PlacedLoss> = Entry::new(
    "ber",
    "drops frames with a bit error: probability 1 - (1 - rate)^bits",
    &[
        Param::new("rate", Unit::Ratio).help("bit error rate, a ratio such as 1e-6"),
        PLACE,
        ECN,
    ],
    |arguments| {
        let rate = arguments.read("rate", parse_ratio)?;
        placed(arguments, BitErrorLoss::new(rate))
    },
);

/// Loss by bit errors.
#[derive(Clone, Copy, Debug)]
pub struct BitErrorLoss {
    rate: f64,
    /// Most recent frame length and its loss probability: lengths repeat, and the exponential is
    /// expensive.
    last: (u32, Probability),
}

impl BitErrorLoss {
    /// Creates a model for a bit error rate in 0..=1.
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
    fn judge(&mut self, frame: &FrameContext<'_>, stream: &mut Stream) -> LossDecision {
        if frame.frame.len != self.last.0 {
            let len = frame.frame.len;
            self.last = (len, BitErrorLoss::frame_loss(self.rate, len));
        }
        stream.chance(self.last.1).then_some(DropReason::BitError)
    }
}
