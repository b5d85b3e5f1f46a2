//! Packs the fields of frames and matchers into words, so that one masked comparison checks all of
//! them.

use super::matcher::{Matcher, PortRange, Prefix, VlanMatch};
use crate::bridge::PortIndex;
use crate::bytes::{array, left_aligned, ones, word};
use crate::flow::ports;
use crate::frame::mac_header_len;
use crate::header::{IpHeader, IpVersion, WITH_PORTS};
use crate::mac::MacAddress;

/// Number of words in a key.
///
/// | word | IPv4 | IPv6 and others |
/// |---|---|---|
/// | 0 | source and destination address | source address, first half |
/// | 1–3 | | its second half; destination address |
/// | 4 | source MAC address, type | the same |
/// | 5 | destination MAC address, arrival port | the same |
/// | 6 | ports, protocol, code point, outer VLAN tag | the same |
/// | 7 | second VLAN tag | the same |
///
/// An IPv4 address pair fits in one word, which makes the most common rules the cheapest.
pub(super) const WORDS: usize = 8;

/// Presence flags, because zero is a valid field value.
pub(super) mod presence {
    /// A complete Ethernet header.
    pub const ETHER: u16 = 1;
    /// The type after all VLAN tags.
    pub const TYPE: u16 = 1 << 1;
    pub const VLAN: u16 = 1 << 2;
    pub const INNER: u16 = 1 << 3;
    /// A complete IP header, of either version.
    pub const IP: u16 = 1 << 4;
    pub const V4: u16 = 1 << 5;
    pub const V6: u16 = 1 << 6;
    pub const PROTOCOL: u16 = 1 << 7;
    pub const PORTS: u16 = 1 << 8;
}
use presence::{ETHER, INNER, IP, PORTS, PROTOCOL, TYPE, V4, V6, VLAN};

/// Position of a field: word, shift, and mask before shifting.
type FieldPlace = (usize, u32, u64);
const SOURCE_MAC: FieldPlace = (4, 16, 0xffff_ffff_ffff);
const ETHERTYPE: FieldPlace = (4, 0, 0xffff);
const DESTINATION_MAC: FieldPlace = (5, 16, 0xffff_ffff_ffff);
const ARRIVAL_PORT: FieldPlace = (5, 0, 0xffff);
const SOURCE_PORT: FieldPlace = (6, 48, 0xffff);
const DESTINATION_PORT: FieldPlace = (6, 32, 0xffff);
const PROTOCOL_NUMBER: FieldPlace = (6, 24, 0xff);
const DSCP: FieldPlace = (6, 16, 0x3f);
const VLAN_PRIORITY: FieldPlace = (6, 12, 7);
const VLAN_ID: FieldPlace = (6, 0, 0xfff);
const INNER_ID: FieldPlace = (7, 0, 0xfff);

/// Mask of the outer VLAN tag's priority and ID in word 6.
pub(super) const VLAN_PRIORITY_AND_ID: u64 = 7 << 12 | 0xfff;

const TYPE_V4: u16 = 0x0800;
const TYPE_V6: u16 = 0x86dd;

/// The fields of a frame that a classifier uses.
#[derive(Clone, Copy, Debug)]
pub struct FrameKey(pub(super) UsedFields);

#[derive(Clone, Copy, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "lookups of addresses write only the small variant"
)]
pub(super) enum UsedFields {
    /// Masked word 0 of an IPv4 frame, for a classifier that uses nothing else.
    Addresses(u64),
    All(FrameFields),
}

impl FrameKey {
    /// Sets the ports of a later fragment to those of its datagram.
    #[inline]
    pub fn set_ports(&mut self, ports: (u16, u16)) {
        if let UsedFields::All(fields) = &mut self.0 {
            fields.set_ports(ports);
        }
    }
}

