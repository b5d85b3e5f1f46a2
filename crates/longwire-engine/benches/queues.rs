//! Cost per 64-byte frame for each registered queue, offer plus poll: the table in
//! SPECIFICATION.md.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use longwire_engine::{BitRate, FrameMeta, Link, LinkConfig, LinkId, Nanos, Verdict, models};

/// 10 Gbit/s.
const RATE: u64 = 10_000_000_000;

/// Frame length in bytes.
const LEN: u64 = 64;

/// Frames per burst; ports deliver a burst with a single timestamp.
const BURST: u64 = 32;

/// Number of interleaved flows.
const FLOWS: u8 = 16;

/// Offered load relative to the rate.
const LOADS: [(&str, f64); 2] = [("full load", 1.0), ("twice the rate", 2.0)];

fn link(queue: &str) -> Link {
    let config = LinkConfig {
        rate: BitRate::from_bits_per_sec(RATE).into(),
        queue: Some(models::QUEUE.parse(queue).unwrap()),
        ..LinkConfig::default()
    };
    Link::new(config, 1, LinkId(0))
}

/// A UDP datagram over IPv4; flows alternate between ECT(0) and not ECN-capable.
fn frame(flow: u8) -> [u8; LEN as usize] {
    let mut bytes = [0; LEN as usize];
    bytes[12..14].copy_from_slice(&[0x08, 0x00]);
    bytes[14] = 0x45;
    bytes[15] = if flow.is_multiple_of(2) { 2 } else { 0 };
    bytes[23] = 17;
    bytes[26..34].copy_from_slice(&[10, 0, 0, flow, 10, 0, 1, 1]);
    bytes
}

/// Offers bursts of frames at a fixed load.
struct Traffic {
    link: Link,
    frames: Vec<[u8; LEN as usize]>,
    burst_nanos: f64,
    bursts: u64,
}

impl Traffic {
    fn new(queue: &str, load: f64) -> Traffic {
        let bits = (BURST * LEN * 8) as f64;
        Traffic {
            link: link(queue),
            frames: (0..FLOWS).map(frame).collect(),
            burst_nanos: bits * 1e9 / RATE as f64 / load,
            bursts: 0,
        }
    }

    /// Polls due decisions, then offers one burst. Returns the sum of releases, to prevent
    /// dead-code elimination.
    fn burst(&mut self) -> u64 {
        self.bursts += 1;
        let now = Nanos::from_nanos((self.bursts as f64 * self.burst_nanos) as u64);
        let mut sum = 0u64;
        let mut note = |verdict: Verdict| {
            if let Verdict::Deliver(delivery) = verdict {
                sum = sum.wrapping_add(delivery.release.as_nanos());
            }
        };
        while let Some((_, verdict)) = self.link.poll(..=now, &()) {
            note(verdict);
        }
        for index in 0..BURST {
            let meta = FrameMeta::new(now, LEN as u32);
            let bytes = &self.frames[index as usize % self.frames.len()];
            note(self.link.offer(black_box(meta), bytes));
        }
        sum
    }

    /// Returns the processing time of `frames` frames, scaled from a whole number of bursts.
    fn time(&mut self, frames: u64) -> Duration {
        let bursts = frames.div_ceil(BURST);
        let start = Instant::now();
        for _ in 0..bursts {
            black_box(self.burst());
        }
        let per_frame = start.elapsed().as_secs_f64() / (bursts * BURST) as f64;
        Duration::from_secs_f64(per_frame * frames as f64)
    }
}

fn bench_queues(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("queues");
    for entry in models::QUEUE.entries {
        for (name, load) in LOADS {
            // Other queues have only optional parameters.
            let text = match entry.info.name {
                "tail-drop" => "tail-drop:packets=100p,bytes=64kb",
                name => name,
            };
            if entry.info.name == "unlimited" && load > 1.0 {
                // The backlog would grow without bound.
                continue;
            }
            let mut traffic = Traffic::new(text, load);
            group.bench_function(format!("{}, {name}", entry.info.name), |bencher| {
                bencher.iter_custom(|frames| traffic.time(frames));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, bench_queues);
criterion_main!(benches);
