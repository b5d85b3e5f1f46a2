//! Delays spread evenly over a range.

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
    name: "uniform",
    summary: "delays spread evenly from min to max, both included, in steps of 1 ns",
    params: &[
        Param {
            name: "min",
            unit: Unit::Time,
            default: None,
            help: "the least delay",
        },
        Param {
            name: "max",
            unit: Unit::Time,
            default: None,
            help: "the greatest delay",
        },
    ],
};

fn build(arguments: &Arguments) -> Result<Box<dyn DelayModel>, SpecError> {
    let (min, max): (Nanos, Nanos) = (arguments.required("min")?, arguments.required("max")?);
    if min > max {
        return Err(arguments.unfit(format!("min={min} is above max={max}")));
    }
    Ok(Box::new(Uniform { min, max }))
}

/// A uniform delay.
#[derive(Clone, Copy, Debug)]
pub struct Uniform {
    min: Nanos,
    max: Nanos,
}

impl DelayModel for Uniform {
    fn draw(&mut self, _frame: &Passing<'_>, stream: &mut Stream) -> Nanos {
        let span = self.max.saturating_sub(self.min).as_nanos();
        self.min
            .saturating_add(Nanos::from_nanos(stream.up_to(span)))
    }

    fn least(&self) -> Nanos {
        self.min
    }

    fn mean(&self) -> Nanos {
        let span = self.max.saturating_sub(self.min).as_nanos();
        self.min.saturating_add(Nanos::from_nanos(span / 2))
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "uniform:min={},max={}", self.min, self.max)
    }
}
