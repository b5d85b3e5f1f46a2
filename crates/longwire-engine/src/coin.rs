//! A coin that remembers: yes or no, each with a correlation to the one
//! before.

use crate::random::Stream;
use crate::units::{Correlation, Probability};

/// A two-state Markov chain: its outcomes are yes with a given probability,
/// and their lag-1 autocorrelation is as given, both exactly. With
/// probability p and correlation c, yes follows yes with p + c (1 - p), and no
/// with p (1 - c).
#[derive(Clone, Copy, Debug)]
pub(crate) struct CorrelatedCoin {
    probability: Probability,
    after_yes: Probability,
    after_no: Probability,
    last: Option<bool>,
}

impl CorrelatedCoin {
    /// # Errors
    /// The least correlation that this probability allows, if that is above
    /// `correlation`: what is rarer than one in two cannot be followed by its
    /// opposite more often than always.
    pub fn new(probability: Probability, correlation: Correlation) -> Result<CorrelatedCoin, f64> {
        let (p, c) = (probability.as_f64(), correlation.as_f64());
        let rarer = p.min(1.0 - p);
        let least = -rarer / (1.0 - rarer);
        // A little less, for what was written in decimals.
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

    /// The next outcome; one draw.
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
