//! Cost per frame of `Link::offer`: the engine figure in SPECIFICATION.md.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use longwire_engine::models::queue::{Queue, QueueLimit};
use longwire_engine::{
    BitRate, Bytes, FrameMeta, Link, LinkConfig, LinkId, Nanos, Verdict, models,
};

/// Frames per measured round, to amortise the cost of reading the clock.
const FRAMES: u64 = 1_024;

/// 100 Gbit/s, slightly more than the load offered below.
const RATE: u64 = 100_000_000_000;

fn full_link(loss: &[&str], delay: &str) -> Link {
    let config = LinkConfig {
        rate: BitRate::from_bits_per_sec(RATE).into(),
        queue: Some(Queue::TailDrop(QueueLimit {
            packets: None,
            bytes: Some(Bytes(1 << 20)),
        })),
        loss: loss
            .iter()
            .map(|text| models::LOSS.parse(text).unwrap())
            .collect(),
        delay: models::DELAY.parse(delay).unwrap(),
        ..LinkConfig::default()
    };
    Link::new(config, 1, LinkId(0))
}

/// Offers frames of `len` bytes just below the link rate, in bursts of 32 with one timestamp, as
/// ports deliver them.
fn offer_round(link: &mut Link, clock: &mut u64, len: u32) -> u64 {
    let burst_nanos = u64::from(len) * 8 * 32 * 1_000_000_000 / RATE + 1;
    let mut released = 0u64;
    for index in 0..FRAMES {
        if index % 32 == 0 {
            *clock += burst_nanos;
        }
        let frame = FrameMeta::new(Nanos::from_nanos(*clock), len);
        if let Verdict::Deliver(delivery) = link.offer(black_box(frame), &[]) {
            released = released.wrapping_add(delivery.release.as_nanos());
        }
    }
    released
}

/// Offers frames of two interleaved flows, so that consecutive lengths always differ.
fn offer_mixed_round(link: &mut Link, clock: &mut u64) -> u64 {
    let mut released = 0u64;
    for index in 0..FRAMES / 2 {
        *clock += (1514 + 66) * 8 * 1_000_000_000 / RATE + 1;
        for len in [1514, 66 + (index % 2) as u32] {
            let frame = FrameMeta::new(Nanos::from_nanos(*clock), len);
            if let Verdict::Deliver(delivery) = link.offer(black_box(frame), &[]) {
                released = released.wrapping_add(delivery.release.as_nanos());
            }
        }
    }
    released
}

fn bench_offer(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("offer");
    group.throughput(Throughput::Elements(FRAMES));
    let cases: [(&str, u32, &[&str], &str); 7] = [
        ("64B rate queue loss", 64, &["0.1%"], "0"),
        ("64B rate queue loss delay", 64, &["0.1%"], "20ms"),
        ("64B rate queue delay", 64, &[], "20ms"),
        ("1500B rate queue loss delay", 1500, &["0.1%"], "20ms"),
        ("64B two losses", 64, &["0.1%", "ber:1e-9"], "20ms"),
        ("64B uniform delay", 64, &["0.1%"], "uniform:10ms,20ms"),
        (
            "64B exponential delay",
            64,
            &["0.1%"],
            "exponential:20ms,10ms",
        ),
    ];
    for (name, len, loss, delay) in cases {
        let mut link = full_link(loss, delay);
        let mut clock = 0;
        group.bench_function(name, |bencher| {
            bencher.iter(|| offer_round(&mut link, &mut clock, len));
        });
    }
    let mut link = full_link(&["0.1%"], "20ms");
    let mut clock = 0;
    group.bench_function("mixed lengths", |bencher| {
        bencher.iter(|| offer_mixed_round(&mut link, &mut clock));
    });
    group.finish();
}

criterion_group!(benches, bench_offer);
criterion_main!(benches);
