//! Reordering with a minimum gap: a frame skips the delay with probability `rate`, at least
//! `gap` frames after the last (netem `reorder … gap`).

use alloc::boxed::Box;
use core::fmt;

use longwire_units::random::Stream;
use longwire_units::{Correlation, Probability, parse_count};

use super::{Displacement, ReorderingModel};
use crate::coin::CorrelatedCoin;
use crate::frame_context::FrameContext;
use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};

/// Registry entry.
pub const ENTRY: Entry<Box<dyn ReorderingModel>> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "gap",
    summary: "sends frames ahead, without delay: after each one, gap - 1 frames are delayed as \
              usual, then each is sent ahead with this probability until one is (netem's reorder \
              with gap)",
    params: &[
        Param::with_default("gap", Unit::Count, "1")
            .help("minimum distance between frames sent ahead, from 1"),
        Param::with_default("rate", Unit::Probability, "100%")
            .help("probability that an eligible frame is sent ahead"),
        Param::with_default("correlation", Unit::Correlation, "0%")
            .help("correlation of consecutive decisions, below 100%; their rate is kept"),
    ],
};

fn build(arguments: &Arguments<'_>) -> Result<Box<dyn ReorderingModel>, SpecError> {
    let gap = arguments.read("gap", parse_count)?;
    if gap == 0 {
        return Err(arguments.invalid("gap=0; the minimum is 1"));
    }
    let rate = arguments.required("rate")?;
    let correlation = arguments.required("correlation")?;
    let coin = CorrelatedCoin::read(arguments, rate, correlation)?;
    Ok(Box::new(Gap {
        gap,
        rate,
        correlation,
        coin,
        delayed: 0,
    }))
}

/// Frames sent ahead.
#[derive(Clone, Copy, Debug)]
struct Gap {
    gap: u64,
    rate: Probability,
    correlation: Correlation,
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

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Gap {
            gap,
            rate,
            correlation,
            ..
        } = self;
        write!(f, "gap:gap={gap},rate={rate},correlation={correlation}")
    }
}
