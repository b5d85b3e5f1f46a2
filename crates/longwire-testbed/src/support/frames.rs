//! Frames as senders create them, and checksum verification independent of `longwire-packet`.

/// Source of IPv4 packets created by this module, unless specified.
pub const SOURCE4: [u8; 4] = [10, 1, 2, 3];
/// Destination of IPv4 packets created by this module, unless specified.
pub const DESTINATION4: [u8; 4] = [192, 0, 2, 77];
/// Source of IPv6 packets created by this module.
pub const SOURCE6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
/// Destination of IPv6 packets created by this module.
pub const DESTINATION6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];

/// Protocol numbers, and the offset of the checksum in their headers.
const CHECKSUM_AT: [(u8, usize); 4] = [(6, 16), (17, 6), (1, 2), (58, 2)];

/// Returns the one's complement sum of the words of all parts (RFC 1071: the sum modulo 65535, but
/// 65535 instead of 0 if any bit is set). The checksum is its complement.
pub fn sum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0u64;
    for part in parts {
        for (index, byte) in part.iter().enumerate() {
            sum += u64::from(*byte) << if index % 2 == 0 { 8 } else { 0 };
        }
    }
    match sum {
        0 => 0,
        sum => ((sum - 1) % 65_535 + 1) as u16,
    }
}

/// Returns the remainder of the sum of all words, which is zero if the bytes include a correct
/// checksum.
pub fn remainder(parts: &[&[u8]]) -> u64 {
    u64::from(sum(parts)) % 65_535
}

/// Returns the CRC32c of SCTP, computed bit by bit as described in RFC 9260, appendix A.
pub fn crc32c(bytes: &[u8]) -> u32 {
    let mut remainder = !0u32;
    for byte in bytes {
        remainder ^= u32::from(*byte);
        for _ in 0..8 {
            remainder = (remainder >> 1) ^ (0x82f6_3b78 * (remainder & 1));
        }
    }
    !remainder
}

/// Returns the checksum that makes the remainder zero.
fn checksum(parts: &[&[u8]]) -> [u8; 2] {
    let missing = 65_535 - remainder(parts);
    (missing as u16).to_be_bytes()
}

/// Returns a frame: destination, source, VLAN tags, type, payload.
pub fn ethernet(vlans: &[u16], ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    for (index, vlan) in vlans.iter().enumerate() {
        let outer = index + 1 < vlans.len();
        frame.extend(if outer { [0x88, 0xa8] } else { [0x81, 0x00] });
        frame.extend(vlan.to_be_bytes());
    }
    frame.extend(ethertype.to_be_bytes());
    frame.extend(payload);
    frame
}

/// The header of an IPv4 packet.
#[derive(Clone, Copy, Debug)]
pub struct Ipv4<'a> {
    /// DSCP and ECN bits.
    pub class: u8,
    /// Time to live.
    pub ttl: u8,
    /// Flags and fragment offset.
    pub fragment: u16,
    /// Source address.
    pub source: [u8; 4],
    /// Destination address.
    pub destination: [u8; 4],
    /// Options, a multiple of four bytes.
    pub options: &'a [u8],
}

/// A header without options, DSCP, ECN or fragmentation.
pub const PLAIN4: Ipv4<'_> = Ipv4 {
    class: 0,
    ttl: 64,
    fragment: 0,
    source: SOURCE4,
    destination: DESTINATION4,
    options: &[],
};

impl Ipv4<'_> {
    /// Returns a packet with this payload.
    pub fn packet(&self, protocol: u8, payload: &[u8]) -> Vec<u8> {
        let header_len = 20 + self.options.len();
        let mut packet = vec![0x40 | (header_len / 4) as u8, self.class];
        packet.extend(((header_len + payload.len()) as u16).to_be_bytes());
        packet.extend([0x12, 0x34]);
        packet.extend(self.fragment.to_be_bytes());
        packet.extend([self.ttl, protocol, 0, 0]);
        packet.extend(self.source);
        packet.extend(self.destination);
        packet.extend(self.options);
        let sum = checksum(&[&packet]);
        packet[10..12].copy_from_slice(&sum);
        packet.extend(payload);
        packet
    }
}

