//! Cost of generating a frame. The sink copies frames, as a network driver would.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use longwire_io::Offload;
use longwire_io::port::mem::Sink;
use longwire_io::port::{TxFrame, TxPort};
use longwire_runtime::Feed;
use longwire_traffic::generator::{
    FlowConfig, FlowOrder, GeneratorConfig, GeneratorFeed, Payload, Protocol,
};
use longwire_traffic::{ARRIVALS, SIZES};

/// Frames per iteration.
const FRAMES: usize = 1_024;

struct Case {
    name: &'static str,
    sizes: &'static str,
    arrivals: &'static str,
    flows: FlowConfig,
    probe: bool,
}

fn case(name: &'static str, sizes: &'static str, arrivals: &'static str) -> Case {
    Case {
        name,
        sizes,
        arrivals,
        flows: FlowConfig::default(),
        probe: true,
    }
}

fn cases() -> Vec<Case> {
    let flows = |count, order, protocol| FlowConfig {
        count,
        order,
        protocol,
        sources: "10.0.0.0/12".parse().expect("a prefix"),
        ..FlowConfig::default()
    };
    let (round, random) = (FlowOrder::RoundRobin, FlowOrder::Random);
    vec![
        Case {
            probe: false,
            ..case("64 B, no probe", "60", "constant")
        },
        case("64 B", "60", "constant"),
        Case {
            flows: flows(10_000, round, Protocol::Udp),
            ..case("64 B, 10,000 flows", "60", "constant")
        },
        Case {
            flows: flows(1_000_000, random, Protocol::Udp),
            ..case("64 B, 1,000,000 flows at random", "60", "constant")
        },
        case("64 B, Poisson", "60", "poisson"),
        Case {
            flows: flows(1_000, round, Protocol::Tcp),
            ..case("72 B, TCP, 1,000 flows", "72", "constant")
        },
        case("Internet mix", "imix", "constant"),
        case("1518 B", "1514", "constant"),
    ]
}

fn feed(case: &Case) -> GeneratorFeed {
    let config = GeneratorConfig {
        flows: case.flows.clone(),
        sizes: Arc::from(SIZES.parse(case.sizes).expect("sizes")),
        arrivals: Arc::from(ARRIVALS.parse(case.arrivals).expect("arrivals")),
        rate: Some("20mpps".parse().expect("a rate")),
        payload: Payload::Counting,
        probe: case.probe.then_some(0),
        count: None,
        time: None,
        seed: 1,
    };
    GeneratorFeed::new(config).expect("it fits together")
}

fn bench_generator(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("generate");
    group.throughput(Throughput::Elements(FRAMES as u64));
    for case in cases() {
        let mut feed = feed(&case);
        let mut sink = Sink::copying();
        group.bench_function(case.name, |bencher| {
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
