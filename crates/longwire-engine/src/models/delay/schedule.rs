//! Delays as a function of time: steps or a recorded trace.

use super::DelayModel;
use crate::models::prelude::*;
use crate::trace::{
    Cursor, END, End, FILE, Series, SeriesBuilder, TIME_COLUMN, TIME_UNIT, WHERE, read_delays,
};

/// Whether delays step or change linearly.
const CHANGE: Param = Param::with_default("change", Unit::Choice(&["step", "linear"]), "step")
    .help("step: each delay holds until the next time; linear: delays are interpolated");

/// Delays as a function of time since an epoch.
#[derive(Clone, Debug)]
struct DelaySchedule {
    series: Series,
    /// Whether to interpolate linearly; the last entry wraps to the first of the next period, or
    /// holds.
    is_linear: bool,
    end: End,
    epoch: Nanos,
    cursor: Cursor,
}

fn scheduled(
    arguments: &Arguments<'_>,
    series: Series,
) -> Result<Described<dyn DelayModel>, SpecError> {
    Ok(arguments.described(Box::new(DelaySchedule {
        series,
        is_linear: arguments.choice(CHANGE.name)? == 1,
        end: End::read(arguments)?,
        epoch: Nanos::ZERO,
        cursor: Cursor::default(),
    })))
}

impl DelayModel for DelaySchedule {
    fn start(&mut self, epoch: Nanos) {
        self.epoch = epoch;
    }

    /// Returns the delay of a frame that enters the medium at this time: before the epoch, the first
    /// delay; after the end of a schedule that stops, zero.
    fn draw(&mut self, frame: &FrameContext<'_>, _stream: &mut Stream) -> Nanos {
        let since = frame.at.saturating_sub(self.epoch);
        let stretch = self.series.at(&mut self.cursor, since, self.end);
        let Some(delay) = stretch.value else {
            return Nanos::ZERO;
        };
        if !self.is_linear || stretch.end == Nanos::MAX {
            return Nanos::from_nanos(delay);
        }
        let next = self.series.next_value(&self.cursor, self.end);
        let gone = since.saturating_sub(stretch.start).as_nanos();
        let whole = stretch.end.saturating_sub(stretch.start).as_nanos();
        Nanos::from_nanos(between(delay, next.unwrap_or(delay), gone, whole))
    }

    fn least(&self) -> Nanos {
        let least = self.series.values().iter().min();
        match (self.end, least) {
            (End::Stop, _) | (_, None) => Nanos::ZERO,
            (_, Some(least)) => Nanos::from_nanos(*least),
        }
    }

    /// Returns the long-term mean; for a schedule that stops, the mean up to its end.
    fn mean(&self) -> Nanos {
        let never_ends = self.series.length() == Nanos::MAX;
        if !self.is_linear || self.end == End::Hold || never_ends {
            return Nanos::from_nanos(self.series.mean(self.end));
        }
        let values = self.series.values();
        let last = match self.end {
            End::Loop => values[0],
            _ => values[values.len() - 1],
        };
        let segments = self
            .series
            .stretches()
            .zip(values[1..].iter().chain([&last]));
        // Twice the area under each segment.
        let areas = segments.map(|((value, time), next)| {
            (u128::from(value) + u128::from(*next)) * u128::from(time)
        });
        let length = u128::from(self.series.length().as_nanos());
        Nanos::from_nanos(((areas.sum::<u128>() + length) / (2 * length)) as u64)
    }
}

/// Interpolates at `gone` of `whole`, rounded to the nearest integer.
fn between(from: u64, to: u64, gone: u64, whole: u64) -> u64 {
    let way = u128::from(from.abs_diff(to)) * u128::from(gone);
    let way = (way + u128::from(whole / 2)) / u128::from(whole);
    if from < to {
        from + way as u64
    } else {
        from - way as u64
    }
}

pub(super) const STEPS: Entry<Described<dyn DelayModel>> = Entry::new(
    "steps",
    "delays that change at given times after the link starts; each frame gets the delay in force \
     when it enters the medium",
    &[
        Param::new("at", Unit::Text("0s/20ms;10s/50ms;15s/20ms")).help(
            "TIME/DELAY;TIME/DELAY…: delay from each time on; the first time is 0s, and the last \
             step lasts as long as the one before it",
        ),
        CHANGE,
        END.default("hold").help(
            "after the last step: loop repeats the steps, hold keeps the last delay, stop adds no \
             delay",
        ),
    ],
    build_steps,
);

fn build_steps(arguments: &Arguments<'_>) -> Result<Described<dyn DelayModel>, SpecError> {
    let refuse = |step: &str, message: &str| arguments.invalid(format!("at: '{step}': {message}"));
    let mut builder = SeriesBuilder::new(true);
    let mut last = None;
    for step in arguments.required_text("at")?.split(';').map(str::trim) {
        let Some((time, delay)) = step.split_once('/') else {
            return Err(refuse(step, "expected TIME/DELAY; for example: 10s/50ms"));
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
            .map_err(|_| refuse(step, "time is before the previous step's; sort the steps"))?;
    }
    let series = builder.finish();
    let series = series.map_err(|message| arguments.invalid(format!("at: {message}")))?;
    if series.length() == Nanos::MAX && End::read(arguments)? == End::Stop {
        let message = "end=stop needs at least two steps; a single step has no end";
        return Err(arguments.invalid(message));
    }
    scheduled(arguments, series)
}

pub(super) const TRACE: Entry<Described<dyn DelayModel>> = Entry::new(
    "trace",
    "delays over time from a table, with times counted from the link's start; each frame gets the \
     delay in force when it enters the medium",
    &[
        FILE.help(
            "file: rows of time and delay, separated by commas, tabs or spaces; the first row may \
             name columns and units, such as time_s,delay_ms",
        ),
        CHANGE,
        END.help(
            "after the last row: loop repeats the trace, hold keeps the last delay, stop adds no \
             delay; the last row lasts as long as the previous one",
        ),
        TIME_COLUMN,
        TIME_UNIT,
        DELAY_COLUMN,
        DELAY_UNIT,
        WHERE,
    ],
    |arguments| {
        let is_linear = arguments.choice(CHANGE.name)? == 1;
        scheduled(arguments, read_delays(arguments, is_linear)?)
    },
);

const DELAY_COLUMN: Param =
    Param::new("delay-column", Unit::Text("delay_ms")).help("column of delays, by name or number");

const DELAY_UNIT: Param = Param::new("delay-unit", Unit::Choice(&["ms", "us", "ns", "s"]))
    .help("unit of delays written without one; default: the unit in the column's name");
