//! Independent duplication of frames.

use alloc::boxed::Box;
use core::fmt;

use longwire_units::random::Stream;
use longwire_units::{Probability, parse_count};

use super::{Copies, DuplicationModel};
use crate::frame_context::FrameContext;
use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};

/// Registry entry.
pub const ENTRY: Entry<Box<dyn DuplicationModel>> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "random",
    summary: "duplicates frames on the medium independently with the same probability; lost \
              frames have no copies",
    params: &[
        Param::new("rate", Unit::Probability).help("probability that a frame is duplicated"),
        COPIES,
        DELAY,
    ],
};

/// Number of copies.
pub(super) const COPIES: Param = Param::with_default("copies", Unit::Count, "1")
    .help("number of copies besides the frame, 1 to 100");

/// Delay of copies.
pub(super) const DELAY: Param =
    Param::with_default("delay", Unit::Choice(&["same", "own"]), "same")
        .help("same: copies arrive with the frame; own: each draws a delay");

/// Maximum number of copies; more is an error.
const COPIES_MAX: u64 = 100;

/// Reads [`COPIES`] and [`DELAY`].
pub(super) fn copies(arguments: &Arguments<'_>) -> Result<Copies, SpecError> {
    let count = arguments.read(COPIES.name, parse_count)?;
    if count == 0 || count > COPIES_MAX {
        return Err(arguments.invalid("copies is outside 1..100"));
    }
    Ok(Copies {
        count: count as u32,
        own_delay: arguments.choice(DELAY.name)? == 1,
    })
}

/// Returns the word of [`DELAY`].
pub(super) fn delay_word(own_delay: bool) -> &'static str {
    if own_delay { "own" } else { "same" }
}

fn build(arguments: &Arguments<'_>) -> Result<Box<dyn DuplicationModel>, SpecError> {
    Ok(Box::new(RandomDuplication {
        rate: arguments.required("rate")?,
        copies: copies(arguments)?,
    }))
}

/// Independent duplication.
#[derive(Clone, Copy, Debug)]
pub struct RandomDuplication {
    /// Probability for each frame.
    pub rate: Probability,
    /// Copies of a duplicated frame.
    pub copies: Copies,
}

impl DuplicationModel for RandomDuplication {
    fn judge(&mut self, _frame: &FrameContext<'_>, stream: &mut Stream) -> Option<Copies> {
        stream.chance(self.rate).then_some(self.copies)
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Copies { count, own_delay } = self.copies;
        let delay = delay_word(own_delay);
        write!(f, "random:rate={},copies={count},delay={delay}", self.rate)
    }
}
