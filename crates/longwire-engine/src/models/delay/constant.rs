//! Constant delay.

use alloc::boxed::Box;
use core::fmt;

use longwire_units::Nanos;
use longwire_units::random::Stream;

use super::DelayModel;
use crate::frame_context::FrameContext;
use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};

/// Registry entry.
pub const ENTRY: Entry<Box<dyn DelayModel>> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "constant",
    summary: "the same delay for every frame",
    params: &[Param::new("delay", Unit::Time).help("one-way propagation delay")],
};

fn build(arguments: &Arguments) -> Result<Box<dyn DelayModel>, SpecError> {
    Ok(Box::new(ConstantDelay(arguments.required("delay")?)))
}

/// A constant delay.
#[derive(Clone, Copy, Debug)]
pub struct ConstantDelay(pub Nanos);

impl DelayModel for ConstantDelay {
    fn draw(&mut self, _frame: &FrameContext<'_>, _stream: &mut Stream) -> Nanos {
        self.0
    }

    fn fixed(&self) -> Option<Nanos> {
        Some(self.0)
    }

    fn mean(&self) -> Nanos {
        self.0
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
