//! Analysis of rules, as used by `longwire check`.

use longwire_packet::classify::{Classifier, Matcher, Order, PortRange, Prefix, RuleId, VlanMatch};

use crate::classify::oracle;
use crate::classify::universe::Universe;

fn classifier(order: Order, rules: &[(&str, u32)]) -> Classifier<u32> {
    let rules = rules
        .iter()
        .map(|(text, target)| (text.parse().unwrap(), *target, 0));
    Classifier::with_rules(order, 0, rules).unwrap()
}

/// Returns unreachable rules, each with a rule that covers it.
fn unreachable(classifier: &Classifier<u32>) -> Vec<(u32, u32)> {
    let found = classifier.unreachable();
    assert!(found.complete);
    let rules = found.rules.iter();
    rules
        .map(|found| (found.rule.0, found.covered_by.0))
        .collect()
}

fn overlaps(classifier: &Classifier<u32>) -> Vec<(u32, u32)> {
    let found = classifier.overlaps(1_000);
    assert!(found.complete);
    let pairs = found.pairs.iter();
    pairs.map(|pair| (pair.winner.0, pair.loser.0)).collect()
}

#[test]
fn rules_after_wider_ones_are_unreachable() {
    for (first, second, expected) in [
        ("src=10.0.0.0/8", "src=10.1.0.0/16", true),
        ("src=10.1.0.0/16", "src=10.0.0.0/8", false),
        ("any", "filter=udp", true),
        ("filter=udp", "src=10.0.0.1,filter=tcp", false),
        ("filter=udp", "src=10.0.0.1,filter=udp", true),
        ("dport=1-10", "dport=3-7,proto=tcp", true),
        ("dport=1-10", "dport=5", true),
        ("dport=1-10", "dport=5-11", false),
        // Implied conditions: only IPv4 frames have IPv4 addresses.
        ("ethertype=ip", "dst=10.0.0.1", true),
        ("ethertype=ip", "dst=2001:db8::1", false),
        ("dport=0-65535", "sport=7", true),
        ("src=0.0.0.0/0,dport=7", "dport=7,dst=10.0.0.0/8", true),
        ("vlan=7", "vlan=7,inner-vlan=3", true),
        ("vlan=none", "vlan=none,dscp=ef", true),
        ("vlan=none", "vlan=0", false),
        ("dscp=0,ethertype=ip", "dscp=0,src=0.0.0.0/0", true),
    ] {
        let found = unreachable(&classifier(Order::First, &[(first, 1), (second, 2)]));
        let all: &[(u32, u32)] = if expected { &[(1, 0)] } else { &[] };
        assert_eq!(found, all, "{first} before {second}");
    }
}

#[test]
fn the_most_specific_order_has_other_unreachable_rules() {
    let rules = [
        ("src=10.0.0.0/8", 1),
        ("src=10.1.0.0/16", 2),
        ("src=10.1.0.0/16", 3),
    ];
    let found = |order| unreachable(&classifier(order, &rules));
    assert_eq!(found(Order::MostSpecific), [(2, 1)]);
    assert_eq!(found(Order::First), [(1, 0), (2, 0)]);
    // Priority takes precedence over specificity.
    let rules = [("src=10.1.0.0/16", 1, 5), ("src=10.0.0.0/8", 2, 1)];
    let rules = rules.map(|(text, target, priority)| (text.parse().unwrap(), target, priority));
    let found = Classifier::with_rules(Order::MostSpecific, 0, rules).unwrap();
    assert_eq!(unreachable(&found), [(0, 1)]);
}

