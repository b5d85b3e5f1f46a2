//! Loss of every n-th frame.

use core::fmt;

use longwire_units::parse_count;
use longwire_units::random::Stream;

use super::{ECN, LossDecision, LossModel, PLACE, PlacedLoss, placed};
use crate::frame_context::FrameContext;
use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};
use crate::verdict::DropReason;

/// Registry entry.
pub const ENTRY: Entry<PlacedLoss> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "nth",
    summary: "drops every n-th frame that reaches the model",
    params: &[
        Param::new("every", Unit::Count).help("distance between lost frames; 1 drops all"),
        Param::with_default("offset", Unit::Count, "0").help("frames to skip first"),
        PLACE,
        ECN,
    ],
};

fn build(arguments: &Arguments<'_>) -> Result<PlacedLoss, SpecError> {
    let every = arguments.read("every", parse_count)?;
    let offset: u64 = arguments.read("offset", parse_count)?;
    if every == 0 {
        return Err(arguments.invalid("every=0 drops none; the minimum is 1"));
    }
    let nth = NthLoss {
        every,
        offset,
        left: offset.saturating_add(every),
    };
    placed(arguments, nth)
}

/// Loss by count.
#[derive(Clone, Copy, Debug)]
struct NthLoss {
    every: u64,
    offset: u64,
    /// Frames until the next lost one, inclusive.
    left: u64,
}

impl LossModel for NthLoss {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn judge(&mut self, _frame: &FrameContext<'_>, _stream: &mut Stream) -> LossDecision {
        self.left -= 1;
        if self.left > 0 {
            return None;
        }
        self.left = self.every;
        Some(DropReason::Loss)
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "nth:every={},offset={}", self.every, self.offset)
    }
}