/// Returns a UDP over IPv4 frame without a UDP checksum. Each MAC address has the last octet of its
/// IP address.
pub fn udp4(from: [u8; 4], to: [u8; 4], ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
    let mut datagram = [ports.0.to_be_bytes(), ports.1.to_be_bytes()].concat();
    datagram.extend((8 + payload.len() as u16).to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend(payload);
    let ip = Ipv4 {
        source: from,
        destination: to,
        ..PLAIN4
    };
    let mut frame = ethernet(&[], 0x0800, &ip.packet(17, &datagram));
    (frame[5], frame[11]) = (to[3], from[3]);
    frame
}

/// Returns an IPv6 packet. Each extension header has a type and bytes; the first byte is replaced
/// by the type of the next header.
pub fn ipv6(class: u8, extensions: &[(u8, &[u8])], protocol: u8, payload: &[u8]) -> Vec<u8> {
    let next = |index: usize| extensions.get(index).map_or(protocol, |(kind, _)| *kind);
    let mut behind = Vec::new();
    for (index, (_, bytes)) in extensions.iter().enumerate() {
        behind.push(next(index + 1));
        behind.extend(&bytes[1..]);
    }
    behind.extend(payload);
    let mut packet = vec![0x60 | class >> 4, class << 4 | 0xa, 0xbc, 0xde];
    packet.extend((behind.len() as u16).to_be_bytes());
    packet.extend([next(0), 61]);
    packet.extend(SOURCE6);
    packet.extend(DESTINATION6);
    packet.extend(behind);
    packet
}

/// Returns the pseudo-header, which a transport checksum covers in addition to the segment.
fn pseudo_header(addresses: &[u8], protocol: u8, len: usize) -> Vec<u8> {
    if protocol == 1 {
        return Vec::new();
    }
    let mut header = addresses.to_vec();
    header.extend([0, protocol]);
    header.extend((len as u32).to_be_bytes());
    header
}

/// Returns a transport header, with a checksum for this IP version, followed by its payload.
pub fn transport(
    version: u8,
    protocol: u8,
    ports: (u16, u16),
    flags: u8,
    payload: &[u8],
) -> Vec<u8> {
    let mut segment = match protocol {
        1 | 58 => vec![if protocol == 1 { 8 } else { 128 }, 0, 0, 0, 0, 7, 0, 1],
        _ => [ports.0.to_be_bytes(), ports.1.to_be_bytes()].concat(),
    };
    match protocol {
        6 => segment.extend([0, 0, 0, 9, 0, 0, 0, 8, 0x50, flags, 0xff, 0xff, 0, 0, 0, 0]),
        17 => {
            segment.extend(((8 + payload.len()) as u16).to_be_bytes());
            segment.extend([0, 0]);
        }
        _ => {}
    }
    segment.extend(payload);
    let addresses = match version {
        4 => [SOURCE4, DESTINATION4].concat(),
        _ => [SOURCE6, DESTINATION6].concat(),
    };
    let header = pseudo_header(&addresses, protocol, segment.len());
    let sum = checksum(&[&header, &segment]);
    if let Some((_, at)) = CHECKSUM_AT.iter().find(|(known, _)| *known == protocol) {
        segment[*at..*at + 2].copy_from_slice(&sum);
    }
    segment
}

/// Returns the checksum remainder of a UDP datagram that begins at `at` and extends to the end of
/// the bytes, as computed by its receiver: 0 if correct.
pub fn datagram_sum(version: u8, bytes: &[u8], at: usize) -> u64 {
    let addresses = match version {
        4 => &bytes[at - 8..at],
        _ => &bytes[at - 32..at],
    };
    let header = pseudo_header(addresses, 17, bytes.len() - at);
    remainder(&[&header, &bytes[at..]])
}

/// Returns whether the IPv4 header at this offset has a correct checksum.
pub fn header_holds(frame: &[u8], at: usize) -> bool {
    let len = usize::from(frame[at] & 15) * 4;
    remainder(&[&frame[at..at + len]]) == 0
}

/// A frame and its properties.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Short description.
    pub name: &'static str,
    /// Bytes of the frame.
    pub frame: Vec<u8>,
    /// IP version.
    pub version: u8,
    /// Transport protocol.
    pub protocol: u8,
    /// Offset of the IP header.
    pub ip_at: usize,
    /// Offset of the transport header.
    pub transport_at: usize,
}

