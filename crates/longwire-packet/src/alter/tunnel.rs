//! Finds packets in tunnels: IP in IP, GRE, VXLAN, Geneve, GTP-U, L2TP and others.

use super::layers::{Content, Found, LinkLayer, Walk, next_protocol};
use super::unaltered::Unaltered;
use crate::bytes::word;
use crate::header::{IpVersion, Piece, Transport};

/// Content that may include a packet at an unknown offset.
const UNKNOWN: Option<LinkLayer> = Some(LinkLayer::Content(Content::Other(Unaltered::Unknown)));

/// Content without addresses.
const CONTROL: Option<LinkLayer> = Some(LinkLayer::Content(Content::Other(Unaltered::Control)));

/// Finds the inner packet of a tunnel packet. Returns `None` if `packet` is not a tunnel packet or
/// is truncated before the inner packet.
#[inline]
pub(super) fn inside(packet: &[u8], transport: &Transport) -> Option<Found> {
    if transport.piece == Piece::Later {
        return None;
    }
    match transport.protocol {
        // Most common protocols first.
        1 | 6 | 58 => None,
        17 => {
            let port = word(packet, transport.at + 2)?;
            UDP_PORTS
                .contains(&port)
                .then(|| walk(packet, transport.at + 8, |walk| of_port(walk, port)))?
        }
        protocol => walk(packet, transport.at, |walk| of_protocol(walk, protocol)),
    }
}

