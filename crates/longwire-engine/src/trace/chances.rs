//! Loss or duplication probabilities as a function of time.

use longwire_units::random::Stream;
use longwire_units::{Nanos, Probability};

use super::{Contents, Cursor, End, FILE, Quantity, Series};
use crate::prelude::*;
use crate::spec::{Arguments, SpecError};

/// Selects frames with a time-dependent probability.
#[derive(Clone, Debug)]
pub struct Chances {
    series: Series,
    values: Values,
    end: End,
    cursor: Cursor,
    epoch: Nanos,
}

#[derive(Clone, Debug)]
enum Values {
    /// Selects each frame independently.
    Independent {
        /// Most recent value and its probability; saves a division.
        last: (u64, Probability),
    },
    /// Probabilities indexed by the current run of selected frames.
    Patterns {
        sets: Vec<Vec<Probability>>,
        /// Number of selected frames immediately before.
        run: usize,
    },
}

/// Reads probabilities according to the model's parameters: those in [`crate::trace`] and the
/// quantity's column and unit, such as `loss-column` and `loss-unit`.
///
/// # Errors
/// If a line is invalid (the message has its number), or the trace does not support the [`End`].
pub fn read_chances(arguments: &Arguments<'_>, quantity: Quantity) -> Result<Chances, SpecError> {
    let (series, values) = match super::read(arguments, quantity, false)? {
        Contents::Series(series, _) => {
            let last = (0, Probability::ZERO);
            (series, Values::Independent { last })
        }
        Contents::Patterns(patterns, _) => {
            let set = |set: Vec<u64>| set.into_iter().map(probability).collect();
            let sets = patterns.sets.into_iter().map(set).collect();
            (patterns.series, Values::Patterns { sets, run: 0 })
        }
        Contents::Schedule(_) | Contents::Trains(_) => {
            return Err(arguments.file_error(FILE.name, "no probabilities"));
        }
    };
    Ok(Chances {
        series,
        values,
        end: End::read(arguments)?,
        cursor: Cursor::default(),
        epoch: Nanos::ZERO,
    })
}

fn probability(steps: u64) -> Probability {
    Probability::from_ratio(steps, Quantity::LOSS_STEPS).unwrap_or(Probability::ONE)
}

impl Chances {
    /// Called once, before any other method; times are relative to `epoch`.
    pub fn start(&mut self, epoch: Nanos) {
        self.epoch = epoch;
    }

    /// Whether the next frame, arriving at `at`, is selected.
    pub fn toss(&mut self, at: Nanos, stream: &mut Stream) -> bool {
        let since = at.saturating_sub(self.epoch);
        let stretch = self.series.at(&mut self.cursor, since, self.end);
        let value = stretch.value;
        match &mut self.values {
            Values::Independent { last } => {
                let steps = value.unwrap_or(0);
                if steps != last.0 {
                    *last = (steps, probability(steps));
                }
                stream.chance(last.1)
            }
            Values::Patterns { sets, run } => {
                let set = value.and_then(|index| sets.get(index as usize));
                let chance = set.and_then(|set| set.get(*run).or(set.last()));
                let chosen = stream.chance(chance.copied().unwrap_or(Probability::ZERO));
                *run = if chosen { run.saturating_add(1) } else { 0 };
                chosen
            }
        }
    }
}