impl Sample {
    /// Returns whether all checksums in these bytes are correct.
    pub fn holds(&self, bytes: &[u8]) -> bool {
        (self.version == 6 || header_holds(bytes, self.ip_at)) && self.transport_holds(bytes)
    }

    /// Returns whether the transport checksum is correct.
    pub fn transport_holds(&self, bytes: &[u8]) -> bool {
        let segment = &bytes[self.transport_at..];
        let addresses = match self.version {
            4 => &bytes[self.ip_at + 12..self.ip_at + 20],
            _ => &bytes[self.ip_at + 8..self.ip_at + 40],
        };
        let header = pseudo_header(addresses, self.protocol, segment.len());
        remainder(&[&header, segment]) == 0
    }
}

const HOP_BY_HOP: (u8, &[u8]) = (0, &[0, 0, 1, 4, 0, 0, 0, 0]);
const OPTIONS: (u8, &[u8]) = (60, &[0, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);

/// Returns TCP, UDP and ICMP over IPv4 and IPv6, with and without tags, options and extension
/// headers, with payloads of even and odd length.
pub fn samples() -> Vec<Sample> {
    let payload: Vec<u8> = (0..101u32).map(|n| (n * 37 % 251) as u8).collect();
    let router_alert = [0x94, 4, 0, 0];
    let mut samples = Vec::new();
    let mut add = |name, vlans: &[u16], version, protocol, extra: bool, payload: &[u8]| {
        let ports = (40_000, 443);
        let segment = transport(version, protocol, ports, 0x18, payload);
        let packet = match version {
            4 => Ipv4 {
                class: 0xba,
                options: if extra { &router_alert } else { &[] },
                ..PLAIN4
            }
            .packet(protocol, &segment),
            _ if extra => ipv6(0xba, &[HOP_BY_HOP, OPTIONS], protocol, &segment),
            _ => ipv6(0xba, &[], protocol, &segment),
        };
        let ethertype = if version == 4 { 0x0800 } else { 0x86dd };
        let ip_at = 14 + 4 * vlans.len();
        samples.push(Sample {
            name,
            version,
            protocol,
            ip_at,
            transport_at: ip_at + packet.len() - segment.len(),
            frame: ethernet(vlans, ethertype, &packet),
        });
    };
    add("tcp4", &[], 4, 6, false, &payload);
    add("udp4", &[], 4, 17, false, &payload[1..]);
    add("icmp4", &[], 4, 1, false, &payload);
    add("tcp4 vlan", &[7], 4, 6, false, &payload[..64]);
    add("udp4 vlan vlan", &[100, 7], 4, 17, true, &payload[..33]);
    add("tcp4 options", &[], 4, 6, true, &payload);
    add("tcp6", &[], 6, 6, false, &payload);
    add("udp6 vlan", &[7], 6, 17, false, &payload[..40]);
    add("icmp6", &[], 6, 58, false, &payload);
    add("udp6 extensions", &[], 6, 17, true, &payload);
    add("tcp6 extensions vlan", &[7], 6, 6, true, &payload[..1]);
    samples
}
