//! IP header fields used by models.

use crate::bytes::array;
use crate::frame::mac_header_len;

/// Protocol numbers (IANA).
pub(crate) mod protocol {
    pub const ICMP: u8 = 1;
    pub const IGMP: u8 = 2;
    pub const TCP: u8 = 6;
    pub const UDP: u8 = 17;
    pub const DCCP: u8 = 33;
    pub const GRE: u8 = 47;
    pub const ICMP6: u8 = 58;
    pub const SCTP: u8 = 132;
    pub const MOBILITY: u8 = 135;
    pub const UDP_LITE: u8 = 136;
}

/// Explicit congestion notification field (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable: drops signal congestion.
    #[default]
    NotCapable = 0,
    /// ECT(1): a scalable sender, for L4S (RFC 9331).
    Capable1 = 1,
    /// ECT(0): a classic sender.
    Capable0 = 2,
    /// Congestion Experienced.
    Marked = 3,
}

impl Ecn {
    /// Returns the codepoint in the two low bits.
    #[inline]
    pub fn of_bits(bits: u8) -> Ecn {
        match bits & 3 {
            0 => Ecn::NotCapable,
            1 => Ecn::Capable1,
            2 => Ecn::Capable0,
            _ => Ecn::Marked,
        }
    }

    /// Whether queues may mark instead of dropping.
    #[inline]
    pub fn capable(self) -> bool {
        self != Ecn::NotCapable
    }
}

/// IP version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpVersion {
    /// IPv4 (RFC 791).
    V4,
    /// IPv6 (RFC 8200).
    V6,
}

impl IpVersion {
    /// Returns the address length in bytes.
    #[inline]
    pub const fn address_len(self) -> usize {
        match self {
            IpVersion::V4 => 4,
            IpVersion::V6 => 16,
        }
    }
}

/// Fields of an IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpHeader {
    /// IP version.
    pub version: IpVersion,
    /// Offset of the IP header within the frame.
    pub at: usize,
    /// Differentiated services code point (RFC 2474), 0 to 63.
    pub dscp: u8,
    /// Explicit congestion notification.
    pub ecn: Ecn,
    /// TTL or hop limit.
    pub ttl: u8,
    /// IPv4 protocol, or first IPv6 next header.
    pub protocol: u8,
}

/// Minimum length of an IPv4 header.
const V4_LEN: usize = 20;

/// Length of the IPv6 header.
const V6_LEN: usize = 40;

impl IpHeader {
    /// Parses a frame's IP header; returns `None` if it is absent or incomplete.
    #[inline]
    pub fn parse(frame: &[u8]) -> Option<IpHeader> {
        let at = mac_header_len(frame) as usize;
        match frame.get(at - 2..at)? {
            [0x08, 0x00] => IpHeader::parse_at(frame, at, IpVersion::V4),
            [0x86, 0xdd] => IpHeader::parse_at(frame, at, IpVersion::V6),
            _ => None,
        }
    }

    /// Parses a header of the given version at `at`.
    #[inline]
    pub(crate) fn parse_at(frame: &[u8], at: usize, version: IpVersion) -> Option<IpHeader> {
        let header = frame.get(at..)?;
        let (class, ttl, protocol) = match version {
            IpVersion::V4 if header.len() >= V4_LEN && header[0] >> 4 == 4 => {
                (header[1], header[8], header[9])
            }
            IpVersion::V6 if header.len() >= V6_LEN && header[0] >> 4 == 6 => {
                (header[0] << 4 | header[1] >> 4, header[7], header[6])
            }
            _ => return None,
        };
        Some(IpHeader {
            version,
            at,
            dscp: class >> 2,
            ecn: Ecn::of_bits(class),
            ttl,
            protocol,
        })
    }

    /// Returns the offset of the source address.
    #[inline]
    pub fn source_at(&self) -> usize {
        match self.version {
            IpVersion::V4 => self.at + 12,
            IpVersion::V6 => self.at + 8,
        }
    }

    /// Returns the offset of the destination address.
    #[inline]
    pub fn destination_at(&self) -> usize {
        match self.version {
            IpVersion::V4 => self.at + 16,
            IpVersion::V6 => self.at + 24,
        }
    }

    /// Returns the offset after the fixed header and IPv4 options; IPv6 extension headers are not
    /// skipped.
    #[inline]
    pub fn end(&self, frame: &[u8]) -> usize {
        match self.version {
            IpVersion::V4 => self.at + usize::from(frame[self.at] & 15).max(5) * 4,
            IpVersion::V6 => self.at + V6_LEN,
        }
    }

