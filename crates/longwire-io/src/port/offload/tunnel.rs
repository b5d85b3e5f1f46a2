//! Tunnelled packets: VXLAN, Geneve, GUE, FOU, GRE, IP in IP, MPLS.
//!
//! A sender leaves checksum and segmentation of the *inner* packet to the device, and completes the
//! outer headers, except for the lengths and checksums of wire frames. Neither a virtio-net header
//! nor an XDP program reports a tunnel, and users choose the UDP ports of tunnels. So every
//! possible tunnel is tried, and the inner packet must end where the outer one does.

use longwire_packet::frame::mac_header_len;

use super::checksum::{self, Sum, pseudo_header};
use super::headers::{Headers, IPV4, IPV6, IpHeader, be16};
use super::segments::{put_len, write_network_header};

/// Maximum number of outer IP headers.
const DEPTH: usize = 3;

/// EtherType for an Ethernet frame in a tunnel (transparent Ethernet bridging).
const ETHERNET: u16 = 0x6558;
/// EtherTypes for MPLS.
const MPLS: [u16; 2] = [0x8847, 0x8848];

/// Protocol numbers.
const IPV4_IN_IP: u8 = 4;
const UDP: u8 = 17;
const IPV6_IN_IP: u8 = 41;
const GRE: u8 = 47;
const MPLS_IN_IP: u8 = 137;

/// GRE header flags (RFC 2784, RFC 2890): checksum, key, sequence number.
const GRE_CHECKSUM: u16 = 0x8000;
const GRE_KEY: u16 = 0x2000;
const GRE_SEQUENCE: u16 = 0x1000;

/// A tunnel's content: its EtherType and the offset of its header.
type Content = (u16, usize);

/// Outer IP headers, outermost first.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::port) struct Tunnels {
    around: [Option<IpHeader>; DEPTH],
}

impl Tunnels {
    fn with(mut self, ip: IpHeader) -> Option<Tunnels> {
        *self.around.iter_mut().find(|slot| slot.is_none())? = Some(ip);
        Some(self)
    }

    fn innermost_first(&self) -> impl Iterator<Item = &IpHeader> {
        self.around.iter().rev().flatten()
    }

    /// Returns whether wire frames can be cut. They cannot if GRE numbers its packets, because all
    /// segments would share one number.
    pub(super) fn can_cut(&self, frame: &[u8]) -> bool {
        !self.around.iter().flatten().any(|ip: &IpHeader| {
            ip.protocol == GRE
                && be16(frame, ip.transport_at).is_none_or(|flags| flags & GRE_SEQUENCE != 0)
        })
    }

    /// Returns whether the checksums around a packet are valid once its checksum at `inner` is
    /// completed. Only then did the sender leave it partial.
    pub(super) fn agree(&self, frame: &[u8], inner: InnerBytes) -> bool {
        self.around.iter().flatten().all(|ip| {
            let Some(at) = checksum_at(frame, ip) else {
                return true;
            };
            be16(frame, at) == Some(0) && ip.protocol == UDP
                || sum_around(frame, ip, inner).fold() == 0xffff
        })
    }

    /// Writes the headers around a train's piece: lengths, IPv4 identification and checksums.
    pub(super) fn write(&self, frame: &mut [u8], inner: InnerBytes, segment: usize) {
        for ip in self.innermost_first() {
            let ip = IpHeader {
                end: frame.len(),
                ..*ip
            };
            if ip.protocol == UDP {
                put_len(frame, ip.transport_at + 4, ip.end - ip.transport_at);
            }
            if let Some(at) = checksum_at(frame, &ip)
                && (ip.protocol != UDP || be16(frame, at) != Some(0))
            {
                frame[at..at + 2].fill(0);
                checksum::put_checksum(frame, at, !sum_around(frame, &ip, inner).fold());
            }
            write_network_header(frame, &ip, segment);
        }
    }
}

/// The bytes from a transport header to the end of the frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct InnerBytes {
    pub(super) start: usize,
    /// The sum of these bytes with a complete checksum.
    pub(super) sum: u16,
}

/// Returns the position of a tunnel header's checksum.
fn checksum_at(frame: &[u8], ip: &IpHeader) -> Option<usize> {
    let at = ip.transport_at;
    match ip.protocol {
        UDP => Some(at + 6),
        GRE if be16(frame, at)? & GRE_CHECKSUM != 0 => Some(at + 4),
        _ => None,
    }
}

/// Returns the sum that the checksum after `ip` covers.
fn sum_around(frame: &[u8], ip: &IpHeader, inner: InnerBytes) -> Sum {
    let sum = match ip.protocol {
        UDP => pseudo_header(ip, frame, ip.end - ip.transport_at),
        _ => Sum::default(),
    };
    sum.add(&frame[ip.transport_at..inner.start])
        .add_number(inner.sum)
}

/// Returns the first TCP or UDP headers in `frame` for which `fit` holds, with the tunnels around
/// them; `None` if wire frames cannot be cut from these tunnels.
pub(in crate::port) fn find_inner(
    frame: &[u8],
    fit: impl Fn(&Headers) -> bool,
) -> Option<(Headers, Tunnels)> {
    search(frame, |ip, tunnels| {
        let headers = Headers::within(ip, frame).filter(&fit)?;
        tunnels.can_cut(frame).then_some((headers, *tunnels))
    })
}

