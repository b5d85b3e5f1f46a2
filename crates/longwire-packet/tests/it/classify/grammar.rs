//! Parses and prints matchers.

use longwire_packet::classify::{Matcher, PortRange, VlanMatch};
use longwire_testbed::support::rows;

use crate::classify::universe::Universe;

fn parsed(text: &str) -> Matcher {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn printed_matchers_parse_back() {
    for seed in 0..5_000 {
        let matcher = Universe::new(seed).matcher();
        let text = matcher.to_string();
        let again = parsed(&text);
        assert_eq!(again, matcher, "{text}");
        assert_eq!(again.to_string(), text);
    }
}

#[test]
fn the_documented_example_is_parsed() {
    let text = "src=10.0.0.0/8,dst=10.1.2.3,proto=udp,dport=5000-5010,dscp=ef,vlan=7";
    let matcher = parsed(text);
    assert_eq!(matcher.source.unwrap().bits(), 8);
    assert!(matcher.destination.unwrap().is_host());
    assert_eq!(matcher.protocol, Some(17));
    assert_eq!(matcher.destination_ports, PortRange::new(5000, 5010));
    assert_eq!(matcher.dscp, Some(46));
    assert_eq!(matcher.vlan, Some(VlanMatch::Id(7)));
    let written = "src=10.0.0.0/8,dst=10.1.2.3,dport=5000-5010,proto=udp,dscp=46,vlan=7";
    assert_eq!(matcher.to_string(), written);
}

#[test]
fn equivalent_forms_are_equal() {
    for [text, written] in rows(
        "
        dst=10.0.0.1/32 | dst=10.0.0.1
        src=2001:DB8::/32 | src=2001:db8::/32
        dport=5-5 | dport=5
        proto=6,sport=0-65535 | sport=0-65535,proto=tcp
        proto=icmpv6 | proto=icmp6
        proto=253 | proto=253
        dscp=af11 | dscp=10
        ethertype=0x0806 | ethertype=arp
        ethertype=0x1234 | ethertype=0x1234
        src-mac=2:0:0:0:0:a | src-mac=02:00:00:00:00:0a
        vlan=none | vlan=none
        vlan=1,inner-vlan=2,vlan-priority=3 | vlan=1,vlan-priority=3,inner-vlan=2
        in-port=3 | in-port=3
        proto=udp,filter=tcp.port in {80, 443} | proto=udp,filter=tcp.port in {80, 443}
        any | any
    ",
    ) {
        assert_eq!(parsed(text).to_string(), written);
    }
    let spaced = parsed(" dst = 10.0.0.1 , src=0.0.0.0/0 ");
    assert_eq!(spaced.to_string(), "src=0.0.0.0/0,dst=10.0.0.1");
}

#[test]
fn refusals_name_the_field_and_a_remedy() {
    for [text, field, says] in rows(
        "
         | empty field | key=value
        src=10.0.0.1, | empty field | key=value
        udp | udp | key=value
        sorce=1.2.3.4 | sorce | the fields are src, dst
        src=1.2.3.4,src=1.2.3.5 | src | twice
        src=10.0.0.300 | src | 10.0.0.0/8
        src=10.0.0.0/33 | src | a prefix
        dst=10.1.2.3/8 | dst | write 10.0.0.0/8
        dst=2001:db8::1/32 | dst | write 2001:db8::/32
        dport=70000 | dport | 0 to 65535
        dport=20-10 | dport | from low to high
        proto=256 | proto | 0 to 255
        proto=upd | proto | such as udp
        dscp=64 | dscp | the maximum is 63
        dscp=af44 | dscp | af11
        vlan=4095 | vlan | the maximum is 4094
        vlan-priority=8 | vlan-priority | the maximum is 7
        inner-vlan=none | inner-vlan | 0 to 4094
        src-mac=02:00 | src-mac | 02:00:00:00:00:01
        ethertype=0x8100 | ethertype | write vlan=
        in-port=x | in-port | from 0
        filter=prot 5 | filter | column 1
        src=10.0.0.1,dst=2001:db8::1 | src, dst | same IP version
        proto=icmp,dport=80 | dport, proto | no frame can match
        ethertype=arp,dscp=ef | dscp, ethertype | no frame can match
        vlan=none,vlan-priority=3 | vlan, vlan-priority | only tagged
        vlan=none,inner-vlan=3 | vlan, inner-vlan | only tagged
        ethertype=ip6,src=10.0.0.1 | src, ethertype | remove a field
    ",
    ) {
        let message = text.parse::<Matcher>().expect_err(text).to_string();
        let begin = format!("{field}: ");
        assert!(message.starts_with(&begin), "'{text}': {message}");
        assert!(message.contains(says), "'{text}': {message}");
    }
}

#[test]
fn no_text_makes_the_parser_panic() {
    let pieces = [
        "src", "dst", "=", ",", "/", "-", "10.0.0.1", "::", "8", "filter", "vlan", "none", "é",
        " ", "dport", "65535", "any", "0x",
    ];
    let mut draw = Universe::new(3);
    for _ in 0..20_000 {
        let count = draw.below(9);
        let words = (0..count).map(|_| pieces[draw.below(pieces.len())]);
        let text: String = words.collect();
        if let Ok(matcher) = text.parse::<Matcher>() {
            assert_eq!(matcher.to_string().parse(), Ok(matcher));
        }
    }
}
