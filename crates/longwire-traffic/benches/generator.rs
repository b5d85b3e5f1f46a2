//! Cost of generating a frame. The sink copies frames, as a network driver would.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use longwire_io::Offload;
use longwire_io::port::mem::Sink;
use longwire_io::port::{TxFrame, TxPort};
use longwire_runtime::Feed;
use longwire_traffic::generator::FlowOrder::{self, Random, RoundRobin};
use longwire_traffic::generator::Protocol::{self, Tcp, Udp};
use longwire_traffic::generator::{FlowConfig, GeneratorConfig, GeneratorFeed, Payload};
use longwire_traffic::{ARRIVALS, SIZES};

/// Frames per iteration.
const FRAMES: usize = 1_024;

/// Name, sizes, arrivals, flows (number, order, protocol), and whether frames have probes.
type Case = (
    &'static str,
    &'static str,
    &'static str,
    (u64, FlowOrder, Protocol),
    bool,
);

const ONE: (u64, FlowOrder, Protocol) = (1, RoundRobin, Udp);
const MILLION: (u64, FlowOrder, Protocol) = (1_000_000, Random, Udp);

const CASES: [Case; 8] = [
    ("64 B, no probe", "60", "constant", ONE, false),
    ("64 B", "60", "constant", ONE, true),
    (
        "64 B, 10,000 flows",
        "60",
        "constant",
        (10_000, RoundRobin, Udp),
        true,
    ),
    (
        "64 B, 1,000,000 flows at random",
        "60",
        "constant",
        MILLION,
        true,
    ),
    ("64 B, Poisson", "60", "poisson", ONE, true),
    (
        "72 B, TCP, 1,000 flows",
        "72",
        "constant",
        (1_000, RoundRobin, Tcp),
        true,
    ),
    ("Internet mix", "imix", "constant", ONE, true),
    ("1518 B", "1514", "constant", ONE, true),
];

fn feed((_, sizes, arrivals, (count, order, protocol), probe): Case) -> GeneratorFeed {
    let config = GeneratorConfig {
        flows: FlowConfig {
            count,
            order,
            protocol,
            sources: "10.0.0.0/12".parse().expect("a prefix"),
            ..FlowConfig::default()
        },
        sizes: Arc::from(SIZES.parse(sizes).expect("sizes")),
        arrivals: Arc::from(ARRIVALS.parse(arrivals).expect("arrivals")),
        rate: Some("20mpps".parse().expect("a rate")),
        payload: Payload::Counting,
        probe: probe.then_some(0),
        count: None,
        time: None,
        seed: 1,
    };
    GeneratorFeed::new(config).expect("it fits together")
}

fn bench_generator(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("generate");
    group.throughput(Throughput::Elements(FRAMES as u64));
    for case in CASES {
        let mut feed = feed(case);
        let mut sink = Sink::copying();
        group.bench_function(case.0, |bencher| {
            bencher.iter(|| {
                let received = feed.feed(FRAMES, &mut |fed| {
                    sink.push(TxFrame {
                        bytes: fed.bytes,
                        release: fed.due,
                        offload: Offload::NONE,
                        wire_len: fed.wire_len,
                        lent: None,
                    });
                });
                received.expect("a generator never fails").frames
            });
        });
        assert_eq!(sink.frames(), feed.sent());
    }
    group.finish();
}

criterion_group!(benches, bench_generator);
criterion_main!(benches);
