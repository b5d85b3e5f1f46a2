//! Inverted bits at a fixed offset of a frame.

use alloc::boxed::Box;
use alloc::format;
use core::fmt;

use longwire_packet::edit::Corruption;
use longwire_units::random::Stream;
use longwire_units::{Probability, parse_count};

use super::CorruptionModel;
use super::target::{CHECKSUM, PART, Target, read_bits};
use crate::frame_context::FrameContext;
use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};

/// Registry entry.
pub const ENTRY: Entry<Box<dyn CorruptionModel>> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "offset",
    summary: "inverts bits at a fixed offset; shorter frames are not changed",
    params: &[
        Param::new("offset", Unit::Count)
            .help("offset in bytes from the start of the part, 0 to 65534"),
        Param::with_default("bits", Unit::Count, "1")
            .help("number of inverted bits, from the most significant bit of that byte"),
        Param::with_default("rate", Unit::Probability, "100%")
            .help("probability that a frame is corrupted"),
        PART,
        CHECKSUM,
    ],
};

/// Offset of the last byte of the longest frame.
const OFFSET_MAX: u64 = 65_534;

fn build(arguments: &Arguments<'_>) -> Result<Box<dyn CorruptionModel>, SpecError> {
    let offset = arguments.read("offset", parse_count)?;
    if offset > OFFSET_MAX {
        let message = format!("offset={offset} is beyond any frame; the maximum is {OFFSET_MAX}");
        return Err(arguments.invalid(message));
    }
    Ok(Box::new(OffsetCorruption {
        offset: offset as u32,
        bits: read_bits(arguments)?,
        rate: arguments.required("rate")?,
        target: Target::read(arguments)?,
    }))
}

/// Corruption at a fixed offset.
#[derive(Clone, Copy, Debug)]
struct OffsetCorruption {
    offset: u32,
    bits: u32,
    rate: Probability,
    target: Target,
}

impl CorruptionModel for OffsetCorruption {
    fn judge(&mut self, frame: &FrameContext<'_>, stream: &mut Stream) -> Option<Corruption> {
        let is_corrupted = stream.chance(self.rate);
        let (start, end) = self.target.range(frame)?;
        let first = start + self.offset;
        let is_there = first < end.min(frame.frame.len);
        let within = (is_corrupted && is_there).then_some((first, end))?;
        Some(self.target.corruption(self.bits, within, None))
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OffsetCorruption {
            offset,
            bits,
            rate,
            target,
        } = self;
        write!(f, "offset:offset={offset},bits={bits},rate={rate}{target}")
    }
}
