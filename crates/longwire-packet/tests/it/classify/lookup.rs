//! Rule lookup.

use longwire_packet::bridge::PortIndex;
use longwire_packet::classify::{Classifier, Matcher, Order, PortRange, Prefix, RuleError, RuleId};

use crate::classify::oracle;
use crate::classify::universe::Universe;

/// A rule in the naive model.
struct Naive {
    id: RuleId,
    matcher: Matcher,
    target: u32,
    priority: u32,
    sequence: u64,
}

/// Returns a matcher's specificity as defined by [`Order::MostSpecific`].
fn specificity(matcher: &Matcher) -> Vec<i64> {
    let bits = |prefix: Option<Prefix>| prefix.map_or(-1, |prefix| prefix.bits().into());
    let ports = [matcher.destination_ports, matcher.source_ports];
    let mut parts = vec![bits(matcher.destination), bits(matcher.source)];
    let width = |range: PortRange| i64::from(range.high() - range.low());
    parts.extend(ports.map(|range| -range.map_or(65_536, width)));
    let given = [
        matcher.protocol.is_some(),
        matcher.dscp.is_some(),
        matcher.vlan.is_some(),
        matcher.inner_vlan.is_some(),
        matcher.vlan_priority.is_some(),
        matcher.destination_mac.is_some(),
        matcher.source_mac.is_some(),
        matcher.ethertype.is_some(),
        matcher.arrival_port.is_some(),
        matcher.filter.is_some(),
    ];
    parts.extend(given.map(i64::from));
    parts
}

/// Returns the first rule, in order, that matches.
fn naive_lookup(
    rules: &[Naive],
    order: Order,
    (port, frame, wire_len): &(PortIndex, Vec<u8>, u32),
) -> Option<(RuleId, u32)> {
    let fits = |rule: &&Naive| oracle::matches(&rule.matcher, *port, frame, *wire_len);
    let best = rules.iter().filter(fits).min_by_key(|rule| {
        let specific = (order == Order::MostSpecific).then(|| specificity(&rule.matcher));
        (rule.priority, core::cmp::Reverse(specific), rule.sequence)
    });
    best.map(|rule| (rule.id, rule.target))
}

const UNMATCHED: u32 = 999;

/// Applies a random change to the classifier and to the model.
fn change(
    draw: &mut Universe,
    classifier: &mut Classifier<u32>,
    rules: &mut Vec<Naive>,
    step: u64,
) {
    let (matcher, target) = (draw.matcher(), draw.below(5) as u32);
    match draw.below(10) {
        0..2 if !rules.is_empty() => {
            let rule = rules.swap_remove(draw.below(rules.len()));
            let removed = classifier.remove(rule.id);
            assert_eq!(removed, Ok((rule.matcher, rule.target)));
            let again = classifier.remove(rule.id);
            assert_eq!(again, Err(RuleError::NoSuchRule(rule.id)));
        }
        2..4 if !rules.is_empty() => {
            let at = draw.below(rules.len());
            let rule = &mut rules[at];
            let replaced = classifier.replace(rule.id, matcher.clone(), target);
            replaced.unwrap();
            (rule.matcher, rule.target) = (matcher, target);
        }
        _ => {
            let priority = draw.below(3) as u32 * 7;
            let inserted = classifier.insert(matcher.clone(), target, priority);
            let id = inserted.unwrap();
            assert!(rules.iter().all(|rule| rule.id != id), "{id} given twice");
            rules.push(Naive {
                id,
                matcher,
                target,
                priority,
                sequence: step,
            });
        }
    }
}

#[test]
fn lookups_agree_with_a_linear_search() {
    let (mut matched, mut lookups) = (0, 0);
    for seed in 0..3_000 {
        let mut draw = Universe::new(seed);
        let order = [Order::First, Order::MostSpecific][seed as usize % 2];
        let mut classifier = Classifier::new(order, UNMATCHED);
        let mut rules = Vec::new();
        let size = 1 + draw.below(40);
        for step in 0..size as u64 {
            change(&mut draw, &mut classifier, &mut rules, step);
            if step % 4 != 0 {
                continue;
            }
            for _ in 0..6 {
                let frame = draw.frame();
                let found = classifier.classify(frame.0, &frame.1, frame.2);
                let expected = naive_lookup(&rules, order, &frame);
                let context = format!("seed {seed}, step {step}, {order:?}, {frame:x?}");
                assert_eq!(found.rule, expected.map(|(id, _)| id), "{context}");
                let target = expected.map_or(UNMATCHED, |(_, target)| target);
                assert_eq!(found.target, target, "{context}");
                lookups += 1;
                matched += u32::from(expected.is_some());
            }
        }
        assert_eq!(classifier.len(), rules.len());
    }
    // Guards against a test in which frames rarely match.
    assert!(matched > lookups / 3, "{matched} of {lookups} matched");
}

