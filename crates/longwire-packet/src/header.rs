//! The fields of a frame's IP header that models read or change.

use crate::frame::mac_header_len;

/// Explicit congestion notification (RFC 3168, section 5), as its two bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Ecn {
    /// The sender accepts no marks: congestion is signalled by drops.
    #[default]
    NotCapable = 0,
    /// ECT(1): with L4S, a scalable sender (RFC 9331).
    Capable1 = 1,
    /// ECT(0): a classic sender.
    Capable0 = 2,
    /// Congestion experienced.
    Marked = 3,
}

impl Ecn {
    /// From the two low bits of `bits`.
    #[inline]
    pub fn of_bits(bits: u8) -> Ecn {
        match bits & 3 {
            0 => Ecn::NotCapable,
            1 => Ecn::Capable1,
            2 => Ecn::Capable0,
            _ => Ecn::Marked,
        }
    }

    /// Whether a queue may mark instead of drop.
    #[inline]
    pub fn capable(self) -> bool {
        self != Ecn::NotCapable
    }
}

/// Which IP a header is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpVersion {
    /// IPv4 (RFC 791).
    V4,
    /// IPv6 (RFC 8200).
    V6,
}

/// The fields of a frame's IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpHeader {
    /// Its version.
    pub version: IpVersion,
    /// Where the IP header begins in the frame, in bytes.
    pub at: usize,
    /// Differentiated services code point (RFC 2474), 0 to 63.
    pub dscp: u8,
    /// Explicit congestion notification.
    pub ecn: Ecn,
    /// Time to live, or hop limit.
    pub ttl: u8,
    /// The protocol number of IPv4, or the first next header of IPv6.
    pub protocol: u8,
}

/// The shortest IPv4 header, in bytes.
const V4_LEN: usize = 20;

/// The IPv6 header, in bytes.
const V6_LEN: usize = 40;

impl IpHeader {
    /// Reads the header of a frame's first bytes; `None` when it holds no IP,
    /// or not all of its header.
    #[inline]
    pub fn parse(frame: &[u8]) -> Option<IpHeader> {
        let at = mac_header_len(frame) as usize;
        match frame.get(at - 2..at)? {
            [0x08, 0x00] => IpHeader::parse_at(frame, at, IpVersion::V4),
            [0x86, 0xdd] => IpHeader::parse_at(frame, at, IpVersion::V6),
            _ => None,
        }
    }

    /// Reads a header of this version that begins at `at`.
    #[inline]
    pub(crate) fn parse_at(frame: &[u8], at: usize, version: IpVersion) -> Option<IpHeader> {
        let header = frame.get(at..)?;
        match version {
            IpVersion::V4 if header.len() >= V4_LEN && header[0] >> 4 == 4 => Some(IpHeader {
                version,
                at,
                dscp: header[1] >> 2,
                ecn: Ecn::of_bits(header[1]),
                ttl: header[8],
                protocol: header[9],
            }),
            IpVersion::V6 if header.len() >= V6_LEN && header[0] >> 4 == 6 => {
                let class = header[0] << 4 | header[1] >> 4;
                Some(IpHeader {
                    version,
                    at,
                    dscp: class >> 2,
                    ecn: Ecn::of_bits(class),
                    ttl: header[7],
                    protocol: header[6],
                })
            }
            _ => None,
        }
    }

    /// Returns where the next header begins, in bytes of the frame. IPv6 extension
    /// headers are not skipped.
    #[inline]
    pub fn end(&self, frame: &[u8]) -> usize {
        match self.version {
            IpVersion::V4 => self.at + usize::from(frame[self.at] & 15).max(5) * 4,
            IpVersion::V6 => self.at + V6_LEN,
        }
    }
}

/// The payload of IP, after all of its headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transport {
    /// The protocol's number.
    pub protocol: u8,
    /// Where it begins in the frame, in bytes.
    pub at: usize,
    /// How much of it is available.
    pub piece: Piece,
    /// A routing header contains further hops after the destination address.
    pub routed: bool,
}

/// How much of a packet a fragment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// All of it.
    Whole,
    /// Its beginning, with the transport header.
    First,
    /// A later part: there is no transport header.
    Later,
}

impl Piece {
    fn of(offset: bool, more: bool) -> Piece {
        match (offset, more) {
            (true, _) => Piece::Later,
            (false, true) => Piece::First,
            (false, false) => Piece::Whole,
        }
    }
}

/// At most this many IPv6 extension headers are gone through: RFC 8200,
/// section 4.1 has seven, one of them twice.
const EXTENSIONS_MAX: u32 = 8;

impl IpHeader {
    /// Finds the payload of the packet, after IPv6's extension headers (RFC 8200,
    /// section 4). `None` if the frame's bytes end before it, or if there are too many
    /// extension headers.
    #[inline]
    pub fn transport(&self, frame: &[u8]) -> Option<Transport> {
        let mut transport = Transport {
            protocol: self.protocol,
            at: self.end(frame),
            piece: Piece::Whole,
            routed: false,
        };
        if self.version == IpVersion::V4 {
            let field = frame.get(self.at + 6..self.at + 8)?;
            let offset = field[0] & 0x1f != 0 || field[1] != 0;
            transport.piece = Piece::of(offset, field[0] & 0x20 != 0);
            return (transport.at <= frame.len()).then_some(transport);
        }
        for _ in 0..=EXTENSIONS_MAX {
            let extension = frame.get(transport.at..)?;
            let len = match (transport.protocol, extension) {
                // Hop-by-hop and destination options.
                (0 | 60, [_, len, ..]) => (usize::from(*len) + 1) * 8,
                (43, [_, len, _, segments_left, ..]) => {
                    transport.routed |= *segments_left > 0;
                    (usize::from(*len) + 1) * 8
                }
                (44, [_, _, high, low, ..]) => {
                    transport.piece = Piece::of(*high != 0 || low & 0xf8 != 0, low & 1 == 1);
                    8
                }
                // The authentication header, after which all is unencrypted.
                (51, [_, len, ..]) => (usize::from(*len) + 2) * 4,
                (0 | 43 | 44 | 51 | 60, _) => return None,
                _ => return Some(transport),
            };
            transport.protocol = extension[0];
            transport.at += len;
            if transport.piece == Piece::Later {
                return Some(transport);
            }
        }
        None
    }
}

/// Protocols whose first four bytes are two ports: TCP, UDP, DCCP, SCTP,
/// UDP-Lite (IANA's protocol numbers).
pub(crate) const WITH_PORTS: [u8; 5] = [6, 17, 33, 132, 136];

/// Returns whether routers do not forward the packet, and so never decrement
/// its time to live: neighbour discovery, which is invalid unless its hop limit
/// is 255 (RFC 4861, section 6.1), and multicast of link-local scope. `ip` was
/// parsed from `bytes`.
#[inline]
pub fn stays_on_link(bytes: &[u8], ip: &IpHeader) -> bool {
    /// ICMPv6.
    const ICMP6: u8 = 58;
    let header = &bytes[ip.at..];
    match ip.version {
        IpVersion::V4 => header[16..19] == [224, 0, 0],
        IpVersion::V6 => {
            let discovers = ip.protocol == ICMP6
                && bytes
                    .get(ip.end(bytes))
                    .is_some_and(|kind| (133..=137).contains(kind));
            discovers || header[24..26] == [0xff, 0x02]
        }
    }
}
