//! Flow hashes over the keys of Linux's flow dissector (`skb_get_hash`).

use crate::bytes::{array, word};
use crate::frame::{VLAN_TYPES, mac_header_len};
use crate::header::{IpHeader, IpVersion, WITH_PORTS};

/// Maximum number of headers, equal to the limit of Linux.
const HEADERS_MAX: u32 = 15;

/// EtherType of encapsulated Ethernet.
const ETHERNET: u16 = 0x6558;
const PPPOE_SESSION: u16 = 0x8864;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// PPP in GRE (RFC 2637).
const PPP: u16 = 0x880b;

/// Returns a hash of a flow's key (RFC 8290, section 4.1).
///
/// The key is that of Linux's flow dissector: the addresses in the innermost IP header within PPPoE
/// sessions, IP in IP and GRE (with the GRE or PPTP key), its protocol, and the ports or the IPsec
/// SPI. An IPv6 flow label replaces the ports. Fragments, even the first one, have no ports, so
/// that a datagram stays in one flow. The outermost VLAN tag is included. Frames without IP form
/// one flow per MAC address pair and type.
pub fn flow_hash(frame: &[u8], perturbation: u64) -> u64 {
    let mut hash = FlowHash::new(perturbation);
    if let Some(start) = plain_start(frame) {
        // Equal to the hash of the dissected keys.
        hash.absorb(&start[26..34]);
        hash.absorb(&start[23..24]);
        hash.absorb(&start[34..38]);
        return hash.finish();
    }
    hash.absorb_keys(frame, &FlowKeys::dissected(frame));
    hash.finish()
}

/// Returns the first bytes of an unfragmented, untagged IPv4 packet of TCP or UDP without options, a
/// common case that needs no loop.
#[inline]
fn plain_start(frame: &[u8]) -> Option<&[u8; 38]> {
    const TCP: u8 = 6;
    const UDP: u8 = 17;
    let start: &[u8; 38] = frame.first_chunk()?;
    let is_ipv4 = start[12..15] == [0x08, 0x00, 0x45];
    let is_whole = start[20] & 0x3f | start[21] == 0;
    (is_ipv4 && is_whole && matches!(start[23], TCP | UDP)).then_some(start)
}

#[derive(Debug, Default, PartialEq, Eq)]
struct FlowKeys {
    /// Offset of the addresses in the innermost IP header.
    addresses: Option<(usize, IpVersion)>,
    protocol: u8,
    /// Source and destination port, or an SPI.
    ports: [u8; 4],
    others: OtherKeys,
}

/// Rarely used parts of the key.
#[derive(Debug, Default, PartialEq, Eq)]
struct OtherKeys {
    label: u32,
    gre_key: u32,
    vlan: u16,
}

/// Next header, with its offset.
enum NextHeader {
    /// Identified by EtherType.
    Type(u16, usize),
    /// Identified by IP protocol.
    Protocol(u8, usize),
}

impl FlowKeys {
    #[inline(never)]
    fn dissected(frame: &[u8]) -> FlowKeys {
        let mut keys = FlowKeys::default();
        keys.dissect(frame);
        keys
    }

    fn dissect(&mut self, frame: &[u8]) {
        let at = mac_header_len(frame) as usize;
        let Some(kind) = word(frame, at - 2) else {
            return;
        };
        if let Some(tag) = word(frame, 14).filter(|_| at > 14) {
            // Priority and ID, without the drop eligible indicator.
            self.others.vlan = tag & 0xefff;
        }
        let mut next = Some(NextHeader::Type(kind, at));
        // In IPv6, extension headers count as headers.
        let mut in_ipv6 = false;
        for _ in 0..HEADERS_MAX {
            next = match next {
                None => return,
                Some(NextHeader::Type(kind, at)) => {
                    in_ipv6 = kind == IPV6;
                    self.of_type(frame, kind, at)
                }
                Some(NextHeader::Protocol(protocol, at)) => {
                    self.of_protocol(frame, protocol, at, in_ipv6)
                }
            };
        }
    }

    fn of_type(&mut self, frame: &[u8], kind: u16, at: usize) -> Option<NextHeader> {
        match kind {
            IPV4 => self.of_ipv4(frame, at),
            IPV6 => self.of_ipv6(frame, at),
            PPPOE_SESSION => {
                let protocol = frame.get(at + 6..)?;
                ppp(protocol, at + 6)
            }
            // VLAN tags of a frame carried over GRE.
            _ if VLAN_TYPES.contains(&kind) => Some(NextHeader::Type(word(frame, at + 2)?, at + 4)),
            _ => None,
        }
    }

    fn of_ipv4(&mut self, frame: &[u8], at: usize) -> Option<NextHeader> {
        let ip = IpHeader::parse_at(frame, at, IpVersion::V4)?;
        self.addresses = Some((at + 12, IpVersion::V4));
        self.protocol = ip.protocol;
        // Not a fragment.
        let is_whole = word(frame, at + 6)? & 0x3fff == 0;
        is_whole.then(|| NextHeader::Protocol(ip.protocol, ip.end(frame)))
    }

