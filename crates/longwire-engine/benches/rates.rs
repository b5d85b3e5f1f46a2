//! Cost per 64-byte frame on a link with a single rate model, at 10 million frames/s and below
//! saturation: the table in SPECIFICATION.md. Covers every registered model except `plugin`.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

mod table;

use std::collections::BTreeSet;
use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use longwire_engine::{
    FrameMeta, Link, LinkId, LinkSpec, Loader, Nanos, NoLoader, TakePiece, Verdict, models,
};
use table::Table;

/// Frame length in bytes.
const LEN: u32 = 64;

/// Frames per measured round, to amortise the cost of reading the clock.
const FRAMES: u64 = 1_024;

/// Interval between frames, in nanoseconds: 10 million frames/s, 5.12 Gbit/s.
const GAP: u64 = 100;

/// Table name and model text of each case.
const CASES: [(&str, &str); 17] = [
    ("fixed", "fixed:rate=10gbit"),
    ("unlimited", "unlimited"),
    (
        "steps",
        "steps:at=0s/10gbit;1ms/8gbit;3ms/12gbit,period=5ms",
    ),
    (
        "steps, linear",
        "steps:at=0s/10gbit;1ms/8gbit;3ms/12gbit,period=5ms,change=linear",
    ),
    ("trace of a table", "trace:table"),
    ("mahimahi", "mahimahi:opportunities"),
    (
        "cellreplay",
        "cellreplay:trains=trains,opportunities=opportunities",
    ),
    ("tdm", "tdm:rate=40gbit,period=100us,slot=25us"),
    (
        "tdm, whole",
        "tdm:rate=40gbit,period=100us,slot=25us,partial=whole",
    ),
    ("slots", "slots:wait=10us..20us,packets=20p,rate=40gbit"),
    ("token-bucket", "token-bucket:rate=10gbit,burst=64kb"),
    (
        "token-bucket, peak",
        "token-bucket:rate=10gbit,burst=64kb,peak=40gbit",
    ),
    (
        "token-bucket, ticks",
        "token-bucket:rate=10gbit,burst=64kb,tick=1us",
    ),
    (
        "two-state",
        "two-state:good=12gbit,bad=4gbit,good-time=5ms,bad-time=1ms",
    ),
    ("markov", "markov:rates=12gbit;8gbit;0,times=5ms;2ms;100us"),
    // Aggregates are decided at departure, so the cost includes a managed queue.
    (
        "wifi, in aggregates",
        "wifi:rate=40gbit,bytes=1048575b,frames=1024,preamble=4us,ack=4us,aifs=4us,slot=1us",
    ),
    (
        "wifi, one by one",
        "wifi:rate=40gbit,frames=1,preamble=10ns,ack=10ns,aifs=10ns,slot=1ns",
    ),
];

/// Provides the files used by the cases.
struct Files;

impl Loader for Files {
    fn read(&self, path: &str, take: TakePiece<'_>) -> Result<(), String> {
        let text: String = match path {
            // One minute at millisecond resolution, from 6 to 14 Gbit/s.
            "table" => (0..60_000u64)
                .map(|milli| format!("{milli},{}\n", 6_000 + milli * 7_919 % 8_000))
                .fold("time_ms,rate_mbps\n".to_owned(), |text, row| text + &row),
            // 600 opportunities/ms: 7.2 Gbit/s.
            "opportunities" => (0..600_000)
                .map(|nth| format!("{}\n", 1 + nth / 600))
                .collect(),
            "trains" => "0 20 0 1 3\n100 24 0 2 2\n250 20 0 0 5\n".to_owned(),
            other => return Err(format!("no such file: {other}")),
        };
        take(text.as_bytes())
    }
}

/// Offers frames at a fixed interval.
struct Traffic {
    link: Link,
    clock: u64,
}

impl Traffic {
    fn new(text: &str) -> Traffic {
        let spec = LinkSpec::parse(&format!("rate={text}"), &Files);
        let spec = spec.unwrap_or_else(|error| panic!("{text}: {error}"));
        let config = spec.build(&NoLoader).expect("no plugins");
        Traffic {
            link: Link::new(config, 1, LinkId(0)),
            clock: 0,
        }
    }

    fn round(&mut self) -> u64 {
        let mut released = 0u64;
        let managed = self.link.is_managed();
        for _ in 0..FRAMES {
            self.clock += GAP;
            let arrival = Nanos::from_nanos(self.clock);
            while managed && let Some((_, verdict)) = self.link.poll(..=arrival, &()) {
                released = released.wrapping_add(release(verdict));
            }
            let meta = FrameMeta { arrival, len: LEN };
            released = released.wrapping_add(release(self.link.offer(black_box(meta), &[])));
        }
        released
    }
}

fn release(verdict: Verdict) -> u64 {
    match verdict {
        Verdict::Deliver(delivery) => delivery.release.as_nanos(),
        _ => 0,
    }
}

fn bench_rates(criterion: &mut Criterion) {
    let cases: BTreeSet<&str> = CASES
        .iter()
        .map(|(_, text)| text.split(':').next().unwrap_or(text))
        .collect();
    let registered = models::RATE.entries.iter().map(|entry| entry.info.name);
    for name in registered.filter(|name| *name != "plugin") {
        assert!(cases.contains(name), "{name} has no case");
    }
    let table = Table::default();
    for (name, text) in CASES {
        let mut traffic = Traffic::new(text);
        table.measure(criterion, name, FRAMES, || traffic.round());
    }
    table.print(|rows| {
        println!("\n| rate, frames of 64 bytes | ns/frame |\n|---|---:|");
        for (name, nanos) in rows {
            println!("| {name} | {nanos:.1} |");
        }
    });
}

criterion_group!(name = benches; config = table::short(); targets = bench_rates);
criterion_main!(benches);
