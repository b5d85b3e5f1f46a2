//! Rates as a function of time: steps (held or interpolated) or a recorded trace.

use longwire_units::UnitError;

use super::Rate;
use super::mahimahi::Mahimahi;
use super::ramp::{Ramps, Step};
use super::varying::{SeriesSource, varying};
use crate::models::prelude::*;
use crate::trace::{self, Contents, End, FORMAT, Quantity, SeriesBuilder};

pub(super) const STEPS: Entry<Rate> = Entry::new(
    "steps",
    "rate that changes at given times after the link starts, in steps or linearly",
    &[
        Param::new("at", Unit::Text("0s/10mbit;10ms/5mbit"))
            .help("TIME/RATE;TIME/RATE…, quoted for the shell; a rate of 0 stops the link"),
        Param::with_default("change", Unit::Choice(&["step", "linear"]), "step")
            .help("step: each rate holds until the next time; linear: rates are interpolated"),
        Param::new("period", Unit::Time)
            .help("time after which the steps repeat; default: the last rate holds"),
    ],
    build_steps,
);

/// Maximum number of steps, which are given on the command line.
const STEPS_MAX: usize = 100_000;

/// Parses a rate; 0 stops the link.
pub(super) fn rate_or_zero(text: &str) -> Result<u64, UnitError> {
    match text.parse::<BitRate>() {
        Ok(rate) => Ok(rate.bits_per_sec()),
        Err(UnitError::ZeroRate { .. }) => Ok(0),
        Err(_) if text == "0" => Ok(0),
        Err(error) => Err(error),
    }
}

/// Formats a rate, including 0.
pub(super) struct RateOrZero(pub u64);

impl fmt::Display for RateOrZero {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match BitRate::from_bits_per_sec(self.0) {
            Some(rate) => rate.fmt(f),
            None => f.write_str("0"),
        }
    }
}

fn build_steps(arguments: &Arguments<'_>) -> Result<Rate, SpecError> {
    let invalid = |message: String| arguments.invalid(format!("at: {message}"));
    let steps = read_steps(arguments.required_text("at")?).map_err(invalid)?;
    let period: Option<Nanos> = arguments.optional("period")?;
    if let (Some(period), Some(last)) = (period, steps.last())
        && period.as_nanos() <= last.time
    {
        let last = Nanos::from_nanos(last.time);
        let message = format!("period={period} must exceed the time of the last step, {last}");
        return Err(arguments.invalid(message));
    }
    if steps.iter().all(|step| step.rate == 0) {
        return Err(arguments.invalid("all rates are 0; no frame would pass"));
    }
    let linear = arguments.choice("change")? == 1;
    let mean = mean_of(&steps, period, linear);
    let text = text_of(&steps, period, linear);
    if linear {
        let ramps = Ramps::new(&steps, period, mean).map_err(invalid)?;
        return Ok(Rate::Model(Described::new(text, Box::new(ramps))));
    }
    let mut rows = SeriesBuilder::default();
    for step in &steps {
        rows.push(step.time, step.rate).map_err(invalid)?;
    }
    // Without a period, the last step never ends.
    let series = rows.finish_at(period.map_or(u64::MAX, Nanos::as_nanos));
    let source = SeriesSource::new(series.map_err(invalid)?, End::Loop);
    Ok(varying(source, mean, text))
}

fn read_steps(text: &str) -> Result<Vec<Step>, String> {
    let mut steps: Vec<Step> = Vec::new();
    for item in text.split(';').map(str::trim) {
        let (time, rate) = item
            .split_once('/')
            .ok_or_else(|| format!("'{item}' is not TIME/RATE, such as 10s/5mbit"))?;
        let time = time.trim().parse::<Nanos>();
        let time = time.map_err(|error| format!("{error}"))?.as_nanos();
        let rate = rate_or_zero(rate.trim()).map_err(|error| format!("{error}"))?;
        match steps.last() {
            None if time > 0 => return Err("the first step must be at 0s".into()),
            Some(last) if time <= last.time => {
                return Err(format!(
                    "'{item}' is not after the previous step; sort the steps, one for each time"
                ));
            }
            _ if steps.len() == STEPS_MAX => {
                return Err(format!(
                    "more than {STEPS_MAX} steps; use the model trace with a table"
                ));
            }
            _ => steps.push(Step { time, rate }),
        }
    }
    Ok(steps)
}