/// Passes each IP header in `frame`, with the tunnels around it, to `look`, inner headers first,
/// until `look` returns a value.
pub(super) fn search<T>(
    frame: &[u8],
    mut look: impl FnMut(&IpHeader, &Tunnels) -> Option<T>,
) -> Option<T> {
    descend(frame, (ETHERNET, 0), &Tunnels::default(), &mut look)
}

fn descend<T>(
    frame: &[u8],
    content: Content,
    tunnels: &Tunnels,
    look: &mut dyn FnMut(&IpHeader, &Tunnels) -> Option<T>,
) -> Option<T> {
    let (kind, at) = below_ip(frame, content)?;
    let ip = IpHeader::parse(frame, kind, at)?;
    let ends_inside = ip.transport_at <= ip.end && ip.end <= frame.len();
    let outer = tunnels.innermost_first().next();
    if !ends_inside || outer.is_some_and(|outer| outer.end != ip.end) {
        return None;
    }
    if let Some(inside) = tunnels.with(ip) {
        let mut carried = contents(frame, &ip).into_iter().flatten();
        if let found @ Some(_) = carried.find_map(|one| descend(frame, one, &inside, look)) {
            return found;
        }
    }
    look(&ip, tunnels)
}

/// Skips Ethernet and MPLS headers and returns their content.
fn below_ip(frame: &[u8], (mut kind, mut at): Content) -> Option<Content> {
    if kind == ETHERNET {
        at += mac_header_len(frame.get(at..)?) as usize;
        kind = be16(frame, at.checked_sub(2)?)?;
    }
    if MPLS.contains(&kind) {
        // The bottom-of-stack bit is the last bit of a label's third byte.
        while frame.get(at + 2)? & 1 == 0 {
            at += 4;
        }
        return ip_at(frame, at + 4);
    }
    Some((kind, at))
}

/// Returns the packets that the protocol after an IP header may carry.
fn contents(frame: &[u8], ip: &IpHeader) -> [Option<Content>; 5] {
    if ip.protocol == UDP {
        let readers = [ip_at, gre, gue, vxlan, geneve];
        return readers.map(|read| read(frame, ip.transport_at + 8));
    }
    let mut found = [None; 5];
    found[0] = behind_ip(frame, ip.protocol, ip.transport_at);
    found
}

/// Returns the packet inside an IP protocol that is always a tunnel.
fn behind_ip(frame: &[u8], protocol: u8, at: usize) -> Option<Content> {
    match protocol {
        IPV4_IN_IP => Some((IPV4, at)),
        IPV6_IN_IP => Some((IPV6, at)),
        MPLS_IN_IP => Some((MPLS[0], at)),
        GRE => gre(frame, at),
        _ => None,
    }
}

/// Returns an IP packet identified by its version, for FOU and MPLS labels.
fn ip_at(frame: &[u8], at: usize) -> Option<Content> {
    match frame.get(at)? >> 4 {
        4 => Some((IPV4, at)),
        6 => Some((IPV6, at)),
        _ => None,
    }
}

fn gre(frame: &[u8], at: usize) -> Option<Content> {
    let flags = be16(frame, at)?;
    let optional = [GRE_CHECKSUM, GRE_KEY, GRE_SEQUENCE];
    if flags & !(GRE_CHECKSUM | GRE_KEY | GRE_SEQUENCE) != 0 {
        return None;
    }
    let words = optional.iter().filter(|flag| flags & **flag != 0).count();
    Some((be16(frame, at + 2)?, at + 4 + 4 * words))
}

/// Parses Generic UDP Encapsulation, version 0 (draft-ietf-intarea-gue).
fn gue(frame: &[u8], at: usize) -> Option<Content> {
    const CONTROL: u8 = 0x20;
    let first = *frame.get(at)?;
    if first >> 6 != 0 || first & CONTROL != 0 {
        return None;
    }
    let words = usize::from(first & 0x1f);
    behind_ip(frame, *frame.get(at + 1)?, at + 4 + 4 * words)
}

/// Parses VXLAN (RFC 7348) and VXLAN-GPE (draft-ietf-nvo3-vxlan-gpe).
fn vxlan(frame: &[u8], at: usize) -> Option<Content> {
    const HAS_NETWORK: u8 = 0x08;
    const HAS_PROTOCOL: u8 = 0x04;
    let header = frame.get(at..at + 8)?;
    let inner = at + 8;
    match (header[0] & HAS_NETWORK != 0, header[0] & HAS_PROTOCOL != 0) {
        (true, false) => Some((ETHERNET, inner)),
        (true, true) => match header[3] {
            1 => Some((IPV4, inner)),
            2 => Some((IPV6, inner)),
            3 => Some((ETHERNET, inner)),
            5 => Some((MPLS[0], inner)),
            _ => None,
        },
        (false, _) => None,
    }
}

/// Parses Geneve (RFC 8926).
fn geneve(frame: &[u8], at: usize) -> Option<Content> {
    let header = frame.get(at..at + 8)?;
    let kind = be16(header, 2)?;
    if header[0] >> 6 != 0 || header[1] & 0x3f != 0 || ![ETHERNET, IPV4, IPV6].contains(&kind) {
        return None;
    }
    let words = usize::from(header[0] & 0x3f);
    Some((kind, at + 8 + 4 * words))
}