    /// Whether IPv4 options or IPv6 extension headers follow.
    #[inline]
    pub(crate) fn has_options(&self, frame: &[u8]) -> bool {
        match self.version {
            IpVersion::V4 => self.end(frame) > self.at + V4_LEN,
            IpVersion::V6 => EXTENSIONS.contains(&self.protocol),
        }
    }
}

/// Payload of an IP packet, after all headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transport {
    /// Protocol number.
    pub protocol: u8,
    /// Offset within the frame.
    pub at: usize,
    /// Whether it is complete or a fragment.
    pub piece: Piece,
    /// Offset of the source address used in the pseudo-header: that of a Home Address option, if
    /// present (RFC 6275, section 11.3.1).
    pub checked_source: usize,
    /// Offset of the destination address used in the pseudo-header: the last address of a source
    /// route, if present. `None` if the route lacks it.
    pub checked_destination: Option<usize>,
}

/// The part of a packet that is present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// The whole packet.
    Whole,
    /// The first fragment, with the transport header.
    First,
    /// A later fragment, without the transport header.
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

/// Maximum number of IPv6 extension headers parsed. RFC 8200, section 4.1, lists seven, one of them
/// twice.
pub(crate) const EXTENSIONS_MAX: u32 = 8;

impl IpHeader {
    /// Finds the payload after IPv6 extension headers (RFC 8200, section 4). Returns `None` if the
    /// frame is truncated before it or has too many extension headers.
    #[inline]
    pub fn transport(&self, frame: &[u8]) -> Option<Transport> {
        let mut transport = Transport {
            protocol: self.protocol,
            at: self.end(frame),
            piece: Piece::Whole,
            checked_source: self.source_at(),
            checked_destination: Some(self.destination_at()),
        };
        if self.version == IpVersion::V4 {
            let field = frame.get(self.at + 6..self.at + 8)?;
            let offset = field[0] & 0x1f != 0 || field[1] != 0;
            transport.piece = Piece::of(offset, field[0] & 0x20 != 0);
            if transport.at > self.at + V4_LEN {
                let options = frame.get(self.at + V4_LEN..transport.at)?;
                transport.checked_destination = match last_hop(options) {
                    None => transport.checked_destination,
                    Some(last) => last.map(|at| self.at + V4_LEN + at),
                };
            }
            return (transport.at <= frame.len()).then_some(transport);
        }
        for _ in 0..=EXTENSIONS_MAX {
            if !EXTENSIONS.contains(&transport.protocol) {
                frame.get(transport.at..)?;
                return Some(transport);
            }
            let extension = Extension::read(frame, transport.protocol, transport.at)?;
            match extension.kind {
                FRAGMENT => transport.piece = extension.piece(frame)?,
                ROUTING if extension.segments_left(frame)? > 0 => {
                    transport.checked_destination = extension.last_segment(frame);
                }
                DESTINATION_OPTIONS => {
                    let home = home_address(frame, extension.at);
                    transport.checked_source = home.unwrap_or(transport.checked_source);
                }
                _ => {}
            }
            transport.protocol = extension.next;
            transport.at = extension.at + extension.len;
            if transport.piece == Piece::Later {
                return Some(transport);
            }
        }
        None
    }
}

/// IPv6 extension headers by number (RFC 8200, section 4.1).
const HOP_BY_HOP: u8 = 0;
pub(crate) const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
pub(crate) const DESTINATION_OPTIONS: u8 = 60;
const EXTENSIONS: [u8; 5] = [
    HOP_BY_HOP,
    ROUTING,
    FRAGMENT,
    AUTHENTICATION,
    DESTINATION_OPTIONS,
];

/// An IPv6 extension header, with offsets in the frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extension {
    pub kind: u8,
    pub next: u8,
    pub at: usize,
    pub len: usize,
}

impl Extension {
    /// Parses the extension header of this kind at `at`. Returns `None` for other protocols, or if
    /// fewer than two bytes are available.
    #[inline]
    pub fn read(frame: &[u8], kind: u8, at: usize) -> Option<Extension> {
        let [next, len] = array(frame, at)?;
        let len = match kind {
            HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS => (usize::from(len) + 1) * 8,
            FRAGMENT => 8,
            // Everything after the authentication header is unencrypted.
            AUTHENTICATION => (usize::from(len) + 2) * 4,
            _ => return None,
        };
        Some(Extension {
            kind,
            next,
            at,
            len,
        })
    }

    /// Whether the payload of a later fragment follows, rather than a header.
    pub fn is_later_fragment(&self, frame: &[u8]) -> bool {
        self.kind == FRAGMENT && self.piece(frame) == Some(Piece::Later)
    }

