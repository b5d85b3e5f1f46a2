//! MTU: the maximum payload after the MAC header, and the policy for longer frames.

use longwire_packet::fragment::fragment;
use longwire_packet::frame::{ETHERNET_HEADER_LEN, mac_header_len};
use longwire_units::parse_count;

use crate::models::prelude::*;

/// A link's MTU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mtu {
    /// No limit.
    #[default]
    None,
    /// Drops frames with a longer payload.
    Drop(u32),
    /// Fragments longer IPv4 packets if they allow it (RFC 791, section 3.2); drops other longer
    /// frames.
    Fragment(u32),
}

impl Mtu {
    /// Returns the maximum payload after the MAC header, in bytes.
    #[inline]
    pub fn bytes(self) -> Option<u32> {
        match self {
            Mtu::None => None,
            Mtu::Drop(bytes) | Mtu::Fragment(bytes) => Some(bytes),
        }
    }

    /// Whether a frame of `len` bytes exceeds the MTU. `header` is a prefix of the frame.
    #[inline]
    pub fn is_exceeded(self, len: u32, header: &[u8]) -> bool {
        // Most frames fit even if their VLAN tags count as payload.
        self.bytes().is_some_and(|mtu| {
            len > mtu.saturating_add(ETHERNET_HEADER_LEN)
                && len > mtu.saturating_add(mac_header_len(header))
        })
    }
}

impl fmt::Display for Mtu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mtu::None => f.write_str("none"),
            Mtu::Drop(bytes) => bytes.fmt(f),
            Mtu::Fragment(bytes) => write!(f, "fragment:bytes={bytes}"),
        }
    }
}

/// From the minimum MTU of an IPv4 link (RFC 791, section 3.2) to the maximum IP packet length.
const BYTES: Param = Param::new("bytes", Unit::Count)
    .within(
        "68",
        "65535",
        "68..65535 bytes after the Ethernet header; write 'none' for no limit",
    )
    .help("maximum payload after the Ethernet header, 68 to 65535 bytes");

fn bytes(arguments: &Arguments<'_>) -> Result<u32, SpecError> {
    let bytes = arguments.read(BYTES.name, parse_count)?;
    Ok(bytes as u32)
}

/// The fragments of one frame. Memory is reused between frames.
///
/// ```
/// use longwire_engine::{Fragments, models::mtu::Mtu};
///
/// let mut fragments = Fragments::default();
/// let frame = [0; 1_514];
/// // Without an MTU, frames are offered unchanged.
/// assert!(!fragments.cut(Mtu::None, &frame));
/// ```
#[derive(Debug, Default)]
pub struct Fragments {
    bytes: Vec<u8>,
    /// End of each fragment in `bytes`.
    ends: Vec<usize>,
    /// Scratch buffer.
    piece: Vec<u8>,
}

impl Fragments {
    /// Fragments a frame that exceeds a fragmenting MTU. Returns `false` if the frame should be
    /// offered unchanged.
    #[inline]
    pub fn cut(&mut self, mtu: Mtu, frame: &[u8]) -> bool {
        match mtu {
            Mtu::Fragment(bytes) if mtu.is_exceeded(frame.len() as u32, frame) => {
                self.cut_long(bytes, frame)
            }
            _ => false,
        }
    }

    #[cold]
    fn cut_long(&mut self, mtu: u32, frame: &[u8]) -> bool {
        let Fragments { bytes, ends, piece } = self;
        bytes.clear();
        ends.clear();
        let cut = fragment(frame, mtu, piece, |fragment| {
            bytes.extend_from_slice(fragment);
            ends.push(bytes.len());
        });
        cut.is_some()
    }

    /// Returns the last frame's fragments, in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = core::iter::once(0).chain(self.ends.iter().copied());
        let ranges = starts.zip(&self.ends);
        ranges.map(|(start, end)| &self.bytes[start..*end])
    }
}

/// MTU policies.
pub static KIND: Kind<Mtu> = Kind {
    name: "mtu",
    example: "1500",
    entries: &[
        Entry::new(
            "drop",
            "drops longer frames, like a switch",
            &[BYTES],
            |arguments| bytes(arguments).map(Mtu::Drop),
        ),
        Entry::new(
            "fragment",
            "fragments longer IPv4 packets without DF (RFC 791), like a router; drops other longer \
             frames",
            &[BYTES],
            |arguments| bytes(arguments).map(Mtu::Fragment),
        ),
        Entry::new("none", "no limit on frame length", &[], |_| Ok(Mtu::None)),
    ],
};
