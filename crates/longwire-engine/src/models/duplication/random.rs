//! Frames are duplicated independently.

use alloc::boxed::Box;
use core::fmt;

use super::{Copies, DuplicationModel};
use crate::models::Entry;
use crate::passing::Passing;
use crate::random::Stream;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};
use crate::units::{Probability, parse_count};

/// The registry line.
pub const ENTRY: Entry<Box<dyn DuplicationModel>> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "random",
    summary: "frames are duplicated on the medium with the same probability, independently: a \
              frame lost there has no copies",
    params: &[
        Param {
            name: "rate",
            unit: Unit::Probability,
            default: None,
            help: "the probability that a frame is duplicated",
        },
        Param {
            name: "copies",
            unit: Unit::Count,
            default: Some("1"),
            help: "how many copies there are beside the frame itself, 1 to 100",
        },
        Param {
            name: "delay",
            unit: Unit::Choice(&["same", "own"]),
            default: Some("same"),
            help: "same: the copies arrive with the frame; own: each has a delay of its own",
        },
    ],
};

/// More is a slip of the pen.
const COPIES_MAX: u64 = 100;

fn build(arguments: &Arguments<'_>) -> Result<Box<dyn DuplicationModel>, SpecError> {
    let count = arguments.read("copies", parse_count)?;
    if count == 0 || count > COPIES_MAX {
        return Err(arguments.unfit("copies is 1 to 100"));
    }
    Ok(Box::new(RandomDuplication {
        rate: arguments.required("rate")?,
        copies: Copies {
            count: count as u32,
            own_delay: arguments.choice("delay")? == 1,
        },
    }))
}

/// Independent duplication.
#[derive(Clone, Copy, Debug)]
pub struct RandomDuplication {
    /// Of each frame.
    pub rate: Probability,
    /// Of a frame that is duplicated.
    pub copies: Copies,
}

impl DuplicationModel for RandomDuplication {
    fn judge(&mut self, _frame: &Passing<'_>, stream: &mut Stream) -> Option<Copies> {
        stream.chance(self.rate).then_some(self.copies)
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Copies { count, own_delay } = self.copies;
        let delay = if own_delay { "own" } else { "same" };
        write!(f, "random:rate={},copies={count},delay={delay}", self.rate)
    }
}
