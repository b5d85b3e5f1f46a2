//! Independent corruption of frames, in some of their bits.

use alloc::boxed::Box;
use core::fmt;

use longwire_packet::edit::Corruption;
use longwire_units::Probability;
use longwire_units::random::Stream;

use super::CorruptionModel;
use super::target::{CHECKSUM, PART, Target, read_bits};
use crate::frame_context::FrameContext;
use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};

/// Registry entry.
pub const ENTRY: Entry<Box<dyn CorruptionModel>> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "random",
    summary: "corrupts frames independently with the same probability, each in a fixed number of \
              random bits (netem's corrupt: one bit)",
    params: &[
        Param::new("rate", Unit::Probability).help("probability that a frame is corrupted"),
        Param::with_default("bits", Unit::Count, "1")
            .help("number of inverted bits per corrupted frame"),
        PART,
        CHECKSUM,
    ],
};

fn build(arguments: &Arguments<'_>) -> Result<Box<dyn CorruptionModel>, SpecError> {
    Ok(Box::new(RandomCorruption {
        rate: arguments.required("rate")?,
        bits: read_bits(arguments)?,
        target: Target::read(arguments)?,
    }))
}

/// Independent corruption.
#[derive(Clone, Copy, Debug)]
struct RandomCorruption {
    rate: Probability,
    bits: u32,
    target: Target,
}

impl CorruptionModel for RandomCorruption {
    fn judge(&mut self, frame: &FrameContext<'_>, stream: &mut Stream) -> Option<Corruption> {
        let (is_corrupted, seed) = (stream.chance(self.rate), stream.next_u64());
        if !is_corrupted {
            return None;
        }
        let within = self.target.range(frame)?;
        Some(self.target.corruption(self.bits, within, Some(seed)))
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RandomCorruption { rate, bits, target } = self;
        write!(f, "random:rate={rate},bits={bits}{target}")
    }
}
