//! A two-state rate, good and bad.

use alloc::boxed::Box;
use alloc::vec;
use core::fmt::{self, Display};

use super::Rate;
use super::chain::ChainState;
use super::markov::{Markov, uniform};
use super::steps::{RateOrZero, rate_or_zero};
use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};

/// Registry entry.
pub const ENTRY: Entry<Rate> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "two-state",
    summary: "a good rate and a bad one in turns, each held for an exponential time; a bad one of \
              0 makes an on-off link",
    params: &[
        Param::new("good", Unit::Rate).help("the rate of the good state"),
        Param::new("bad", Unit::Rate).help("the rate of the bad state; 0 stands still"),
        Param::new("good-time", Unit::Time)
            .help("how long the good state is held in the mean; 1us at least"),
        Param::new("bad-time", Unit::Time)
            .help("how long the bad state is held in the mean; 1us at least"),
    ],
};

fn build(arguments: &Arguments<'_>) -> Result<Rate, SpecError> {
    let state = |rate, time| {
        Ok::<ChainState, SpecError>(ChainState {
            rate: arguments.read(rate, rate_or_zero)?,
            time: arguments.required(time)?,
        })
    };
    let good = state("good", "good-time")?;
    let bad = state("bad", "bad-time")?;
    let written = TwoStateText { good, bad };
    let model = Markov::new(vec![good, bad], uniform(2), Box::new(written));
    Ok(Rate::Model(Box::new(
        model.map_err(|message| arguments.invalid(message))?,
    )))
}

#[derive(Clone, Debug)]
struct TwoStateText {
    good: ChainState,
    bad: ChainState,
}

impl Display for TwoStateText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "two-state:good={},bad={},good-time={},bad-time={}",
            RateOrZero(self.good.rate),
            RateOrZero(self.bad.rate),
            self.good.time,
            self.bad.time
        )
    }
}
