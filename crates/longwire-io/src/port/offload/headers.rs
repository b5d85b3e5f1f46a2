//! Locates a frame's IP header and the TCP or UDP header after it.
//!
//! Offloads contain header lengths and checksum offsets. The sender's values may be wrong or
//! missing, so this module reads them from the frame.

use longwire_packet::frame::mac_header_len;
use longwire_packet::header::{self, IpVersion};

use super::Checksum;

/// EtherType for IPv4.
pub(super) const IPV4: u16 = 0x0800;
/// EtherType for IPv6.
pub(super) const IPV6: u16 = 0x86dd;

/// Maximum length of an IP packet in bytes.
pub(super) const PACKET_MAX: usize = 65_535;

/// Maximum number of IPv6 extension headers. Real packets have fewer.
const EXTENSIONS_MAX: usize = 8;

/// The transport header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl Transport {
    /// Returns the offset of the checksum in the transport header.
    pub(super) const fn checksum_offset(self) -> usize {
        match self {
            Transport::Tcp => 16,
            Transport::Udp => 6,
        }
    }
}

/// Offsets in the frame of the headers of a complete, unfragmented IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpHeader {
    /// IP version.
    pub network: IpVersion,
    /// Start of the IP header.
    pub at: usize,
    /// Protocol number after the IP header and its extension headers.
    pub protocol: u8,
    /// Start of the protocol's header.
    pub transport_at: usize,
    /// End of the packet according to its IP header; padding may follow.
    pub end: usize,
    /// Start of the source address used in the pseudo-header: a mobile node's home address, if
    /// present.
    pub(super) source_at: usize,
    /// Start of the destination address used in the pseudo-header: the last address of a source
    /// route, if present.
    pub(super) destination_at: usize,
}

/// Offsets in the frame of the headers of a complete, unfragmented TCP or UDP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// The IP header.
    pub ip: IpHeader,
    /// Transport protocol.
    pub transport: Transport,
    /// Start of the payload, which is the length of all headers.
    pub payload_at: usize,
}

impl Headers {
    /// Parses the headers of `frame`: Ethernet with up to four VLAN tags, IPv4 or IPv6 with
    /// extension headers, TCP or UDP. `None` for other frames, for fragments, and for truncated or
    /// inconsistent headers.
    pub fn parse(frame: &[u8]) -> Option<Headers> {
        let at = mac_header_len(frame) as usize;
        let ip = IpHeader::parse(frame, be16(frame, at.checked_sub(2)?)?, at)?;
        Headers::within(&ip, frame)
    }

    /// Parses the transport header after the IP header `ip`.
    pub(super) fn within(ip: &IpHeader, frame: &[u8]) -> Option<Headers> {
        let at = ip.transport_at;
        let packet = frame.get(..ip.end)?;
        let (transport, len) = match ip.protocol {
            6 => (Transport::Tcp, usize::from(packet.get(at + 12)? >> 4) * 4),
            17 => (Transport::Udp, 8),
            _ => return None,
        };
        let len_min = if transport == Transport::Tcp { 20 } else { 8 };
        if len < len_min || at + len > ip.end {
            return None;
        }
        Some(Headers {
            ip: *ip,
            transport,
            payload_at: at + len,
        })
    }

    /// Returns the start of the TCP or UDP header.
    pub fn transport_at(&self) -> usize {
        self.ip.transport_at
    }

    /// Returns the position of the checksum field.
    pub fn checksum_at(&self) -> usize {
        self.ip.transport_at + self.transport.checksum_offset()
    }

    /// Returns the checksum in virtio-net form.
    pub fn checksum(&self) -> Checksum {
        Checksum {
            start: self.ip.transport_at as u16,
            offset: self.transport.checksum_offset() as u16,
        }
    }
}

impl IpHeader {
    /// Parses the header with EtherType `kind` at `at`; `None` unless the packet is complete IPv4
    /// or IPv6.
    pub(super) fn parse(frame: &[u8], kind: u16, at: usize) -> Option<IpHeader> {
        match kind {
            IPV4 => Self::parse_v4(frame, at),
            IPV6 => Self::parse_v6(frame, at),
            _ => None,
        }
    }

