//! Bursty loss: Markov chains and bursts.

use longwire_units::parse_count;

use super::{ECN, LossDecision, LossModel, PLACE, PlacedLoss, placed};
use crate::coin::CorrelatedCoin;
use crate::models::prelude::*;

pub(super) const GILBERT: Entry<PlacedLoss> = Entry::new(
    "gilbert",
    "simple Gilbert model (Gilbert 1960; every frame in the bad state is lost): loss rate p/(p + \
     r), mean run length 1/r",
    &[
        Param::new("p", Unit::Probability)
            .help("transition probability from good to bad, per frame"),
        Param::new("r", Unit::Probability)
            .help("transition probability from bad to good, per frame"),
        PLACE,
        ECN,
    ],
    |arguments| build_two_states(arguments, None),
);

pub(super) const GILBERT_ELLIOTT: Entry<PlacedLoss> = Entry::new(
    "gilbert-elliott",
    "two states, each with independent losses (Elliott 1963; in netem's gemodel, 1-h is loss-bad \
     and 1-k is loss-good); the bad state has the stationary probability p/(p + r)",
    &[
        Param::new("p", Unit::Probability)
            .help("transition probability from good to bad, per frame"),
        Param::new("r", Unit::Probability)
            .help("transition probability from bad to good, per frame"),
        Param::with_default("loss-good", Unit::Probability, "0%")
            .help("loss probability in the good state"),
        Param::with_default("loss-bad", Unit::Probability, "100%")
            .help("loss probability in the bad state"),
        PLACE,
        ECN,
    ],
    |arguments| {
        let losses = [
            arguments.required("loss-good")?,
            arguments.required("loss-bad")?,
        ];
        build_two_states(arguments, Some(losses))
    },
);

fn build_two_states(
    arguments: &Arguments<'_>,
    losses: Option<[Probability; 2]>,
) -> Result<PlacedLoss, SpecError> {
    let model = TwoStateLoss {
        p: arguments.required("p")?,
        r: arguments.required("r")?,
        losses,
        bad: false,
    };
    placed(arguments, model)
}

/// Two-state loss. Starts in the good state. Each frame first advances the state; the new state
/// then decides.
#[derive(Clone, Copy, Debug)]
struct TwoStateLoss {
    p: Probability,
    r: Probability,
    /// Loss probabilities in the good and bad states; `None` for 0 and 1, which need no draw.
    losses: Option<[Probability; 2]>,
    bad: bool,
}

impl LossModel for TwoStateLoss {
    fn judge(&mut self, _frame: &FrameContext<'_>, stream: &mut Stream) -> LossDecision {
        let leaves = if self.bad { self.r } else { self.p };
        self.bad ^= stream.chance(leaves);
        let lost = match self.losses {
            None => self.bad,
            Some(losses) => stream.chance(losses[usize::from(self.bad)]),
        };
        lost.then_some(DropReason::Loss)
    }
}

pub(super) const STATE: Entry<PlacedLoss> = Entry::new(
    "state",
    "the four-state Markov model of netem's loss state (Salsano, Ludovici, Ordine, Giannuzzi \
     2012): 1 received in a gap, 2 received in a burst, 3 lost in a burst, 4 lost in a gap",
    &[
        Param::new("p13", Unit::Probability).help("transition probability from gap to burst"),
        Param::new("p31", Unit::Probability).help(
            "transition probability from burst loss to gap; 1 - p13 makes losses independent",
        ),
        Param::with_default("p32", Unit::Probability, "0%")
            .help("transition probability from burst loss to burst reception"),
        Param::with_default("p23", Unit::Probability, "100%")
            .help("transition probability from burst reception to burst loss"),
        Param::with_default("p14", Unit::Probability, "0%").help(
            "transition probability from gap to an isolated loss, which always returns to gap",
        ),
        PLACE,
        ECN,
    ],
    build_state,
);

fn build_state(arguments: &Arguments<'_>) -> Result<PlacedLoss, SpecError> {
    let probability = |name| arguments.required::<Probability>(name);
    let (p13, p31) = (probability("p13")?, probability("p31")?);
    let (p32, p23, p14) = (
        probability("p32")?,
        probability("p23")?,
        probability("p14")?,
    );
    let sum = |names: [&str; 2], p: Probability, q: Probability| {
        p.checked_add(q).ok_or_else(|| {
            let [one, other] = names;
            arguments.invalid(format!("{one}={p} plus {other}={q} is above 100%"))
        })
    };
    let model = StateLoss {
        leaves_gap: sum(["p13", "p14"], p13, p14)?,
        leaves_loss: sum(["p31", "p32"], p31, p32)?,
        p32,
        p23,
        p14,
        state: LossState::ReceivedInGap,
    };
    placed(arguments, model)
}