/// Parses headers, from the one returned by `first` to the content.
fn walk(
    packet: &[u8],
    at: usize,
    first: impl FnOnce(&mut Walk<'_>) -> Option<LinkLayer>,
) -> Option<Found> {
    let mut walk = Walk::new(packet, at);
    let layer = first(&mut walk)?;
    let is_there = walk.at < packet.len();
    is_there.then(|| walk.content(layer))
}

fn of_protocol(walk: &mut Walk<'_>, protocol: u8) -> Option<LinkLayer> {
    match protocol {
        4 => Some(LinkLayer::Ip(IpVersion::V4)),
        41 => Some(LinkLayer::Ip(IpVersion::V6)),
        47 => gre(walk),
        // EtherIP (RFC 3378); Ethernet in SRv6 (RFC 8986); MPLS in IP (RFC 4023).
        97 => walk.take::<2>().map(|_| LinkLayer::Ethernet),
        143 => Some(LinkLayer::Ethernet),
        137 => Some(LinkLayer::Mpls),
        // Minimal encapsulation; L2TPv3, whose cookie length is known only to its endpoints.
        55 | 115 => UNKNOWN,
        _ => None,
    }
}

/// UDP ports of L2TP, GTP-U, Teredo, LISP, VXLAN, VXLAN-GPE, CAPWAP, GUE, Geneve, MPLS, Linux's
/// original VXLAN and TZSP.
const UDP_PORTS: [u16; 12] = [
    1_701, 2_152, 3_544, 4_341, 4_789, 4_790, 5_247, 6_080, 6_081, 6_635, 8_472, 37_008,
];

fn of_port(walk: &mut Walk<'_>, port: u16) -> Option<LinkLayer> {
    match port {
        1_701 => l2tp(walk),
        2_152 => gtp(walk),
        4_341 => walk.take::<8>().map(|_| LinkLayer::AnyIp),
        4_789 | 8_472 => walk.take::<8>().map(|_| LinkLayer::Ethernet),
        4_790 => {
            const HAS_NEXT: u8 = 4;
            let [flags, _, _, next, ..] = walk.take::<8>()?;
            Some(match flags & HAS_NEXT {
                0 => LinkLayer::Ethernet,
                _ => next_protocol(next),
            })
        }
        6_081 => {
            let [len, _, high, low, ..] = walk.take::<8>()?;
            walk.at += usize::from(len & 0x3f) * 4;
            Some(LinkLayer::Type(u16::from_be_bytes([high, low])))
        }
        6_635 => Some(LinkLayer::Mpls),
        _ => UNKNOWN,
    }
}

/// Parses GRE (RFC 2784, RFC 2890), its PPTP variant (RFC 2637), and ERSPAN.
fn gre(walk: &mut Walk<'_>) -> Option<LinkLayer> {
    const CHECKSUM: u8 = 0x80;
    const ROUTING: u8 = 0x40;
    const KEY: u8 = 0x20;
    const SEQUENCE: u8 = 0x10;
    const ACKNOWLEDGEMENT: u8 = 0x80;
    let [flags, version, high, low] = walk.take()?;
    if flags & ROUTING != 0 {
        return UNKNOWN;
    }
    let options = (flags & (CHECKSUM | KEY | SEQUENCE)).count_ones()
        + u32::from(version & 7 == 1 && version & ACKNOWLEDGEMENT != 0);
    walk.at += options as usize * 4;
    match u16::from_be_bytes([high, low]) {
        // ERSPAN types I and II, and type III with its optional subheader.
        0x88be => {
            if flags & SEQUENCE != 0 {
                walk.take::<8>()?;
            }
            Some(LinkLayer::Ethernet)
        }
        0x22eb => {
            let [.., last] = walk.take::<12>()?;
            walk.at += usize::from(last & 1) * 8;
            Some(LinkLayer::Ethernet)
        }
        // WCCP; version 2 has four additional bytes.
        0x883e => {
            let [first, ..] = walk.take::<4>()?;
            walk.at -= if first >> 4 == 4 { 4 } else { 0 };
            Some(LinkLayer::Ip(IpVersion::V4))
        }
        // NHRP, which contains addresses; keepalives.
        0x2001 => UNKNOWN,
        0 => None,
        kind => Some(LinkLayer::Type(kind)),
    }
}

/// Parses GTP-U (3GPP TS 29.281): a user packet or a control message.
fn gtp(walk: &mut Walk<'_>) -> Option<LinkLayer> {
    const USER_PACKET: u8 = 255;
    const END_MARKER: u8 = 254;
    const OPTIONAL: u8 = 7;
    const HAS_EXTENSIONS: u8 = 4;
    let from = walk.at + 8;
    let [flags, kind, ..] = walk.take::<8>()?;
    // GTP version 1, excluding GTP'.
    if flags >> 4 != 3 {
        return UNKNOWN;
    }
    match kind {
        USER_PACKET => {}
        1 | 2 | END_MARKER => return None,
        // An error indication includes a node's address.
        _ => return UNKNOWN,
    }
    walk.note_length(from - 6, from);
    if flags & OPTIONAL != 0 {
        let [.., mut next] = walk.take::<4>()?;
        while flags & HAS_EXTENSIONS != 0 && next != 0 {
            let [words] = walk.take()?;
            if words == 0 {
                return UNKNOWN;
            }
            walk.at += usize::from(words) * 4 - 2;
            [next] = walk.take()?;
        }
    }
    any_content(walk)
}

/// Guesses whether the content is IP or Ethernet from the first nibble.
fn any_content(walk: &mut Walk<'_>) -> Option<LinkLayer> {
    match walk.ip_version()? {
        Some(version) => Some(LinkLayer::Ip(version)),
        None if walk.fits_ethernet(0) => Some(LinkLayer::Ethernet),
        None => UNKNOWN,
    }
}

/// Parses L2TP (RFC 2661). In version 3, only the endpoints know the offset of the content.
fn l2tp(walk: &mut Walk<'_>) -> Option<LinkLayer> {
    const CONTROL_MESSAGE: u8 = 0x80;
    const LENGTH: u8 = 0x40;
    const SEQUENCE: u8 = 8;
    const OFFSET: u8 = 2;
    let start = walk.at;
    let [flags, version] = walk.take()?;
    if version & 15 != 2 {
        return UNKNOWN;
    }
    if flags & CONTROL_MESSAGE != 0 {
        return CONTROL;
    }
    if flags & LENGTH != 0 {
        walk.note_length(walk.at, start);
        walk.take::<2>()?;
    }
    // Tunnel and session ID; sequence numbers.
    walk.take::<4>()?;
    if flags & SEQUENCE != 0 {
        walk.take::<4>()?;
    }
    if flags & OFFSET != 0 {
        walk.at += usize::from(u16::from_be_bytes(walk.take()?));
    }
    Some(LinkLayer::Ppp)
}
