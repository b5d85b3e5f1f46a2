//! Finds the packet in a frame, after tags, LLC, PPPoE, MPLS and nested Ethernet.
//!
//! Plain Ethernet with VLAN tags and IP takes the fast path in [`IpHeader::parse`].

use super::unaltered::Unaltered;
use crate::bytes::{array, array_mut, word};
use crate::checksum::{fold, sum_words};
use crate::edit::{is_super_packet, packet_end};
use crate::header::{IpHeader, IpVersion};

/// Maximum number of headers before a packet, including MPLS labels.
const HEADERS_MAX: usize = 32;

/// Maximum nesting depth of packets.
pub(super) const DEPTH_MAX: u32 = 8;

/// Maximum number of header fields recorded.
const FIELDS_MAX: usize = 8;

/// The content of a frame or tunnel packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// An IP packet.
    Ip(IpHeader),
    /// ARP or RARP, at this offset.
    Arp(usize),
    /// IPCP (RFC 1332), with its code at this offset.
    Ipcp(usize),
    /// Content without rewritable addresses.
    Other(Unaltered),
}

/// EtherTypes accepted as evidence of an Ethernet header where the content is ambiguous: IP, ARP,
/// tags, MPLS, PPPoE, NSH, LLDP, OAM.
const TYPES: [u16; 18] = [
    0x0800, 0x0806, 0x86dd, 0x8100, 0x88a8, 0x9100, 0x8847, 0x8848, 0x8863, 0x8864, 0x88e7, 0x8926,
    0x893f, 0x892f, 0xf1c1, 0x894f, 0x88cc, 0x8902,
];

/// A field in a header before the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkField {
    /// Destination address in an Ethernet header, followed by the source address.
    Addresses(usize),
    /// A two-byte length field.
    Length {
        /// Offset of the field.
        at: usize,
        /// Offset from which the length is measured.
        from: usize,
    },
}

/// The content and the headers before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub content: Content,
    /// Offset of the innermost Ethernet header.
    pub mac_at: Option<usize>,
    fields: [Option<LinkField>; FIELDS_MAX],
}

impl Found {
    /// Returns the IP header if the content is an IP packet.
    pub fn ip(&self) -> Option<IpHeader> {
        match self.content {
            Content::Ip(ip) => Some(ip),
            _ => None,
        }
    }

    /// Returns the recorded fields, outermost first.
    pub fn fields(&self) -> impl Iterator<Item = LinkField> + use<> {
        self.fields.into_iter().flatten()
    }

    /// Reduces the length fields to content that ends at `end`.
    pub fn fit_lengths(&self, frame: &mut [u8], end: usize) {
        for field in self.fields() {
            if let LinkField::Length { at, from } = field
                && let Some(stored) = array_mut(frame, at)
            {
                let left = u16::try_from(end.saturating_sub(from)).unwrap_or(u16::MAX);
                *stored = u16::from_be_bytes(*stored).min(left).to_be_bytes();
            }
        }
    }
}

/// The next header's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkLayer {
    Ethernet,
    /// Identified by EtherType.
    Type(u16),
    Llc,
    Ppp,
    Mpls,
    /// Network service header (RFC 8300).
    Nsh,
    Ip(IpVersion),
    /// IP, identified by the version nibble.
    AnyIp,
    Content(Content),
}

/// Returns content that has no packet.
const fn other(reason: Unaltered) -> LinkLayer {
    LinkLayer::Content(Content::Other(reason))
}

/// Finds a frame's content.
pub(super) fn find(frame: &[u8]) -> Found {
    Walk::new(frame, 0).content(LinkLayer::Ethernet)
}

/// Returns the header of a frame's packet.
pub(super) fn packet_of(frame: &[u8]) -> Option<IpHeader> {
    IpHeader::parse(frame).or_else(|| find(frame).ip())
}

/// Parses headers in sequence.
pub(super) struct Walk<'a> {
    frame: &'a [u8],
    pub at: usize,
    found: Found,
}

impl<'a> Walk<'a> {
    pub fn new(frame: &'a [u8], at: usize) -> Walk<'a> {
        let found = Found {
            content: Content::Other(Unaltered::Malformed),
            mac_at: None,
            fields: [None; FIELDS_MAX],
        };
        Walk { frame, at, found }
    }

    /// Parses headers, starting with `first`, until the content.
    pub fn content(mut self, first: LinkLayer) -> Found {
        let mut layer = first;
        for _ in 0..HEADERS_MAX {
            let next = match layer {
                LinkLayer::Ethernet => self.ethernet(),
                LinkLayer::Type(kind) => self.ethertype(kind),
                LinkLayer::Llc => self.llc(),
                LinkLayer::Ppp => self.ppp(),
                LinkLayer::Mpls => self.mpls(),
                LinkLayer::Nsh => self.nsh(),
                LinkLayer::Ip(version) => Some(self.ip(version)),
                LinkLayer::AnyIp => self.any_ip(),
                LinkLayer::Content(content) => {
                    return Found {
                        content,
                        ..self.found
                    };
                }
            };
            layer = next.unwrap_or(other(Unaltered::Truncated));
        }
        self.found
    }

    /// Consumes bytes; returns `None` if the frame is too short.
    pub fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let bytes = self.peek(0)?;
        self.at += N;
        Some(bytes)
    }

