//! Mirrors filters: exchanges source and destination.

use super::Filter;
use super::expression::Expression;
use super::facts::{Layer, Node, Side, Test, WITH_PORTS};

/// Paired header fields: layer, source offset, destination offset, length.
const PAIRS: [(Layer, u32, u32, u32); 3] = [
    (Layer::Ether, 6, 0, 6),
    (Layer::Ip4, 12, 16, 4),
    (Layer::Ip6, 8, 24, 16),
];
/// Paired port fields of transport protocols.
const PORTS: (u32, u32, u32) = (0, 2, 2);

impl Filter {
    /// Returns a filter that matches a frame if this one matches the frame with source and
    /// destination exchanged: Ethernet, IP and ARP addresses, and ports. Byte accesses at fixed
    /// offsets are mirrored within these fields; `multicast`, `broadcast`, `bytes` and computed
    /// offsets stay unchanged.
    pub fn mirrored(&self) -> Filter {
        let mut filter = self.clone();
        mirror(&mut filter.root);
        filter
    }
}

fn mirror(node: &mut Node) {
    match node {
        Node::Test(test) => mirror_test(test),
        Node::Not(node) => mirror(node),
        Node::All(nodes) | Node::Any(nodes) => nodes.iter_mut().for_each(mirror),
    }
}

fn mirror_test(test: &mut Test) {
    match test {
        Test::Port { side, .. } | Test::Net { side, .. } | Test::Mac { side, .. } => {
            *side = other(*side);
        }
        Test::Relation(relation) => {
            mirror_expression(&mut relation.0);
            mirror_expression(&mut relation.2);
        }
        Test::Present(expression) => mirror_expression(expression),
        _ => {}
    }
}

fn other(side: Side) -> Side {
    match side {
        Side::Source => Side::Destination,
        Side::Destination => Side::Source,
        side => side,
    }
}

fn mirror_expression(expression: &mut Expression) {
    match expression {
        Expression::Load {
            layer,
            offset,
            size,
        } => *offset = exchanged(*layer, *offset, *size),
        Expression::Binary(_, sides) => {
            mirror_expression(&mut sides.0);
            mirror_expression(&mut sides.1);
        }
        _ => {}
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
    fn source_and_destination_are_exchanged() {
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
