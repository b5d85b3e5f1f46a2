//! Filter tests and their evaluation.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::expression::{Expression, IpNumber};
use super::values::Net;
use crate::bytes::word;
use crate::frame::mac_header_len;
use crate::header::{IpHeader, IpVersion, Piece, Transport};

/// A filter expression.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Node {
    Test(Test),
    Not(Box<Node>),
    All(Vec<Node>),
    Any(Vec<Node>),
}

/// A test on a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Test {
    /// The type after all VLAN tags.
    EtherType(u16),
    /// The `nth` VLAN tag, outermost first, with this ID if given.
    Vlan { nth: usize, id: Option<u16> },
    /// The transport protocol after extension headers, or the first header after the IP header, for
    /// this IP version if given.
    Protocol {
        version: Option<IpVersion>,
        number: u8,
    },
    /// TCP, UDP or SCTP ports.
    Port { side: Side, low: u16, high: u16 },
    /// An address prefix.
    Net { side: Side, net: Net, of: Carrier },
    /// An Ethernet address.
    Mac { side: Side, address: [u8; 6] },
    /// A group destination.
    Group(Group),
    /// A comparison of two expressions.
    Relation(Box<(Expression, Relation, Expression)>),
    /// Whether an expression has a value.
    Present(Expression),
    /// TCP with at least one of these flags set.
    Flag(u8),
    /// A fragment.
    Fragment,
    /// Bytes at an offset.
    Bytes { offset: usize, bytes: Vec<u8> },
}

/// Selects source, destination, either or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Side {
    Source,
    Destination,
    Either,
    Both,
}

/// Protocols that carry IPv4 addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// IP, ARP or RARP.
    Any,
    /// IP.
    Ip,
    /// A packet in ARP format with this EtherType.
    Arp(u16),
}

/// Kinds of group destinations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Group {
    EtherBroadcast,
    EtherMulticast,
    Ip4Multicast,
    Ip6Multicast,
}

/// Base for byte offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// The frame.
    Ether,
    /// Contents of the outermost VLAN tag.
    Tag,
    /// ARP or RARP.
    Resolution,
    /// Payload of an Ethernet frame with this type.
    Typed(u16),
    /// IPv4.
    Ip4,
    /// IPv6.
    Ip6,
    /// Transport header of this protocol.
    Transport(u8),
}

/// A relational operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Relation {
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

impl Relation {
    /// Whether the relation holds.
    pub fn holds(self, a: u32, b: u32) -> bool {
        match self {
            Relation::Equal => a == b,
            Relation::Unequal => a != b,
            Relation::Less => a < b,
            Relation::AtMost => a <= b,
            Relation::Greater => a > b,
            Relation::AtLeast => a >= b,
        }
    }
}

/// EtherType of ARP.
pub const ARP: u16 = 0x0806;
/// Reverse ARP.
pub const RARP: u16 = 0x8035;

/// Protocol number of TCP.
pub const TCP: u8 = 6;

/// Offset of the flags in the TCP header.
pub const FLAGS_AT: u32 = 13;

/// Protocols with ports: TCP, UDP, SCTP.
pub const WITH_PORTS: [u8; 3] = [TCP, 17, 132];

/// Offset of the first VLAN tag's contents.
const TAG_AT: usize = 14;

/// A frame's parsed fields, shared by all tests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts<'a> {
    pub bytes: &'a [u8],
    /// Frame length, which may exceed `bytes`.
    pub len: u32,
    /// Offset of the type after all VLAN tags.
    type_at: usize,
    ip: Option<IpHeader>,
    transport: Option<Transport>,
}