/// Returns word 0 of an untagged IPv4 frame.
#[inline(always)]
pub(super) fn untagged_addresses(frame: &[u8]) -> Option<u64> {
    let header = frame.first_chunk::<34>()?;
    let is_v4 = header[12] == 0x08 && header[13] == 0 && header[14] >> 4 == 4;
    is_v4.then(|| array(header, 26).map_or(0, u64::from_be_bytes))
}

/// The fields of a frame that rules may use.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameFields {
    pub presence: u16,
    pub words: [u64; WORDS],
}

impl FrameFields {
    /// Extracts a frame's fields. Fields after the IP header are extracted only if `with_transport`
    /// is set, and the Ethernet header and ingress port of an untagged IPv4 frame only if
    /// `below_ip` is set.
    #[inline]
    pub(super) fn of(
        arrival: PortIndex,
        frame: &[u8],
        with_transport: bool,
        below_ip: bool,
    ) -> FrameFields {
        let mut key = FrameFields {
            presence: 0,
            words: [0; WORDS],
        };
        if !below_ip
            && let Some(&[0x08, 0x00]) = frame.get(12..14)
            && let Some(ip) = IpHeader::parse_at(frame, 14, IpVersion::V4)
        {
            key.presence = ETHER | TYPE;
            key.read_ip(frame, &ip, with_transport);
            return key;
        }
        key.words[5] = arrival.0.into();
        let Some(header) = frame.first_chunk::<14>() else {
            return key;
        };
        let [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, ..] = *header;
        key.words[4] = u64::from_be_bytes([s0, s1, s2, s3, s4, s5, 0, 0]);
        key.words[5] |= u64::from_be_bytes([d0, d1, d2, d3, d4, d5, 0, 0]);
        key.presence = ETHER;
        let type_at = mac_header_len(frame) as usize - 2;
        if type_at > 12 {
            key.read_tags(frame, type_at);
        }
        let Some(ethertype) = word(frame, type_at) else {
            return key;
        };
        key.presence |= TYPE;
        key.words[4] |= u64::from(ethertype);
        let version = match ethertype {
            TYPE_V4 => IpVersion::V4,
            TYPE_V6 => IpVersion::V6,
            _ => return key,
        };
        if let Some(ip) = IpHeader::parse_at(frame, type_at + 2, version) {
            key.read_ip(frame, &ip, with_transport);
        }
        key
    }

    fn read_tags(&mut self, frame: &[u8], type_at: usize) {
        if let Some(tag) = word(frame, 14) {
            self.presence |= VLAN;
            let tag = u64::from(tag);
            self.words[6] |= tag >> 13 << VLAN_PRIORITY.1 | tag & 0xfff;
        }
        if type_at >= 20
            && let Some(tag) = word(frame, 18)
        {
            self.presence |= INNER;
            self.words[7] = u64::from(tag) & 0xfff;
        }
    }

    #[inline]
    fn read_ip(&mut self, frame: &[u8], ip: &IpHeader, with_transport: bool) {
        let load = |at| array(frame, at).map_or(0, u64::from_be_bytes);
        self.words[6] |= u64::from(ip.dscp) << DSCP.1;
        match ip.version {
            IpVersion::V4 => {
                self.presence |= IP | V4;
                self.words[0] = load(ip.at + 12);
            }
            IpVersion::V6 => {
                self.presence |= IP | V6;
                for (index, half) in self.words[..4].iter_mut().enumerate() {
                    *half = load(ip.at + 8 + 8 * index);
                }
            }
        }
        if !with_transport {
            return;
        }
        let transport = ip.transport(frame);
        let protocol = match ip.version {
            // In IPv4, the protocol is in the fixed header.
            IpVersion::V4 => Some(ip.protocol),
            IpVersion::V6 => transport.map(|transport| transport.protocol),
        };
        if let Some(protocol) = protocol {
            self.presence |= PROTOCOL;
            self.words[6] |= u64::from(protocol) << PROTOCOL_NUMBER.1;
        }
        if let Some(ports) = transport.and_then(|transport| ports(frame, &transport)) {
            self.set_ports(ports);
        }
    }

