//! ICMP errors that routers send about packets they do not forward (RFC 792; RFC 1812, section 4.3;
//! RFC 4443).

use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};

use crate::edit;
use crate::header::protocol::{ICMP, ICMP6};
use crate::header::{IpHeader, IpVersion, Piece, Transport};

/// The reason why a router does not forward a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The TTL or hop limit expired: time exceeded.
    Expired,
    /// The packet exceeds the next link's MTU in bytes: fragmentation needed (RFC 1191) or packet
    /// too big (RFC 8201).
    TooBig(u32),
}

/// Source addresses of a router's errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouterAddresses {
    /// For errors about IPv4 packets.
    pub v4: Ipv4Addr,
    /// For errors about IPv6 packets.
    pub v6: Ipv6Addr,
}

/// Maximum length of an IPv4 error, including its IP header (RFC 1812, section 4.3.2.3).
const V4_MAX: usize = 576;

/// Minimum IPv6 MTU, which limits the length of errors (RFC 4443, section 2.4 c).
const V6_MAX: usize = 1_280;

const V4_HEADER: usize = 20;
const V6_HEADER: usize = 40;
const ICMP_HEADER: usize = 8;

/// TTL and hop limit of errors, equal to the default of Linux.
const TTL: u8 = 64;

/// Precedence of errors: internetwork control (RFC 1812, section 4.3.2.5).
const CONTROL: u8 = 0xc0;

/// Group bit of a MAC address.
const GROUP: u8 = 1;

/// Writes the ICMP error about a frame to `error`: a frame back to the sender, in the same VLANs,
/// that quotes as much of the packet as allowed. Returns `false`, with an empty `error`, if no
/// error may be sent: about an ICMP error, a later fragment, a packet to or from a group, or an
/// oversized IPv4 packet that may be fragmented.
pub fn write_error(
    frame: &[u8],
    refusal: Refusal,
    router: &RouterAddresses,
    error: &mut Vec<u8>,
) -> bool {
    error.clear();
    let Some(ip) = IpHeader::parse(frame).filter(|ip| may_answer(frame, ip, refusal)) else {
        return false;
    };
    error.extend_from_slice(&frame[6..12]);
    error.extend_from_slice(&frame[..6]);
    // A group address is invalid as a source.
    error[6] &= !GROUP;
    error.extend_from_slice(&frame[12..ip.at]);
    let room = match ip.version {
        IpVersion::V4 => V4_MAX - V4_HEADER,
        IpVersion::V6 => V6_MAX - V6_HEADER,
    };
    let end = edit::packet_end(frame, &ip).min(frame.len());
    let packet = &frame[ip.at..end.max(ip.at)];
    let quote = &packet[..packet.len().min(room - ICMP_HEADER)];
    let source = ip.source_at();
    let sender = &frame[source..source + ip.version.address_len()];
    let len = (ICMP_HEADER + quote.len()) as u16;
    match ip.version {
        IpVersion::V4 => {
            let total = (V4_HEADER as u16 + len).to_be_bytes();
            // Don't Fragment is set, so no identification is needed (RFC 6864).
            error.extend_from_slice(&[0x45, CONTROL, total[0], total[1], 0, 0, 0x40, 0]);
            error.extend_from_slice(&[TTL, ICMP, 0, 0]);
            error.extend_from_slice(&router.v4.octets());
        }
        IpVersion::V6 => {
            let len = len.to_be_bytes();
            error.extend_from_slice(&[0x60, 0, 0, 0, len[0], len[1], ICMP6, TTL]);
            error.extend_from_slice(&router.v6.octets());
        }
    }
    error.extend_from_slice(sender);
    error.extend_from_slice(&icmp_header(ip.version, refusal));
    error.extend_from_slice(quote);
    edit::repair_checksums(error);
    true
}

/// Returns the first eight bytes of the error, without a checksum.
fn icmp_header(version: IpVersion, refusal: Refusal) -> [u8; ICMP_HEADER] {
    let (kind, code, mtu) = match (version, refusal) {
        (IpVersion::V4, Refusal::Expired) => (11, 0, 0),
        // The field has 16 bits, like all IPv4 lengths.
        (IpVersion::V4, Refusal::TooBig(mtu)) => (3, 4, mtu.min(u16::MAX.into())),
        (IpVersion::V6, Refusal::Expired) => (3, 0, 0),
        (IpVersion::V6, Refusal::TooBig(mtu)) => (2, 0, mtu),
    };
    let mtu = mtu.to_be_bytes();
    [kind, code, 0, 0, mtu[0], mtu[1], mtu[2], mtu[3]]
}

/// Whether a router may send an error about this packet.
fn may_answer(frame: &[u8], ip: &IpHeader, refusal: Refusal) -> bool {
    // Packet Too Big may be sent about IPv6 multicast (RFC 4443, section 2.4 e).
    let of_group = ip.version == IpVersion::V6 && matches!(refusal, Refusal::TooBig(_));
    let to_group = frame[0] & GROUP != 0 || is_group(frame, ip);
    if frame[6] & GROUP != 0 || to_group && !of_group || !is_one_host(frame, ip) {
        return false;
    }
    let must_fragment = ip.version == IpVersion::V4
        && matches!(refusal, Refusal::TooBig(_))
        && frame[ip.at + 6] & 0x40 == 0;
    // A packet with incomplete headers might itself be an error.
    ip.transport(frame).is_some_and(|transport| {
        !must_fragment && transport.piece != Piece::Later && !is_error(frame, ip, &transport)
    })
}

/// Whether the destination is not a single host.
fn is_group(frame: &[u8], ip: &IpHeader) -> bool {
    let first = frame[ip.destination_at()];
    match ip.version {
        // Multicast, class E and limited broadcast.
        IpVersion::V4 => first >= 224,
        IpVersion::V6 => first == 0xff,
    }
}

/// Whether the source is a single host on the network.
fn is_one_host(frame: &[u8], ip: &IpHeader) -> bool {
    let source = &frame[ip.source_at()..];
    match ip.version {
        IpVersion::V4 => !matches!(source[0], 0 | 127 | 224..),
        // Neither unspecified nor loopback.
        IpVersion::V6 => source[0] != 0xff && (source[..15] != [0; 15] || source[15] > 1),
    }
}

/// Whether the packet is an ICMP error or redirect. Unknown and missing types count as errors;
/// Linux applies the same rule.
fn is_error(frame: &[u8], ip: &IpHeader, transport: &Transport) -> bool {
    let kind = frame.get(transport.at).copied();
    match (ip.version, transport.protocol) {
        (IpVersion::V4, ICMP) => !matches!(kind, Some(0 | 8..=10 | 13..=18 | 42 | 43)),
        (IpVersion::V6, ICMP6) => !matches!(kind, Some(128..=136 | 138..)),
        _ => false,
    }
}
