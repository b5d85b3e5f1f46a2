//! Cost of altering a frame. Run `cargo bench -p longwire-packet --bench alter`.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use longwire_packet::alter::{About, AlterOptions, Alterations, Truncated};
use longwire_packet::filter::Filter;
use longwire_packet::split::Splitter;
use longwire_testbed::support::frames::{PLAIN4, ethernet, ipv6, transport};

/// Frames per iteration.
const FRAMES: u64 = 1_024;

/// Number of source hosts, used round robin.
const HOSTS: u64 = 256;

/// Returns UDP frames of `len` bytes from many hosts, over IPv4 with checksums or over IPv6.
fn frames(len: usize, v6: bool) -> Vec<Vec<u8>> {
    let segment =
        |version, headers| transport(version, 17, (40_000, 80), 0, &vec![7; len - headers]);
    let frame = |host: u64| {
        let (mut frame, host_at) = if v6 {
            let packet = ipv6(0, &[], 17, &segment(6, 62));
            (ethernet(&[], 0x86dd, &packet), 37)
        } else {
            let packet = PLAIN4.packet(17, &segment(4, 42));
            (ethernet(&[], 0x0800, &packet), 29)
        };
        frame[host_at] = host as u8;
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

/// Sets the combined alterations of the table in docs/rewriting.md.
fn full(options: &mut AlterOptions) {
    mac(options);
    options.source_mac = Some("02:00:00:00:00:0a".parse().unwrap());
    options.vlan = vec!["push:7".parse().unwrap()];
    options.address_maps = vec![
        "10.0.0.0/8=172.16.0.0/12".parse().unwrap(),
        "192.0.2.0/24=198.51.100.0/24".parse().unwrap(),
        "2001:db8::/32=2001:db8:1::/48".parse().unwrap(),
    ];
    options.port_maps = vec!["80=8080".parse().unwrap()];
    options.ttl = Some("-1".parse().unwrap());
}

fn mac(options: &mut AlterOptions) {
    options.destination_mac = Some("02:00:00:00:00:0b".parse().unwrap());
}

fn anonymize(options: &mut AlterOptions) {
    let key = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    options.anonymize = Some(key.parse().unwrap());
}

/// A name, its options, and whether the frames are IPv6.
type Case = (&'static str, fn(&mut AlterOptions), bool);

const CASES: [Case; 7] = [
    ("nothing", |_| (), false),
    ("mac", mac, false),
    ("full", full, false),
    ("full, IPv6", full, true),
    ("anonymize", anonymize, false),
    ("anonymize, IPv6", anonymize, true),
    ("checksums", |options| options.fix_checksums = true, false),
];

fn round(alterations: &mut Alterations, frames: &[Vec<u8>], captured: usize) -> u64 {
    let mut taken = 0u64;
    for number in 0..FRAMES {
        let frame = &frames[(number % HOSTS) as usize];
        let about = About {
            number,
            ..About::default()
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
        for (name, change, v6) in CASES {
            let frames = frames(len, v6);
            let mut alterations = Alterations::new(options(change));
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
