//! Cost of generating a frame. The sink copies frames like a network driver.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use longwire_io::Offload;
use longwire_io::port::mem::Sink;
use longwire_io::port::{TxFrame, TxPort};
use longwire_runtime::Feed;
use longwire_testbed::support::rows;
use longwire_traffic::generator::{
    FlowConfig, FlowOrder, GeneratorConfig, GeneratorFeed, Payload, Protocol,
};
use longwire_traffic::{ARRIVALS, SIZES};

/// Frames per iteration.
const FRAMES: usize = 1_024;

/// Name, sizes, arrivals, number of flows, and options.
const CASES: &str = "
    64 B, no probe | 60 | constant | 1 | no-probe
    64 B | 60 | constant | 1 |
    64 B, 10,000 flows | 60 | constant | 10000 |
    64 B, 1,000,000 flows at random | 60 | constant | 1000000 | random
    64 B, Poisson | 60 | poisson | 1 |
    72 B, TCP, 1,000 flows | 72 | constant | 1000 | tcp
    Internet mix | imix | constant | 1 |
    1518 B | 1514 | constant | 1 |
";

fn feed([_, sizes, arrivals, count, options]: [&str; 5]) -> GeneratorFeed {
    let mut flows = FlowConfig {
        count: count.parse().expect("a number"),
        sources: "10.0.0.0/12".parse().expect("a prefix"),
        ..FlowConfig::default()
    };
    match options {
        "random" => flows.order = FlowOrder::Random,
        "tcp" => flows.protocol = Protocol::Tcp,
        _ => {}
    }
    let config = GeneratorConfig {
        flows,
        sizes: Arc::from(SIZES.parse(sizes).expect("sizes")),
        arrivals: Arc::from(ARRIVALS.parse(arrivals).expect("arrivals")),
        rate: Some("20mpps".parse().expect("a rate")),
        payload: Payload::Counting,
        probe: (options != "no-probe").then_some(0),
        count: None,
        time: None,
        seed: 1,
    };
    GeneratorFeed::new(config).expect("a valid configuration")
}

fn bench_generator(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("generate");
    group.throughput(Throughput::Elements(FRAMES as u64));
    for case in rows(CASES) {
        let mut feed = feed(case);
        let mut sink = Sink::copying();
        group.bench_function(case[0], |bencher| {
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
