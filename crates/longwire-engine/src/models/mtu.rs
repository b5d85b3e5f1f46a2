//! MTU: the maximum payload after the MAC header, and the treatment of longer frames.

use alloc::vec::Vec;
use core::fmt;

use longwire_packet::fragment::fragment;
use longwire_packet::frame::{ETHERNET_HEADER_LEN, mac_header_len};
use longwire_units::parse_count;

use crate::models::{Entry, Kind, PartModel};
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};

/// A link's MTU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mtu {
    /// No limit.
    #[default]
    None,
    /// Drops frames with a longer payload.
    Drop(u32),
    /// Fragments longer IPv4 packets that allow it (RFC 791, section 3.2); drops all other
    /// longer frames.
    Fragment(u32),
}

impl Mtu {
    /// Returns the maximum number of bytes after the MAC header.
    #[inline]
    pub fn bytes(self) -> Option<u32> {
        match self {
            Mtu::None => None,
            Mtu::Drop(bytes) | Mtu::Fragment(bytes) => Some(bytes),
        }
    }

    /// Whether a frame of `len` bytes is too long. `header` is a prefix of it.
    #[inline]
    pub fn is_exceeded(self, len: u32, header: &[u8]) -> bool {
        // Most frames fit even without counting their tags.
        self.bytes().is_some_and(|mtu| {
            len > mtu.saturating_add(ETHERNET_HEADER_LEN)
                && len > mtu.saturating_add(mac_header_len(header))
        })
    }

    /// Fragments a frame that must be offered in fragments, passing each to `take`; returns
    /// `false` if the frame must be offered unchanged. `piece` is scratch memory.
    #[inline]
    pub(crate) fn fragment(
        self,
        frame: &[u8],
        piece: &mut Vec<u8>,
        take: impl FnMut(&[u8]),
    ) -> bool {
        match self {
            Mtu::Fragment(mtu) if self.is_exceeded(frame.len() as u32, frame) => {
                fragment(frame, mtu, piece, take).is_some()
            }
            _ => false,
        }
    }
}

impl PartModel for Mtu {}

impl fmt::Display for Mtu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mtu::None => f.write_str("none"),
            Mtu::Drop(bytes) => bytes.fmt(f),
            Mtu::Fragment(bytes) => write!(f, "fragment:bytes={bytes}"),
        }
    }
}

/// From the minimum MTU of an IPv4 link (RFC 791, section 3.2) to the maximum IP packet.
const BYTES: Param = Param::new("bytes", Unit::Count)
    .within(
        "68",
        "65535",
        "68..65535 bytes after the MAC header; write 'none' for no limit",
    )
    .help("maximum payload after the Ethernet header, 68 to 65535 bytes");

fn bytes(arguments: &Arguments<'_>) -> Result<u32, SpecError> {
    let bytes = arguments.read(BYTES.name, parse_count)?;
    Ok(bytes as u32)
}

/// MTU policies.
pub static KIND: Kind<Mtu> = Kind {
    name: "mtu",
    example: "1500",
    entries: &[
        Entry {
            info: &ModelInfo {
                name: "drop",
                summary: "drops longer frames, like a switch",
                params: &[BYTES],
            },
            build: |arguments| bytes(arguments).map(Mtu::Drop),
        },
        Entry {
            info: &ModelInfo {
                name: "fragment",
                summary: "fragments longer IPv4 packets without DF (RFC 791), like a router; \
                          drops other longer frames",
                params: &[BYTES],
            },
            build: |arguments| bytes(arguments).map(Mtu::Fragment),
        },
        Entry {
            info: &ModelInfo {
                name: "none",
                summary: "no limit on frame length",
                params: &[],
            },
            build: |_| Ok(Mtu::None),
        },
    ],
};
