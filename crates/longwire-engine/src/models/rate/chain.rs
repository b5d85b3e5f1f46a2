//! A continuous-time Markov chain of rates.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use longwire_units::Nanos;
use longwire_units::random::Stream;

use super::varying::{RateSource, RateStretch};

/// A state of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainState {
    /// Rate in bit/s; at 0 the link stands still.
    pub rate: u64,
    /// Mean time in the state.
    pub time: Nanos,
}

/// After this many states without a frame, the chain has forgotten its state: it continues
/// from a state drawn from the stationary distribution instead of stepping through the
/// states in between.
const FORGOTTEN: u32 = 10_000;

/// The chain in continuous time. It starts in a state drawn from the stationary
/// distribution, and exponential holding times are memoryless, so it is stationary. Its
/// states depend on the seed, not on the traffic, except for those that [`FORGOTTEN`]
/// skips.
#[derive(Clone, Debug)]
pub struct Chain {
    states: Vec<ChainState>,
    /// Transitions of each state.
    next: Vec<Choice>,
    /// Each state, weighted by its share of time.
    share: Choice,
    shares: Vec<f64>,
    current: usize,
    /// End of the current state, in nanoseconds since the epoch; 0 before the first call.
    until: u64,
    begun: bool,
}

/// A weighted random choice.
#[derive(Clone, Debug)]
struct Choice {
    /// Cumulative weights, in units of 2^-64.
    sums: Vec<u64>,
    /// The last index with a positive weight.
    last: usize,
    /// The only index with a positive weight, if unique: no draw is needed.
    only: bool,
}

impl Choice {
    fn new(weights: &[f64]) -> Choice {
        let total: f64 = weights.iter().sum();
        let mut sum = 0.0;
        let sums = weights.iter().map(|weight| {
            sum += weight;
            // The conversion saturates.
            (sum / total * 18_446_744_073_709_551_616.0) as u64
        });
        Choice {
            sums: sums.collect(),
            last: weights
                .iter()
                .rposition(|weight| *weight > 0.0)
                .unwrap_or(0),
            only: weights.iter().filter(|weight| **weight > 0.0).count() == 1,
        }
    }

    fn draw(&self, stream: &mut Stream) -> usize {
        if self.only {
            return self.last;
        }
        let draw = stream.next_u64();
        self.sums.partition_point(|sum| *sum <= draw).min(self.last)
    }
}

impl Chain {
    /// Creates a chain with weight `weights[i][j]` for the transition from state `i` to
    /// `j`.
    ///
    /// # Errors
    /// If a state has no transition, or does not reach every other one.
    pub fn new(states: Vec<ChainState>, weights: Vec<Vec<f64>>) -> Result<Chain, String> {
        for (index, row) in weights.iter().enumerate() {
            let others = row.iter().enumerate().filter(|(to, _)| *to != index);
            if !others.clone().any(|(_, weight)| *weight > 0.0) {
                return Err(format!(
                    "state {} has no successor; give it a weight",
                    index + 1
                ));
            }
        }
        if let Some((from, to)) = unreachable(&weights) {
            return Err(format!(
                "state {} is unreachable from state {}; the chain must be irreducible",
                to + 1,
                from + 1
            ));
        }
        let visits = stationary(&weights);
        let time = |(visits, state): (&f64, &ChainState)| visits * state.time.as_nanos() as f64;
        let times: Vec<f64> = visits.iter().zip(&states).map(time).collect();
        let total: f64 = times.iter().sum();
        Ok(Chain {
            next: weights.iter().map(|row| Choice::new(row)).collect(),
            share: Choice::new(&times),
            shares: times.iter().map(|time| time / total).collect(),
            states,
            current: 0,
            until: 0,
            begun: false,
        })
    }

    /// Returns the long-term mean rate, rounded to the nearest bit/s.
    pub fn mean_rate(&self) -> u64 {
        let rates = self.shares.iter().zip(&self.states);
        let mean: f64 = rates.map(|(share, state)| share * state.rate as f64).sum();
        (mean + 0.5) as u64
    }

    /// Continues at `since` from a state of the stationary distribution.
    fn begin(&mut self, since: u64, stream: &mut Stream) {
        self.current = self.share.draw(stream);
        self.hold(since, stream);
    }

    fn hold(&mut self, since: u64, stream: &mut Stream) {
        let time = stream.exponential(self.states[self.current].time);
        self.until = since.saturating_add(time.as_nanos());
    }
}

impl RateSource for Chain {
    fn stretch(&mut self, since: u64, stream: &mut Stream) -> RateStretch {
        if !self.begun {
            self.begun = true;
            self.begin(0, stream);
        }
        let mut passed = 0;
        while self.until <= since && since < u64::MAX {
            passed += 1;
            if passed > FORGOTTEN {
                self.begin(since, stream);
                continue;
            }
            self.current = self.next[self.current].draw(stream);
            self.hold(self.until, stream);
        }
        RateStretch {
            end: self.until,
            rate: self.states[self.current].rate,
        }
    }

    fn mean(&self) -> Option<u64> {
        Some(self.mean_rate().max(1))
    }
}

/// Returns two states such that the first never reaches the second.
fn unreachable(weights: &[Vec<f64>]) -> Option<(usize, usize)> {
    (0..weights.len()).find_map(|from| {
        let mut reached = vec![false; weights.len()];
        let mut open = vec![from];
        reached[from] = true;
        while let Some(state) = open.pop() {
            for (to, weight) in weights[state].iter().enumerate() {
                if *weight > 0.0 && !reached[to] {
                    reached[to] = true;
                    open.push(to);
                }
            }
        }
        let missed = reached.iter().position(|reached| !reached)?;
        Some((from, missed))
    })
}

/// Returns the relative frequency of entering each state, by the elimination of Grassmann,
/// Taksar and Heyman (1985), which never subtracts and so does not cancel.
fn stationary(weights: &[Vec<f64>]) -> Vec<f64> {
    let mut matrix: Vec<Vec<f64>> = weights
        .iter()
        .map(|row| {
            let total: f64 = row.iter().sum();
            row.iter().map(|weight| weight / total).collect()
        })
        .collect();
    for last in (1..matrix.len()).rev() {
        let leaving: f64 = matrix[last][..last].iter().sum();
        let row: Vec<f64> = matrix[last][..last].to_vec();
        for earlier in matrix[..last].iter_mut() {
            earlier[last] /= leaving;
            let into = earlier[last];
            for (weight, onward) in earlier.iter_mut().zip(&row) {
                *weight += into * onward;
            }
        }
    }
    let mut visits = vec![1.0];
    for state in 1..matrix.len() {
        let entered = visits
            .iter()
            .zip(&matrix)
            .map(|(visits, row)| visits * row[state]);
        let entered: f64 = entered.sum();
        visits.push(entered);
    }
    visits
}

#[cfg(test)]
#[path = "chain_tests.rs"]
mod tests;