    pub fn peek<const N: usize>(&self, after: usize) -> Option<[u8; N]> {
        array(self.frame, self.at + after)
    }

    /// Records a field, unless the maximum is reached.
    fn note(&mut self, field: LinkField) {
        let mut fields = self.found.fields.iter_mut();
        if let Some(free) = fields.find(|field| field.is_none()) {
            *free = Some(field);
        }
    }

    pub fn note_length(&mut self, at: usize, from: usize) {
        self.note(LinkField::Length { at, from });
    }

    fn ethernet(&mut self) -> Option<LinkLayer> {
        let at = self.at;
        let next = self.tag::<14>()?;
        if at > 0 {
            // The outermost addresses are rewritten separately.
            self.note(LinkField::Addresses(at));
        }
        self.found.mac_at = Some(at);
        Some(next)
    }

    /// Consumes an `N`-byte tag or header that ends with the next type.
    fn tag<const N: usize>(&mut self) -> Option<LinkLayer> {
        self.take::<N>()?;
        word(self.frame, self.at - 2).map(LinkLayer::Type)
    }

    fn ethertype(&mut self, kind: u16) -> Option<LinkLayer> {
        const LENGTH_MAX: u16 = 1_500;
        match kind {
            0..=LENGTH_MAX => {
                self.note_length(self.at - 2, self.at);
                Some(LinkLayer::Llc)
            }
            // VLAN tags, including vendor types.
            0x8100 | 0x88a8 | 0x9100 | 0x9200 | 0x9300 => self.tag::<4>(),
            // VN-tag; E-tag (802.1BR); redundancy (802.1CB); HSR (IEC 62439-3).
            0x8926 | 0xf1c1 | 0x892f => self.tag::<6>(),
            0x893f => self.tag::<8>(),
            // I-tag in provider backbone bridges (802.1ah).
            0x88e7 => self.take::<4>().map(|_| LinkLayer::Ethernet),
            // FabricPath; TRILL (RFC 6325), with options in 4-byte words.
            0x8903 => self.take::<2>().map(|_| LinkLayer::Ethernet),
            0x22f3 => {
                let [high, low, ..] = self.take::<6>()?;
                self.at += usize::from((high & 7) << 2 | low >> 6) * 4;
                Some(LinkLayer::Ethernet)
            }
            // Transparent Ethernet bridging in GRE, Geneve and others.
            0x6558 => Some(LinkLayer::Ethernet),
            0x8847 | 0x8848 => Some(LinkLayer::Mpls),
            0x8864 => self.pppoe(),
            0x880b => Some(LinkLayer::Ppp),
            0x8870 => Some(LinkLayer::Llc),
            0x894f => Some(LinkLayer::Nsh),
            0x0800 => Some(LinkLayer::Ip(IpVersion::V4)),
            0x86dd => Some(LinkLayer::Ip(IpVersion::V6)),
            0x0806 | 0x8035 => Some(LinkLayer::Content(Content::Arp(self.at))),
            // PPPoE discovery; 802.1X; slow protocols; PAUSE.
            0x8863 | 0x888e | 0x8809 | 0x8808 => Some(other(Unaltered::Control)),
            // MACsec: the integrity check covers the addresses.
            0x88e5 => Some(other(Unaltered::Encrypted)),
            _ => Some(other(Unaltered::NotIp)),
        }
    }

    /// Parses LLC (802.2), with or without SNAP.
    fn llc(&mut self) -> Option<LinkLayer> {
        match self.peek::<3>(0)? {
            [0xaa, 0xaa, 3] => {
                let [.., a, b, c, high, low] = self.take::<8>()?;
                Some(match [a, b, c] {
                    // RFC 1042 and bridge tunnelling (802.1H).
                    [0, 0, 0] | [0, 0, 0xf8] if high >= 6 => {
                        LinkLayer::Type(u16::from_be_bytes([high, low]))
                    }
                    _ => other(Unaltered::Llc),
                })
            }
            [6, 6, 3] => {
                self.at += 3;
                Some(LinkLayer::Ip(IpVersion::V4))
            }
            _ => Some(other(Unaltered::Llc)),
        }
    }

    /// Parses a PPPoE session header (RFC 2516).
    fn pppoe(&mut self) -> Option<LinkLayer> {
        let [version, code, ..] = self.take::<6>()?;
        self.note_length(self.at - 2, self.at);
        Some(match (version, code) {
            (0x11, 0) => LinkLayer::Ppp,
            (0x11, _) => other(Unaltered::Control),
            _ => other(Unaltered::Malformed),
        })
    }