    /// Sets the ports of a later fragment to those of its datagram.
    #[inline]
    pub fn set_ports(&mut self, (source, destination): (u16, u16)) {
        if self.presence & PROTOCOL != 0 {
            self.presence |= PORTS;
            self.words[6] |= u64::from(source) << SOURCE_PORT.1;
            self.words[6] |= u64::from(destination) << DESTINATION_PORT.1;
        }
    }

    /// Returns source and destination port; zero if absent.
    pub(super) fn ports(&self) -> (u16, u16) {
        (
            (self.words[6] >> SOURCE_PORT.1) as u16,
            (self.words[6] >> DESTINATION_PORT.1) as u16,
        )
    }
}

/// A matcher's conditions, except ranges and filter: fields that must be present or absent, and the
/// values of bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cube {
    pub asked: u16,
    pub presence: u16,
    pub mask: [u64; WORDS],
    pub value: [u64; WORDS],
    /// Whether some field must be both present and absent.
    contradicts: bool,
}

/// Implications between presence conditions; their contrapositives hold too.
const IMPLIED: [((u16, bool), (u16, bool)); 9] = [
    ((INNER, true), (VLAN, true)),
    ((VLAN, true), (ETHER, true)),
    ((TYPE, true), (ETHER, true)),
    ((IP, true), (TYPE, true)),
    ((V4, true), (IP, true)),
    ((V6, true), (IP, true)),
    ((V4, true), (V6, false)),
    ((PROTOCOL, true), (IP, true)),
    ((PORTS, true), (PROTOCOL, true)),
];

impl Cube {
    pub fn of(matcher: &Matcher) -> Cube {
        let mut cube = Cube {
            asked: 0,
            presence: 0,
            mask: [0; WORDS],
            value: [0; WORDS],
            contradicts: false,
        };
        let mac = |address| MacAddress(address).to_u64();
        let port = |range: Option<PortRange>| range.and_then(|range| range.single()).map(u64::from);
        let arrival = matcher.arrival_port.map(|port| port.0.into());
        let fields = [
            (ETHER, SOURCE_MAC, matcher.source_mac.map(mac)),
            (ETHER, DESTINATION_MAC, matcher.destination_mac.map(mac)),
            (TYPE, ETHERTYPE, matcher.ethertype.map(u64::from)),
            (0, ARRIVAL_PORT, arrival),
            (PORTS, SOURCE_PORT, port(matcher.source_ports)),
            (PORTS, DESTINATION_PORT, port(matcher.destination_ports)),
            (PROTOCOL, PROTOCOL_NUMBER, matcher.protocol.map(u64::from)),
            (IP, DSCP, matcher.dscp.map(u64::from)),
            (VLAN, VLAN_PRIORITY, matcher.vlan_priority.map(u64::from)),
            (INNER, INNER_ID, matcher.inner_vlan.map(u64::from)),
        ];
        for (flag, place, value) in fields {
            if let Some(value) = value {
                cube.ask(flag, true);
                cube.set(place, value);
            }
        }
        if matcher.source_ports.is_some() || matcher.destination_ports.is_some() {
            cube.ask(PORTS, true);
        }
        match matcher.vlan {
            Some(VlanMatch::Id(id)) => {
                cube.ask(VLAN, true);
                cube.set(VLAN_ID, id.into());
            }
            Some(VlanMatch::Untagged) => cube.ask(VLAN, false),
            None => {}
        }
        cube.set_address(matcher.source, false);
        cube.set_address(matcher.destination, true);
        cube
    }

    fn set(&mut self, (word, shift, mask): FieldPlace, value: u64) {
        self.mask[word] |= mask << shift;
        self.value[word] |= (value & mask) << shift;
    }

    fn ask(&mut self, flag: u16, there: bool) {
        self.contradicts |= self.asked & flag != 0 && (self.presence & flag != 0) != there;
        self.asked |= flag;
        self.presence |= if there { flag } else { 0 };
    }

