//! Uniformly distributed delays.

use alloc::boxed::Box;
use alloc::format;
use core::fmt;

use longwire_units::random::Stream;
use longwire_units::{Correlation, Nanos};

use super::DelayModel;
use super::distributions::Formula;
use super::sampled::{CORRELATION, Common, sampled};
use crate::frame_context::FrameContext;
use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};

/// Registry entry.
pub const ENTRY: Entry<Box<dyn DelayModel>> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "uniform",
    summary: "uniform distribution from min to max, inclusive",
    params: &[
        Param::new("min", Unit::Time).help("minimum delay"),
        Param::new("max", Unit::Time).help("maximum delay"),
        CORRELATION,
    ],
};

fn build(arguments: &Arguments<'_>) -> Result<Box<dyn DelayModel>, SpecError> {
    let (min, max): (Nanos, Nanos) = (arguments.required("min")?, arguments.required("max")?);
    // Rejects reversed bounds.
    let common = Common::read(arguments)?.without_own(&["min", "max"]);
    let correlation: Correlation = arguments.required(CORRELATION.name)?;
    if correlation == Correlation::ZERO || min == max {
        return Ok(Box::new(UniformDelay { min, max }));
    }
    let formula = Formula::Uniform {
        min: min.as_nanos() as f64,
        span: max.saturating_sub(min).as_nanos() as f64,
    };
    let text = format!("uniform:min={min},max={max}");
    sampled(arguments, common, text, formula)
}

/// A uniform delay.
#[derive(Clone, Copy, Debug)]
pub struct UniformDelay {
    min: Nanos,
    max: Nanos,
}

impl DelayModel for UniformDelay {
    fn draw(&mut self, _frame: &FrameContext<'_>, stream: &mut Stream) -> Nanos {
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
