//! Cost per 64-byte frame on a link with a single model: the table of models in SPECIFICATION.md.
//! Covers every registered model of the kinds in [`KINDS`], except plugins.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

mod table;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use longwire_engine::spec::{ModelInfo, Param, Unit};
use longwire_engine::{
    FrameMeta, Link, LinkConfig, LinkId, LinkSpec, Loader, Nanos, NoLoader, TakePiece, Verdict,
};
use table::Table;

/// Kinds that decide on arrival; benches/queues.rs and benches/rates.rs measure queues and rates.
const KINDS: [&str; 8] = [
    "delay",
    "loss",
    "corrupt",
    "duplicate",
    "reorder",
    "mtu",
    "router",
    "rewrite",
];

/// Frame length in bytes.
const LEN: usize = 64;

/// Frames per measured round, to amortise the cost of reading the clock.
const FRAMES: u64 = 1_024;

/// Interval between frames, in nanoseconds: 10 million frames/s.
const GAP: u64 = 100;

/// Typical parameter values. With the units' example values, some models would drop all frames or
/// none.
const VALUES: [(&str, &str, &str); 14] = [
    ("normal", "stddev", "3ms"),
    ("pareto-normal", "stddev", "3ms"),
    ("lognormal", "stddev", "3ms"),
    ("gamma", "stddev", "3ms"),
    ("uniform", "max", "30ms"),
    ("burst", "length", "5"),
    ("gilbert", "r", "25%"),
    ("gilbert-elliott", "r", "25%"),
    ("state", "p31", "25%"),
    ("outage", "period", "20us"),
    ("outage", "duration", "1us"),
    ("outages", "schedule", "2us/1us;10us/5us"),
    ("offset", "offset", "20"),
    ("drop", "bytes", "1500"),
];

fn value(info: &ModelInfo, param: &Param) -> &'static str {
    let better = VALUES
        .iter()
        .find(|(model, key, _)| *model == info.name && *key == param.name);
    better.map_or(param.unit.example(), |(_, _, value)| value)
}

/// Returns a model's cases as (table name, model text): one with all parameters that lack a default
/// and, if the model supports it, one with correlation in addition.
fn texts(info: &ModelInfo) -> Vec<(String, String)> {
    let pair = |param: &Param| format!("{}={}", param.name, value(info, param));
    let required = info.params.iter().filter(|param| param.default.is_none());
    let mut pairs: Vec<String> = required.map(pair).collect();
    if info.name == "ip" {
        pairs.push("ttl=1".to_owned());
    }
    let name = info.name;
    let mut texts = vec![(name.to_owned(), format!("{name}:{}", pairs.join(",")))];
    let correlation = info.params.iter().find(|param| {
        let unit = param.unit == Unit::Correlation;
        unit && param.default.is_some()
    });
    if let Some(param) = correlation {
        pairs.push(pair(param));
        let text = format!("{name}:{}", pairs.join(","));
        texts.push((format!("{name}, correlated"), text));
    }
    texts
}

/// Provides example contents for a model's file parameters.
struct Examples(&'static ModelInfo);

impl Loader for Examples {
    fn read(&self, _path: &str, take: TakePiece<'_>) -> Result<(), String> {
        let files = self.0.params.iter().filter_map(|param| match param.unit {
            Unit::File(contents) => Some(contents),
            _ => None,
        });
        files
            .into_iter()
            .try_for_each(|contents| take(contents.as_bytes()))
    }
}

/// A UDP datagram over IPv4, from port 5353 to port 53.
fn frame() -> [u8; LEN] {
    let mut bytes = [0; LEN];
    bytes[12..14].copy_from_slice(&[0x08, 0x00]);
    bytes[14] = 0x45;
    bytes[17] = 50;
    bytes[22..24].copy_from_slice(&[64, 17]);
    bytes[26..38].copy_from_slice(&[10, 0, 0, 1, 10, 0, 1, 1, 0x14, 0xe9, 0, 53]);
    bytes
}

/// Offers frames at a fixed interval and applies each delivery's edits.
struct Traffic {
    link: Link,
    bytes: [u8; LEN],
    clock: u64,
}

impl Traffic {
    fn new(config: LinkConfig) -> Traffic {
        Traffic {
            link: Link::new(config, 1, LinkId(0)),
            bytes: frame(),
            clock: 0,
        }
    }

    fn round(&mut self) -> u64 {
        let mut released = 0u64;
        let mut edited = self.bytes;
        for _ in 0..FRAMES {
            self.clock += GAP;
            let meta = FrameMeta::new(Nanos::from_nanos(self.clock), LEN as u32);
            let Verdict::Deliver(mut delivery) = self.link.offer(black_box(meta), &self.bytes)
            else {
                continue;
            };
            if delivery.edits.any() {
                self.link.edit(&delivery, &mut edited);
            }
            released = released.wrapping_add(delivery.release.as_nanos());
            while delivery.more
                && let Some(copy) = self.link.next_copy()
            {
                released = released.wrapping_add(copy.release.as_nanos());
                delivery = copy;
            }
        }
        released
    }
}

fn measure(criterion: &mut Criterion, table: &Table, name: &str, config: LinkConfig) {
    let mut traffic = Traffic::new(config);
    table.measure(criterion, name, FRAMES, || traffic.round());
}

fn bench_models(criterion: &mut Criterion) {
    let table = Table::default();
    measure(criterion, &table, "plain link", LinkConfig::default());
    for (kind, info) in longwire_engine::all_models() {
        let is_plugin = info.params.iter().any(|param| param.unit == Unit::Rest);
        if !KINDS.contains(&kind) || is_plugin {
            continue;
        }
        for (name, text) in texts(info) {
            let spec = LinkSpec::parse(&format!("{kind}={text}"), &Examples(info));
            let spec = spec.unwrap_or_else(|error| panic!("{text}: {error}"));
            let config = spec.build(&NoLoader).expect("no plugins");
            measure(criterion, &table, &format!("{kind} {name}"), config);
        }
    }
    table.print(|rows| {
        let plain = rows.first().map_or(0.0, |(_, nanos)| *nanos);
        println!("\n| link of 64-byte frames | ns/frame | more than a plain link |");
        println!("|---|---:|---:|");
        for (name, nanos) in rows {
            println!("| {name} | {nanos:.1} | {:+.1} |", nanos - plain);
        }
    });
}

criterion_group!(name = benches; config = table::short(); targets = bench_models);
criterion_main!(benches);
