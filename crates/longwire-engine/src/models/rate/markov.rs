//! A rate that follows a Markov chain.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::{self, Display};
use dyn_clone::DynClone;

use longwire_units::random::Stream;
use longwire_units::{BitRate, Nanos, parse_real};

use super::chain::{Chain, ChainState};
use super::steps::{RateOrZero, rate_or_zero};
use super::varying::Varying;
use super::{Rate, RateModel};
use crate::frame_context::FrameContext;
use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};

/// Registry entry.
pub const ENTRY: Entry<Rate> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "markov",
    summary: "continuous-time Markov chain with a rate per state, exponential holding times and \
              weighted transitions",
    params: &[
        Param::new("rates", Unit::Text("10mbit;5mbit;0"))
            .help("rate of each state, RATE;RATE;…; 0 stops the link"),
        Param::new("times", Unit::Text("5s;2s;100ms"))
            .help("mean holding time of each state, TIME;TIME;…; at least 1us"),
        Param::new("matrix", Unit::Text("0/9/1;5/0/5;1/1/0")).help(
            "transition weights, one row per state, W/W;W/W; default: all other states are \
             equally likely",
        ),
    ],
};

/// Maximum number of states.
const STATES_MAX: usize = 64;

/// Minimum mean holding time: shorter states cost a draw each and are better replaced by
/// their mean rate.
pub(super) const TIME_MIN: Nanos = Nanos::from_micros(1);

fn build(arguments: &Arguments<'_>) -> Result<Rate, SpecError> {
    let text = |key| arguments.read(key, |text| Ok(text.to_string()));
    let invalid = |message: String| arguments.invalid(message);
    let rates = list(&text("rates")?, "rates", |item| {
        rate_or_zero(item).map_err(|error| error.to_string())
    });
    let rates = rates.map_err(invalid)?;
    let times = list(&text("times")?, "times", |item| {
        item.parse::<Nanos>().map_err(|error| error.to_string())
    });
    let times = times.map_err(invalid)?;
    if rates.len() != times.len() || !(2..=STATES_MAX).contains(&rates.len()) {
        return Err(invalid(format!(
            "{} rates and {} times; give equal numbers, from 2 to {STATES_MAX}",
            rates.len(),
            times.len()
        )));
    }
    let matrix = arguments
        .word("matrix")
        .map(|text| matrix(text, rates.len()));
    let matrix = matrix.transpose().map_err(invalid)?;
    let states = rates.iter().zip(&times).map(|(rate, time)| ChainState {
        rate: *rate,
        time: *time,
    });
    let states: Vec<ChainState> = states.collect();
    let written = MarkovText {
        rates,
        times,
        matrix: matrix.clone(),
    };
    let weights = matrix.unwrap_or_else(|| uniform(states.len()));
    Ok(Rate::Model(Box::new(
        Markov::new(states, weights, Box::new(written)).map_err(invalid)?,
    )))
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
        return Err(format!("matrix: not {states} rows of {states} weights"));
    }
    Ok(rows)
}

/// Returns equal weights for all other states.
pub(super) fn uniform(states: usize) -> Vec<Vec<f64>> {
    let mut rows = vec![vec![1.0; states]; states];
    for (index, row) in rows.iter_mut().enumerate() {
        row[index] = 0.0;
    }
    rows
}

/// The model's notation.
#[derive(Clone, Debug)]
struct MarkovText {
    rates: Vec<u64>,
    times: Vec<Nanos>,
    matrix: Option<Vec<Vec<f64>>>,
}

impl Display for MarkovText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rates = self.rates.iter().map(|rate| RateOrZero(*rate).to_string());
        let times = self.times.iter().map(Nanos::to_string);
        let join = |items: Vec<String>| items.join(";");
        write!(
            f,
            "markov:rates={},times={}",
            join(rates.collect()),
            join(times.collect())
        )?;
        let Some(matrix) = &self.matrix else {
            return Ok(());
        };
        let row = |row: &Vec<f64>| {
            let weights: Vec<String> = row.iter().map(f64::to_string).collect();
            weights.join("/")
        };
        write!(f, ",matrix={}", join(matrix.iter().map(row).collect()))
    }
}

/// A rate that follows a chain.
#[derive(Clone, Debug)]
pub(super) struct Markov {
    mean: Option<BitRate>,
    line: Varying<Chain>,
    written: Box<dyn Describe>,
}

/// Notation of the model.
pub(super) trait Describe: DynClone + Display + fmt::Debug + Send + Sync {}

dyn_clone::clone_trait_object!(Describe);

impl<T: Clone + Display + fmt::Debug + Send + Sync> Describe for T {}

impl Markov {
    /// Creates a chain over these states with these transition weights.
    ///
    /// # Errors
    /// If a holding time is too short, a state has no transition or cannot be reached
    /// again, or every rate is 0.
    pub fn new(
        states: Vec<ChainState>,
        weights: Vec<Vec<f64>>,
        written: Box<dyn Describe>,
    ) -> Result<Markov, String> {
        if let Some(state) = states.iter().find(|state| state.time < TIME_MIN) {
            return Err(format!("mean time {} is below {TIME_MIN}", state.time));
        }
        let chain = Chain::new(states, weights)?;
        let mean = chain.mean_rate();
        if mean == 0 {
            return Err("all rates are 0; no frame would pass".to_string());
        }
        Ok(Markov {
            mean: BitRate::from_bits_per_sec(mean),
            line: Varying::new(chain),
            written,
        })
    }
}

impl RateModel for Markov {
    fn start(&mut self, epoch: Nanos) {
        self.line.start(epoch);
    }

    #[inline]
    fn ready(&mut self, from: Nanos, stream: &mut Stream) -> Nanos {
        self.line.ready(from, stream)
    }

    #[inline]
    fn serve(&mut self, frame: &FrameContext<'_>, wire_bits: u64, stream: &mut Stream) -> Nanos {
        self.line.serve(frame.at, wire_bits, stream)
    }

    fn resume(&mut self, frame: &FrameContext<'_>, work: u128, stream: &mut Stream) -> Nanos {
        self.line.resume(frame.at, work, stream)
    }

    /// Returns the mean rate weighted by time share, to 53 bits.
    fn mean(&self) -> Option<BitRate> {
        self.mean
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.written.fmt(f)
    }
}
