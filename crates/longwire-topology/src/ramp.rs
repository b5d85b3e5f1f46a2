//! Options that change in steps.

use longwire_engine::{BitRate, LinkSpec, Nanos, NoLoader, Probability};

use super::timeline::Action;

/// The first and last value of a ramp, in their own unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Values {
    /// Bits per second.
    Rate(u64, u64),
    /// Nanoseconds.
    Time(u64, u64),
    /// Probabilities, in billionths.
    Share(u64, u64),
}

/// An option that goes from one value to another in equal steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ramp {
    /// Names of links, with `.up` or `.down` behind for one direction.
    pub pattern: String,
    /// The option that it changes.
    pub option: &'static str,
    /// Its duration.
    pub time: Nanos,
    /// In how many steps; the first value comes before the first step.
    pub steps: u64,
    /// Its first and its last value, as they are written.
    pub ends: [String; 2],
    values: Values,
}

const BILLION: f64 = 1e9;

impl Ramp {
    /// A ramp of an option: `rate`, `delay`, or a probability.
    ///
    /// # Errors
    /// A value that is no plain number of the option's unit, and why.
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

    /// Returns the time of a step after the beginning of the ramp.
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
                // In percent: models take no probability without its unit.
                let (whole, part) = (billionths / 10_000_000, billionths % 10_000_000);
                let text = format!("{whole}.{part:07}");
                format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
            }
        };
        let mut spec = LinkSpec::new();
        // Values between two that were read can be read too.
        let set = spec.set(self.option, &text, &NoLoader);
        debug_assert!(set.is_ok(), "{}: {set:?}", self.option);
        Action::Set {
            pattern: self.pattern.clone(),
            options: Box::new(spec),
            resets: Vec::new(),
        }
    }
}