    /// Returns the part of the packet that follows a fragment header.
    fn piece(&self, frame: &[u8]) -> Option<Piece> {
        let [high, low] = array(frame, self.at + 2)?;
        Some(Piece::of(high != 0 || low & 0xf8 != 0, low & 1 == 1))
    }

    fn segments_left(&self, frame: &[u8]) -> Option<u8> {
        frame.get(self.at + 3).copied()
    }

    /// Returns the range of addresses in a routing header of type 0 or 2 (RFC 6275, section 6.4) or
    /// 4 (segment routing, RFC 8754); `None` for other types.
    pub fn segments(&self, frame: &[u8]) -> Option<(usize, usize)> {
        const FIXED: usize = 8;
        let [kind, _, last_entry] = array(frame, self.at + 2)?;
        let room = (self.len - FIXED) / 16;
        let count = match kind {
            0 | 2 => room,
            4 => room.min(usize::from(last_entry) + 1),
            _ => return None,
        };
        let first = self.at + FIXED;
        Some((first, first + 16 * count))
    }

    /// Returns the offset of the final destination in a routing header.
    fn last_segment(&self, frame: &[u8]) -> Option<usize> {
        let (first, end) = self.segments(frame).filter(|(first, end)| end > first)?;
        // Segment routing lists the last segment first.
        let backwards = frame[self.at + 2] == 4;
        Some(if backwards { first } else { end - 16 })
    }
}

/// Returns the offset of the address in a Home Address option within the IPv6 destination options
/// at `at`, if present (RFC 6275, section 6.3). Transport checksums use it as the source.
pub fn home_address(frame: &[u8], at: usize) -> Option<usize> {
    const PAD1: u8 = 0;
    const HOME_ADDRESS: u8 = 0xc9;
    let end = at + Extension::read(frame, DESTINATION_OPTIONS, at)?.len;
    let mut at = at + 2;
    while at < end {
        let kind = *frame.get(at)?;
        if kind == PAD1 {
            at += 1;
            continue;
        }
        let len = *frame.get(at + 1)?;
        if kind == HOME_ADDRESS && len == 16 && at + 18 <= end {
            return (at + 18 <= frame.len()).then_some(at + 2);
        }
        at += 2 + usize::from(len);
    }
    None
}

/// Returns the offset, within the options, of the last address in an IPv4 source route that is not
/// yet completed (RFC 791, section 3.1). Returns `None` without such a route, and `Some(None)` if
/// the route lacks the address.
fn last_hop(options: &[u8]) -> Option<Option<usize>> {
    const LOOSE: u8 = 131;
    const STRICT: u8 = 137;
    for (at, option) in Options4(options, 0) {
        if let [LOOSE | STRICT, len, pointer, ..] = *option
            && pointer <= len
        {
            return Some((option.len() >= 7).then(|| at + option.len() - 4));
        }
    }
    None
}

/// Iterates over IPv4 or TCP options, which are encoded alike, as offsets and bytes.
pub(crate) struct Options4<'a>(pub &'a [u8], pub usize);

impl<'a> Iterator for Options4<'a> {
    type Item = (usize, &'a [u8]);

    fn next(&mut self) -> Option<(usize, &'a [u8])> {
        let Options4(options, at) = self;
        let rest = options.get(*at..)?;
        let len = match rest {
            [] | [0, ..] => return None,
            [1, ..] => 1,
            [_, len, ..] if *len >= 2 => usize::from(*len),
            _ => return None,
        };
        let found = (*at, rest.get(..len)?);
        *at += len;
        Some(found)
    }
}

/// Protocols whose header starts with two ports.
pub(crate) const WITH_PORTS: [u8; 5] = [
    protocol::TCP,
    protocol::UDP,
    protocol::DCCP,
    protocol::SCTP,
    protocol::UDP_LITE,
];

/// Whether routers do not forward the packet and so never decrement its TTL: neighbour discovery,
/// which requires a hop limit of 255 (RFC 4861, section 6.1), and link-local multicast. `ip` must
/// have been parsed from `bytes`.
#[inline]
pub fn stays_on_link(bytes: &[u8], ip: &IpHeader) -> bool {
    let header = &bytes[ip.at..];
    match ip.version {
        IpVersion::V4 => header[16..19] == [224, 0, 0],
        IpVersion::V6 => {
            let discovers = ip.protocol == protocol::ICMP6
                && bytes
                    .get(ip.end(bytes))
                    .is_some_and(|kind| (133..=137).contains(kind));
            discovers || header[24..26] == [0xff, 0x02]
        }
    }
}
