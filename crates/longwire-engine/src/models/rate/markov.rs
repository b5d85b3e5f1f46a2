//! Rates that follow a continuous-time Markov chain.

use longwire_units::parse_real;

use super::Rate;
use super::schedule::{RateOrZero, rate_or_zero};
use super::varying::{RateSource, RateStretch, varying};
use crate::models::prelude::*;

pub(super) const MARKOV: Entry<Rate> = Entry::new(
    "markov",
    "continuous-time Markov chain with a rate per state, exponential holding times and weighted \
     transitions",
    &[
        Param::new("rates", Unit::Text("10mbit;5mbit;0"))
            .help("rate of each state, RATE;RATE;…; 0 stops the link"),
        Param::new("times", Unit::Text("5s;2s;100ms"))
            .help("mean holding time of each state, TIME;TIME;…; at least 1us"),
        Param::new("matrix", Unit::Text("0/9/1;5/0/5;1/1/0")).help(
            "transition weights, one row per state, W/W;W/W; default: equal weights for all other \
             states",
        ),
    ],
    build_markov,
);

/// Maximum number of states.
const STATES_MAX: usize = 64;

/// Minimum mean holding time. Each state costs a draw; states that are shorter should be replaced
/// by their mean rate.
const TIME_MIN: Nanos = Nanos::from_micros(1);

fn build_markov(arguments: &Arguments<'_>) -> Result<Rate, SpecError> {
    let invalid = |message: String| arguments.invalid(message);
    let rates = list(arguments.required_text("rates")?, "rates", |item| {
        rate_or_zero(item).map_err(|error| error.to_string())
    });
    let rates = rates.map_err(invalid)?;
    let times = list(arguments.required_text("times")?, "times", |item| {
        item.parse::<Nanos>().map_err(|error| error.to_string())
    });
    let times = times.map_err(invalid)?;
    if rates.len() != times.len() || !(2..=STATES_MAX).contains(&rates.len()) {
        return Err(invalid(format!(
            "{} rates but {} times; give as many times as rates, from 2 to {STATES_MAX}",
            rates.len(),
            times.len()
        )));
    }
    let matrix = arguments
        .word("matrix")
        .map(|text| matrix(text, rates.len()));
    let matrix = matrix.transpose().map_err(invalid)?;
    let text = text_of(&rates, &times, matrix.as_deref());
    let weights = matrix.unwrap_or_else(|| uniform(rates.len()));
    let states = rates.into_iter().zip(times);
    let states = states.map(|(rate, time)| ChainState { rate, time });
    markov(arguments, states.collect(), weights, text)
}

/// Parses `ITEM;ITEM;…`.
fn list<T>(
    text: &str,
    key: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let items = text
        .split(';')
        .map(str::trim)
        .filter(|item| !item.is_empty());
    items
        .map(|item| read(item).map_err(|message| format!("{key}: {message}")))
        .collect()
}

fn matrix(text: &str, states: usize) -> Result<Vec<Vec<f64>>, String> {
    let rows = list(text, "matrix", |row| {
        let weights = row.split('/').map(str::trim).map(|item| {
            let weight = parse_real(item).map_err(|error| error.to_string())?;
            if weight >= 0.0 {
                Ok(weight)
            } else {
                Err(format!("'{item}' is negative"))
            }
        });
        weights.collect::<Result<Vec<f64>, String>>()
    })?;
    if rows.len() != states || rows.iter().any(|row| row.len() != states) {
        return Err(format!(
            "matrix: expected {states} rows of {states} weights"
        ));
    }
    Ok(rows)
}

/// Returns equal weights for transitions to all other states.
fn uniform(states: usize) -> Vec<Vec<f64>> {
    let mut rows = vec![vec![1.0; states]; states];
    for (index, row) in rows.iter_mut().enumerate() {
        row[index] = 0.0;
    }
    rows
}

/// Returns the model's specification text.
fn text_of(rates: &[u64], times: &[Nanos], matrix: Option<&[Vec<f64>]>) -> String {
    let join = |items: Vec<String>| items.join(";");
    let rates = rates.iter().map(|rate| RateOrZero(*rate).to_string());
    let times = times.iter().map(Nanos::to_string);
    let (rates, times) = (join(rates.collect()), join(times.collect()));
    let mut text = format!("markov:rates={rates},times={times}");
    if let Some(matrix) = matrix {
        let row = |row: &Vec<f64>| {
            let weights: Vec<String> = row.iter().map(f64::to_string).collect();
            weights.join("/")
        };
        text += ",matrix=";
        text += &join(matrix.iter().map(row).collect());
    }
    text
}

