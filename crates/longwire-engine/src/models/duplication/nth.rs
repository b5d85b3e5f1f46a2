//! Duplication of every n-th frame.

use alloc::boxed::Box;
use core::fmt;

use longwire_units::parse_count;
use longwire_units::random::Stream;

use super::random::{COPIES, DELAY, copies, delay_word};
use super::{Copies, DuplicationModel};
use crate::frame_context::FrameContext;
use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};

/// Registry entry.
pub const ENTRY: Entry<Box<dyn DuplicationModel>> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "nth",
    summary: "duplicates every n-th frame that reaches the medium; lost frames have no copies",
    params: &[
        Param::new("every", Unit::Count)
            .help("distance between duplicated frames; 1 duplicates all"),
        Param::with_default("offset", Unit::Count, "0").help("frames to skip first"),
        COPIES,
        DELAY,
    ],
};

fn build(arguments: &Arguments<'_>) -> Result<Box<dyn DuplicationModel>, SpecError> {
    let every = arguments.read("every", parse_count)?;
    let offset: u64 = arguments.read("offset", parse_count)?;
    if every == 0 {
        return Err(arguments.invalid("every=0 duplicates none; the minimum is 1"));
    }
    Ok(Box::new(NthDuplication {
        every,
        offset,
        copies: copies(arguments)?,
        left: offset.saturating_add(every),
    }))
}

/// Duplication by count.
#[derive(Clone, Copy, Debug)]
struct NthDuplication {
    every: u64,
    offset: u64,
    copies: Copies,
    /// Frames until the next duplicated one, inclusive.
    left: u64,
}

impl DuplicationModel for NthDuplication {
    fn judge(&mut self, _frame: &FrameContext<'_>, _stream: &mut Stream) -> Option<Copies> {
        self.left -= 1;
        if self.left > 0 {
            return None;
        }
        self.left = self.every;
        Some(self.copies)
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NthDuplication {
            every,
            offset,
            copies: Copies { count, own_delay },
            ..
        } = self;
        let delay = delay_word(*own_delay);
        write!(
            f,
            "nth:every={every},offset={offset},copies={count},delay={delay}"
        )
    }
}
