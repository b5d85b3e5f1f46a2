//! Inverted bits at one place of a frame.

use alloc::boxed::Box;
use alloc::format;
use core::fmt;

use longwire_packet::edit::Corruption;
use longwire_units::random::Stream;
use longwire_units::{Probability, parse_count};

use super::CorruptionModel;
use super::random::{BITS_MAX, CHECKSUM, checksum_word, repair};
use crate::frame_context::FrameContext;
use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};

/// The registry line.
pub const ENTRY: Entry<Box<dyn CorruptionModel>> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "offset",
    summary: "the bits at one place are inverted, in all frames or in some; frames that end \
              before it stay as they are",
    params: &[
        Param::new("offset", Unit::Count)
            .help("the place, in bytes from the frame's beginning, 0 to 65534"),
        Param::with_default("bits", Unit::Count, "1")
            .help("number of inverted bits, from the highest of that byte on"),
        Param::with_default("rate", Unit::Probability, "100%")
            .help("the probability that a frame is corrupted"),
        CHECKSUM,
    ],
};

/// Position of the last byte of the longest frame.
const OFFSET_MAX: u64 = 65_534;

fn build(arguments: &Arguments<'_>) -> Result<Box<dyn CorruptionModel>, SpecError> {
    let offset = arguments.read("offset", parse_count)?;
    if offset > OFFSET_MAX {
        let message = format!("offset={offset} is behind every frame; the most is {OFFSET_MAX}");
        return Err(arguments.invalid(message));
    }
    let bits = arguments.read("bits", parse_count)?;
    if bits == 0 || bits > BITS_MAX {
        return Err(arguments.invalid("bits is 1 to 524280, the bits of the longest frame"));
    }
    Ok(Box::new(OffsetCorruption {
        offset: offset as u32,
        bits: bits as u32,
        rate: arguments.required("rate")?,
        repair: repair(arguments)?,
    }))
}

/// Corruption at one place.
#[derive(Clone, Copy, Debug)]
struct OffsetCorruption {
    offset: u32,
    bits: u32,
    rate: Probability,
    repair: bool,
}

impl CorruptionModel for OffsetCorruption {
    fn judge(&mut self, frame: &FrameContext<'_>, stream: &mut Stream) -> Option<Corruption> {
        let is_corrupted = stream.chance(self.rate) && self.offset < frame.frame.len;
        is_corrupted.then_some(Corruption {
            bits: self.bits,
            offset: Some(self.offset),
            seed: 0,
            repair: self.repair,
        })
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OffsetCorruption {
            offset, bits, rate, ..
        } = self;
        let checksum = checksum_word(self.repair);
        write!(
            f,
            "offset:offset={offset},bits={bits},rate={rate},checksum={checksum}"
        )
    }
}
