//! Frame metadata (arrival and length), and the length of the MAC header.

use longwire_units::Nanos;

/// Length of an Ethernet header without VLAN tags, in bytes.
pub const ETHERNET_HEADER_LEN: u32 = 14;

/// Length of one VLAN tag, in bytes.
const VLAN_TAG_LEN: u32 = 4;

/// VLAN tag types: 802.1Q, 802.1ad and its predecessor.
pub(crate) const VLAN_TYPES: [u16; 3] = [0x8100, 0x88a8, 0x9100];

/// Maximum number of VLAN tags parsed. 802.1ad allows two; some providers stack more.
const VLAN_TAGS_MAX: u32 = 4;

/// Arrival time and length of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameMeta {
    /// Arrival time at the port.
    pub arrival: Nanos,
    /// Length in bytes from the destination MAC address to the end of the payload, excluding
    /// preamble, FCS and gap.
    pub len: u32,
}

impl FrameMeta {
    /// Creates a frame's metadata.
    #[inline]
    pub const fn new(arrival: Nanos, len: u32) -> FrameMeta {
        FrameMeta { arrival, len }
    }
}

/// Returns the priority code point (IEEE 802.1Q, 9.6) of the outermost VLAN tag, or `None` if the
/// frame is untagged or truncated.
#[inline]
pub fn priority_code_point(header: &[u8]) -> Option<u8> {
    let tagged = mac_header_len(header) > ETHERNET_HEADER_LEN;
    let control = header.get(ETHERNET_HEADER_LEN as usize);
    control.filter(|_| tagged).map(|control| control >> 5)
}

/// Returns the length of the MAC header, including VLAN tags. `header` is a prefix of the frame; a
/// truncated header counts as untagged.
#[inline]
pub fn mac_header_len(header: &[u8]) -> u32 {
    let mut len = ETHERNET_HEADER_LEN;
    for _ in 0..VLAN_TAGS_MAX {
        let at = len as usize - 2;
        match header.get(at..at + 2) {
            Some([0x81, 0x00] | [0x88, 0xa8] | [0x91, 0x00]) => len += VLAN_TAG_LEN,
            _ => break,
        }
    }
    len
}
