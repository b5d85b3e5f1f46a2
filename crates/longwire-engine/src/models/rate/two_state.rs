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
    summary: "alternates between a good and a bad rate, each held for an exponential time; bad=0 \
              makes an on-off link",
    params: &[
        Param::new("good", Unit::Rate).help("rate of the good state"),
        Param::new("bad", Unit::Rate).help("rate of the bad state; 0 stops the link"),
        Param::new("good-time", Unit::Time).help("mean duration of the good state; at least 1us"),
        Param::new("bad-time", Unit::Time).help("mean duration of the bad state; at least 1us"),
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