    fn ppp(&mut self) -> Option<LinkLayer> {
        const ALL_STATIONS: [u8; 2] = [0xff, 3];
        if self.peek(0) == Some(ALL_STATIONS) {
            self.at += 2;
        }
        // A compressed protocol field is odd (RFC 1661, section 2).
        let [first] = self.take()?;
        let protocol = if first & 1 == 1 {
            u16::from(first)
        } else {
            let [second] = self.take()?;
            u16::from_be_bytes([first, second])
        };
        Some(match protocol {
            0x21 => LinkLayer::Ip(IpVersion::V4),
            0x57 => LinkLayer::Ip(IpVersion::V6),
            0x281 | 0x283 => LinkLayer::Mpls,
            0x8021 => LinkLayer::Content(Content::Ipcp(self.at)),
            // Encrypted or compressed.
            0x53 | 0x55 | 0xfb | 0xfd => other(Unaltered::Encrypted),
            0x4000.. => other(Unaltered::Control),
            _ => other(Unaltered::NotIp),
        })
    }

    /// Parses an MPLS label (RFC 3032); after the last one, guesses the content.
    fn mpls(&mut self) -> Option<LinkLayer> {
        /// Label of the generic associated channel (RFC 5586).
        const CHANNEL_LABEL: u32 = 13;
        let label = u32::from_be_bytes(self.take()?);
        if label >> 8 & 1 == 0 {
            return Some(LinkLayer::Mpls);
        }
        if label >> 12 == CHANNEL_LABEL {
            return Some(other(Unaltered::Control));
        }
        let version = self.ip_version()?;
        // An Ethernet address may look like an IP header.
        if let Some(version) = version
            && (self.fits_ip(version) || !self.fits_ethernet(0))
        {
            return Some(LinkLayer::Ip(version));
        }
        let control_word = self.peek::<2>(0)?;
        let with_word = control_word[0] >> 4 == 0 && self.fits_ethernet(4);
        if with_word && (control_word == [0, 0] || !self.fits_ethernet(0)) {
            self.at += 4;
            return Some(LinkLayer::Ethernet);
        }
        Some(match control_word[0] >> 4 {
            _ if self.fits_ethernet(0) => LinkLayer::Ethernet,
            // Pseudowire associated channel (RFC 4385).
            1 => other(Unaltered::Control),
            _ => other(Unaltered::NotIp),
        })
    }

    /// Whether the IP header's checksum or length is valid.
    fn fits_ip(&self, version: IpVersion) -> bool {
        let Some(ip) = IpHeader::parse_at(self.frame, self.at, version) else {
            return false;
        };
        let end = ip.end(self.frame);
        let header = self.frame.get(ip.at..end);
        let sum = |header: &[u8]| fold(sum_words(header)) == 0xffff;
        version == IpVersion::V4 && header.is_some_and(sum)
            || !is_super_packet(self.frame, &ip)
                && (end..=self.frame.len()).contains(&packet_end(self.frame, &ip))
    }

    /// Whether a plausible Ethernet header starts after this many bytes.
    pub fn fits_ethernet(&self, after: usize) -> bool {
        let Some(header) = self.peek::<16>(after) else {
            return false;
        };
        match u16::from_be_bytes([header[12], header[13]]) {
            // LLC of SNAP, STP or IS-IS.
            0..=1_500 => matches!(header[14..], [0xaa, 0xaa] | [0x42, 0x42] | [0xfe, 0xfe]),
            kind => TYPES.contains(&kind),
        }
    }

    fn nsh(&mut self) -> Option<LinkLayer> {
        let [_, len, _, next] = self.take()?;
        self.at += (usize::from(len & 0x3f) * 4).saturating_sub(4);
        Some(next_protocol(next))
    }

    /// Returns the IP version in the first nibble; the inner `None` means not IP.
    pub fn ip_version(&self) -> Option<Option<IpVersion>> {
        Some(match self.peek::<1>(0)?[0] >> 4 {
            4 => Some(IpVersion::V4),
            6 => Some(IpVersion::V6),
            _ => None,
        })
    }

    fn any_ip(&self) -> Option<LinkLayer> {
        let version = self.ip_version()?;
        Some(version.map_or(other(Unaltered::NotIp), LinkLayer::Ip))
    }

    fn ip(&self, version: IpVersion) -> LinkLayer {
        let content = match IpHeader::parse_at(self.frame, self.at, version) {
            Some(ip) => Content::Ip(ip),
            None if self.is_short(version) => Content::Other(Unaltered::Truncated),
            None => Content::Other(Unaltered::Malformed),
        };
        LinkLayer::Content(content)
    }

    fn is_short(&self, version: IpVersion) -> bool {
        let header_len = match version {
            IpVersion::V4 => 20,
            IpVersion::V6 => 40,
        };
        self.frame.len() < self.at + header_len
    }
}

/// Maps a next-protocol number of NSH (RFC 8300, section 2.2) or VXLAN-GPE.
pub(super) fn next_protocol(number: u8) -> LinkLayer {
    match number {
        1 => LinkLayer::Ip(IpVersion::V4),
        2 => LinkLayer::Ip(IpVersion::V6),
        3 => LinkLayer::Ethernet,
        4 => LinkLayer::Nsh,
        5 => LinkLayer::Mpls,
        _ => other(Unaltered::NotIp),
    }
}
