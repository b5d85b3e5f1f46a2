//! Four-state loss: gaps with isolated losses, and bursts with isolated receptions.

use alloc::format;
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
    name: "state",
    summary: "the four-state Markov model of netem's loss state (Salsano, Ludovici, Ordine, \
              Giannuzzi 2012): 1 received in a gap, 2 received in a burst, 3 lost in a burst, 4 \
              lost in a gap",
    params: &[
        transition("p13", None, "probability from gap to burst"),
        transition(
            "p31",
            None,
            "probability from loss in burst to gap; 1 - p13 makes losses independent",
        ),
        transition(
            "p32",
            Some("0%"),
            "probability from loss in burst to reception in burst",
        ),
        transition(
            "p23",
            Some("100%"),
            "probability from reception in burst to loss in burst",
        ),
        transition(
            "p14",
            Some("0%"),
            "probability from gap to an isolated loss, always followed by gap",
        ),
        PLACE,
        ECN,
    ],
};

const fn transition(
    name: &'static str,
    default: Option<&'static str>,
    help: &'static str,
) -> Param {
    Param {
        name,
        unit: Unit::Probability,
        default,
        help,
        range: None,
    }
}

fn build(arguments: &Arguments<'_>) -> Result<PlacedLoss, SpecError> {
    let probability = |name| arguments.required::<Probability>(name);
    let [p13, p31, p32, p23, p14] = [
        probability("p13")?,
        probability("p31")?,
        probability("p32")?,
        probability("p23")?,
        probability("p14")?,
    ];
    let sum = |names: [&str; 2], p: Probability, q: Probability| {
        p.checked_add(q).ok_or_else(|| {
            let [one, other] = names;
            let message = format!("{one}={p} plus {other}={q} is above 100%");
            arguments.invalid(message)
        })
    };
    let model = StateLoss {
        leaves_gap: sum(["p13", "p14"], p13, p14)?,
        leaves_loss: sum(["p31", "p32"], p31, p32)?,
        p13,
        p31,
        p32,
        p23,
        p14,
        state: LossState::ReceivedInGap,
    };
    placed(arguments, model)
}

/// The paper's states 1 to 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LossState {
    ReceivedInGap,
    ReceivedInBurst,
    LostInBurst,
    LostInGap,
}

/// Four-state loss. Starts in a gap; each frame first moves the state and is then decided
/// by it.
#[derive(Clone, Copy, Debug)]
struct StateLoss {
    p13: Probability,
    p31: Probability,
    p32: Probability,
    p23: Probability,
    p14: Probability,
    leaves_gap: Probability,
    leaves_loss: Probability,
    state: LossState,
}

impl StateLoss {
    /// Returns the next state; one draw decides between all transitions of a state.
    fn next(&self, draw: u64) -> LossState {
        match self.state {
            LossState::ReceivedInGap if self.p14.accepts(draw) => LossState::LostInGap,
            LossState::ReceivedInGap if self.leaves_gap.accepts(draw) => LossState::LostInBurst,
            LossState::ReceivedInGap | LossState::LostInGap => LossState::ReceivedInGap,
            LossState::ReceivedInBurst if self.p23.accepts(draw) => LossState::LostInBurst,
            LossState::ReceivedInBurst => LossState::ReceivedInBurst,
            LossState::LostInBurst if self.p32.accepts(draw) => LossState::ReceivedInBurst,
            LossState::LostInBurst if self.leaves_loss.accepts(draw) => LossState::ReceivedInGap,
            LossState::LostInBurst => LossState::LostInBurst,
        }
    }
}

impl LossModel for StateLoss {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn judge(&mut self, _frame: &FrameContext<'_>, stream: &mut Stream) -> LossDecision {
        self.state = self.next(stream.next_u64());
        matches!(self.state, LossState::LostInBurst | LossState::LostInGap)
            .then_some(DropReason::Loss)
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StateLoss {
            p13,
            p31,
            p32,
            p23,
            p14,
            ..
        } = self;
        write!(f, "state:p13={p13},p31={p31},p32={p32},p23={p23},p14={p14}")
    }
}
