//! Primitives of tcpdump: values with qualifiers, and tests with dedicated keywords.

use alloc::boxed::Box;
use alloc::vec;
use core::net::Ipv4Addr;
use core::str::FromStr;

use super::arithmetic::relation;
use super::expression::{Expression, IpNumber};
use super::facts::{ARP, Carrier, Group, Node, RARP, Relation, Side, Test};
use super::names;
use super::parser::{FilterError, Parser};
use super::values::{Net, code_point, hexadecimal, mac, number};
use crate::header::IpVersion;

/// Qualifiers of a value, such as `udp dst port`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Qualifier {
    /// Protocol that the packet must also have.
    protocol: Protocol,
    side: Side,
    kind: Kind,
}

/// Protocol qualifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    None,
    Ether,
    Type(u16),
    Carried(u8),
}

/// Type qualifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Host,
    Net,
    Port,
    Range,
    Number,
    Mac,
}

const IP: u16 = 0x0800;
const IP6: u16 = 0x86dd;

fn protocol(word: &str) -> Option<Protocol> {
    Some(match word {
        "ether" | "link" => Protocol::Ether,
        "ip" => Protocol::Type(IP),
        "ip6" | "ipv6" => Protocol::Type(IP6),
        "arp" => Protocol::Type(ARP),
        "rarp" => Protocol::Type(RARP),
        _ => Protocol::Carried(names::protocol(word)?),
    })
}

impl Protocol {
    /// Returns the test implied by the qualifier alone.
    fn test(self) -> Option<Test> {
        Some(match self {
            Protocol::None | Protocol::Ether => return None,
            Protocol::Type(wanted) => Test::EtherType(wanted),
            Protocol::Carried(number) => Test::Protocol {
                version: match number {
                    // ICMP, IGMP, IGRP and VRRP belong to IPv4; ICMPv6 belongs to IPv6.
                    1 | 2 | 9 | 112 => Some(IpVersion::V4),
                    58 => Some(IpVersion::V6),
                    _ => None,
                },
                number,
            },
        })
    }
}

const SIDES: [&str; 2] = ["src", "dst"];
const OWN: [&str; 10] = [
    "len", "ttl", "dscp", "ecn", "less", "greater", "vlan", "flag", "fragment", "bytes",
];

