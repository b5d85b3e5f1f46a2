//! Filters: conditions on frames, in the language of tcpdump and, in part, of Wireshark.

mod arithmetic;
mod expression;
mod facts;
mod fields;
mod grammar;
mod mirror;
mod names;
mod parser;
mod primitives;
pub(crate) mod values;

use core::str::FromStr;

use facts::{Facts, Node};

pub use parser::FilterError;

/// Filter tests, for other evaluators. [`Filter::matches`] defines their semantics.
pub mod tree {
    pub use super::expression::{Expression, IpNumber, Operation};
    pub use super::facts::{
        ARP, Carrier, FLAGS_AT, Group, Layer, Node, RARP, Relation, Side, TCP, Test, WITH_PORTS,
    };
    pub use super::values::Net;
}

/// Summary of the filter language, for help texts.
pub const LANGUAGE: &str = "\
Filters combine these tests with and, or, not and parentheses:
  tcpdump    ip, ip6, arp, icmp, icmp6, tcp, udp, sctp and other protocols
             vlan [N], [ip|ip6|ether] proto N, less N, greater N
             [PROTOCOL] [src|dst] host|net|port|portrange
             ether [src|dst] host, [ether|ip|ip6] multicast, ether broadcast
             relations such as tcp[13] & 2 != 0
  Wireshark  fields, such as ip.addr == 10.0.0.0/8 or tcp.port in {80, 443}
  Longwire   len, ttl, dscp, ecn with a value or a relation
             flag syn (or fin, rst, psh, ack, urg, ece, cwr)
             fragment, bytes OFFSET HEX";

/// A condition on frames. Evaluation does not allocate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    root: Node,
}

impl Filter {
    /// Parses a filter.
    ///
    /// # Errors
    /// The error with its column.
    pub fn parse(text: &str) -> Result<Filter, FilterError> {
        let root = grammar::parse(text)?;
        Ok(Filter { root })
    }

    /// Returns the root test.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// Whether a frame of `wire_len` bytes that starts with `bytes` matches. Tests on unavailable
    /// bytes fail.
    pub fn matches(&self, bytes: &[u8], wire_len: u32) -> bool {
        self.root.matches(&Facts::of(bytes, wire_len))
    }
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Filter, FilterError> {
        Filter::parse(text)
    }
}