/// Creates a chain with these states and transition weights.
///
/// # Errors
/// If a holding time is too short, a state has no transition or cannot be reached again, or every
/// rate is 0.
fn markov(
    arguments: &Arguments<'_>,
    states: Vec<ChainState>,
    weights: Vec<Vec<f64>>,
    text: String,
) -> Result<Rate, SpecError> {
    if let Some(state) = states.iter().find(|state| state.time < TIME_MIN) {
        let time = state.time;
        return Err(arguments.invalid(format!("mean time {time} is below {TIME_MIN}")));
    }
    let chain = Chain::new(states, weights).map_err(|message| arguments.invalid(message))?;
    match chain.mean_rate() {
        0 => Err(arguments.invalid("all rates are 0; no frame would pass")),
        mean => Ok(varying(chain, mean, text)),
    }
}

pub(super) const TWO_STATE: Entry<Rate> = Entry::new(
    "two-state",
    "alternates between a good and a bad rate with exponential holding times; bad=0 makes an \
     on-off link",
    &[
        Param::new("good", Unit::Rate).help("rate of the good state"),
        Param::new("bad", Unit::Rate).help("rate of the bad state; 0 stops the link"),
        Param::new("good-time", Unit::Time).help("mean duration of the good state; at least 1us"),
        Param::new("bad-time", Unit::Time).help("mean duration of the bad state; at least 1us"),
    ],
    build_two_state,
);

fn build_two_state(arguments: &Arguments<'_>) -> Result<Rate, SpecError> {
    let state = |rate, time| {
        Ok::<ChainState, SpecError>(ChainState {
            rate: arguments.read(rate, rate_or_zero)?,
            time: arguments.required(time)?,
        })
    };
    let good = state("good", "good-time")?;
    let bad = state("bad", "bad-time")?;
    let text = format!(
        "two-state:good={},bad={},good-time={},bad-time={}",
        RateOrZero(good.rate),
        RateOrZero(bad.rate),
        good.time,
        bad.time
    );
    markov(arguments, vec![good, bad], uniform(2), text)
}

/// A state of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ChainState {
    /// Rate in bit/s; 0 stops the link.
    rate: u64,
    /// Mean holding time.
    time: Nanos,
}

/// Number of states without a frame after which the chain continues from a state drawn from the
/// stationary distribution, instead of stepping through the states in between.
const FORGOTTEN: u32 = 10_000;

/// A continuous-time Markov chain. It starts in a state drawn from the stationary distribution, and
/// exponential holding times are memoryless, so the process is stationary. Its states depend only
/// on the seed and not on the traffic, except for states skipped because of [`FORGOTTEN`].
#[derive(Clone, Debug)]
struct Chain {
    states: Vec<ChainState>,
    /// Transitions from each state.
    next: Vec<Choice>,
    /// Stationary distribution: each state weighted by its share of time.
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
    /// Last index with a positive weight.
    last: usize,
    /// Whether only one index has a positive weight, so that no draw is needed.
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
    /// Creates a chain; `weights[i][j]` is the weight of the transition from state `i` to `j`.
    ///
    /// # Errors
    /// If a state has no transition, or cannot reach every other state.
    fn new(states: Vec<ChainState>, weights: Vec<Vec<f64>>) -> Result<Chain, String> {
        for (index, row) in weights.iter().enumerate() {
            let others = row.iter().enumerate().filter(|(to, _)| *to != index);
            if !others.clone().any(|(_, weight)| *weight > 0.0) {
                return Err(format!(
                    "state {} has no successor; give it a nonzero weight",
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
    fn mean_rate(&self) -> u64 {
        let rates = self.shares.iter().zip(&self.states);
        let mean: f64 = rates.map(|(share, state)| share * state.rate as f64).sum();
        (mean + 0.5) as u64
    }

    /// Continues at `since` from a state drawn from the stationary distribution.
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

/// Returns a pair of states of which the first cannot reach the second.
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

/// Returns the relative frequency of entering each state, by the GTH elimination of Grassmann,
/// Taksar and Heyman (1985), which never subtracts and so avoids cancellation.
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
#[path = "markov_tests.rs"]
mod tests;
