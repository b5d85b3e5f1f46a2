//! Two-state loss: one state passes all frames, the other none.

use core::fmt;

use longwire_units::Probability;
use longwire_units::random::Stream;

use super::{ECN, LossDecision, LossModel, PLACE, PlacedLoss, placed};
use crate::frame_context::FrameContext;
use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};
use crate::verdict::DropReason;

/// Registry entry.
pub const ENTRY: Entry<PlacedLoss> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "gilbert",
    summary: "simple Gilbert model (Gilbert 1960, all frames lost in the bad state): p/(p + r) of \
              all frames are lost, in runs of mean length 1/r",
    params: &[
        Param::new("p", Unit::Probability).help("probability per frame from good to bad"),
        Param::new("r", Unit::Probability).help("probability per frame from bad to good"),
        PLACE,
        ECN,
    ],
};

fn build(arguments: &Arguments<'_>) -> Result<PlacedLoss, SpecError> {
    let gilbert = GilbertLoss {
        p: arguments.required("p")?,
        r: arguments.required("r")?,
        bad: false,
    };
    placed(arguments, gilbert)
}

/// Two-state loss. Starts in the good state; each frame first moves the state and is then
/// decided by it.
#[derive(Clone, Copy, Debug)]
struct GilbertLoss {
    p: Probability,
    r: Probability,
    bad: bool,
}

impl LossModel for GilbertLoss {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn judge(&mut self, _frame: &FrameContext<'_>, stream: &mut Stream) -> LossDecision {
        let leaves = if self.bad { self.r } else { self.p };
        self.bad ^= stream.chance(leaves);
        self.bad.then_some(DropReason::Loss)
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "gilbert:p={},r={}", self.p, self.r)
    }
}
