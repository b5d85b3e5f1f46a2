//! Cost of classifying a frame, with exact address pairs in random order and with prefixes of many
//! shapes, and cost of changing a rule.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use longwire_packet::bridge::PortIndex;
use longwire_packet::classify::{Classifier, Matcher, Order, Prefix, RuleId};
use longwire_units::random::Stream;

/// Frames per iteration; enough to exceed the cache.
const FRAMES: u64 = 65_536;

/// Returns a UDP packet between two addresses.
fn frame(source: u32, destination: u32) -> [u8; 64] {
    let mut frame = [0; 64];
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14] = 0x45;
    frame[23] = 17;
    frame[26..30].copy_from_slice(&source.to_be_bytes());
    frame[30..34].copy_from_slice(&destination.to_be_bytes());
    frame
}

fn prefix(address: u32, bits: u8) -> Prefix {
    let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
    Prefix::new(IpAddr::V4(Ipv4Addr::from(address & mask)), bits).unwrap()
}

/// Returns the address pair with this number, spread over two networks.
fn pair(number: u32) -> (u32, u32) {
    let spread = number.wrapping_mul(0x9e37_79b1);
    (0x0a00_0000 | spread >> 8, 0xac10_0000 | number & 0xf_ffff)
}

fn pair_matcher(number: u32) -> Matcher {
    let (source, destination) = pair(number);
    Matcher {
        source: Some(prefix(source, 32)),
        destination: Some(prefix(destination, 32)),
        ..Matcher::default()
    }
}

fn lookups(classifier: &Classifier<u32>, frames: &[[u8; 64]]) -> u64 {
    let target = |frame: &[u8; 64]| {
        let found = classifier.classify(PortIndex(0), black_box(frame), 64);
        u64::from(found.target)
    };
    frames.iter().map(target).sum()
}

/// Builds `count` exact pairs, and matching frames in random order.
fn pairs(count: u32) -> (Classifier<u32>, Vec<[u8; 64]>) {
    let rules = (0..count).map(|number| (pair_matcher(number), number, 0));
    let classifier = Classifier::with_rules(Order::First, u32::MAX, rules).unwrap();
    let mut draw = Stream::of_seed(1);
    let random = |_| {
        let (source, destination) = pair(draw.up_to(u64::from(count) - 1) as u32);
        frame(source, destination)
    };
    (classifier, (0..FRAMES).map(random).collect())
}

fn bench_pairs(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("classify");
    group.throughput(Throughput::Elements(FRAMES));
    for count in [10, 1_000, 100_000, 1_000_000] {
        let (classifier, frames) = pairs(count);
        group.bench_function(format!("{count} pairs"), |bencher| {
            bencher.iter(|| lookups(&classifier, &frames));
        });
    }
    for order in [Order::First, Order::MostSpecific] {
        let (classifier, frames) = shapes(order);
        assert_eq!(classifier.cost().shapes, 32);
        group.bench_function(format!("32 shapes, {order:?}"), |bencher| {
            bencher.iter(|| lookups(&classifier, &frames));
        });
    }
    group.finish();
}

/// Builds 10,000 destination prefixes of every length, in random order.
fn shapes(order: Order) -> (Classifier<u32>, Vec<[u8; 64]>) {
    let mut draw = Stream::of_seed(2);
    let mut addresses = Vec::new();
    let mut classifier = Classifier::new(order, u32::MAX);
    for number in 0..10_000 {
        let address = draw.next_u64() as u32;
        addresses.push(address);
        let matcher = Matcher {
            destination: Some(prefix(address, (number % 32) as u8 + 1)),
            ..Matcher::default()
        };
        classifier.insert(matcher, number, 0).unwrap();
    }
    let random = |_| {
        let which = draw.up_to(addresses.len() as u64 - 1) as usize;
        frame(0x0a00_0001, addresses[which])
    };
    (classifier, (0..FRAMES).map(random).collect())
}

fn bench_changes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("change a rule");
    for count in [1_000, 1_000_000] {
        let (mut classifier, _) = pairs(count);
        let mut draw = Stream::of_seed(3);
        let mut number = count;
        group.bench_function(format!("one of {count} pairs"), |bencher| {
            bencher.iter_batched(
                || {
                    number = number.wrapping_add(1);
                    let rule = draw.up_to(u64::from(count) - 1) as u32;
                    (RuleId(rule), pair_matcher(number))
                },
                |(rule, matcher)| classifier.replace(rule, matcher, 7).unwrap(),
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, bench_pairs, bench_changes);
criterion_main!(benches);
