//! Frame edits: ECN marks, header fields, corruption and checksum repair.

use alloc::vec::Vec;

use longwire_units::random::Stream;

use crate::bytes::{array, put_word};
use crate::checksum::{Change, crc32c, fold, sum_words};
use crate::header::protocol::{GRE, SCTP, UDP};
use crate::header::{Ecn, IpHeader, IpVersion, Piece, Transport};

/// Description of a frame's corruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corruption {
    /// Number of distinct bits to flip.
    pub bits: u32,
    /// Byte range that may be corrupted, clipped to the frame.
    pub within: (u32, u32),
    /// Seed for selecting bits. `None` selects the first bits of the range, starting with the most
    /// significant bit of the first byte.
    pub seed: Option<u64>,
    /// Whether to repair transport and IP checksums afterwards, so that the receiver does not
    /// detect the corruption.
    pub repair: bool,
}

impl Corruption {
    /// The whole frame, as a range for [`Corruption::within`].
    pub const ALL: (u32, u32) = (0, u32::MAX);
}

/// Fields to write in an IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpEdit {
    /// Differentiated services code point, 0 to 63.
    pub dscp: u8,
    /// ECN field.
    pub ecn: Ecn,
    /// TTL or hop limit.
    pub ttl: u8,
}

/// Marks the packet Congestion Experienced (RFC 3168). Frames without IP and packets that are not
/// ECN-capable stay unchanged.
#[inline]
pub fn mark(bytes: &mut [u8]) {
    if let Some(ip) = IpHeader::parse(bytes)
        && ip.ecn.capable()
    {
        let edit = IpEdit {
            dscp: ip.dscp,
            ecn: Ecn::Marked,
            ttl: ip.ttl,
        };
        set_ip(bytes, &ip, edit);
    }
}

/// Writes `edit` to the header `ip`, which must have been parsed from the same frame, and updates
/// the IPv4 header checksum.
pub fn set_ip(bytes: &mut [u8], ip: &IpHeader, edit: IpEdit) {
    let class = edit.dscp << 2 | edit.ecn as u8;
    let header = &mut bytes[ip.at..];
    match ip.version {
        IpVersion::V4 => {
            let word = |header: &[u8], at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
            let before = (word(header, 0), word(header, 8));
            header[1] = class;
            header[8] = edit.ttl;
            let mut change = Change::NONE;
            change.word(before.0, word(header, 0));
            change.word(before.1, word(header, 8));
            let sum = change.update(word(header, 10));
            put_word(header, 10, sum);
        }
        IpVersion::V6 => {
            header[0] = header[0] & 0xf0 | class >> 4;
            header[1] = header[1] & 0x0f | class << 4;
            header[7] = edit.ttl;
        }
    }
}

/// Flips the bits selected by `corruption`, and repairs checksums if requested.
pub fn corrupt(bytes: &mut [u8], corruption: &Corruption) {
    let (start, end) = (corruption.within.0 as usize, corruption.within.1 as usize);
    let range = bytes.get(start..end.min(bytes.len()));
    let Some(range) = range.filter(|range| !range.is_empty()) else {
        return;
    };
    let bits_there = range.len() as u64 * 8;
    let wanted = u64::from(corruption.bits).min(bits_there);
    let first = start as u64 * 8;
    match corruption.seed {
        None => (first..first + wanted).for_each(|bit| turn_over(bytes, bit)),
        Some(seed) => {
            let mut stream = Stream::of_seed(seed);
            choose(&mut stream, bits_there, wanted, |bit| {
                turn_over(bytes, first + bit)
            });
        }
    }
    if corruption.repair {
        repair_checksums(bytes);
    }
}

/// Whether `corruption` changes the frame. It does not if the repair restores every flipped bit.
/// `scratch` is scratch memory.
pub fn changes(bytes: &[u8], corruption: &Corruption, scratch: &mut Vec<u8>) -> bool {
    // True without a repair, or if the bytes are unavailable.
    if !corruption.repair || bytes.is_empty() {
        return true;
    }
    scratch.clear();
    scratch.extend_from_slice(bytes);
    corrupt(scratch, corruption);
    scratch[..] != *bytes
}

/// Flips a bit; bit 0 is the most significant bit of byte 0.
fn turn_over(bytes: &mut [u8], bit: u64) {
    bytes[(bit / 8) as usize] ^= 0x80 >> (bit % 8);
}