#[test]
fn removing_all_rules_frees_all_shapes() {
    let mut draw = Universe::new(7);
    let mut classifier = Classifier::new(Order::MostSpecific, 0u32);
    for _ in 0..20 {
        let insert = |_| classifier.insert(draw.matcher(), 1, 0).unwrap();
        let ids: Vec<RuleId> = (0..200).map(insert).collect();
        let highest = ids.iter().map(|id| id.0).max();
        assert_eq!(highest, Some(199), "numbers are given again");
        assert!(classifier.cost().shapes > 10);
        for id in ids {
            classifier.remove(id).unwrap();
        }
        assert!(classifier.is_empty());
        assert_eq!(classifier.cost().shapes, 0);
        let (port, frame, wire_len) = draw.frame();
        assert_eq!(classifier.classify(port, &frame, wire_len).rule, None);
    }
}

/// Grows the table and removes every other pair. A million pairs are covered by the bench.
#[test]
fn pairs_are_found_after_growth_and_removal() {
    let spread = |n: u32| n.wrapping_mul(0x9e37_79b1).to_be_bytes();
    let pair = |n: u32| -> Matcher {
        let [a, b, c, d] = spread(n);
        let text = format!("src=10.{a}.{b}.1,dst=172.16.{c}.{d}");
        text.parse().unwrap()
    };
    let frame = |n: u32| {
        let [a, b, c, d] = spread(n);
        let header = [8, 0, 0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0];
        [&[2; 12][..], &header, &[10, a, b, 1, 172, 16, c, d]].concat()
    };
    let mut classifier = Classifier::new(Order::First, u32::MAX);
    let insert = |n| classifier.insert(pair(n), n, 0).unwrap();
    let ids: Vec<RuleId> = (0..20_000).map(insert).collect();
    for n in (0..20_000).step_by(2) {
        classifier.remove(ids[n as usize]).unwrap();
    }
    for n in 0..20_000 {
        let found = classifier.classify(PortIndex(0), &frame(n), 34);
        let expected = if n % 2 == 0 { u32::MAX } else { n };
        assert_eq!(found.target, expected, "pair {n}");
    }
    let cost = classifier.cost();
    let counts = (cost.rules, cost.shapes, cost.longest_chain);
    assert_eq!(counts, (10_000, 1, 1));
    assert!(!cost.is_high());
}

#[test]
fn a_refused_change_has_no_effect() {
    let mut classifier = Classifier::new(Order::First, 0u32);
    let rule = "dport=80".parse().unwrap();
    let id = classifier.insert(rule, 1, 0).unwrap();
    let impossible = Matcher {
        protocol: Some(1),
        source_ports: Some(PortRange::one(1)),
        ..Matcher::default()
    };
    assert!(classifier.replace(id, impossible.clone(), 2).is_err());
    assert!(classifier.insert(impossible, 2, 0).is_err());
    assert_eq!(classifier.rule(id).unwrap().1, 1);
    assert_eq!(classifier.len(), 1);
    assert!(classifier.set_target(RuleId(5), 1).is_err());
    classifier.set_target(id, 7).unwrap();
    assert_eq!(classifier.rule(id).unwrap().1, 7);
}

#[test]
fn rules_keep_their_matchers() {
    let mut classifier = Classifier::new(Order::First, 0u32);
    let texts = [
        "any",
        "src=10.0.0.0/8",
        "dst=10.1.2.3",
        "src=0.0.0.0/0,dst=255.255.255.255",
        "src=2001:db8::/32,dst=2001:db8::1",
        "src=10.1.2.3,in-port=3",
        "dst=10.1.2.3,dport=5000-5010",
    ];
    for (text, target) in texts.into_iter().zip(1..) {
        let matcher: Matcher = text.parse().unwrap();
        let id = classifier.insert(matcher.clone(), target, 0).unwrap();
        let (found, found_target) = classifier.rule(id).unwrap();
        assert_eq!((found.as_ref(), found_target), (&matcher, target));
        assert_eq!(classifier.remove(id).unwrap(), (matcher, target));
    }
}

#[test]
fn high_costs_are_reported() {
    let mut classifier = Classifier::new(Order::First, 0u32);
    for low in 0..70u16 {
        let text = format!("dport={low}-{}", 1_000 + low);
        classifier.insert(text.parse().unwrap(), 1, 0).unwrap();
    }
    assert_eq!(classifier.cost().longest_chain, 70);
    assert!(classifier.cost().is_high());
    let mut classifier = Classifier::new(Order::First, 0u32);
    for bits in 0..=32 {
        for side in ["src", "dst"] {
            let text = format!("{side}=0.0.0.0/{bits}");
            classifier.insert(text.parse().unwrap(), 1, 0).unwrap();
        }
    }
    // Both /0 prefixes express the same condition: an IPv4 packet.
    assert_eq!(classifier.cost().shapes, 65);
    assert!(classifier.cost().is_high());
}
