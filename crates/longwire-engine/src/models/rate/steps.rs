//! A rate that changes at given times, in steps or linearly.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use longwire_units::random::Stream;
use longwire_units::{BitRate, Nanos, UnitError};

use super::ramp::{Ramps, Step};
use super::varying::{RateSource, RateStretch, TimedSource, Varying};
use super::{Rate, RateModel};
use crate::frame_context::FrameContext;
use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};
use crate::trace::{Cursor, End, Series, SeriesBuilder};

/// Registry entry.
pub const ENTRY: Entry<Rate> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "steps",
    summary: "a rate that changes at given times since the start of the link, in steps or linearly",
    params: &[
        Param::new("at", Unit::Text("0s/10mbit;10ms/5mbit")).help(
            "times and rates, TIME/RATE;TIME/RATE, quoted for the shell; a rate of 0 stops the \
             link",
        ),
        Param::with_default("change", Unit::Choice(&["stepwise", "linear"]), "stepwise")
            .help("step: the rate changes at the given time; linear: it is interpolated"),
        Param::new("period", Unit::Time)
            .help("time after which the steps repeat; default: the last rate holds"),
    ],
};

/// Maximum number of steps, which come from a command line.
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

/// Formats a rate or 0.
pub(super) struct RateOrZero(pub u64);

impl fmt::Display for RateOrZero {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match BitRate::from_bits_per_sec(self.0) {
            Some(rate) => rate.fmt(f),
            None => f.write_str("0"),
        }
    }
}

fn build(arguments: &Arguments<'_>) -> Result<Rate, SpecError> {
    let text = arguments.read("at", |text| Ok(String::from(text)))?;
    let invalid = |message: String| arguments.invalid(format!("at: {message}"));
    let steps = read_steps(&text).map_err(invalid)?;
    let period: Option<Nanos> = arguments.optional("period")?;
    if let (Some(period), Some(last)) = (period, steps.last())
        && period.as_nanos() <= last.time
    {
        let last = Nanos::from_nanos(last.time);
        let message = format!("period={period} is before the last step, at {last}");
        return Err(arguments.invalid(message));
    }
    if steps.iter().all(|step| step.rate == 0) {
        return Err(arguments.invalid("all rates are 0; no frame would pass"));
    }
    let linear = arguments.choice("change")? == 1;
    let line = if linear {
        StepSerializer::Linear(Ramps::new(&steps, period).map_err(invalid)?)
    } else {
        StepSerializer::Stepwise(stepwise(&steps, period).map_err(invalid)?)
    };
    Ok(Rate::Model(Box::new(RateSteps {
        steps,
        period,
        linear,
        line,
    })))
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
                return Err(format!("'{item}' is not after the previous step"));
            }
            _ if steps.len() == STEPS_MAX => {
                return Err(format!(
                    "more than {STEPS_MAX} steps; use the model trace with a table"
                ));
            }
            _ => steps.push(Step { time, rate }),
        }
    }
    if steps.is_empty() {
        Err("no steps".into())
    } else {
        Ok(steps)
    }
}

fn stepwise(steps: &[Step], period: Option<Nanos>) -> Result<Varying<StepSource>, String> {
    let mut rows = SeriesBuilder::default();
    for step in steps {
        rows.push(step.time, step.rate)?;
    }
    let series = rows.finish_at(period.map_or(u64::MAX, Nanos::as_nanos))?;
    Ok(Varying::new(StepSource {
        lap: period.map(|period| (period.as_nanos(), series.integral())),
        series,
        cursor: Cursor::default(),
    }))
}

#[derive(Clone, Debug)]
struct StepSource {
    series: Series,
    cursor: Cursor,
    lap: Option<(u64, u128)>,
}

impl RateSource for StepSource {
    fn stretch(&mut self, since: u64, _stream: &mut Stream) -> RateStretch {
        // Without a period, the last step never ends.
        RateStretch::of(&self.series, &mut self.cursor, since, End::Loop)
    }