/// Selects `wanted` distinct numbers below `there` uniformly: a few by rejection, many by selection
/// sampling (Knuth, volume 2, algorithm 3.4.2 S).
fn choose(stream: &mut Stream, there: u64, wanted: u64, mut take: impl FnMut(u64)) {
    const FEW: u64 = 16;
    if wanted <= FEW && wanted * 2 <= there {
        let mut chosen = [0; FEW as usize];
        let mut count = 0;
        while (count as u64) < wanted {
            let number = stream.up_to(there - 1);
            if !chosen[..count].contains(&number) {
                chosen[count] = number;
                count += 1;
                take(number);
            }
        }
        return;
    }
    let mut left = wanted;
    for number in 0..there {
        if left > 0 && stream.up_to(there - number - 1) < left {
            left -= 1;
            take(number);
        }
    }
}

/// Repairs the IPv4 header checksum and the TCP, UDP, SCTP, ICMP, ICMPv6, IGMP, GRE or Mobile IPv6
/// checksum, also after IPv6 extension headers. Returns whether any checksum was wrong.
///
/// The pseudo-header uses a source route's last address and a home address (RFC 8200, section 8.1;
/// RFC 6275, section 11.3.1). Fragments, truncated packets and packets with an unknown route type
/// keep their transport checksum, which covers unavailable bytes. A UDP datagram ends at its own
/// length; if that exceeds the packet or is shorter than the header, no checksum is valid, and the
/// field stays unchanged.
pub fn repair_checksums(bytes: &mut [u8]) -> bool {
    IpHeader::parse(bytes).is_some_and(|ip| repair_packet(bytes, &ip).wrong)
}

/// Result of a checksum repair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Repair {
    /// Whether a checksum was wrong.
    pub wrong: bool,
    /// Whether a transport checksum could not be computed.
    pub unknown: bool,
}

impl Repair {
    const UNKNOWN: Repair = Repair::of(false, true);
    const RIGHT: Repair = Repair::of(false, false);

    const fn of(wrong: bool, unknown: bool) -> Repair {
        Repair { wrong, unknown }
    }
}

/// Like [`repair_checksums`], for a packet that ends within `bytes`.
pub(crate) fn repair_packet(bytes: &mut [u8], ip: &IpHeader) -> Repair {
    if ip.end(bytes) > bytes.len() {
        return Repair::UNKNOWN;
    }
    let mut header_wrong = false;
    if ip.version == IpVersion::V4 {
        let stored = [bytes[ip.at + 10], bytes[ip.at + 11]];
        repair_ipv4_header(bytes, ip.at);
        header_wrong = bytes[ip.at + 10..ip.at + 12] != stored;
    }
    let transport = repair_transport(bytes, ip);
    Repair {
        wrong: transport.wrong || header_wrong,
        ..transport
    }
}

/// Repairs the checksum of a complete IPv4 header at `at`.
pub(crate) fn repair_ipv4_header(bytes: &mut [u8], at: usize) {
    let end = at + usize::from(bytes[at] & 15) * 4;
    bytes[at + 10..at + 12].fill(0);
    let sum = !fold(sum_words(&bytes[at..end.max(at + 20)]));
    put_word(bytes, at + 10, sum);
}

/// Protocols without a checksum: IP, ESP, AH, Ethernet and MPLS in IP, no next header.
const WITHOUT_CHECKSUM: [u8; 8] = [4, 41, 50, 51, 59, 97, 137, 143];

/// Returns the offset of a protocol's checksum, and whether it covers a pseudo-header.
fn checksum_field(protocol: u8) -> Option<(usize, bool)> {
    match protocol {
        6 => Some((16, true)),
        UDP => Some((6, true)),
        // ICMP and IGMP.
        1 | 2 => Some((2, false)),
        GRE => Some((4, false)),
        // ICMPv6, and Mobile IPv6 (RFC 6275, section 6.1.1).
        58 => Some((2, true)),
        135 => Some((4, true)),
        _ => None,
    }
}

/// Whether a GRE header has a checksum (RFC 2784); version 1 never has (RFC 2637).
pub(crate) fn gre_has_checksum(header: &[u8]) -> bool {
    matches!(header, [flags, version, ..] if flags & 0x80 != 0 && version & 7 == 0)
}

