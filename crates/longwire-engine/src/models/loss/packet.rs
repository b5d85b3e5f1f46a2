//! Independent loss of frames with one probability.

use alloc::boxed::Box;
use core::fmt;

use longwire_units::Probability;
use longwire_units::random::Stream;

use super::{LossDecision, LossModel, LossPlace, PLACE, PlacedLoss, placed};
use crate::frame_context::FrameContext;
use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};
use crate::verdict::DropReason;

/// The registry line.
pub const ENTRY: Entry<PlacedLoss> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "packet",
    summary: "every frame is lost with the same probability, independently of all others",
    params: &[
        Param::new("rate", Unit::Probability).help("the probability that a frame is lost"),
        PLACE,
    ],
};

fn build(arguments: &Arguments) -> Result<PlacedLoss, SpecError> {
    placed(arguments, PacketLoss(arguments.required("rate")?))
}

/// Returns independent loss on the medium.
pub(crate) fn independent(probability: Probability) -> PlacedLoss {
    PlacedLoss {
        place: LossPlace::Medium,
        model: Box::new(PacketLoss(probability)),
    }
}

/// Independent loss.
#[derive(Clone, Copy, Debug)]
pub struct PacketLoss(pub Probability);

impl LossModel for PacketLoss {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn fixed(&self) -> Option<(Probability, DropReason)> {
        Some((self.0, DropReason::Loss))
    }

    fn judge(&mut self, _frame: &FrameContext<'_>, stream: &mut Stream) -> LossDecision {
        stream.chance(self.0).then_some(DropReason::Loss)
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "packet:rate={}", self.0)
    }
}
