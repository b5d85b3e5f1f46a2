//! Options that change gradually, in steps.

use longwire_engine::{BitRate, LinkSpec, Nanos, NoLoader, Probability};
use longwire_units::UnitError;

use super::timeline::Action;

/// An option that changes linearly, in equal steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ramp {
    /// Link pattern; a suffix `.up` or `.down` selects one direction.
    pub pattern: String,
    /// Option that changes.
    pub option: &'static str,
    /// Duration.
    pub time: Nanos,
    /// Number of steps; the first value applies before the first step.
    pub steps: u64,
    /// First and last value, as written.
    pub ends: [String; 2],
    /// First and last value in bit/s, nanoseconds or billionths of a probability.
    values: [u64; 2],
}

const BILLION: f64 = 1e9;

impl Ramp {
    /// Creates a ramp of `rate`, `delay` or a probability.
    ///
    /// # Errors
    /// If a value is not a plain number in the option's unit.
    pub fn new(
        pattern: &str,
        option: &'static str,
        (from, to): (&str, &str),
        time: Nanos,
        steps: u64,
    ) -> Result<Ramp, String> {
        let read = |text| value_of(option, text);
        let values = read(from).and_then(|from| Ok([from, read(to)?]));
        let values =
            values.map_err(|error| format!("a ramp of {option} needs plain numbers: {error}"))?;
        Ok(Ramp {
            pattern: pattern.to_owned(),
            option,
            time,
            steps,
            ends: [from, to].map(str::to_owned),
            values,
        })
    }

    /// Returns a step's time since the start of the ramp.
    pub fn after(&self, step: u64) -> Nanos {
        let nanos = u128::from(self.time.as_nanos()) * u128::from(step) / u128::from(self.steps);
        Nanos::from_nanos(nanos as u64)
    }

    /// Returns a step's action; steps range from 0 to [`Ramp::steps`].
    pub fn step(&self, step: u64) -> Action {
        let [from, to] = self.values.map(i128::from);
        let value = (from + (to - from) * i128::from(step) / i128::from(self.steps)) as u64;
        let text = match self.option {
            "rate" => format!("{value}bit"),
            "delay" => format!("{value}ns"),
            _ => {
                // Write probabilities as percentages, because models require a unit.
                let (whole, part) = (value / 10_000_000, value % 10_000_000);
                let text = format!("{whole}.{part:07}");
                format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
            }
        };
        let mut spec = LinkSpec::new();
        // Cannot fail: interpolated values are valid.
        let set = spec.set(self.option, &text, &NoLoader);
        debug_assert!(set.is_ok(), "{}: {set:?}", self.option);
        Action::Set {
            pattern: self.pattern.clone(),
            options: Box::new(spec),
            resets: Vec::new(),
        }
    }
}

/// Parses an option's value in bit/s, nanoseconds or billionths of a probability.
fn value_of(option: &str, text: &str) -> Result<u64, UnitError> {
    match option {
        "rate" => text.parse().map(BitRate::bits_per_sec),
        "delay" => text.parse().map(Nanos::as_nanos),
        _ => {
            let share: Probability = text.parse()?;
            Ok((share.as_f64() * BILLION).round() as u64)
        }
    }
}
