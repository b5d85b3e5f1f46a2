//! Independent holding back of frames.

use alloc::boxed::Box;
use core::fmt;

use longwire_units::random::Stream;
use longwire_units::{Nanos, Probability};

use super::{Displacement, ReorderingModel};
use crate::frame_context::FrameContext;
use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};

/// Registry entry.
pub const ENTRY: Entry<Box<dyn ReorderingModel>> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "hold",
    summary: "holds frames back with a fixed probability, so that later ones overtake (Rizzo and \
              Lettieri's TLEM, 2016)",
    params: &[
        Param::new("rate", Unit::Probability).help("probability that a frame is held back"),
        Param::new("time", Unit::Time).help("time in addition to its delay"),
    ],
};

fn build(arguments: &Arguments<'_>) -> Result<Box<dyn ReorderingModel>, SpecError> {
    Ok(Box::new(Hold {
        rate: arguments.required("rate")?,
        time: arguments.required("time")?,
    }))
}

/// Independent holding.
#[derive(Clone, Copy, Debug)]
pub struct Hold {
    /// Probability for each frame.
    pub rate: Probability,
    /// How long a frame is held back.
    pub time: Nanos,
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

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hold:rate={},time={}", self.rate, self.time)
    }
}
