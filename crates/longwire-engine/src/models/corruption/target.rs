//! Parameters of every corruption model: the part of the frame, and the treatment of its
//! checksums.

use core::fmt;

use longwire_packet::edit::Corruption;
use longwire_packet::transport_payload;
use longwire_units::parse_count;

use crate::frame_context::FrameContext;
use crate::spec::{Arguments, Param, SpecError, Unit};

/// Corruptible part of the frame.
pub(super) const PART: Param =
    Param::with_default("part", Unit::Choice(&["frame", "payload"]), "frame").help(
        "frame: all bytes; payload: bytes after the TCP, UDP, UDP-Lite, SCTP or ICMP header, or \
         after the IP header of later fragments; frames without payload are not changed",
    );

/// Treatment of checksums.
pub(super) const CHECKSUM: Param =
    Param::with_default("checksum", Unit::Choice(&["keep", "repair"]), "keep").help(
        "keep: the receiver can detect corruption; repair: update IP, TCP, UDP, SCTP, ICMP and \
         IGMP checksums. A frame with corrupted checksums only is then intact, and does not \
         count as corrupted",
    );

/// Maximum number of bits of a frame.
const BITS_MAX: u64 = 8 * 65_535;

/// Reads the parameter `bits`.
pub(super) fn read_bits(arguments: &Arguments<'_>) -> Result<u32, SpecError> {
    let bits = arguments.read("bits", parse_count)?;
    if bits == 0 || bits > BITS_MAX {
        return Err(arguments.invalid("bits is outside 1..524280, the bits of the longest frame"));
    }
    Ok(bits as u32)
}

/// The values of [`PART`] and [`CHECKSUM`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    payload_only: bool,
    repair: bool,
}

impl Target {
    pub fn read(arguments: &Arguments<'_>) -> Result<Target, SpecError> {
        Ok(Target {
            payload_only: arguments.choice(PART.name)? == 1,
            repair: arguments.choice(CHECKSUM.name)? == 1,
        })
    }

    /// Returns the range of corruptible bytes, start and end; `None` if empty.
    #[inline]
    pub fn range(&self, frame: &FrameContext<'_>) -> Option<(u32, u32)> {
        if !self.payload_only {
            return Some(Corruption::ALL);
        }
        let payload = transport_payload(frame.bytes)?;
        Some((payload.start as u32, payload.end as u32))
    }

    /// Returns a corruption of bits within a byte range.
    pub fn corruption(&self, bits: u32, within: (u32, u32), seed: Option<u64>) -> Corruption {
        Corruption {
            bits,
            within,
            seed,
            repair: self.repair,
        }
    }
}

/// Writes the target as the last parameters of a model.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.payload_only {
            f.write_str(",part=payload")?;
        }
        let checksum = if self.repair { "repair" } else { "keep" };
        write!(f, ",checksum={checksum}")
    }
}
