//! Cost of forwarding a frame, with few and many stations.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use longwire_packet::bridge::{Bridge, BridgeConfig, PortIndex};
use longwire_units::Nanos;
use longwire_units::random::Stream;

/// Frames per iteration.
const FRAMES: usize = 65_536;

fn station(number: u64) -> [u8; 6] {
    let [_, _, a, b, c, d, e, f] = (0x0200_0000_0000 | (number * 0x9_e377)).to_be_bytes();
    [a, b, c, d, e, f]
}

/// Returns a frame between two of `stations`, and its ingress port.
fn random_frame(draw: &mut Stream, stations: u64) -> (PortIndex, [u8; 64]) {
    let source = draw.up_to(stations - 1);
    let mut frame = [0; 64];
    frame[..6].copy_from_slice(&station(draw.up_to(stations - 1)));
    frame[6..12].copy_from_slice(&station(source));
    frame[12] = 8;
    (PortIndex((source % 4) as u16), frame)
}

fn bench_forward(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("bridge");
    group.throughput(Throughput::Elements(FRAMES as u64));
    for stations in [1, 1_000, 60_000] {
        let mut bridge = Bridge::new(BridgeConfig::new(4)).unwrap();
        let mut draw = Stream::of_seed(1);
        let frames: Vec<_> = (0..FRAMES)
            .map(|_| random_frame(&mut draw, stations))
            .collect();
        for number in 0..stations {
            let mut hello = [0xff; 64];
            hello[6..12].copy_from_slice(&station(number));
            bridge.forward(Nanos::ZERO, PortIndex((number % 4) as u16), &hello);
        }
        let mut now = 0;
        group.bench_function(format!("{stations} stations"), |bencher| {
            bencher.iter(|| {
                // One frame per 100 ns.
                for (port, frame) in &frames {
                    now += 100;
                    black_box(bridge.forward(Nanos::from_nanos(now), *port, black_box(frame)));
                }
            });
        });
        assert_eq!(bridge.counters().not_learnt, 0);
    }
    let mut bridge = Bridge::new(BridgeConfig::new(4)).unwrap();
    let mut now = 0u64;
    group.bench_function("broadcast", |bencher| {
        let mut hello = [0xff; 64];
        hello[6..12].copy_from_slice(&station(1));
        bencher.iter(|| {
            for _ in 0..FRAMES {
                now += 10_000;
                hello[32..40].copy_from_slice(&now.to_be_bytes());
                black_box(bridge.forward(Nanos::from_nanos(now), PortIndex(1), black_box(&hello)));
            }
        });
    });
    group.finish();
}

criterion_group!(benches, bench_forward);
criterion_main!(benches);