impl Parser<'_> {
    /// Parses qualifiers and a value; returns `None` for other words.
    pub(super) fn qualified(&mut self, depth: u32) -> Result<Option<Node>, FilterError> {
        let protocol = self.take_as(protocol).unwrap_or(Protocol::None);
        if let Some(group) = self.group(protocol)? {
            return Ok(Some(Node::Test(Test::Group(group))));
        }
        let side = self.side();
        let kind = self.kind(protocol);
        let kind = match (kind, protocol) {
            (Some(kind), _) => kind,
            // "src 10.0.0.1" means "src host 10.0.0.1".
            (None, Protocol::Ether) => Kind::Mac,
            (None, _) if side.is_some() => Kind::Host,
            (None, protocol) => return Ok(protocol.test().map(Node::Test)),
        };
        let qualifier = Qualifier {
            protocol,
            side: side.unwrap_or(Side::Either),
            kind,
        };
        self.qualifier = Some(qualifier);
        match self.peek() {
            Some("(") => self.values(&qualifier, depth).map(Some),
            _ => self.value(&qualifier).map(Some),
        }
    }

    /// Parses group tests such as `multicast` and `ip multicast`.
    fn group(&mut self, protocol: Protocol) -> Result<Option<Group>, FilterError> {
        let group = match (protocol, self.peek()) {
            (Protocol::None | Protocol::Ether, Some("broadcast")) => Group::EtherBroadcast,
            (Protocol::None | Protocol::Ether, Some("multicast")) => Group::EtherMulticast,
            (Protocol::Type(IP), Some("multicast")) => Group::Ip4Multicast,
            (Protocol::Type(IP6), Some("multicast")) => Group::Ip6Multicast,
            (_, Some("broadcast")) => {
                let message = "IP broadcast needs a netmask; write 'dst host' with the address, \
or 'ether broadcast'";
                return Err(self.wrong(message));
            }
            (_, Some("multicast")) => {
                return Err(self.wrong("multicast can follow only ip, ip6 or ether"));
            }
            _ => return Ok(None),
        };
        self.take();
        Ok(Some(group))
    }

    /// Parses `src`, `dst`, `src or dst` or `src and dst`.
    fn side(&mut self) -> Option<Side> {
        let side = |word| SIDES.contains(&word).then_some(word);
        let first = self.take_as(side)?;
        let other = self.peek_at(1).and_then(side);
        let other = other.is_some_and(|word| word != first);
        let both = match self.peek() {
            Some("or" | "||") if other => Side::Either,
            Some("and" | "&&") if other => Side::Both,
            _ if first == "src" => return Some(Side::Source),
            _ => return Some(Side::Destination),
        };
        self.take();
        self.take();
        Some(both)
    }

    fn kind(&mut self, protocol: Protocol) -> Option<Kind> {
        let kind = match (self.peek()?, protocol) {
            ("host", Protocol::Ether) => Kind::Mac,
            ("host", _) => Kind::Host,
            ("net", _) => Kind::Net,
            ("port", _) => Kind::Port,
            ("portrange", _) => Kind::Range,
            ("proto" | "protochain", _) => Kind::Number,
            _ => return None,
        };
        self.take();
        Some(kind)
    }

    /// Parses values in parentheses: `port (80 or 443)`.
    fn values(&mut self, qualifier: &Qualifier, depth: u32) -> Result<Node, FilterError> {
        self.check_depth(depth)?;
        self.take();
        let values = self.alternatives(|parser| parser.one_value(qualifier, depth))?;
        self.close(")")?;
        Ok(values)
    }

    fn one_value(&mut self, qualifier: &Qualifier, depth: u32) -> Result<Node, FilterError> {
        self.check_depth(depth)?;
        if self.take_if(&["not", "!"]) {
            let negated = self.one_value(qualifier, depth + 1)?;
            return Ok(Node::Not(Box::new(negated)));
        }
        match self.peek() {
            Some("(") => self.values(qualifier, depth + 1),
            _ => self.value(qualifier),
        }
    }

    /// Parses a value.
    pub(super) fn value(&mut self, qualifier: &Qualifier) -> Result<Node, FilterError> {
        let Qualifier { protocol, side, .. } = *qualifier;
        let test = match qualifier.kind {
            Kind::Mac => {
                let what = "an Ethernet address such as 02:00:00:00:00:01";
                let address = self.read(what, mac)?;
                return Ok(Node::Test(Test::Mac { side, address }));
            }
            Kind::Number => return self.protocol_number(protocol).map(Node::Test),
            Kind::Host => {
                let net = self.read("an address such as 10.0.0.1 or 2001:db8::1", Net::host)?;
                in_net(protocol, side, net)
            }
            Kind::Net => in_net(protocol, side, self.net()?),
            Kind::Port => {
                let what = "a port number, 0 to 65535, or a service such as http";
                let low = self.read(what, port)?;
                Test::Port {
                    side,
                    low,
                    high: low,
                }
            }
            Kind::Range => {
                let (low, high) = self.read("a range of ports such as 5000-5010", |text| {
                    let (low, high) = text.split_once('-')?;
                    let range = (port(low)?, port(high)?);
                    (range.0 <= range.1).then_some(range)
                })?;
                Test::Port { side, low, high }
            }
        };
        Ok(with_protocol(protocol, test))
    }

    fn net(&mut self) -> Result<Net, FilterError> {
        const WHAT: &str = "a network such as 10.0.0.0/8 or 2001:db8::/32";
        let any = |text: &str| Net::host_or_prefix(text).or_else(|| Net::short(text));
        let net = self.read(WHAT, any)?;
        if !self.take_if(&["mask"]) {
            return Ok(net);
        }
        let prefix = self.read("a netmask such as 255.255.255.0", |text| {
            let mask = u32::from(Ipv4Addr::from_str(text).ok()?);
            let ones = mask.leading_ones();
            (mask.count_ones() == ones).then_some(ones as u8)
        })?;
        Ok(Net { prefix, ..net })
    }

    fn protocol_number(&mut self, protocol: Protocol) -> Result<Test, FilterError> {
        if protocol == Protocol::Ether {
            let what = "an EtherType such as 0x88cc or arp";
            let value = |text: &str| number(text).or_else(|| names::ethertype(unescaped(text)));
            return self.read(what, value).map(Test::EtherType);
        }
        let what = "a protocol number, 0 to 255, or a name such as tcp";
        let value = |text: &str| number(text).or_else(|| names::protocol(unescaped(text)));
        let number = self.read(what, value)?;
        let version = match protocol {
            Protocol::Type(IP) => Some(IpVersion::V4),
            Protocol::Type(IP6) => Some(IpVersion::V6),
            _ => None,
        };
        Ok(Test::Protocol { version, number })
    }
}

