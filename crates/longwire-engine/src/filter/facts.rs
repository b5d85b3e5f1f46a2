//! What a filter tests, and how a frame answers.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::values::Net;
use crate::frame::mac_header_len;
use crate::header::{IpHeader, IpVersion, Piece, Transport};

/// A filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Test(Test),
    Not(Box<Node>),
    All(Vec<Node>),
    Any(Vec<Node>),
}

/// One test of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Test {
    /// The type behind all VLAN tags.
    EtherType(u16),
    /// A VLAN tag, of this VLAN if one is given.
    Vlan(Option<u16>),
    /// The transport protocol, behind extension headers.
    Protocol(u8),
    /// TCP, UDP or SCTP from or to a port.
    Port { side: Side, low: u16, high: u16 },
    /// An IP address's first bits.
    Net { side: Side, net: Net },
    /// An Ethernet address.
    Mac { side: Side, address: [u8; 6] },
    /// A number.
    Compare {
        field: Field,
        relation: Relation,
        value: u64,
    },
    /// TCP with one of these flags.
    Flag(u8),
    /// A piece of a larger IP packet.
    Fragment,
    /// These bytes at this place.
    Bytes { offset: usize, bytes: Vec<u8> },
}

/// Whose address or port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Source,
    Destination,
    Either,
}

/// A number that a frame has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Length,
    Ttl,
    Dscp,
    Ecn,
}

/// How two numbers compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

impl Relation {
    fn holds(self, a: u64, b: u64) -> bool {
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

const TCP: u8 = 6;

/// Protocols with ports that tests look at: TCP, UDP, SCTP.
const WITH_PORTS: [u8; 3] = [TCP, 17, 132];

/// What tests want to know of a frame, looked up once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts<'a> {
    bytes: &'a [u8],
    /// The frame's length, of which `bytes` may hold a part.
    len: u32,
    /// Where the type is, behind all VLAN tags.
    type_at: usize,
    ip: Option<IpHeader>,
    transport: Option<Transport>,
}

impl<'a> Facts<'a> {
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

    fn word(&self, at: usize) -> Option<u16> {
        let bytes = self.bytes.get(at..at + 2)?;
        Some(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// The VLAN of a tag, of several the outer one's.
    fn vlan(&self) -> Option<u16> {
        const TAG_AT: usize = 14;
        if self.type_at < TAG_AT {
            return None;
        }
        Some(self.word(TAG_AT)? & 0x0fff)
    }

    fn is_fragment(&self) -> bool {
        let transport = self.transport.as_ref();
        transport.is_some_and(|transport| transport.piece != Piece::Whole)
    }

    fn number(&self, field: Field) -> Option<u64> {
        Some(match (field, self.ip) {
            (Field::Length, _) => u64::from(self.len),
            (Field::Ttl, Some(ip)) => u64::from(ip.ttl),
            (Field::Dscp, Some(ip)) => u64::from(ip.dscp),
            (Field::Ecn, Some(ip)) => ip.ecn as u64,
            (_, None) => return None,
        })
    }

    /// Whether it is so of one side, or of either.
    fn of_sides(&self, side: Side, is: impl Fn(bool) -> Option<bool>) -> bool {
        let is = |destination| is(destination).unwrap_or(false);
        match side {
            Side::Source => is(false),
            Side::Destination => is(true),
            Side::Either => is(false) || is(true),
        }
    }

    /// The transport header, if it is here.
    fn header(&self) -> Option<Transport> {
        self.transport.filter(|header| header.piece != Piece::Later)
    }

    fn port(&self, destination: bool) -> Option<u16> {
        let transport = self.header()?;
        if !WITH_PORTS.contains(&transport.protocol) {
            return None;
        }
        self.word(transport.at + 2 * usize::from(destination))
    }

    fn in_net(&self, destination: bool, net: &Net) -> Option<bool> {
        let ip = self.ip.filter(|ip| ip.version == net.version)?;
        let (at, len) = match ip.version {
            IpVersion::V4 => (ip.at + 12, 4),
            IpVersion::V6 => (ip.at + 8, 16),
        };
        let at = at + len * usize::from(destination);
        let address = self.bytes.get(at..at + len)?;
        Some(net.holds(address))
    }

    fn has_flag(&self, flags: u8) -> Option<bool> {
        const FLAGS_AT: usize = 13;
        let transport = self.header().filter(|header| header.protocol == TCP)?;
        let set = self.bytes.get(transport.at + FLAGS_AT)?;
        Some(set & flags != 0)
    }
}

impl Node {
    /// Whether the frame is one that is meant.
    pub fn matches(&self, facts: &Facts<'_>) -> bool {
        match self {
            Node::Test(test) => test.matches(facts),
            Node::Not(filter) => !filter.matches(facts),
            Node::All(filters) => filters.iter().all(|filter| filter.matches(facts)),
            Node::Any(filters) => filters.iter().any(|filter| filter.matches(facts)),
        }
    }
}

impl Test {
    fn matches(&self, facts: &Facts<'_>) -> bool {
        match self {
            Test::EtherType(wanted) => facts.word(facts.type_at) == Some(*wanted),
            Test::Vlan(wanted) => match (facts.vlan(), wanted) {
                (Some(vlan), Some(wanted)) => vlan == *wanted,
                (vlan, None) => vlan.is_some(),
                (None, Some(_)) => false,
            },
            Test::Protocol(wanted) => {
                let transport = facts.transport.as_ref();
                transport.is_some_and(|transport| transport.protocol == *wanted)
            }
            Test::Port { side, low, high } => {
                let within = |port| (*low..=*high).contains(&port);
                facts.of_sides(*side, |destination| facts.port(destination).map(within))
            }
            Test::Net { side, net } => {
                facts.of_sides(*side, |destination| facts.in_net(destination, net))
            }
            Test::Mac { side, address } => facts.of_sides(*side, |destination| {
                let at = if destination { 0 } else { 6 };
                Some(facts.bytes.get(at..at + 6)? == address)
            }),
            Test::Compare {
                field,
                relation,
                value,
            } => {
                let number = facts.number(*field);
                number.is_some_and(|number| relation.holds(number, *value))
            }
            Test::Flag(flags) => facts.has_flag(*flags).unwrap_or(false),
            Test::Fragment => facts.is_fragment(),
            Test::Bytes { offset, bytes } => {
                let there = facts.bytes.get(*offset..offset.saturating_add(bytes.len()));
                there == Some(bytes.as_slice())
            }
        }
    }
}