#[test]
fn only_partial_overlaps_of_different_targets_are_reported() {
    for (first, second, expected) in [
        ("src=10.0.0.0/8", "dst=10.0.0.0/8", true),
        ("src=10.0.0.0/8", "src=10.1.0.0/16", false),
        ("src=10.0.0.0/8", "dst=2001:db8::/32", false),
        ("dport=1-10", "dport=5-20", true),
        ("dport=1-10", "dport=11-20", false),
        ("dport=1-10", "dport=5,proto=tcp", false),
        ("dport=1-10,src=10.0.0.0/8", "dport=5,proto=tcp", true),
        ("proto=icmp", "dport=5", false),
        ("ethertype=arp", "dscp=ef", false),
        ("vlan=none", "inner-vlan=3", false),
        ("vlan=7", "dscp=ef", true),
        ("filter=udp", "dscp=ef", false),
        ("dport=53", "in-port=0", false),
        ("in-port=0", "dport=53", true),
    ] {
        let found = classifier(Order::First, &[(first, 1), (second, 2)]);
        let all: &[(u32, u32)] = if expected { &[(0, 1)] } else { &[] };
        assert_eq!(overlaps(&found), all, "{first} and {second}");
        let alike = classifier(Order::First, &[(first, 1), (second, 1)]);
        assert_eq!(overlaps(&alike), [], "{first} and {second}, alike");
    }
    let filters = classifier(Order::First, &[("filter=udp", 1), ("dscp=ef", 2)]);
    assert_eq!(filters.overlaps(10).unjudged, 1);
}

#[test]
fn overlaps_beyond_the_limit_make_the_report_incomplete() {
    let sides = |side: &str| -> Vec<Matcher> {
        let text = |n: u32| format!("{side}=10.{}.{}.0/24", n / 256, n % 256);
        (0..300).map(|n| text(n).parse().unwrap()).collect()
    };
    let sources = sides("src").into_iter().map(|matcher| (matcher, 1, 0));
    let destinations = sides("dst").into_iter().map(|matcher| (matcher, 2, 0));
    let rules = sources.chain(destinations);
    let classifier = Classifier::with_rules(Order::First, 0, rules).unwrap();
    for (limit, complete) in [(100, false), (90_000, true)] {
        let found = classifier.overlaps(limit);
        assert_eq!((found.pairs.len(), found.complete), (limit, complete));
    }
}

/// Whether every field of one matcher lies within the other's, which implies coverage.
fn within_by_fields(inner: &Matcher, outer: &Matcher) -> bool {
    fn field<T: PartialEq>(inner: Option<T>, outer: Option<T>) -> bool {
        outer.is_none() || inner == outer
    }
    let prefix = |inner: Option<Prefix>, outer: Option<Prefix>| {
        oracle::asks(outer, inner, |outer, inner| {
            inner.bits() >= outer.bits() && oracle::in_prefix(outer, inner.address())
        })
    };
    let range = |inner: Option<PortRange>, outer: Option<PortRange>| {
        let within = |outer: PortRange, inner: PortRange| {
            outer.low() <= inner.low() && inner.high() <= outer.high()
        };
        oracle::asks(outer, inner, within)
    };
    let vlan = |matcher: &Matcher| matcher.vlan.map(|vlan| (vlan == VlanMatch::Untagged, vlan));
    prefix(inner.source, outer.source)
        && prefix(inner.destination, outer.destination)
        && range(inner.source_ports, outer.source_ports)
        && range(inner.destination_ports, outer.destination_ports)
        && field(inner.protocol, outer.protocol)
        && field(inner.dscp, outer.dscp)
        && field(vlan(inner), vlan(outer))
        && field(inner.vlan_priority, outer.vlan_priority)
        && field(inner.inner_vlan, outer.inner_vlan)
        && field(inner.source_mac, outer.source_mac)
        && field(inner.destination_mac, outer.destination_mac)
        && field(inner.ethertype, outer.ethertype)
        && field(inner.arrival_port, outer.arrival_port)
        && outer.filter.is_none()
}