    /// Returns the source and destination addresses used in the pseudo-header, which need not be
    /// adjacent.
    pub(super) fn addresses<'a>(&self, frame: &'a [u8]) -> (&'a [u8], &'a [u8]) {
        let len = self.network.address_len();
        (
            &frame[self.source_at..self.source_at + len],
            &frame[self.destination_at..self.destination_at + len],
        )
    }

    fn parse_v4(frame: &[u8], at: usize) -> Option<IpHeader> {
        let header = frame.get(at..at + 20)?;
        let header_len = usize::from(header[0] & 0x0f) * 4;
        let fragment = be16(header, 6)? & 0x3fff;
        if header[0] >> 4 != 4 || header_len < 20 || fragment != 0 {
            return None;
        }
        if has_source_route(frame.get(at + 20..at + header_len)?) {
            return None;
        }
        let total_len = usize::from(be16(header, 2)?);
        // The kernel's super-packets above 64 KiB have a length of zero.
        let end = match total_len {
            0 => frame.len(),
            _ => at + total_len,
        };
        Some(IpHeader {
            network: IpVersion::V4,
            at,
            protocol: header[9],
            transport_at: at + header_len,
            end,
            source_at: at + 12,
            destination_at: at + 16,
        })
    }

    fn parse_v6(frame: &[u8], at: usize) -> Option<IpHeader> {
        let header = frame.get(at..at + 40)?;
        let payload_len = usize::from(be16(header, 4)?);
        let end = match payload_len {
            // The kernel's super-packets, as for IPv4; jumbograms (RFC 2675) do not occur on
            // Ethernet.
            0 if frame.len() - at > PACKET_MAX => frame.len(),
            0 => return None,
            _ => at + 40 + payload_len,
        };
        if header[0] >> 4 != 6 {
            return None;
        }
        let mut parsed = IpHeader {
            network: IpVersion::V6,
            at,
            protocol: header[6],
            transport_at: at + 40,
            end,
            source_at: at + 8,
            destination_at: at + 24,
        };
        for _ in 0..EXTENSIONS_MAX {
            if !parsed.skip_extension(frame)? {
                return Some(parsed);
            }
        }
        None
    }

    /// Moves past an extension header. Returns `false` at the transport header; `None` if no
    /// transport header can follow.
    fn skip_extension(&mut self, frame: &[u8]) -> Option<bool> {
        let at = self.transport_at;
        let plain_len = || Some((usize::from(*frame.get(at + 1)?) + 1) * 8);
        let len = match self.protocol {
            // Hop-by-hop, mobility, HIP, shim6.
            0 | 135 | 139 | 140 => plain_len()?,
            60 => {
                self.source_at = header::home_address(frame, at).unwrap_or(self.source_at);
                plain_len()?
            }
            43 => {
                let len = plain_len()?;
                let last = last_route_address(frame.get(at..at + len)?)?;
                self.destination_at = last.map_or(self.destination_at, |offset| at + offset);
                len
            }
            // An atomic fragment (RFC 6946).
            44 if be16(frame, at + 2)? & 0xfff9 == 0 => 8,
            44 => return None,
            // The length field of the Authentication Header is in 4-byte words, minus 2
            // (RFC 4302).
            51 => (usize::from(*frame.get(at + 1)?) + 2) * 4,
            _ => return Some(false),
        };
        self.protocol = *frame.get(at)?;
        self.transport_at += len;
        Some(true)
    }
}

/// Returns the position of the final destination in a routing header; `Some(None)` if no segments
/// are left, `None` for types that do not contain the last address.
fn last_route_address(routing: &[u8]) -> Option<Option<usize>> {
    if routing[3] == 0 {
        return Some(None);
    }
    let at = match routing[2] {
        // Types 0 and 2 list addresses in order of travel (RFC 6275 §6.4).
        0 | 2 => routing.len().checked_sub(16)?,
        // Segment routing lists them in reverse (RFC 8754 §2).
        4 => 8,
        _ => return None,
    };
    let fits = at >= 8 && at + 16 <= routing.len();
    fits.then_some(Some(at))
}

/// Returns whether IPv4 options contain a source route. The checksum then covers an address that is
/// hard to determine, so these packets stay unchanged.
fn has_source_route(mut options: &[u8]) -> bool {
    while let [kind, rest @ ..] = options {
        match (kind, rest) {
            (0, _) => return false,
            (1, _) => options = rest,
            (131 | 137, _) => return true,
            (_, [len, ..]) if *len >= 2 => {
                options = options.get(usize::from(*len)..).unwrap_or(&[]);
            }
            _ => return false,
        }
    }
    false
}

/// Returns the big-endian 16-bit number at `at`.
pub(super) fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    let field = bytes.get(at..at + 2)?;
    Some(u16::from_be_bytes([field[0], field[1]]))
}
