//! Two-state loss with a loss probability per state.

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
    name: "gilbert-elliott",
    summary: "two states with independent losses in each (Elliott 1963; netem's gemodel, whose \
              1-h is loss-bad and 1-k is loss-good); p/(p + r) of all frames meet the bad state",
    params: &[
        Param::new("p", Unit::Probability).help("probability per frame from good to bad"),
        Param::new("r", Unit::Probability).help("probability per frame from bad to good"),
        Param::with_default("loss-good", Unit::Probability, "0%")
            .help("loss probability in the good state"),
        Param::with_default("loss-bad", Unit::Probability, "100%")
            .help("loss probability in the bad state"),
        PLACE,
        ECN,
    ],
};

fn build(arguments: &Arguments<'_>) -> Result<PlacedLoss, SpecError> {
    let loss = GilbertElliottLoss {
        p: arguments.required("p")?,
        r: arguments.required("r")?,
        loss_good: arguments.required("loss-good")?,
        loss_bad: arguments.required("loss-bad")?,
        bad: false,
    };
    placed(arguments, loss)
}

/// Two-state loss. Starts in the good state; each frame first moves the state and is then
/// decided by it.
#[derive(Clone, Copy, Debug)]
struct GilbertElliottLoss {
    p: Probability,
    r: Probability,
    loss_good: Probability,
    loss_bad: Probability,
    bad: bool,
}

impl LossModel for GilbertElliottLoss {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn judge(&mut self, _frame: &FrameContext<'_>, stream: &mut Stream) -> LossDecision {
        let leaves = if self.bad { self.r } else { self.p };
        self.bad ^= stream.chance(leaves);
        let loss = if self.bad {
            self.loss_bad
        } else {
            self.loss_good
        };
        stream.chance(loss).then_some(DropReason::Loss)
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GilbertElliottLoss { p, r, .. } = self;
        let (good, bad) = (self.loss_good, self.loss_bad);
        write!(
            f,
            "gilbert-elliott:p={p},r={r},loss-good={good},loss-bad={bad}"
        )
    }
}
