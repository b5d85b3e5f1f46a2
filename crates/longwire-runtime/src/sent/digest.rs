//! Frame digests that ignore fields a network may change.

use std::str::FromStr;

use longwire_packet::header::{IpHeader, IpVersion, Piece, Transport};

/// Header fields ignored by a digest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IgnoredFields {
    mac: bool,
    address: bool,
    port: bool,
    tos: bool,
    ttl: bool,
    checksum: bool,
}

/// A field's name and its flag.
type Field = (&'static str, fn(&mut IgnoredFields) -> &mut bool);

const FIELDS: [Field; 6] = [
    ("mac", |ignored| &mut ignored.mac),
    ("address", |ignored| &mut ignored.address),
    ("port", |ignored| &mut ignored.port),
    ("tos", |ignored| &mut ignored.tos),
    ("ttl", |ignored| &mut ignored.ttl),
    ("checksum", |ignored| &mut ignored.checksum),
];

/// The error for an unknown field name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a field that can be ignored; write mac, address, port, tos, ttl or checksum")]
pub struct UnknownField(String);

impl FromStr for IgnoredFields {
    type Err = UnknownField;

    /// Parses comma-separated names, such as `mac,ttl,checksum`.
    fn from_str(text: &str) -> Result<IgnoredFields, UnknownField> {
        let mut ignored = IgnoredFields::default();
        for name in text.split(',').map(str::trim) {
            let field = FIELDS.iter().find(|(known, _)| *known == name);
            let (_, set) = field.ok_or_else(|| UnknownField(name.to_owned()))?;
            *set(&mut ignored) = true;
        }
        Ok(ignored)
    }
}

/// Length in bytes that contains all ignored fields.
const HEAD: usize = 256;

/// Returns the digest of a frame. Frames that differ only in ignored fields have equal
/// digests; others collide with a probability of about 2^-64. Bytes missing from a
/// truncated frame count as zeros.
#[inline]
pub fn digest(bytes: &[u8], wire_len: u32, ignored: &IgnoredFields) -> u64 {
    let mut digest = Digest::new(wire_len);
    let (head, rest) = bytes.split_at(bytes.len().min(HEAD));
    if *ignored == IgnoredFields::default() {
        digest.absorb(head);
    } else {
        let mut copy = [0; HEAD];
        let copy = &mut copy[..head.len()];
        copy.copy_from_slice(head);
        blank(copy, ignored);
        digest.absorb(copy);
    }
    digest.absorb(rest);
    digest.finish(bytes.len(), wire_len)
}

/// Zeroes the ignored fields.
fn blank(head: &mut [u8], ignored: &IgnoredFields) {
    if ignored.mac {
        zero(head, 0, 12);
    }
    let Some(ip) = IpHeader::parse(head) else {
        return;
    };
    let transport = ip.transport(head);
    match ip.version {
        IpVersion::V4 => blank_v4(head, ip.at, ignored),
        IpVersion::V6 => blank_v6(head, ip.at, ignored),
    }
    if let Some(transport) = transport.filter(|found| found.piece != Piece::Later) {
        blank_transport(head, &transport, ignored);
    }
}

fn blank_v4(head: &mut [u8], at: usize, ignored: &IgnoredFields) {
    if ignored.tos {
        zero(head, at + 1, 1);
    }
    if ignored.ttl {
        zero(head, at + 8, 1);
    }
    // The header checksum covers all of these.
    if ignored.checksum || ignored.ttl || ignored.tos || ignored.address {
        zero(head, at + 10, 2);
    }
    if ignored.address {
        zero(head, at + 12, 8);
    }
}

fn blank_v6(head: &mut [u8], at: usize, ignored: &IgnoredFields) {
    if ignored.tos {
        // The traffic class spans both bytes.
        head[at] &= 0xf0;
        head[at + 1] &= 0x0f;
    }
    if ignored.ttl {
        zero(head, at + 7, 1);
    }
    if ignored.address {
        zero(head, at + 8, 32);
    }
}

/// Protocols that start with two ports, with offset and length of their checksum: TCP,
/// UDP, DCCP, SCTP.
const WITH_PORTS: [(u8, usize, usize); 4] = [(6, 16, 2), (17, 6, 2), (33, 6, 2), (132, 8, 4)];

/// The same for protocols without ports: ICMP, IGMP, ICMPv6.
const WITHOUT_PORTS: [(u8, usize, usize); 3] = [(1, 2, 2), (2, 2, 2), (58, 2, 2)];

fn blank_transport(head: &mut [u8], transport: &Transport, ignored: &IgnoredFields) {
    let same = |known: &&(u8, usize, usize)| known.0 == transport.protocol;
    let with_ports = WITH_PORTS.iter().find(same);
    if ignored.port && with_ports.is_some() {
        zero(head, transport.at, 4);
    }
    // Covers the ports and, by the pseudo-header, the addresses.
    let covered = ignored.checksum || ignored.address || ignored.port && with_ports.is_some();
    let checksum = with_ports.or_else(|| WITHOUT_PORTS.iter().find(same));
    if let Some((_, at, len)) = checksum.filter(|_| covered) {
        zero(head, transport.at + at, *len);
    }
}

fn zero(head: &mut [u8], from: usize, len: usize) {
    let end = (from + len).min(head.len());
    if let Some(field) = head.get_mut(from..end) {
        field.fill(0);
    }
}

/// A word-wise hash: both halves of the 128-bit product of two words, combined by XOR,
/// depend on all their bits.
struct Digest(u64);

impl Digest {
    const KEY: u64 = 0x9e37_79b9_7f4a_7c15;

    fn new(wire_len: u32) -> Digest {
        Digest(u64::from(wire_len) ^ 0xd6e8_feb8_6659_fd93)
    }

    #[inline]
    fn word(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * u128::from(Digest::KEY);
        self.0 = (product as u64 ^ (product >> 64) as u64).rotate_left(23) ^ Digest::KEY;
    }

    /// Hashes bytes; zeros pad the last word.
    #[inline]
    fn absorb(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.word(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            self.word(u64::from_le_bytes(last));
        }
    }

    /// Hashes zeros for the missing words of the frame.
    fn finish(mut self, held: usize, wire_len: u32) -> u64 {
        let missing = (wire_len as usize)
            .div_ceil(8)
            .saturating_sub(held.div_ceil(8));
        (0..missing).for_each(|_| self.word(0));
        self.word(Digest::KEY);
        self.0
    }
}
