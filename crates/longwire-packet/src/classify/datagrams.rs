//! Ports of fragmented datagrams.

use longwire_units::random::absorb;

use crate::flow::{Ends, FlowTable, ports};
use crate::frame::mac_header_len;
use crate::header::{IpHeader, IpVersion, Piece};

/// Ports of the last 65,536 fragmented datagrams, so that later fragments match the same rule as
/// the first. Allocates 1 MiB at the first fragment.
#[derive(Clone, Debug, Default)]
pub struct DatagramPorts {
    known: Option<FlowTable<(u16, u16)>>,
}

impl DatagramPorts {
    /// Returns a later fragment's ports if its first fragment is known; records those of a first
    /// fragment. Call it for every frame, in arrival order.
    #[inline]
    pub fn of_later(&mut self, frame: &[u8]) -> Option<(u16, u16)> {
        let at = mac_header_len(frame) as usize;
        let field = frame.get(at + 6..at + 8)?;
        match frame[at - 2..at] {
            // More fragments, or a non-zero offset.
            [0x08, 0x00] if field[0] & 0x3f != 0 || field[1] != 0 => {
                self.of_fragment(frame, at, IpVersion::V4)
            }
            // Options or routing may precede the fragment header.
            [0x86, 0xdd] if matches!(field[0], 0 | 43 | 44 | 60) => {
                self.of_fragment(frame, at, IpVersion::V6)
            }
            _ => None,
        }
    }

    #[cold]
    fn of_fragment(&mut self, frame: &[u8], at: usize, version: IpVersion) -> Option<(u16, u16)> {
        let ip = IpHeader::parse_at(frame, at, version)?;
        let transport = ip.transport(frame)?;
        if transport.piece == Piece::Whole {
            return None;
        }
        let ends = Ends::of_datagram(frame, &ip, &transport)?;
        let key = absorb(ends.there(), transport.protocol.into());
        if transport.piece == Piece::Later {
            return self.known.as_mut()?.get(key);
        }
        let first = ports(frame, &transport)?;
        let known = self.known.get_or_insert_with(FlowTable::new);
        known.put(key, first);
        None
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use longwire_testbed::support::frames::{ethernet, ipv6, udp4};

    use super::DatagramPorts;

    /// Returns a fragment of a UDP datagram from port 5000 to `port`.
    fn v4(number: u16, field: u16, port: u16) -> Vec<u8> {
        let mut frame = udp4([10, 0, 0, 1], [10, 0, 0, 2], (5_000, port), &[]);
        frame[18..20].copy_from_slice(&number.to_be_bytes());
        frame[20..22].copy_from_slice(&field.to_be_bytes());
        frame
    }

    fn v6(number: u8, field: u16, port: u16) -> Vec<u8> {
        let [high, low] = field.to_be_bytes();
        let fragment = [0, 0, high, low, 0, 0, 0, number];
        let headers: [(u8, &[u8]); 2] = [(0, &[0, 0, 1, 4, 0, 0, 0, 0]), (44, &fragment)];
        let datagram = udp4([0; 4], [0; 4], (5_000, port), &[]).split_off(34);
        ethernet(&[], 0x86dd, &ipv6(0, &headers, 17, &datagram))
    }

    #[test]
    fn later_fragments_get_the_ports_of_the_first() {
        let mut known = DatagramPorts::default();
        let frames = [
            (v4(7, 0x2003, 1), None),
            (v4(7, 0x2000, 53), None),
            (v4(8, 0x2000, 80), None),
            (v4(7, 0x2003, 1), Some((5_000, 53))),
            (v4(8, 0x0006, 1), Some((5_000, 80))),
            (v4(7, 0x0006, 1), Some((5_000, 53))),
            (v4(9, 0x0006, 1), None),
            (v4(7, 0, 53), None),
            (v6(7, 1, 53), None),
            (v6(7, 9, 1), Some((5_000, 53))),
            (v6(8, 8, 1), None),
            // The identification is reused.
            (v4(7, 0x2000, 443), None),
            (v4(7, 0x0006, 1), Some((5_000, 443))),
        ];
        for (index, (frame, ports)) in frames.iter().enumerate() {
            assert_eq!(known.of_later(frame), *ports, "{index}");
        }
        for (frame, _) in &frames {
            for len in 0..frame.len() {
                DatagramPorts::default().of_later(&frame[..len]);
            }
        }
    }

    #[test]
    fn the_table_is_bounded_and_keeps_the_latest() {
        let mut known = DatagramPorts::default();
        for number in 0..u16::MAX {
            known.of_later(&v4(number, 0x2000, number));
        }
        let found = (u16::MAX - 1_000..u16::MAX)
            .filter(|number| known.of_later(&v4(*number, 0x0006, 1)) == Some((5_000, *number)));
        assert_eq!(found.count(), 1_000);
    }
}
