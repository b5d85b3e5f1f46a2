//! ICMP errors, as a router sends them to the source of a packet that it does not forward
//! (RFC 792, RFC 1812, section 4.3, and RFC 4443).

use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};

use crate::edit;
use crate::header::{IpHeader, IpVersion, Piece, Transport};

/// Why a router does not forward a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its time to live or hop limit has expired: time exceeded.
    Expired,
    /// It is longer than the MTU of the next link, in bytes: fragmentation needed (RFC 1191)
    /// or packet too big (RFC 8201).
    TooBig(u32),
}

/// The addresses from which a router sends errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouterAddresses {
    /// About IPv4 packets.
    pub v4: Ipv4Addr,
    /// About IPv6 packets.
    pub v6: Ipv6Addr,
}

/// An IPv4 error has at most this many bytes, with its IP header (RFC 1812, section 4.3.2.3).
const V4_MAX: usize = 576;

/// The minimum MTU of IPv6, which no IPv6 error exceeds (RFC 4443, section 2.4 c).
const V6_MAX: usize = 1_280;

const V4_HEADER: usize = 20;
const V6_HEADER: usize = 40;
const ICMP_HEADER: usize = 8;
const ICMP4: u8 = 1;
const ICMP6: u8 = 58;

/// The time to live and the hop limit of an error, as of Linux.
const TTL: u8 = 64;

/// Internetwork control, the precedence of errors (RFC 1812, section 4.3.2.5).
const CONTROL: u8 = 0xc0;

/// The bit of a MAC address that more than one station may have.
const GROUP: u8 = 1;

/// Writes the ICMP error about a frame that a router does not forward to `error`: a frame
/// back to its sender, in the same VLANs, with as much of the packet as an error may quote.
/// Returns `false`, and leaves `error` empty, where a router must not send one: about an ICMP
/// error, a later fragment, a packet to or from a group, and an IPv4 packet that is too big
/// and may be fragmented.
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
    // A group is no source.
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
            // Not to be fragmented, so that it needs no identification (RFC 6864).
            error.extend_from_slice(&[0x45, CONTROL, total[0], total[1], 0, 0, 0x40, 0]);
            error.extend_from_slice(&[TTL, ICMP4, 0, 0]);
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

/// Returns the first eight bytes, with no checksum yet.
fn icmp_header(version: IpVersion, refusal: Refusal) -> [u8; ICMP_HEADER] {
    let (kind, code, mtu) = match (version, refusal) {
        (IpVersion::V4, Refusal::Expired) => (11, 0, 0),
        // The field has 16 bits, as every length of IPv4.
        (IpVersion::V4, Refusal::TooBig(mtu)) => (3, 4, mtu.min(u16::MAX.into())),
        (IpVersion::V6, Refusal::Expired) => (3, 0, 0),
        (IpVersion::V6, Refusal::TooBig(mtu)) => (2, 0, mtu),
    };
    let mtu = mtu.to_be_bytes();
    [kind, code, 0, 0, mtu[0], mtu[1], mtu[2], mtu[3]]
}

/// Whether a router sends an error about this packet.
fn may_answer(frame: &[u8], ip: &IpHeader, refusal: Refusal) -> bool {
    // An IPv6 packet to a group that is too big is answered (RFC 4443, section 2.4 e).
    let of_group = ip.version == IpVersion::V6 && matches!(refusal, Refusal::TooBig(_));
    let to_group = frame[0] & GROUP != 0 || is_group(frame, ip);
    if frame[6] & GROUP != 0 || to_group && !of_group || !is_one_host(frame, ip) {
        return false;
    }
    let must_fragment = ip.version == IpVersion::V4
        && matches!(refusal, Refusal::TooBig(_))
        && frame[ip.at + 6] & 0x40 == 0;
    // Without all headers it might be an error itself.
    ip.transport(frame).is_some_and(|transport| {
        !must_fragment && transport.piece != Piece::Later && !is_error(frame, ip, &transport)
    })
}

/// Whether the destination is a group, or no address of a host.
fn is_group(frame: &[u8], ip: &IpHeader) -> bool {
    let first = frame[ip.destination_at()];
    match ip.version {
        // Multicast, the reserved class E and the limited broadcast.
        IpVersion::V4 => first >= 224,
        IpVersion::V6 => first == 0xff,
    }
}

/// Whether the source is the address of one host on the network.
fn is_one_host(frame: &[u8], ip: &IpHeader) -> bool {
    let source = &frame[ip.source_at()..];
    match ip.version {
        IpVersion::V4 => !matches!(source[0], 0 | 127 | 224..),
        // Neither the unspecified address nor the loopback address.
        IpVersion::V6 => source[0] != 0xff && (source[..15] != [0; 15] || source[15] > 1),
    }
}

/// Whether the packet is an ICMP error or a redirect; as Linux does, also if its type is not
/// known or not there.
fn is_error(frame: &[u8], ip: &IpHeader, transport: &Transport) -> bool {
    let kind = frame.get(transport.at).copied();
    match (ip.version, transport.protocol) {
        (IpVersion::V4, ICMP4) => !matches!(kind, Some(0 | 8..=10 | 13..=18 | 42 | 43)),
        (IpVersion::V6, ICMP6) => !matches!(kind, Some(128..=136 | 138..)),
        _ => false,
    }
}