#[test]
fn reports_agree_with_frames() {
    let (mut unreachables, mut pairs) = (0, 0);
    for seed in 0..1_500 {
        let mut draw = Universe::new(seed);
        let count = draw.below(30);
        let rule = |_| (draw.matcher(), draw.below(2) as u32);
        let rules: Vec<(Matcher, u32)> = (0..count).map(rule).collect();
        let all = rules
            .iter()
            .map(|(matcher, target)| (matcher.clone(), *target, 0));
        let classifier = Classifier::with_rules(Order::First, 9, all).unwrap();
        let found = unreachable(&classifier);
        let overlapping = overlaps(&classifier);
        for (rule, behind) in &found {
            assert!(behind < rule, "seed {seed}");
        }
        for (inner, (matcher, _)) in rules.iter().enumerate() {
            let mut before = rules[..inner].iter();
            let covered = before.any(|(outer, _)| within_by_fields(matcher, outer));
            let said = found.iter().any(|(rule, _)| *rule as usize == inner);
            assert!(said || !covered, "seed {seed}: {matcher} is reachable");
        }
        for _ in 0..60 {
            let (port, frame, wire_len) = draw.frame();
            let fits =
                |(matcher, _): &(Matcher, u32)| oracle::matches(matcher, port, &frame, wire_len);
            let hits: Vec<bool> = rules.iter().map(fits).collect();
            for (rule, behind) in &found {
                let fails = hits[*rule as usize] && !hits[*behind as usize];
                assert!(!fails, "seed {seed}: {rule} before {behind}: {frame:x?}");
            }
            let first = classifier.classify(port, &frame, wire_len).rule;
            let unreached = |RuleId(id)| found.iter().all(|(rule, _)| *rule != id);
            assert!(first.is_none_or(unreached), "seed {seed}: {first:?}");
            pairs += check_pairs(&rules, &hits, &overlapping, seed);
        }
        unreachables += found.len();
    }
    // Guards against a test with few findings.
    assert!(unreachables > 500, "{unreachables} unreachable");
    assert!(pairs > 500, "{pairs} pairs");
}

/// Rules that match a common frame overlap and must be listed, unless one contains the other.
fn check_pairs(
    rules: &[(Matcher, u32)],
    hits: &[bool],
    overlapping: &[(u32, u32)],
    seed: u64,
) -> usize {
    let mut met = 0;
    for second in 0..rules.len() {
        for first in 0..second {
            let ((a, to_a), (b, to_b)) = (&rules[first], &rules[second]);
            let arrival_port = b.arrival_port;
            let rest_of_port = Matcher {
                arrival_port,
                ..Matcher::default()
            };
            let by_order = a.filter.is_none() && b.filter.is_none() && to_a != to_b;
            let judged = by_order && *b != rest_of_port;
            let said = overlapping.contains(&(first as u32, second as u32));
            let within = within_by_fields(a, b) || within_by_fields(b, a);
            let pair = format!("seed {seed}: {a} and {b}");
            assert!(judged && !within || !said, "{pair} are said to overlap");
            if hits[first] && hits[second] && judged && !within {
                // Types, protocols or full ranges may imply containment that a comparison of fields
                // does not reveal.
                let all = |prefix: Option<Prefix>| prefix.is_some_and(|prefix| prefix.bits() == 0);
                let implied = |matcher: &Matcher| {
                    matcher.ethertype.is_some()
                        || matcher.source_ports.or(matcher.destination_ports).is_some()
                        || all(matcher.source)
                        || all(matcher.destination)
                };
                let judged_within = implied(a) || implied(b);
                assert!(said || judged_within, "{pair} are not said to overlap");
                met += 1;
            }
        }
    }
    met
}

/// 100,000 address pairs and some networks take seconds in an unoptimised build; pairwise
/// comparison would take hours.
#[test]
fn a_hundred_thousand_rules_are_analysed() {
    let pair = |n: u32| -> Matcher {
        let [_, a, b, c] = n.to_be_bytes();
        let text = format!("src=10.{a}.{b}.{c},dst=10.200.{b}.{c}");
        text.parse().unwrap()
    };
    let more = [
        (pair(77), 1, 0),
        ("src=10.0.0.0/16".parse().unwrap(), 0, 0),
        ("src=10.0.3.0/24,proto=udp".parse().unwrap(), 5, 0),
    ];
    let rules = (0..100_000).map(|n| (pair(n), n, 0)).chain(more);
    let classifier = Classifier::with_rules(Order::First, 0, rules).unwrap();
    let found = unreachable(&classifier);
    assert_eq!(found, [(100_000, 77), (100_002, 100_001)]);
    // The pairs from 10.0.3.0/24 overlap with the last rule. They do not overlap with the rule
    // before it, which covers them.
    let found = overlaps(&classifier);
    assert_eq!(found.len(), 256, "{:?}", &found[..3]);
    assert!(found.iter().all(|pair| pair.1 == 100_002));
}
