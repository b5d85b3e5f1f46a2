//! Options that change in steps.

use longwire_engine::{BitRate, LinkSpec, Nanos, NoLoader, Probability};

use super::timeline::Action;

/// First and last value in the option's unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Values {
    /// Bits per second.
    Rate(u64, u64),
    /// Nanoseconds.
    Time(u64, u64),
    /// Probabilities, in billionths.
    Share(u64, u64),
}

/// An option that changes linearly in equal steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ramp {
    /// Pattern of links; a suffix `.up` or `.down` selects one direction.
    pub pattern: String,
    /// The option that it changes.
    pub option: &'static str,
    /// Duration.
    pub time: Nanos,
    /// Number of steps; the first value precedes the first step.
    pub steps: u64,
    /// First and last value as written.
    pub ends: [String; 2],
    values: Values,
}

const BILLION: f64 = 1e9;

impl Ramp {
    /// Creates a ramp of `rate`, `delay`, or a probability.
    ///
    /// # Errors
    /// A value is not a plain number of the option's unit.
    pub fn new(
        pattern: &str,
        option: &'static str,
        (from, to): (&str, &str),
        time: Nanos,
        steps: u64,
    ) -> Result<Ramp, String> {
        let wrong = |error: &dyn std::fmt::Display| {
            format!("a ramp of {option} needs plain numbers: {error}")
        };
        let values = match option {
            "rate" => {
                let read = |text: &str| text.parse().map(BitRate::bits_per_sec);
                Values::Rate(
                    read(from).map_err(|e| wrong(&e))?,
                    read(to).map_err(|e| wrong(&e))?,
                )
            }
            "delay" => {
                let read = |text: &str| text.parse().map(Nanos::as_nanos);
                Values::Time(
                    read(from).map_err(|e| wrong(&e))?,
                    read(to).map_err(|e| wrong(&e))?,
                )
            }
            _ => {
                let billionths = |share: Probability| (share.as_f64() * BILLION).round() as u64;
                let read = |text: &str| text.parse().map(billionths);
                Values::Share(
                    read(from).map_err(|e| wrong(&e))?,
                    read(to).map_err(|e| wrong(&e))?,
                )
            }
        };
        Ok(Ramp {
            pattern: pattern.to_owned(),
            option,
            time,
            steps,
            ends: [from, to].map(str::to_owned),
            values,
        })
    }

    /// Returns the time of a step since the start of the ramp.
    pub fn after(&self, step: u64) -> Nanos {
        let nanos = u128::from(self.time.as_nanos()) * u128::from(step) / u128::from(self.steps);
        Nanos::from_nanos(nanos as u64)
    }

    /// Returns the action of a step, 0 to [`Ramp::steps`].
    pub fn step(&self, step: u64) -> Action {
        let between = |from: u64, to: u64| {
            let (from, to) = (i128::from(from), i128::from(to));
            let value = from + (to - from) * i128::from(step) / i128::from(self.steps);
            value as u64
        };
        let text = match self.values {
            Values::Rate(from, to) => format!("{}bit", between(from, to)),
            Values::Time(from, to) => format!("{}ns", between(from, to)),
            Values::Share(from, to) => {
                let billionths = between(from, to);
                // As a percentage: models require a unit for probabilities.
                let (whole, part) = (billionths / 10_000_000, billionths % 10_000_000);
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