    fn set_address(&mut self, prefix: Option<Prefix>, destination: bool) {
        let Some(prefix) = prefix else { return };
        let (mask, value) = (ones(prefix.bits()), left_aligned(prefix.address()));
        if prefix.address().is_ipv4() {
            self.ask(V4, true);
            let shift = if destination { 0 } else { 32 };
            self.mask[0] |= ((mask >> 96) as u64) << shift;
            self.value[0] |= ((value >> 96) as u64) << shift;
        } else {
            self.ask(V6, true);
            let at = 2 * usize::from(destination);
            for (half, shift) in [(at, 64), (at + 1, 0)] {
                self.mask[half] = (mask >> shift) as u64;
                self.value[half] = (value >> shift) as u64;
            }
        }
    }

    /// Whether some frame satisfies both.
    pub fn meets(&self, other: &Cube) -> bool {
        let mut words = (0..WORDS)
            .map(|at| (self.value[at] ^ other.value[at]) & self.mask[at] & other.mask[at]);
        (self.presence ^ other.presence) & self.asked & other.asked == 0
            && words.all(|difference| difference == 0)
    }

    /// Whether every frame in a closed cube is also in this one.
    pub fn covers(&self, closed: &Cube) -> bool {
        let within = |at: usize| {
            closed.mask[at] & self.mask[at] == self.mask[at]
                && closed.value[at] & self.mask[at] == self.value[at]
        };
        closed.asked & self.asked == self.asked
            && closed.presence & self.asked == self.presence
            && (0..WORDS).all(within)
    }

    /// Returns the closure under implications; `None` if contradictory.
    pub fn closed(mut self) -> Option<Cube> {
        if self.contradicts {
            return None;
        }
        loop {
            let before = self;
            for ((first, is), (second, so)) in IMPLIED {
                self.imply((first, is), (second, so))?;
                self.imply((second, !so), (first, !is))?;
            }
            // Every IP header is IPv4 or IPv6.
            if self.says(IP) == Some(true) {
                self.imply((V4, false), (V6, true))?;
                self.imply((V6, false), (V4, true))?;
            }
            self.close_values()?;
            if self == before {
                return Some(self);
            }
        }
    }

    fn says(&self, flag: u16) -> Option<bool> {
        (self.asked & flag != 0).then_some(self.presence & flag != 0)
    }

    fn imply(&mut self, condition: (u16, bool), (flag, there): (u16, bool)) -> Option<()> {
        if self.says(condition.0) == Some(condition.1) {
            match self.says(flag) {
                Some(said) => return (said == there).then_some(()),
                None => self.ask(flag, there),
            }
        }
        Some(())
    }

    /// Adds implications between types and protocols.
    fn close_values(&mut self) -> Option<()> {
        let always = (ETHER, true);
        for (flag, ethertype) in [(V4, TYPE_V4), (V6, TYPE_V6)] {
            if self.says(flag) != Some(true) {
                continue;
            }
            match self.field(ETHERTYPE) {
                Some(given) => (given == u64::from(ethertype)).then_some(())?,
                None => self.set(ETHERTYPE, ethertype.into()),
            }
        }
        if let Some(given) = self.field(ETHERTYPE) {
            for (flag, ethertype) in [(V4, TYPE_V4), (V6, TYPE_V6)] {
                if given != u64::from(ethertype) {
                    self.imply(always, (flag, false))?;
                }
            }
            if ![TYPE_V4, TYPE_V6].map(u64::from).contains(&given) {
                self.imply(always, (IP, false))?;
            }
        }
        if let Some(given) = self.field(PROTOCOL_NUMBER)
            && !WITH_PORTS.map(u64::from).contains(&given)
        {
            self.imply(always, (PORTS, false))?;
        }
        Some(())
    }

    fn field(&self, (word, shift, mask): FieldPlace) -> Option<u64> {
        let given = self.mask[word] >> shift & mask == mask;
        given.then_some(self.value[word] >> shift & mask)
    }
}
