//! Delays spread evenly over a range.

use alloc::boxed::Box;
use core::fmt;

use longwire_units::random::Stream;
use longwire_units::{Correlation, Nanos};

use super::DelayModel;
use super::sampled::{CORRELATION, Common, Distribution, Tails, sampled};
use crate::frame_context::FrameContext;
use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};

/// The registry line.
pub const ENTRY: Entry<Box<dyn DelayModel>> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "uniform",
    summary: "delays spread evenly from min to max, both included, in steps of 1 ns",
    params: &[
        Param::new("min", Unit::Time).help("the least delay"),
        Param::new("max", Unit::Time).help("the greatest delay"),
        CORRELATION,
    ],
};

fn build(arguments: &Arguments<'_>) -> Result<Box<dyn DelayModel>, SpecError> {
    let (min, max): (Nanos, Nanos) = (arguments.required("min")?, arguments.required("max")?);
    // Refuses reversed bounds.
    let common = Common::read(arguments)?.without_own(&["min", "max"]);
    let correlation: Correlation = arguments.required(CORRELATION.name)?;
    if correlation == Correlation::ZERO || min == max {
        return Ok(Box::new(UniformDelay { min, max }));
    }
    sampled(arguments, common, Range { min, max })
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

/// A uniform distribution as its formula, for correlated draws.
#[derive(Clone, Copy, Debug)]
struct Range {
    min: Nanos,
    max: Nanos,
}

impl Range {
    fn min_and_span(&self) -> (f64, f64) {
        let (min, max) = (self.min.as_nanos() as f64, self.max.as_nanos() as f64);
        (min, max - min)
    }
}

impl Distribution for Range {
    fn tails(&self, time: f64) -> Tails {
        let (min, span) = self.min_and_span();
        let below = ((time - min) / span).clamp(0.0, 1.0);
        Tails {
            below,
            above: 1.0 - below,
        }
    }

    fn quantile(&self, at: Tails) -> f64 {
        let (min, span) = self.min_and_span();
        min + at.below * span
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "uniform:min={},max={}", self.min, self.max)
    }
}