impl<'a> Facts<'a> {
    #[inline]
    pub fn of(bytes: &'a [u8], len: u32) -> Facts<'a> {
        let ip = IpHeader::parse(bytes);
        Facts {
            bytes,
            len,
            type_at: mac_header_len(bytes) as usize - 2,
            ip,
            transport: ip.and_then(|ip| ip.transport(bytes)),
        }
    }

    /// Returns a field of the IP header.
    pub fn ip_number(&self, field: IpNumber) -> Option<u32> {
        let ip = self.ip?;
        Some(match field {
            IpNumber::Ttl => ip.ttl.into(),
            IpNumber::Dscp => ip.dscp.into(),
            IpNumber::Ecn => ip.ecn as u32,
        })
    }

    fn word(&self, at: usize) -> Option<u16> {
        word(self.bytes, at)
    }

    /// Returns the offset of a layer, if present.
    #[inline]
    fn begin(&self, layer: Layer) -> Option<usize> {
        let of = |version| self.ip.filter(|ip| ip.version == version);
        match layer {
            Layer::Ether => Some(0),
            Layer::Tag => (self.type_at >= TAG_AT).then_some(TAG_AT),
            Layer::Resolution => {
                let found = self.word(self.type_at)?;
                [ARP, RARP].contains(&found).then_some(self.type_at + 2)
            }
            Layer::Typed(wanted) => {
                (self.word(self.type_at) == Some(wanted)).then_some(self.type_at + 2)
            }
            Layer::Ip4 => of(IpVersion::V4).map(|ip| ip.at),
            Layer::Ip6 => of(IpVersion::V6).map(|ip| ip.at),
            Layer::Transport(protocol) => {
                let header = self.header()?;
                (header.protocol == protocol).then_some(header.at)
            }
        }
    }

    /// Returns the number in `size` bytes at `offset` within a layer.
    #[inline]
    pub fn load(&self, layer: Layer, offset: u32, size: usize) -> Option<u32> {
        let at = self.begin(layer)?.checked_add(offset as usize)?;
        let bytes = self.bytes.get(at..at.checked_add(size)?)?;
        Some(bytes.iter().fold(0, |n, byte| n << 8 | u32::from(*byte)))
    }

    /// Returns the VLAN ID in the `nth` tag, outermost first.
    fn vlan(&self, nth: usize) -> Option<u16> {
        let at = TAG_AT + 4 * nth;
        let tag = (self.type_at >= at).then(|| self.word(at))?;
        tag.map(|tag| tag & 0x0fff)
    }

    fn is_fragment(&self) -> bool {
        let transport = self.transport.as_ref();
        transport.is_some_and(|transport| transport.piece != Piece::Whole)
    }

    /// Whether a condition holds for the selected sides.
    fn of_sides(&self, side: Side, is: impl Fn(bool) -> Option<bool>) -> bool {
        let is = |destination| is(destination).unwrap_or(false);
        match side {
            Side::Source => is(false),
            Side::Destination => is(true),
            Side::Either => is(false) || is(true),
            Side::Both => is(false) && is(true),
        }
    }

    /// Returns the transport header, if present.
    fn header(&self) -> Option<Transport> {
        self.transport.filter(|header| header.piece != Piece::Later)
    }

    fn port(&self, destination: bool) -> Option<u16> {
        let transport = self.header()?;
        let at = transport.at + 2 * usize::from(destination);
        WITH_PORTS
            .contains(&transport.protocol)
            .then(|| self.word(at))?
    }

    fn in_net(&self, destination: bool, net: &Net, of: Carrier) -> Option<bool> {
        let at = match (of, self.ip) {
            (Carrier::Any | Carrier::Ip, Some(ip)) if ip.version == net.version => {
                if destination {
                    ip.destination_at()
                } else {
                    ip.source_at()
                }
            }
            (Carrier::Ip, _) => return None,
            _ if net.version == IpVersion::V6 => return None,
            (of, _) => self.arp_address(destination, of)?,
        };
        let len = net.version.address_len();
        Some(net.holds(self.bytes.get(at..at + len)?))
    }

    /// Returns the offset of an ARP sender or target address.
    fn arp_address(&self, target: bool, of: Carrier) -> Option<usize> {
        let found = self.word(self.type_at)?;
        let meant = match of {
            Carrier::Arp(wanted) => found == wanted,
            _ => [ARP, RARP].contains(&found),
        };
        meant.then_some(self.type_at + 2 + if target { 24 } else { 14 })
    }

    fn is_for(&self, group: Group) -> Option<bool> {
        match group {
            Group::EtherBroadcast => Some(*self.bytes.get(..6)? == [0xff; 6]),
            Group::EtherMulticast => Some(self.bytes.first()? & 1 == 1),
            Group::Ip4Multicast => Some(self.load(Layer::Ip4, 16, 1)? >= 224),
            Group::Ip6Multicast => Some(self.load(Layer::Ip6, 24, 1)? == 0xff),
        }
    }

    fn has_protocol(&self, version: Option<IpVersion>, number: u8) -> bool {
        let Some(ip) = self.ip else { return false };
        let carried = self.transport.map(|transport| transport.protocol);
        (ip.protocol == number || carried == Some(number))
            && version.is_none_or(|wanted| wanted == ip.version)
    }

    fn has_flag(&self, flags: u8) -> Option<bool> {
        let set = self.load(Layer::Transport(TCP), FLAGS_AT, 1)?;
        Some(set & u32::from(flags) != 0)
    }
}

impl Node {
    /// Whether the frame matches.
    #[inline]
    pub(super) fn matches(&self, facts: &Facts<'_>) -> bool {
        match self {
            Node::Test(test) => test.matches(facts),
            Node::Not(filter) => !filter.matches(facts),
            Node::All(filters) => filters.iter().all(|filter| filter.matches(facts)),
            Node::Any(filters) => filters.iter().any(|filter| filter.matches(facts)),
        }
    }
}

impl Test {
    /// Creates a comparison.
    pub(super) fn relation(left: Expression, relation: Relation, right: Expression) -> Test {
        Test::Relation(Box::new((left, relation, right)))
    }

    fn matches(&self, facts: &Facts<'_>) -> bool {
        match self {
            Test::EtherType(wanted) => facts.word(facts.type_at) == Some(*wanted),
            Test::Vlan { nth, id } => facts
                .vlan(*nth)
                .is_some_and(|vlan| id.is_none_or(|wanted| vlan == wanted)),
            Test::Protocol { version, number } => facts.has_protocol(*version, *number),
            Test::Port { side, low, high } => {
                let within = |port| (*low..=*high).contains(&port);
                facts.of_sides(*side, |destination| facts.port(destination).map(within))
            }
            Test::Net { side, net, of } => {
                facts.of_sides(*side, |destination| facts.in_net(destination, net, *of))
            }
            Test::Mac { side, address } => facts.of_sides(*side, |destination| {
                let at = if destination { 0 } else { 6 };
                Some(facts.bytes.get(at..at + 6)? == address)
            }),
            Test::Group(group) => facts.is_for(*group).unwrap_or(false),
            Test::Relation(relation) => {
                let (left, relation, right) = &**relation;
                let numbers = left.value(facts).zip(right.value(facts));
                numbers.is_some_and(|(left, right)| relation.holds(left, right))
            }
            Test::Present(expression) => expression.value(facts).is_some(),
            Test::Flag(flags) => facts.has_flag(*flags).unwrap_or(false),
            Test::Fragment => facts.is_fragment(),
            Test::Bytes { offset, bytes } => {
                let there = facts.bytes.get(*offset..offset.saturating_add(bytes.len()));
                there == Some(bytes.as_slice())
            }
        }
    }
}
