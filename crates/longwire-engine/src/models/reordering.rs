//! Deliberate reordering: frames held back or sent ahead. The order policy decides whether jitter
//! may also reorder frames.

use dyn_clone::DynClone;

use longwire_units::parse_count;

use crate::coin::CorrelatedCoin;
use crate::models::delay::DelayModel;
use crate::models::prelude::*;

/// Displacement of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Displacement {
    /// Adds this to the frame's delay, so that later frames overtake it.
    Hold(Nanos),
    /// Sends the frame without delay, so that it overtakes earlier frames.
    Hurry,
}

/// A process that displaces frames.
pub trait ReorderingModel: DynClone + fmt::Debug + Send + Sync {
    /// Called once, before any other method. `epoch` is the origin of schedules.
    fn start(&mut self, _epoch: Nanos) {}

    /// Decides whether this frame is displaced. Called for every frame that reaches the
    /// medium, even if it is lost there.
    fn judge(&mut self, frame: &FrameContext<'_>, stream: &mut Stream) -> Option<Displacement>;

    /// Whether the model may send frames ahead ([`Displacement::Hurry`]), in which case the delay
    /// is not a lower bound.
    fn sends_ahead(&self) -> bool {
        true
    }
}

dyn_clone::clone_trait_object!(ReorderingModel);

/// Returns a lower bound on the time from departure to release, including copies and displaced
/// frames.
pub(crate) fn delay_least(
    delay: &dyn DelayModel,
    reordering: Option<&dyn ReorderingModel>,
) -> Nanos {
    match reordering {
        Some(model) if model.sends_ahead() => Nanos::ZERO,
        _ => delay.least(),
    }
}

/// Reordering models.
pub static KIND: Kind<Described<dyn ReorderingModel>> = Kind {
    name: "reorder",
    example: "hold:1%,5ms",
    entries: &[HOLD, GAP],
};

const HOLD: Entry<Described<dyn ReorderingModel>> = Entry::new(
    "hold",
    "holds frames back with a fixed probability, so that later frames overtake them (Rizzo and \
     Lettieri's TLEM, 2016)",
    &[
        Param::new("rate", Unit::Probability).help("probability that a frame is held back"),
        Param::new("time", Unit::Time).help("time for which it is held, in addition to its delay"),
    ],
    |arguments| {
        Ok(arguments.described(Box::new(Hold {
            rate: arguments.required("rate")?,
            time: arguments.required("time")?,
        })))
    },
);

/// Holds back random frames.
#[derive(Clone, Copy, Debug)]
struct Hold {
    rate: Probability,
    time: Nanos,
}

impl ReorderingModel for Hold {
    fn judge(&mut self, _frame: &FrameContext<'_>, stream: &mut Stream) -> Option<Displacement> {
        stream
            .chance(self.rate)
            .then_some(Displacement::Hold(self.time))
    }

    fn sends_ahead(&self) -> bool {
        false
    }
}

const GAP: Entry<Described<dyn ReorderingModel>> = Entry::new(
    "gap",
    "sends frames ahead without delay: after one is sent ahead, the next gap - 1 frames are \
     delayed as usual; then each frame is sent ahead with probability rate until one is (netem's \
     reorder with gap)",
    &[
        Param::with_default("gap", Unit::Count, "1")
            .help("minimum distance in frames between frames sent ahead, at least 1"),
        Param::with_default("rate", Unit::Probability, "100%")
            .help("probability that an eligible frame is sent ahead"),
        Param::with_default("correlation", Unit::Correlation, "0%")
            .help("correlation between consecutive decisions, below 100%; the rate is unchanged"),
    ],
    build_gap,
);

fn build_gap(arguments: &Arguments<'_>) -> Result<Described<dyn ReorderingModel>, SpecError> {
    let gap = arguments.read("gap", parse_count)?;
    if gap == 0 {
        return Err(arguments.invalid("gap=0; the minimum is 1"));
    }
    Ok(arguments.described(Box::new(Gap {
        gap,
        coin: CorrelatedCoin::read(arguments)?,
        delayed: 0,
    })))
}

/// Sends frames ahead at intervals.
#[derive(Clone, Debug)]
struct Gap {
    gap: u64,
    coin: CorrelatedCoin,
    /// Frames delayed since the last one sent ahead.
    delayed: u64,
}

impl ReorderingModel for Gap {
    fn judge(&mut self, _frame: &FrameContext<'_>, stream: &mut Stream) -> Option<Displacement> {
        if self.delayed + 1 < self.gap || !self.coin.toss(stream) {
            self.delayed = self.delayed.saturating_add(1);
            return None;
        }
        self.delayed = 0;
        Some(Displacement::Hurry)
    }
}