    fn of_ipv6(&mut self, frame: &[u8], at: usize) -> Option<NextHeader> {
        let ip = IpHeader::parse_at(frame, at, IpVersion::V6)?;
        self.addresses = Some((at + 8, IpVersion::V6));
        self.protocol = ip.protocol;
        let label = [0, frame[at + 1] & 0x0f, frame[at + 2], frame[at + 3]];
        self.others.label = u32::from_be_bytes(label);
        if self.others.label != 0 {
            return None;
        }
        Some(NextHeader::Protocol(ip.protocol, ip.end(frame)))
    }

    fn of_protocol(
        &mut self,
        frame: &[u8],
        protocol: u8,
        at: usize,
        in_ipv6: bool,
    ) -> Option<NextHeader> {
        self.protocol = protocol;
        match protocol {
            // Hop-by-hop options, routing, destination options.
            0 | 43 | 60 if in_ipv6 => {
                let [next, len] = array(frame, at)?;
                Some(NextHeader::Protocol(next, at + (usize::from(len) + 1) * 8))
            }
            // A fragment: ports are missing, or present only in the first one.
            44 if in_ipv6 => {
                self.protocol = *frame.get(at)?;
                None
            }
            4 => Some(NextHeader::Type(IPV4, at)),
            41 => Some(NextHeader::Type(IPV6, at)),
            47 => self.of_gre(frame, at),
            // ESP; authentication header.
            50 => self.absorb_ports(frame, at),
            51 => self.absorb_ports(frame, at + 4),
            _ if WITH_PORTS.contains(&protocol) => self.absorb_ports(frame, at),
            _ => None,
        }
    }

    fn absorb_ports(&mut self, frame: &[u8], at: usize) -> Option<NextHeader> {
        self.ports = array(frame, at)?;
        None
    }

    /// Parses GRE (RFC 2784, 2890) and its PPTP variant (RFC 2637), without source routing.
    fn of_gre(&mut self, frame: &[u8], at: usize) -> Option<NextHeader> {
        let [flags, version] = word(frame, at)?.to_be_bytes();
        let is_pptp = version & 7 == 1;
        if flags & 0x40 != 0 || version & 7 > 1 {
            return None;
        }
        let kind = word(frame, at + 2)?;
        let mut end = at + 4;
        if flags & 0x80 != 0 {
            end += 4;
        }
        if flags & 0x20 != 0 {
            let key = array(frame, end)?;
            // The PPTP key contains payload length and call ID.
            self.others.gre_key = u32::from_be_bytes(match key {
                [_, _, a, b] if is_pptp => [0, 0, a, b],
                key => key,
            });
            end += 4;
        }
        if flags & 0x10 != 0 {
            end += 4;
        }
        if is_pptp {
            if version & 0x80 != 0 {
                end += 4;
            }
            // Address and control fields precede the protocol.
            let protocol = frame.get(end + 2..)?;
            return (kind == PPP).then(|| ppp(protocol, end + 2)).flatten();
        }
        match kind {
            ETHERNET => Some(NextHeader::Type(word(frame, end + 12)?, end + 14)),
            kind => Some(NextHeader::Type(kind, end)),
        }
    }
}

/// Parses a PPP frame from its protocol field, which may be compressed.
fn ppp(frame: &[u8], at: usize) -> Option<NextHeader> {
    match frame {
        [0x00, 0x21, ..] => Some(NextHeader::Type(IPV4, at + 2)),
        [0x00, 0x57, ..] => Some(NextHeader::Type(IPV6, at + 2)),
        [0x21, ..] => Some(NextHeader::Type(IPV4, at + 1)),
        [0x57, ..] => Some(NextHeader::Type(IPV6, at + 1)),
        _ => None,
    }
}

/// A multiply-and-mix hash over words. Flow hashing needs an even distribution, not secrecy.
struct FlowHash(u64);

impl FlowHash {
    fn new(perturbation: u64) -> FlowHash {
        FlowHash(0xcbf2_9ce4_8422_2325 ^ perturbation)
    }

    fn absorb_keys(&mut self, frame: &[u8], keys: &FlowKeys) {
        match keys.addresses {
            Some((at, IpVersion::V4)) => self.absorb(&frame[at..][..8]),
            Some((at, IpVersion::V6)) => self.absorb(&frame[at..][..32]),
            None => self.absorb(&frame[..frame.len().min(14)]),
        }
        self.absorb(&[keys.protocol]);
        self.absorb(&keys.ports);
        if keys.others != OtherKeys::default() {
            self.absorb(&keys.others.label.to_be_bytes());
            self.absorb(&keys.others.gre_key.to_be_bytes());
            self.absorb(&keys.others.vlan.to_be_bytes());
        }
    }

    // Always inlined, because lengths are constant at call sites.
    #[inline(always)]
    fn absorb(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.mix(*word));
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            self.mix(word);
        }
    }

    #[inline(always)]
    fn mix(&mut self, word: [u8; 8]) {
        let mixed = (self.0 ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 29;
    }

    fn finish(self) -> u64 {
        let mixed = (self.0 ^ self.0 >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        mixed ^ mixed >> 32
    }
}

#[cfg(test)]
#[path = "flow_hash_tests.rs"]
mod tests;