/// Returns the mean over one period, rounded to bit/s. Without a period, this is the last rate or,
/// if that is 0, the mean before it.
fn mean_of(steps: &[Step], period: Option<Nanos>, linear: bool) -> u64 {
    let last = steps[steps.len() - 1];
    let end = match (period, last.rate) {
        (Some(period), _) => period.as_nanos(),
        (None, 0) => last.time,
        (None, rate) => return rate,
    };
    // Back to the first step.
    let back = Step {
        time: end,
        ..steps[0]
    };
    let ends = steps[1..].iter().chain([&back]);
    let terms = steps.iter().zip(ends).map(|(from, to)| {
        let rates = if linear {
            from.rate + to.rate
        } else {
            2 * from.rate
        };
        u128::from(rates) * u128::from(to.time - from.time)
    });
    // Terms are doubled: the mean of a linear change is half the sum of its ends.
    let sum: u128 = terms.sum();
    ((sum + u128::from(end)) / (2 * u128::from(end))) as u64
}

/// Returns the model's specification text.
fn text_of(steps: &[Step], period: Option<Nanos>, linear: bool) -> String {
    let step = |step: &Step| {
        let time = Nanos::from_nanos(step.time);
        format!("{time}/{}", RateOrZero(step.rate))
    };
    let steps: Vec<String> = steps.iter().map(step).collect();
    let change = if linear { "linear" } else { "step" };
    let period = period.map_or(String::new(), |period| format!(",period={period}"));
    format!("steps:at={},change={change}{period}", steps.join(";"))
}

pub(super) const TRACE: Entry<Rate> = Entry::new(
    "trace",
    "recorded rate: a table of times and rates, a mahimahi trace, or another format \
     (docs/traces.md)",
    &[
        trace::FILE,
        trace::END,
        FORMAT,
        trace::TIME_COLUMN,
        trace::TIME_UNIT,
        Param::new("rate-column", Unit::Text("rate_mbps"))
            .help("column of rates, by name or number"),
        Param::new(
            "rate-unit",
            Unit::Choice(&["bit", "kbit", "mbit", "gbit", "byte", "kbyte", "mbyte"]),
        )
        .help("unit of rates, per second; default: the unit in the column's name or in the values"),
        trace::WHERE,
    ],
    build_trace,
);

fn build_trace(arguments: &Arguments<'_>) -> Result<Rate, SpecError> {
    let end = End::read(arguments)?;
    let text = arguments.text();
    match trace::read(arguments, Quantity::Rate, false)? {
        Contents::Series(series, _) => {
            // Mean over the trace, or over its infinite continuation.
            let mean = series.mean(end);
            if mean == 0 && end == End::Loop {
                let message = "all rates are 0; no frame would pass";
                return Err(arguments.file_error(trace::FILE.name, message));
            }
            Ok(varying(SeriesSource::new(series, end), mean, text))
        }
        Contents::Schedule(schedule) => {
            if end == End::Hold {
                let message = "delivery opportunities have no last rate to hold; write end=loop or \
                               end=stop";
                return Err(arguments.invalid(message));
            }
            let model = Mahimahi::usual(schedule, end);
            Ok(Rate::Model(Described::new(text, Box::new(model))))
        }
        Contents::Trains(_) | Contents::Patterns(..) => {
            Err(arguments.file_error(trace::FILE.name, "no rates"))
        }
    }
}