    fn lap(&self) -> Option<(u64, u128)> {
        self.lap
    }
}

impl TimedSource for StepSource {
    fn stretch_at(&self, since: u64) -> RateStretch {
        RateStretch::of(&self.series, &mut self.cursor.clone(), since, End::Loop)
    }
}

#[derive(Clone, Debug)]
struct RateSteps {
    steps: Vec<Step>,
    period: Option<Nanos>,
    linear: bool,
    line: StepSerializer,
}

#[derive(Clone, Debug)]
enum StepSerializer {
    Stepwise(Varying<StepSource>),
    Linear(Ramps),
}

impl RateModel for RateSteps {
    fn start(&mut self, epoch: Nanos) {
        match &mut self.line {
            StepSerializer::Stepwise(line) => line.start(epoch),
            StepSerializer::Linear(line) => line.start(epoch),
        }
    }

    #[inline]
    fn ready(&mut self, from: Nanos, stream: &mut Stream) -> Nanos {
        match &mut self.line {
            StepSerializer::Stepwise(line) => line.ready(from, stream),
            StepSerializer::Linear(line) => line.ready(from),
        }
    }

    #[inline]
    fn serve(&mut self, frame: &FrameContext<'_>, wire_bits: u64, stream: &mut Stream) -> Nanos {
        match &mut self.line {
            StepSerializer::Stepwise(line) => line.serve(frame.at, wire_bits, stream),
            StepSerializer::Linear(line) => line.serve(frame.at, wire_bits),
        }
    }

    fn unsent(&self, at: Nanos) -> Option<u128> {
        match &self.line {
            StepSerializer::Stepwise(line) => Some(line.unsent(at)),
            StepSerializer::Linear(line) => Some(line.unsent(at)),
        }
    }

    fn rewind(&mut self, at: Nanos) {
        match &mut self.line {
            StepSerializer::Stepwise(line) => line.rewind(at),
            StepSerializer::Linear(line) => line.rewind(at),
        }
    }

    fn resume(&mut self, frame: &FrameContext<'_>, work: u128, stream: &mut Stream) -> Nanos {
        match &mut self.line {
            StepSerializer::Stepwise(line) => line.resume(frame.at, work, stream),
            StepSerializer::Linear(line) => line.resume(frame.at, work),
        }
    }

    /// Returns the mean of one period, rounded to the nearest bit/s; without a period, the
    /// last rate or, if that is 0, the mean before it.
    fn mean(&self) -> Option<BitRate> {
        let last = self.steps[self.steps.len() - 1];
        let end = match (self.period, last.rate) {
            (Some(period), _) => period.as_nanos(),
            (None, 0) => last.time,
            (None, rate) => return BitRate::from_bits_per_sec(rate),
        };
        // Back to the first step.
        let back = Step {
            time: end,
            ..self.steps[0]
        };
        let ends = self.steps[1..].iter().chain(core::iter::once(&back));
        let terms = self.steps.iter().zip(ends).map(|(from, to)| {
            let rates = if self.linear {
                from.rate + to.rate
            } else {
                2 * from.rate
            };
            u128::from(rates) * u128::from(to.time - from.time)
        });
        // Doubled, because the mean of a linear change is half a sum.
        let sum: u128 = terms.sum();
        let mean = (sum + u128::from(end)) / (2 * u128::from(end));
        BitRate::from_bits_per_sec(mean as u64)
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("steps:at=")?;
        for (index, step) in self.steps.iter().enumerate() {
            let mark = if index == 0 { "" } else { ";" };
            write!(
                f,
                "{mark}{}/{}",
                Nanos::from_nanos(step.time),
                RateOrZero(step.rate)
            )?;
        }
        let change = if self.linear { "linear" } else { "stepwise" };
        write!(f, ",change={change}")?;
        match self.period {
            Some(period) => write!(f, ",period={period}"),
            None => Ok(()),
        }
    }
}