/// Strips the escape that tcpdump requires before names that are keywords.
fn unescaped(text: &str) -> &str {
    text.strip_prefix('\\').unwrap_or(text)
}

fn port(text: &str) -> Option<u16> {
    number(text).or_else(|| names::service(text))
}

/// Adds the protocol's own test.
fn with_protocol(protocol: Protocol, test: Test) -> Node {
    match protocol.test() {
        Some(other) => Node::All(vec![Node::Test(other), Node::Test(test)]),
        None => Node::Test(test),
    }
}

/// Returns a test for addresses within a network, in the given protocol.
fn in_net(protocol: Protocol, side: Side, net: Net) -> Test {
    let of = match protocol {
        Protocol::Type(wanted @ (ARP | RARP)) => Carrier::Arp(wanted),
        Protocol::None | Protocol::Ether => Carrier::Any,
        Protocol::Type(_) | Protocol::Carried(_) => Carrier::Ip,
    };
    Test::Net { side, net, of }
}

impl Parser<'_> {
    /// Parses a test with a dedicated keyword; returns `None` for other words.
    pub(super) fn own(&mut self, word: &str) -> Result<Option<Test>, FilterError> {
        if !self.take_if(&OWN) {
            return Ok(None);
        }
        let test = match word {
            "len" => self.compare(Expression::Length, "a length in bytes", number)?,
            "ttl" => {
                let what = "a time to live, 0 to 255";
                self.compare(Expression::Ip(IpNumber::Ttl), what, up_to(255))?
            }
            "dscp" => {
                let what = "a code point: 0 to 63, ef, cs1 or af11";
                self.compare(Expression::Ip(IpNumber::Dscp), what, |text| {
                    up_to(63)(text).or_else(|| code_point(text).map(u32::from))
                })?
            }
            "ecn" => {
                const WORDS: [&str; 4] = ["not-ect", "ect1", "ect0", "ce"];
                let what = "one of not-ect, ect1, ect0, ce, or 0 to 3";
                self.compare(Expression::Ip(IpNumber::Ecn), what, |text| {
                    let word = WORDS.iter().position(|word| *word == text);
                    up_to(3)(text).or(word.map(|bits| bits as u32))
                })?
            }
            "less" | "greater" => {
                let limit = self.read("a length in bytes", number)?;
                let relation = match word {
                    "less" => Relation::AtMost,
                    _ => Relation::AtLeast,
                };
                Test::relation(Expression::Length, relation, Expression::Number(limit))
            }
            "vlan" => self.vlan(),
            "flag" => {
                const FLAGS: [&str; 8] = ["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"];
                let flag = self.read("one of fin, syn, rst, psh, ack, urg, ece, cwr", |text| {
                    FLAGS.iter().position(|flag| *flag == text)
                })?;
                Test::Flag(1 << flag)
            }
            "fragment" => Test::Fragment,
            _ => {
                let offset: u16 = self.read("an offset in bytes, 0 to 65535", number)?;
                let bytes = self.read("bytes in hexadecimal such as 4500", hexadecimal)?;
                let offset = usize::from(offset);
                Test::Bytes { offset, bytes }
            }
        };
        Ok(Some(test))
    }

    /// Parses an optional relation and a value; "dscp 46" means "dscp = 46".
    fn compare(
        &mut self,
        left: Expression,
        what: &str,
        value: impl FnOnce(&str) -> Option<u32>,
    ) -> Result<Test, FilterError> {
        let relation = self.take_as(relation).unwrap_or(Relation::Equal);
        let right = Expression::Number(self.read(what, value)?);
        Ok(Test::relation(left, relation, right))
    }

    /// Parses an optional VLAN ID. VLAN tests joined by `and` refer to successive tags.
    fn vlan(&mut self) -> Test {
        let id = self.take_as(|word| number(word).filter(|vlan| *vlan < 4096));
        self.vlans += 1;
        Test::Vlan {
            nth: self.vlans - 1,
            id,
        }
    }
}

fn up_to(max: u32) -> impl Fn(&str) -> Option<u32> {
    move |text| number(text).filter(|n| *n <= max)
}
