//! A least delay plus an exponentially distributed part.

use alloc::boxed::Box;
use alloc::format;
use core::fmt;

use super::DelayModel;
use crate::models::Entry;
use crate::passing::Passing;
use crate::random::Stream;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};
use crate::units::Nanos;

/// The registry line.
pub const ENTRY: Entry<Box<dyn DelayModel>> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "exponential",
    summary: "min plus an exponentially distributed time, such that the whole has this mean \
              (as in Rizzo and Lettieri's TLEM, 2016)",
    params: &[
        Param {
            name: "mean",
            unit: Unit::Time,
            default: None,
            help: "the mean of the whole delay, min included",
        },
        Param {
            name: "min",
            unit: Unit::Time,
            default: Some("0ns"),
            help: "the least delay",
        },
    ],
};

fn build(arguments: &Arguments) -> Result<Box<dyn DelayModel>, SpecError> {
    let (min, mean): (Nanos, Nanos) = (arguments.required("min")?, arguments.required("mean")?);
    if min > mean {
        return Err(arguments.unfit(format!("min={min} is above mean={mean}")));
    }
    Ok(Box::new(Exponential { min, mean }))
}

/// A shifted exponential delay.
#[derive(Clone, Copy, Debug)]
pub struct Exponential {
    min: Nanos,
    mean: Nanos,
}

impl DelayModel for Exponential {
    fn draw(&mut self, _frame: &Passing<'_>, stream: &mut Stream) -> Nanos {
        let above = stream.exponential(self.mean.saturating_sub(self.min));
        self.min.saturating_add(above)
    }

    fn least(&self) -> Nanos {
        self.min
    }

    fn mean(&self) -> Nanos {
        self.mean
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "exponential:mean={},min={}", self.mean, self.min)
    }
}
