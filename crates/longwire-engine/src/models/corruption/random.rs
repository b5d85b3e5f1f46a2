//! Independent corruption of frames, each in some of its bits.

use alloc::boxed::Box;
use core::fmt;

use longwire_packet::edit::Corruption;
use longwire_units::random::Stream;
use longwire_units::{Probability, parse_count};

use super::CorruptionModel;
use crate::frame_context::FrameContext;
use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};

/// The registry line.
pub const ENTRY: Entry<Box<dyn CorruptionModel>> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "random",
    summary: "frames are corrupted with the same probability, independently, each in a fixed \
              number of bits at random places (netem's corrupt: one bit)",
    params: &[
        Param::new("rate", Unit::Probability).help("the probability that a frame is corrupted"),
        Param::with_default("bits", Unit::Count, "1")
            .help("number of inverted bits in a corrupted frame"),
        CHECKSUM,
    ],
};

/// The parameter that every corruption model has.
pub(super) const CHECKSUM: Param =
    Param::with_default("checksum", Unit::Choice(&["keep", "repair"]), "keep").help(
        "keep: the receiver can notice; repair: IP, TCP, UDP, SCTP, ICMP and IGMP checksums are \
         made to fit the corrupted bytes. A frame in which only checksums were corrupted is then \
         as it was, and does not count as corrupted",
    );

/// Whether checksums are repaired.
pub(super) fn repair(arguments: &Arguments<'_>) -> Result<bool, SpecError> {
    Ok(arguments.choice(CHECKSUM.name)? == 1)
}

/// Returns the word of [`CHECKSUM`].
pub(super) fn checksum_word(repair: bool) -> &'static str {
    if repair { "repair" } else { "keep" }
}

/// No frame has more bits than this.
pub(super) const BITS_MAX: u64 = 8 * 65_535;

fn build(arguments: &Arguments<'_>) -> Result<Box<dyn CorruptionModel>, SpecError> {
    let bits = arguments.read("bits", parse_count)?;
    if bits == 0 || bits > BITS_MAX {
        return Err(arguments.invalid("bits is 1 to 524280, the bits of the longest frame"));
    }
    Ok(Box::new(RandomCorruption {
        rate: arguments.required("rate")?,
        bits: bits as u32,
        repair: repair(arguments)?,
    }))
}

/// Independent corruption.
#[derive(Clone, Copy, Debug)]
pub struct RandomCorruption {
    /// Probability for each frame.
    pub rate: Probability,
    /// Number of inverted bits in a corrupted frame.
    pub bits: u32,
    /// Checksums are repaired.
    pub repair: bool,
}

impl CorruptionModel for RandomCorruption {
    fn judge(&mut self, _frame: &FrameContext<'_>, stream: &mut Stream) -> Option<Corruption> {
        let (is_corrupted, seed) = (stream.chance(self.rate), stream.next_u64());
        is_corrupted.then_some(Corruption {
            bits: self.bits,
            offset: None,
            seed,
            repair: self.repair,
        })
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let checksum = checksum_word(self.repair);
        let (rate, bits) = (self.rate, self.bits);
        write!(f, "random:rate={rate},bits={bits},checksum={checksum}")
    }
}