/// States 1 to 4 of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LossState {
    ReceivedInGap,
    ReceivedInBurst,
    LostInBurst,
    LostInGap,
}

/// Four-state loss. Starts in a gap. Each frame first advances the state; the new state then
/// decides.
#[derive(Clone, Copy, Debug)]
struct StateLoss {
    p32: Probability,
    p23: Probability,
    p14: Probability,
    leaves_gap: Probability,
    leaves_loss: Probability,
    state: LossState,
}

impl StateLoss {
    /// Returns the next state; one draw decides among all transitions.
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
    fn judge(&mut self, _frame: &FrameContext<'_>, stream: &mut Stream) -> LossDecision {
        self.state = self.next(stream.next_u64());
        matches!(self.state, LossState::LostInBurst | LossState::LostInGap)
            .then_some(DropReason::Loss)
    }
}

pub(super) const CORRELATED: Entry<PlacedLoss> = Entry::new(
    "correlated",
    "two-state Markov chain with exactly this loss rate and correlation between consecutive \
     frames; after a loss, the loss probability is rate + correlation·(1 - rate)",
    &[
        Param::new("rate", Unit::Probability).help("loss rate"),
        Param::new("correlation", Unit::Correlation)
            .help("correlation of consecutive losses, below 100%"),
        PLACE,
        ECN,
    ],
    |arguments| placed(arguments, CorrelatedCoin::read(arguments)?),
);

impl LossModel for CorrelatedCoin {
    fn judge(&mut self, _frame: &FrameContext<'_>, stream: &mut Stream) -> LossDecision {
        self.toss(stream).then_some(DropReason::Loss)
    }
}

pub(super) const BURST: Entry<PlacedLoss> = Entry::new(
    "burst",
    "loss bursts that start with a fixed probability per frame; the loss rate is length/(length + \
     1/start - 1)",
    &[
        Param::new("start", Unit::Probability).help("probability that a burst starts at a frame"),
        Param::new("length", Unit::Count)
            .within("1", "1000000", "1 to 1000000 frames")
            .help("frames per burst, 1 to 1000000; with distribution other than fixed, the mean"),
        Param::with_default(
            "distribution",
            Unit::Choice(&["fixed", "geometric", "uniform"]),
            "fixed",
        )
        .help(
            "distribution of burst lengths: fixed, geometric from 1, or uniform from 1 to 2·length \
             - 1",
        ),
        PLACE,
        ECN,
    ],
    build_burst,
);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BurstLengths {
    Fixed,
    Geometric,
    Uniform,
}

fn build_burst(arguments: &Arguments<'_>) -> Result<PlacedLoss, SpecError> {
    let burst = BurstLoss {
        start: arguments.required("start")?,
        length: arguments.read("length", parse_count)?,
        lengths: match arguments.choice("distribution")? {
            0 => BurstLengths::Fixed,
            1 => BurstLengths::Geometric,
            _ => BurstLengths::Uniform,
        },
        left: 0,
    };
    placed(arguments, burst)
}

#[derive(Clone, Copy, Debug)]
struct BurstLoss {
    start: Probability,
    length: u64,
    lengths: BurstLengths,
    /// Frames left in the burst.
    left: u64,
}

impl BurstLoss {
    fn draw_length(&self, stream: &mut Stream) -> u64 {
        match self.lengths {
            BurstLengths::Fixed => self.length,
            BurstLengths::Uniform => 1 + stream.up_to(2 * self.length - 2),
            BurstLengths::Geometric => {
                // Sampled by inversion. With a mean of 1, the divisor is minus infinity.
                let log_goes_on = libm::log1p(-1.0 / self.length as f64);
                1 + (libm::log(stream.unit()) / log_goes_on) as u64
            }
        }
    }
}

impl LossModel for BurstLoss {
    fn judge(&mut self, _frame: &FrameContext<'_>, stream: &mut Stream) -> LossDecision {
        if self.left == 0 {
            if !stream.chance(self.start) {
                return None;
            }
            self.left = self.draw_length(stream);
        }
        self.left -= 1;
        Some(DropReason::Loss)
    }
}
