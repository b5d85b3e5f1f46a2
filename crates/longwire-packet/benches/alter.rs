//! Cost of altering a frame. Run `cargo bench -p longwire-packet --bench alter`.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use longwire_packet::alter::{About, AlterOptions, Alterations, Truncated};
use longwire_packet::filter::Filter;
use longwire_packet::split::Splitter;
use longwire_units::Nanos;

/// Frames per iteration.
const FRAMES: u64 = 1_024;

/// Number of source hosts, used round robin.
const HOSTS: u64 = 256;

/// Returns UDP frames of `len` bytes from many hosts, over IPv4 with checksums or over IPv6.
fn frames(len: usize, v6: bool) -> Vec<Vec<u8>> {
    let frame = |host: u64| {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
        let behind = (len - 14) as u16;
        if v6 {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend((behind - 40).to_be_bytes());
            frame.extend([17, 64, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
            frame.extend([
                host as u8, 0x20, 1, 0xd, 0xb8, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2,
            ]);
        } else {
            frame.extend([8, 0, 0x45, 0]);
            frame.extend(behind.to_be_bytes());
            frame.extend([
                0, 1, 0, 0, 64, 17, 0, 0, 10, 1, 2, host as u8, 192, 0, 2, 77,
            ]);
        }
        let udp_len = (len - frame.len()) as u16;
        frame.extend([0x9c, 0x40, 0, 80]);
        frame.extend(udp_len.to_be_bytes());
        frame.extend([0xff, 0xff]);
        frame.resize(len, 7);
        longwire_packet::repair_checksums(&mut frame);
        frame
    };
    (0..HOSTS).map(frame).collect()
}

fn options(change: impl FnOnce(&mut AlterOptions)) -> AlterOptions {
    let mut options = AlterOptions::default();
    change(&mut options);
    options
}

/// Returns the combined alterations of the table in docs/rewriting.md.
fn full() -> AlterOptions {
    options(|options| {
        options.source_mac = Some("02:00:00:00:00:0a".parse().unwrap());
        options.destination_mac = Some("02:00:00:00:00:0b".parse().unwrap());
        options.vlan = vec!["push:7".parse().unwrap()];
        options.address_maps = vec![
            "10.0.0.0/8=172.16.0.0/12".parse().unwrap(),
            "192.0.2.0/24=198.51.100.0/24".parse().unwrap(),
            "2001:db8::/32=2001:db8:1::/48".parse().unwrap(),
        ];
        options.port_maps = vec!["80=8080".parse().unwrap()];
        options.ttl = Some("-1".parse().unwrap());
    })
}

fn cases() -> Vec<(&'static str, AlterOptions, bool)> {
    let key = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    vec![
        ("nothing", AlterOptions::default(), false),
        (
            "mac",
            options(|options| {
                options.destination_mac = Some("02:00:00:00:00:0b".parse().unwrap());
            }),
            false,
        ),
        ("full", full(), false),
        ("full, IPv6", full(), true),
        (
            "anonymize",
            options(|options| options.anonymize = Some(key.parse().unwrap())),
            false,
        ),
        (
            "anonymize, IPv6",
            options(|options| options.anonymize = Some(key.parse().unwrap())),
            true,
        ),
        (
            "checksums",
            options(|options| options.fix_checksums = true),
            false,
        ),
    ]
}

fn round(alterations: &mut Alterations, frames: &[Vec<u8>], captured: usize) -> u64 {
    let mut taken = 0u64;
    for number in 0..FRAMES {
        let frame = &frames[(number % HOSTS) as usize];
        let about = About {
            round: 0,
            into_round: Nanos::ZERO,
            number,
        };
        let bytes = black_box(&frame[..captured.min(frame.len())]);
        alterations.apply(bytes, frame.len() as u32, about, &mut |bytes, wire_len| {
            taken += u64::from(black_box(bytes)[0]) + u64::from(wire_len);
        });
    }
    taken
}

fn bench_alter(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("alter");
    group.throughput(Throughput::Elements(FRAMES));
    for len in [64, 1_514] {
        for (name, options, v6) in cases() {
            let frames = frames(len, v6);
            let mut alterations = Alterations::new(options);
            group.bench_function(BenchmarkId::new(name, len), |bencher| {
                bencher.iter(|| round(&mut alterations, &frames, usize::MAX));
            });
        }
    }
    let frames = frames(1_514, false);
    for truncated in [Truncated::Zeros, Truncated::Random] {
        let name = format!("truncated to 96, {truncated:?}");
        let mut alterations = Alterations::new(options(|options| options.truncated = truncated));
        group.bench_function(BenchmarkId::new(name, 1_514), |bencher| {
            bencher.iter(|| round(&mut alterations, &frames, 96));
        });
    }
    group.finish();
}

fn bench_judges(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("judge");
    group.throughput(Throughput::Elements(FRAMES));
    let frames = frames(64, false);
    for text in [
        "udp port 53",
        "ip[8] < 5",
        "tcp or udp and not net 10.0.0.0/9",
    ] {
        let filter = Filter::parse(text).unwrap();
        group.bench_function(BenchmarkId::new("filter", text), |bencher| {
            bencher.iter(|| {
                let met = |number: u64| {
                    let frame = black_box(&frames[(number % HOSTS) as usize]);
                    u64::from(filter.matches(frame, 64))
                };
                (0..FRAMES).map(met).sum::<u64>()
            });
        });
    }
    for text in ["client=10.0.0.0/8", "syn", "port"] {
        let mut splitter = text.parse::<Splitter>().unwrap();
        group.bench_function(BenchmarkId::new("split", text), |bencher| {
            bencher.iter(|| {
                let mut side = |number: u64| {
                    splitter.side(black_box(&frames[(number % HOSTS) as usize])) as u64
                };
                (0..FRAMES).map(&mut side).sum::<u64>()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, bench_alter, bench_judges);
criterion_main!(benches);