fn repair_transport(bytes: &mut [u8], ip: &IpHeader) -> Repair {
    let Some(transport) = ip.transport(bytes) else {
        return Repair::UNKNOWN;
    };
    let (start, protocol) = (transport.at, transport.protocol);
    let no_checksum = match protocol {
        GRE => !gre_has_checksum(&bytes[start..]),
        _ => WITHOUT_CHECKSUM.contains(&protocol),
    };
    if no_checksum {
        return Repair::RIGHT;
    }
    let packet_end = packet_end(bytes, ip);
    let is_whole = transport.piece == Piece::Whole && (start..=bytes.len()).contains(&packet_end);
    if !is_whole {
        return Repair::UNKNOWN;
    }
    if protocol == SCTP {
        let wrong = repair_sctp(&mut bytes[start..packet_end]);
        return Repair::of(wrong, packet_end < start + 12);
    }
    let field = checksum_field(protocol);
    let Some((offset, pseudo_header)) = field.filter(|(at, _)| start + at + 2 <= packet_end) else {
        return Repair::UNKNOWN;
    };
    let end = match protocol {
        UDP => datagram_end(bytes, start, packet_end, ip),
        _ => Some(packet_end),
    };
    let addresses = if pseudo_header {
        checked_addresses(bytes, ip, &transport)
    } else {
        Some(0)
    };
    let (Some(end), Some(addresses)) = (end, addresses) else {
        return Repair::UNKNOWN;
    };
    let at = start + offset;
    let stored = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    if protocol == UDP && stored == 0 && ip.version == IpVersion::V4 {
        // UDP over IPv4 may omit the checksum.
        return Repair::RIGHT;
    }
    bytes[at..at + 2].fill(0);
    let mut sum = sum_words(&bytes[start..end]);
    if pseudo_header {
        sum += addresses + u64::from(protocol) + (end - start) as u64;
    }
    let sum = match !fold(sum) {
        0 if protocol == UDP => 0xffff,
        sum => sum,
    };
    put_word(bytes, at, sum);
    // In a one's complement sum, zero and its complement are equal; only UDP distinguishes them.
    let wrong = sum != stored && (protocol == UDP || sum != !stored || !matches!(sum, 0 | 0xffff));
    Repair::of(wrong, false)
}

/// Returns the sum of the pseudo-header's addresses, if available.
fn checked_addresses(bytes: &[u8], ip: &IpHeader, transport: &Transport) -> Option<u64> {
    let len = ip.version.address_len();
    let at = [transport.checked_source, transport.checked_destination?];
    let [source, destination] = at.map(|at| bytes.get(at..at + len).map(sum_words));
    Some(source? + destination?)
}

/// Returns the end of the UDP datagram at `start`, from its length (RFC 768). In super-packets and
/// over IPv6 (RFC 2675), zero means the whole packet.
fn datagram_end(bytes: &[u8], start: usize, packet_end: usize, ip: &IpHeader) -> Option<usize> {
    const HEADER_LEN: usize = 8;
    let len = usize::from(u16::from_be_bytes([bytes[start + 4], bytes[start + 5]]));
    if len == 0 && (ip.version == IpVersion::V6 || is_super_packet(bytes, ip)) {
        return Some(packet_end);
    }
    let end = start + len;
    (len >= HEADER_LEN && end <= packet_end).then_some(end)
}

/// Returns the offset of an IP packet's length field, and the offset from which the length is
/// measured.
#[inline]
pub(crate) fn length_field(bytes: &[u8], ip: &IpHeader) -> (usize, usize) {
    match ip.version {
        IpVersion::V4 => (ip.at + 2, ip.at),
        IpVersion::V6 => (ip.at + 4, ip.end(bytes)),
    }
}

/// Whether the length field is zero because the packet is a super-packet handed to an interface. An
/// IPv6 packet without payload also has a zero length, but is not a super-packet.
pub(crate) fn is_super_packet(bytes: &[u8], ip: &IpHeader) -> bool {
    const JUMBO_PAYLOAD: [u8; 2] = [0xc2, 4];
    let (at, from) = length_field(bytes, ip);
    if bytes[at..at + 2] != [0, 0] {
        return false;
    }
    match (ip.version, ip.protocol) {
        (IpVersion::V4, _) | (_, 6 | UDP) => true,
        (_, 0) => bytes.get(from + 2..from + 4) == Some(&JUMBO_PAYLOAD),
        _ => false,
    }
}

/// Returns the packet's end within the frame. A super-packet without a length ends with the frame.
#[inline]
pub(crate) fn packet_end(bytes: &[u8], ip: &IpHeader) -> usize {
    let (at, from) = length_field(bytes, ip);
    match usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]])) {
        0 if is_super_packet(bytes, ip) => bytes.len(),
        len => from + len,
    }
}

/// Repairs an SCTP packet's checksum: CRC32c computed with a zero checksum field and stored in
/// little-endian order (RFC 9260, section 6.8 and appendix A). Returns whether it was wrong.
pub(crate) fn repair_sctp(packet: &mut [u8]) -> bool {
    const CHECKSUM: core::ops::Range<usize> = 8..12;
    let Some(stored) = array::<4>(packet, CHECKSUM.start) else {
        return false;
    };
    packet[CHECKSUM].fill(0);
    let sum = crc32c(&[packet]).to_le_bytes();
    packet[CHECKSUM].copy_from_slice(&sum);
    sum != stored
}
