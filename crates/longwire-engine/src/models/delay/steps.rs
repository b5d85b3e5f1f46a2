//! Delays that change at given times.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use longwire_units::Nanos;

use super::DelayModel;
use super::schedule::{CHANGE, Change, DelaySchedule, ScheduledDelay};
use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};
use crate::trace::series::SeriesBuilder;
use crate::trace::{END, End};

/// Registry entry.
pub const ENTRY: Entry<Box<dyn DelayModel>> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "steps",
    summary: "delays that change at given times after the start of the link; a frame has the \
              delay at the time it enters the medium",
    params: &[
        Param::new("at", Unit::Text("0s/20ms;10s/50ms;15s/20ms")).help(
            "TIME/DELAY;TIME/DELAY…: the delay from each time on; the first time is 0s, and the \
             last step lasts as long as the one before",
        ),
        CHANGE,
        END.default("hold").help(
            "after the last step: loop repeats the steps, hold keeps the delay, stop adds none",
        ),
    ],
};

fn build(arguments: &Arguments<'_>) -> Result<Box<dyn DelayModel>, SpecError> {
    let text = arguments.read("at", |text| Ok(text.to_string()))?;
    let refuse = |step: &str, message: &str| arguments.invalid(format!("at: '{step}': {message}"));
    let mut builder = SeriesBuilder::for_ramps();
    let mut last = None;
    for step in text.split(';').map(str::trim) {
        let Some((time, delay)) = step.split_once('/') else {
            return Err(refuse(step, "write TIME/DELAY, for example 10s/50ms"));
        };
        let read = |text: &str| {
            let time = text.trim().parse::<Nanos>();
            time.map_err(|error| refuse(step, &error.to_string()))
        };
        let (time, delay) = (read(time)?, read(delay)?);
        if builder.is_empty() && time != Nanos::ZERO {
            return Err(refuse(step, "the first time must be 0s"));
        }
        if last.replace(time) == Some(time) {
            return Err(refuse(step, "same time as the previous step; remove one"));
        }
        builder
            .push(time.as_nanos(), delay.as_nanos())
            .map_err(|_| refuse(step, "time is before the previous step's"))?;
    }
    let end = End::read(arguments)?;
    let series = builder.finish();
    let series = series.map_err(|message| arguments.invalid(format!("at: {message}")))?;
    if series.length() == Nanos::MAX && end == End::Stop {
        let message = "end=stop needs two steps; one has no end";
        return Err(arguments.invalid(message));
    }
    Ok(Box::new(ScheduledDelay {
        head: format!("steps:at={text}"),
        schedule: DelaySchedule::new(series, Change::read(arguments)?, end),
        given: Vec::new(),
    }))
}
