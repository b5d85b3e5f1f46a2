//! Transport payload.

use core::ops::Range;

use crate::bytes::word;
use crate::edit::packet_end;
use crate::header::protocol::{ICMP, ICMP6, SCTP, TCP, UDP, UDP_LITE};
use crate::header::{IpHeader, Piece, Transport};

/// Returns the available payload after the TCP, UDP, UDP-Lite, SCTP, ICMP or ICMPv6 header. VLAN
/// tags and IPv6 extension headers are skipped; tunnels are not. For a later fragment, returns
/// everything after the IP headers. Returns `None` for other frames and for packets without
/// payload. Padding after the packet is excluded.
pub fn transport_payload(bytes: &[u8]) -> Option<Range<usize>> {
    let ip = IpHeader::parse(bytes)?;
    let transport = ip.transport(bytes)?;
    let packet_end = packet_end(bytes, &ip).min(bytes.len());
    let (start, end) = match transport.piece {
        Piece::Later => (transport.at, packet_end),
        Piece::Whole | Piece::First => inside_transport(bytes, &transport, packet_end)?,
    };
    (start < end).then_some(start..end)
}

/// Returns the payload of a packet that ends at `packet_end`.
fn inside_transport(
    bytes: &[u8],
    transport: &Transport,
    packet_end: usize,
) -> Option<(usize, usize)> {
    let header = bytes.get(transport.at..packet_end)?;
    let len = match transport.protocol {
        TCP => 4 * usize::from(header.get(12)? >> 4),
        UDP | UDP_LITE | ICMP | ICMP6 => 8,
        SCTP => 12,
        _ => return None,
    };
    let least = if transport.protocol == TCP { 20 } else { len };
    if len < least {
        return None;
    }
    let end = match transport.protocol {
        UDP => datagram_end(header, transport.at, packet_end)?,
        _ => packet_end,
    };
    Some((transport.at + len, end))
}

/// Returns the end of the UDP datagram at `at`, at most `packet_end` for fragments. A length of
/// zero means the whole packet.
fn datagram_end(header: &[u8], at: usize, packet_end: usize) -> Option<usize> {
    match word(header, 4)? {
        0 => Some(packet_end),
        1..8 => None,
        len => Some(packet_end.min(at + usize::from(len))),
    }
}
