//! Tests on named fields, in Wireshark's display filter syntax.

use alloc::boxed::Box;
use alloc::{format, vec};

use super::arithmetic::relation;
use super::expression::{Expression, Operation};
use super::facts::{Carrier, Layer, Node, Relation, Side, Test, WITH_PORTS};
use super::names;
use super::parser::{FilterError, Parser, joined};
use super::values::{Net, code_point, mac, number};
use crate::header::IpVersion;
use crate::header::protocol::{ICMP, ICMP6, SCTP, TCP, UDP};

/// A named field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Number(Expression),
    /// IP addresses.
    Address(IpVersion, Side),
    /// Ethernet addresses.
    Mac(Side),
    /// Ports of a protocol.
    Port(u8, Side),
}

/// Name, layer, offset, size and mask of a numeric field.
type NumberField = (&'static str, Layer, u32, usize, u32);

const ALL: u32 = u32::MAX;

/// Numeric fields at fixed offsets.
const PLACES: [NumberField; 48] = [
    ("eth.type", Layer::Ether, 12, 2, ALL),
    ("vlan.id", Layer::Tag, 0, 2, 0x0fff),
    ("vlan.priority", Layer::Tag, 0, 2, 0xe000),
    ("vlan.dei", Layer::Tag, 0, 2, 0x1000),
    ("arp.opcode", Layer::Resolution, 6, 2, ALL),
    ("ip.version", Layer::Ip4, 0, 1, 0xf0),
    ("ip.dsfield", Layer::Ip4, 1, 1, ALL),
    ("ip.dsfield.dscp", Layer::Ip4, 1, 1, 0xfc),
    ("ip.dsfield.ecn", Layer::Ip4, 1, 1, 0x03),
    ("ip.len", Layer::Ip4, 2, 2, ALL),
    ("ip.id", Layer::Ip4, 4, 2, ALL),
    ("ip.flags.df", Layer::Ip4, 6, 1, 0x40),
    ("ip.flags.mf", Layer::Ip4, 6, 1, 0x20),
    ("ip.frag_offset", Layer::Ip4, 6, 2, 0x1fff),
    ("ip.ttl", Layer::Ip4, 8, 1, ALL),
    ("ip.proto", Layer::Ip4, 9, 1, ALL),
    ("ip.checksum", Layer::Ip4, 10, 2, ALL),
    ("ipv6.version", Layer::Ip6, 0, 1, 0xf0),
    ("ipv6.tclass", Layer::Ip6, 0, 2, 0x0ff0),
    ("ipv6.tclass.dscp", Layer::Ip6, 0, 2, 0x0fc0),
    ("ipv6.tclass.ecn", Layer::Ip6, 0, 2, 0x0030),
    ("ipv6.flow", Layer::Ip6, 0, 4, 0x000f_ffff),
    ("ipv6.plen", Layer::Ip6, 4, 2, ALL),
    ("ipv6.nxt", Layer::Ip6, 6, 1, ALL),
    ("ipv6.hlim", Layer::Ip6, 7, 1, ALL),
    ("tcp.seq_raw", Layer::Transport(TCP), 4, 4, ALL),
    ("tcp.ack_raw", Layer::Transport(TCP), 8, 4, ALL),
    ("tcp.flags", Layer::Transport(TCP), 12, 2, 0x0fff),
    ("tcp.flags.cwr", Layer::Transport(TCP), 13, 1, 0x80),
    ("tcp.flags.ece", Layer::Transport(TCP), 13, 1, 0x40),
    ("tcp.flags.urg", Layer::Transport(TCP), 13, 1, 0x20),
    ("tcp.flags.ack", Layer::Transport(TCP), 13, 1, 0x10),
    ("tcp.flags.push", Layer::Transport(TCP), 13, 1, 0x08),
    ("tcp.flags.reset", Layer::Transport(TCP), 13, 1, 0x04),
    ("tcp.flags.syn", Layer::Transport(TCP), 13, 1, 0x02),
    ("tcp.flags.fin", Layer::Transport(TCP), 13, 1, 0x01),
    ("tcp.window_size_value", Layer::Transport(TCP), 14, 2, ALL),
    ("tcp.checksum", Layer::Transport(TCP), 16, 2, ALL),
    ("tcp.urgent_pointer", Layer::Transport(TCP), 18, 2, ALL),
    ("udp.length", Layer::Transport(UDP), 4, 2, ALL),
    ("udp.checksum", Layer::Transport(UDP), 6, 2, ALL),
    ("icmp.type", Layer::Transport(ICMP), 0, 1, ALL),
    ("icmp.code", Layer::Transport(ICMP), 1, 1, ALL),
    ("icmp.checksum", Layer::Transport(ICMP), 2, 2, ALL),
    ("icmpv6.type", Layer::Transport(ICMP6), 0, 1, ALL),
    ("icmpv6.code", Layer::Transport(ICMP6), 1, 1, ALL),
    ("icmpv6.checksum", Layer::Transport(ICMP6), 2, 2, ALL),
    ("sctp.verification_tag", Layer::Transport(SCTP), 4, 4, ALL),
];

/// Looks up a field by name.
pub(super) fn find(name: &str) -> Option<Field> {
    let place = PLACES.iter().find(|(known, ..)| *known == name);
    if let Some(&(_, layer, offset, size, mask)) = place {
        return Some(Field::Number(Expression::bits(layer, offset, size, mask)));
    }
    // Header lengths are in units of four bytes.
    let words = |layer, offset, mask| {
        let (length, four) = (
            Expression::bits(layer, offset, 1, mask),
            Expression::Number(4),
        );
        Field::Number(Expression::joined(Operation::Multiply, length, four))
    };
    Some(match name {
        "frame.len" => Field::Number(Expression::Length),
        "frame.cap_len" => Field::Number(Expression::Captured),
        "ip.hdr_len" => words(Layer::Ip4, 0, 0x0f),
        "tcp.hdr_len" => words(Layer::Transport(TCP), 12, 0xf0),
        "eth.src" => Field::Mac(Side::Source),
        "eth.dst" => Field::Mac(Side::Destination),
        "eth.addr" => Field::Mac(Side::Either),
        "ip.src" | "ip.src_host" => Field::Address(IpVersion::V4, Side::Source),
        "ip.dst" | "ip.dst_host" => Field::Address(IpVersion::V4, Side::Destination),
        "ip.addr" | "ip.host" => Field::Address(IpVersion::V4, Side::Either),
        "ipv6.src" => Field::Address(IpVersion::V6, Side::Source),
        "ipv6.dst" => Field::Address(IpVersion::V6, Side::Destination),
        "ipv6.addr" => Field::Address(IpVersion::V6, Side::Either),
        _ => {
            let (protocol, port) = name.split_once('.')?;
            let protocol = names::protocol(protocol).filter(|found| WITH_PORTS.contains(found))?;
            let side = match port {
                "srcport" => Side::Source,
                "dstport" => Side::Destination,
                "port" => Side::Either,
                _ => return None,
            };
            Field::Port(protocol, side)
        }
    })
}

impl Field {
    /// Returns a field's numeric expressions, one or two.
    fn expressions(&self) -> alloc::vec::Vec<Expression> {
        match self {
            Field::Number(expression) => vec![expression.clone()],
            Field::Port(protocol, side) => {
                let load = |offset| Expression::bits(Layer::Transport(*protocol), offset, 2, ALL);
                match side {
                    Side::Source => vec![load(0)],
                    Side::Destination => vec![load(2)],
                    Side::Either | Side::Both => vec![load(0), load(2)],
                }
            }
            Field::Address(..) | Field::Mac(_) => vec![],
        }
    }

    /// Returns the test for the field's presence.
    fn present(&self) -> Test {
        Test::Present(match self {
            Field::Number(expression) => expression.clone(),
            Field::Port(protocol, _) => Expression::bits(Layer::Transport(*protocol), 0, 2, ALL),
            Field::Address(IpVersion::V4, _) => Expression::bits(Layer::Ip4, 0, 1, ALL),
            Field::Address(IpVersion::V6, _) => Expression::bits(Layer::Ip6, 0, 1, ALL),
            Field::Mac(_) => Expression::bits(Layer::Ether, 0, 4, ALL),
        })
    }
}

impl Parser<'_> {
    /// Parses a condition on a field: nothing (presence), a relation and a value, or a set of
    /// values.
    pub(super) fn field(&mut self, field: Field) -> Result<Node, FilterError> {
        self.take();
        let masks = self.take_if(&["&"]);
        let mask = masks.then(|| self.read("a number", number)).transpose()?;
        if self.take_if(&["in"]) {
            return self.set(&field);
        }
        if let Some(relation) = self.take_as(relation) {
            return self.related(&field, mask, relation);
        }
        if mask.is_some() {
            return Ok(numbers(&field, mask, Relation::Unequal, 0));
        }
        match self.peek() {
            Some(word @ ("contains" | "matches" | "~")) => Err(self.wrong(format!(
                "'{word}' is not supported; write one of == != < <= > >=, or 'in {{...}}'"
            ))),
            _ => Ok(Node::Test(field.present())),
        }
    }

    /// Parses a set in braces, or a network.
    fn set(&mut self, field: &Field) -> Result<Node, FilterError> {
        if !self.take_if(&["{"]) {
            return self.equal(field);
        }
        let mut any = vec![];
        while !self.take_if(&["}"]) {
            any.push(self.equal(field)?);
            self.take_if(&[","]);
        }
        if any.is_empty() {
            Err(self.wrong("empty set; write values, such as {80, 443}"))
        } else {
            Ok(joined(any, Node::Any))
        }
    }

    /// Parses a value or range of a membership test.
    fn equal(&mut self, field: &Field) -> Result<Node, FilterError> {
        match field {
            Field::Address(version, side) => {
                let what = match version {
                    IpVersion::V4 => "an IPv4 address or network such as 10.0.0.0/8",
                    IpVersion::V6 => "an IPv6 address or network such as 2001:db8::/32",
                };
                let of_kind =
                    |text: &str| Net::host_or_prefix(text).filter(|net| net.version == *version);
                let (side, net, of) = (*side, self.read(what, of_kind)?, Carrier::Ip);
                Ok(Node::Test(Test::Net { side, net, of }))
            }
            Field::Mac(side) => {
                let what = "an Ethernet address such as 02:00:00:00:00:01";
                let (side, address) = (*side, self.read(what, mac)?);
                Ok(Node::Test(Test::Mac { side, address }))
            }
            Field::Number(_) | Field::Port(..) => {
                let what = "a number, a code point such as ef, or a range such as 80..90";
                let (low, high) = self.read(what, range)?;
                let tests = field.expressions().into_iter().map(|expression| {
                    let bound = |relation, limit| {
                        let limit = Expression::Number(limit);
                        Node::Test(Test::relation(expression.clone(), relation, limit))
                    };
                    Node::All(vec![
                        bound(Relation::AtLeast, low),
                        bound(Relation::AtMost, high),
                    ])
                });
                Ok(joined(tests.collect(), Node::Any))
            }
        }
    }

    fn related(
        &mut self,
        field: &Field,
        mask: Option<u32>,
        relation: Relation,
    ) -> Result<Node, FilterError> {
        match (field, relation) {
            (Field::Number(_) | Field::Port(..), _) => {
                let value = self.read("a number, or a code point such as ef", value)?;
                Ok(numbers(field, mask, relation, value))
            }
            (_, Relation::Equal) => self.equal(field),
            // With two addresses, both must differ, which is the semantics of Wireshark 4.
            (_, Relation::Unequal) => {
                let equal = self.equal(field)?;
                Ok(Node::All(vec![
                    Node::Test(field.present()),
                    Node::Not(Box::new(equal)),
                ]))
            }
            _ => Err(self.wrong("addresses support only == and !=")),
        }
    }
}

/// Compares a field's numbers: any of them or, for `!=`, all.
fn numbers(field: &Field, mask: Option<u32>, relation: Relation, value: u32) -> Node {
    let tests = field.expressions().into_iter().map(|expression| {
        let expression = match mask.map(Expression::Number) {
            Some(mask) => Expression::joined(Operation::And, expression, mask),
            None => expression,
        };
        let value = Expression::Number(value);
        Node::Test(Test::relation(expression, relation, value))
    });
    let join = match relation {
        Relation::Unequal => Node::All,
        _ => Node::Any,
    };
    joined(tests.collect(), join)
}

fn value(text: &str) -> Option<u32> {
    match text {
        "true" | "True" => Some(1),
        "false" | "False" => Some(0),
        _ => number(text).or_else(|| code_point(text).map(u32::from)),
    }
}

fn range(text: &str) -> Option<(u32, u32)> {
    let (low, high) = text.split_once("..").unwrap_or((text, text));
    value(low)
        .zip(value(high))
        .filter(|(low, high)| low <= high)
}
