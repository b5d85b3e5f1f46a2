//! Loss correlated with the previous frame.

use core::fmt;

use longwire_units::random::Stream;
use longwire_units::{Correlation, Probability};

use super::{ECN, LossDecision, LossModel, PLACE, PlacedLoss, placed};
use crate::coin::CorrelatedCoin;
use crate::frame_context::FrameContext;
use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};
use crate::verdict::DropReason;

/// Registry entry.
pub const ENTRY: Entry<PlacedLoss> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "correlated",
    summary: "two-state Markov chain with exactly this loss rate and correlation of consecutive \
              losses; after a loss, a frame is lost with rate + correlation·(1 - rate)",
    params: &[
        Param::new("rate", Unit::Probability).help("share of lost frames"),
        Param::new("correlation", Unit::Correlation)
            .help("correlation of consecutive losses, below 100%"),
        PLACE,
        ECN,
    ],
};

fn build(arguments: &Arguments<'_>) -> Result<PlacedLoss, SpecError> {
    let rate = arguments.required("rate")?;
    let correlation = arguments.required("correlation")?;
    let coin = CorrelatedCoin::read(arguments, rate, correlation)?;
    let model = CorrelatedLoss {
        rate,
        correlation,
        coin,
    };
    placed(arguments, model)
}

/// Correlated loss.
#[derive(Clone, Copy, Debug)]
struct CorrelatedLoss {
    rate: Probability,
    correlation: Correlation,
    coin: CorrelatedCoin,
}

impl LossModel for CorrelatedLoss {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn judge(&mut self, _frame: &FrameContext<'_>, stream: &mut Stream) -> LossDecision {
        self.coin.toss(stream).then_some(DropReason::Loss)
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rate, correlation) = (self.rate, self.correlation);
        write!(f, "correlated:rate={rate},correlation={correlation}")
    }
}
