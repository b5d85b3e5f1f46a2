//! Selection of frames: by a correlated random process, or every n-th frame.

use longwire_units::random::Stream;
use longwire_units::{Correlation, Probability, parse_count};

use crate::prelude::*;
use crate::spec::{Arguments, SpecError};

/// A two-state Markov chain with exact mean `p` and lag-1 autocorrelation `c`:
/// P(yes | yes) = p + c(1 − p), P(yes | no) = p(1 − c).
#[derive(Clone, Copy, Debug)]
pub(crate) struct CorrelatedCoin {
    probability: Probability,
    after_yes: Probability,
    after_no: Probability,
    last: Option<bool>,
}

impl CorrelatedCoin {
    /// Reads the parameters `rate` and `correlation`.
    ///
    /// # Errors
    /// If the correlation is 100 %, or impossible for this probability.
    pub fn read(arguments: &Arguments<'_>) -> Result<CorrelatedCoin, SpecError> {
        let rate: Probability = arguments.required("rate")?;
        let correlation: Correlation = arguments.required("correlation")?;
        if correlation == Correlation::ONE {
            return Err(arguments.invalid(
                "correlation=100% would treat all frames like the first; it must be below 100%",
            ));
        }
        CorrelatedCoin::new(rate, correlation).map_err(|least| {
            let percent = least * 100.0;
            arguments.invalid(format!(
                "correlation={correlation} is impossible at rate={rate}; the minimum is \
                 {percent:.4}%"
            ))
        })
    }

    /// # Errors
    /// The minimum correlation for this probability, if `correlation` is below it. At the minimum,
    /// the rarer outcome never repeats.
    fn new(probability: Probability, correlation: Correlation) -> Result<CorrelatedCoin, f64> {
        let (p, c) = (probability.as_f64(), correlation.as_f64());
        let rarer = p.min(1.0 - p);
        let least = -rarer / (1.0 - rarer);
        // Tolerates rounding in decimal arguments.
        if rarer > 0.0 && c < least - 1e-12 {
            return Err(least);
        }
        Ok(CorrelatedCoin {
            probability,
            after_yes: Probability::from_f64(p + c * (1.0 - p)),
            after_no: Probability::from_f64(p * (1.0 - c)),
            last: None,
        })
    }

    /// Returns the next outcome; draws once.
    #[inline]
    pub fn toss(&mut self, stream: &mut Stream) -> bool {
        let probability = match self.last {
            Some(true) => self.after_yes,
            Some(false) => self.after_no,
            None => self.probability,
        };
        let outcome = stream.chance(probability);
        self.last = Some(outcome);
        outcome
    }
}

/// Selects every n-th frame, after an offset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EveryNth {
    every: u64,
    /// Frames up to and including the next selected one.
    left: u64,
}

impl EveryNth {
    /// Reads the parameters `every` and `offset`. `verb` is used in the error for `every=0`.
    pub fn read(arguments: &Arguments<'_>, verb: &str) -> Result<EveryNth, SpecError> {
        let every = arguments.read("every", parse_count)?;
        let offset = arguments.read("offset", parse_count)?;
        if every == 0 {
            return Err(arguments.invalid(format!("every=0 {verb} no frame; the minimum is 1")));
        }
        let left = offset.saturating_add(every);
        Ok(EveryNth { every, left })
    }

    /// Counts a frame and returns whether it is selected.
    pub fn chooses(&mut self) -> bool {
        self.left -= 1;
        let chosen = self.left == 0;
        if chosen {
            self.left = self.every;
        }
        chosen
    }
}
