//! Mirrors filters: exchanges source and destination.

use alloc::boxed::Box;

use super::Filter;
use super::expression::Expression;
use super::facts::{Layer, Node, Side, Test, WITH_PORTS};

/// Paired header fields: layer, offsets of source and destination, length.
const PAIRS: [(Layer, u32, u32, u32); 3] = [
    (Layer::Ether, 6, 0, 6),
    (Layer::Ip4, 12, 16, 4),
    (Layer::Ip6, 8, 24, 16),
];
/// Paired ports of transport protocols.
const PORTS: (u32, u32, u32) = (0, 2, 2);

impl Filter {
    /// Returns a filter that matches a frame if this one matches it with source and
    /// destination exchanged: Ethernet, IP and ARP addresses, and ports. Byte accesses at
    /// fixed offsets are mirrored within these fields. `multicast`, `broadcast`, `bytes`
    /// and computed offsets are unchanged.
    pub fn mirrored(&self) -> Filter {
        Filter {
            root: node(&self.root),
        }
    }
}

fn node(of: &Node) -> Node {
    match of {
        Node::Test(of) => Node::Test(test(of)),
        Node::Not(of) => Node::Not(Box::new(node(of))),
        Node::All(of) => Node::All(of.iter().map(node).collect()),
        Node::Any(of) => Node::Any(of.iter().map(node).collect()),
    }
}

fn test(of: &Test) -> Test {
    match of {
        Test::Port { side, low, high } => Test::Port {
            side: other(*side),
            low: *low,
            high: *high,
        },
        Test::Net { side, net, of } => Test::Net {
            side: other(*side),
            net: *net,
            of: *of,
        },
        Test::Mac { side, address } => Test::Mac {
            side: other(*side),
            address: *address,
        },
        Test::Relation(relation) => {
            let (left, relation, right) = &**relation;
            Test::Relation(Box::new((expression(left), *relation, expression(right))))
        }
        Test::Present(of) => Test::Present(expression(of)),
        _ => of.clone(),
    }
}

fn other(side: Side) -> Side {
    match side {
        Side::Source => Side::Destination,
        Side::Destination => Side::Source,
        side => side,
    }
}

fn expression(of: &Expression) -> Expression {
    match of {
        Expression::Load {
            layer,
            offset,
            size,
        } => Expression::Load {
            layer: *layer,
            offset: exchanged(*layer, *offset, *size),
            size: *size,
        },
        Expression::Binary(operation, sides) => Expression::Binary(
            *operation,
            Box::new((expression(&sides.0), expression(&sides.1))),
        ),
        _ => of.clone(),
    }
}

/// Returns the mirrored offset within a paired field.
fn exchanged(layer: Layer, offset: u32, size: usize) -> u32 {
    let (source, destination, len) = match layer {
        Layer::Transport(protocol) if WITH_PORTS.contains(&protocol) => PORTS,
        _ => match PAIRS.iter().find(|pair| pair.0 == layer) {
            Some(&(_, source, destination, len)) => (source, destination, len),
            None => return offset,
        },
    };
    let size = size as u32;
    let within = |start: u32| offset >= start && offset.saturating_add(size) <= start + len;
    if within(source) {
        offset - source + destination
    } else if within(destination) {
        offset - destination + source
    } else {
        offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_and_destination_change_places() {
        for (text, expected) in [
            ("udp dst port 53", "udp src port 53"),
            ("src net 10.0.0.0/8 and tcp", "dst net 10.0.0.0/8 and tcp"),
            ("not arp src host 10.0.0.1", "not arp dst host 10.0.0.1"),
            ("ether src 2:0:0:0:0:1", "ether dst 2:0:0:0:0:1"),
            ("host 10.0.0.1 or len > 100", "host 10.0.0.1 or len > 100"),
            ("tcp.dstport == 80", "tcp.srcport == 80"),
            ("udp[2:2] & 1 = 0", "udp[0:2] & 1 = 0"),
            ("udp[1:2] = 0", "udp[1:2] = 0"),
            ("icmp[0:2] = 8", "icmp[0:2] = 8"),
            ("ip[17] = 1", "ip[13] = 1"),
            ("ip6[8:4] = 1", "ip6[24:4] = 1"),
        ] {
            let [filter, expected] = [text, expected].map(|text| Filter::parse(text).ok());
            let filter = filter.unwrap_or_else(|| panic!("{text}"));
            assert_eq!(Some(filter.mirrored()), expected, "{text}");
            assert_eq!(filter.mirrored().mirrored(), filter, "{text}");
        }
    }
}
