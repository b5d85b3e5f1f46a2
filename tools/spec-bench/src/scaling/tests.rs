//! The model against closed forms.

use longwire_engine::Nanos;
use longwire_runtime::shards::ShardLink;
use longwire_testbed::support::Folder;

use super::ScalingArgs;
use super::model::{BarrierGrowth, Costs, EventList, Prediction, Traffic, predict};
use super::topologies::{SHAPES, Topology};

const TRAFFIC: Traffic = Traffic {
    frames: 40_000,
    batch: 4_000,
    gap: Nanos::from_nanos(1_000),
    seed: 7,
};

const FREE: Costs = Costs {
    serial_ns: 0.0,
    classify_ns: 0.0,
    event_ns: 0.0,
    crossing_ns: 0.0,
    barrier_ns: 0.0,
};

/// `count` links, each of which is a path.
fn separate(count: usize) -> Topology {
    let link = ShardLink {
        lookahead: Nanos::from_millis(1),
        load: 1,
        is_fixed: false,
    };
    Topology {
        links: vec![link; count],
        paths: (0..count as u32).map(|link| vec![link]).collect(),
    }
}

fn predicted(topology: &Topology, costs: &Costs, cores: usize) -> Prediction {
    let workload = EventList::new(topology, &TRAFFIC);
    predict(topology, &workload, costs, BarrierGrowth::Linear, cores)
}

/// Checks a speed-up to a thousandth.
fn assert_near(found: f64, expected: f64) {
    let error = (found / expected - 1.0).abs();
    assert!(error < 1e-3, "{found}, not {expected}");
}

/// One frame in each batch for each link would be even; here frames take paths at random,
/// so the busiest of `c` shards has more than the mean: `sqrt(2 ln c / (n / c))` of it for
/// `n` frames in a batch, about.
#[test]
fn work_without_crossings_divides_up_to_its_granularity() {
    let costs = Costs {
        event_ns: 100.0,
        ..FREE
    };
    let network = separate(6_400);
    for cores in 1..=64_usize {
        let found = predicted(&network, &costs, cores);
        assert_eq!((found.shards, found.crossings_per_frame), (cores, 0.0));
        let per_shard = TRAFFIC.batch as f64 / cores as f64;
        let deviation = 2.0 * (2.0 * (cores as f64).ln() / per_shard).sqrt();
        let least = cores as f64 / (1.0 + deviation);
        let is_near = (least..=cores as f64 * 1.000_001).contains(&found.speed_up);
        assert!(is_near, "{cores} cores: {}", found.speed_up);
        assert!((found.windows_per_batch - 1.0).abs() < 1e-9);
    }
    assert_near(predicted(&network, &costs, 1).speed_up, 1.0);
}

/// Classification is divided without regard to links: `c` to the frame.
#[test]
fn classification_divides_exactly() {
    let costs = Costs {
        classify_ns: 100.0,
        ..FREE
    };
    for cores in [1, 2, 4, 5, 8, 10, 16, 20, 25, 32, 40, 50] {
        let found = predicted(&separate(6_400), &costs, cores);
        assert_near(found.speed_up, cores as f64);
    }
}

#[test]
fn a_serial_part_follows_amdahl() {
    let costs = Costs {
        serial_ns: 30.0,
        classify_ns: 70.0,
        ..FREE
    };
    for cores in [1, 2, 4, 8, 16, 32, 40, 50] {
        let found = predicted(&separate(6_400), &costs, cores);
        assert_near(found.speed_up, 1.0 / (0.3 + 0.7 / cores as f64));
        let bends = if cores == 1 { "-" } else { "serial" };
        assert_eq!(found.lost.largest(), bends);
    }
}

/// Two phases in each batch, with two barriers each.
#[test]
fn barriers_cost_what_they_cost() {
    let costs = Costs {
        classify_ns: 100.0,
        barrier_ns: 1_000.0,
        ..FREE
    };
    let batch = 4_000.0 * 100.0;
    for (growth, barrier) in [
        (BarrierGrowth::Linear, 1_000.0 * 4.0),
        (BarrierGrowth::Tree, 1_000.0 * 3.0),
    ] {
        let network = separate(6_400);
        let workload = EventList::new(&network, &TRAFFIC);
        let found = predict(&network, &workload, &costs, growth, 8);
        assert_near(found.speed_up, batch / (batch / 8.0 + 4.0 * barrier));
        assert_eq!(found.lost.largest(), "barrier");
    }
}

/// A ring of two links: each frame crosses from one shard to the other, and a batch of
/// 4 ms has four windows of 1 ms.
#[test]
fn crossings_and_windows_are_counted() {
    let mut network = separate(2);
    network.paths = vec![vec![0, 1], vec![1, 0]];
    for link in &mut network.links {
        link.load = 2;
    }
    let costs = Costs {
        event_ns: 100.0,
        crossing_ns: 50.0,
        ..FREE
    };
    let found = predicted(&network, &costs, 2);
    assert_eq!(found.window_ns, Some(1_000_000));
    assert!((found.crossings_per_frame - 1.0).abs() < 1e-9);
    // The last frames end 1 ms after the last batch.
    assert!((4.0..=4.2).contains(&found.windows_per_batch), "{found:?}");
    // 250 of 200 for each frame, but for windows that are not quite even.
    let even = 2.0 * 200.0 / 250.0;
    assert!((even * 0.95..=even).contains(&found.speed_up), "{found:?}");
    assert_eq!(found.lost.largest(), "crossing");
    let one = predicted(&network, &costs, 1);
    assert_near(one.speed_up, 1.0);
    assert_eq!(one.window_ns, None);
}

/// For any network and number of cores, the parts explain the whole.
#[test]
fn losses_add_up() {
    let costs = Costs {
        serial_ns: 40.0,
        classify_ns: 30.0,
        event_ns: 100.0,
        crossing_ns: 60.0,
        barrier_ns: 500.0,
    };
    for shape in SHAPES {
        let network = shape.generate(600, Nanos::from_micros(200), 3);
        for cores in [1, 2, 3, 8, 64] {
            let found = predicted(&network, &costs, cores);
            let parts = found.lost.named();
            let sum: f64 = parts.iter().map(|(_, part)| part).sum();
            let whole = 1.0 - found.speed_up / cores as f64;
            assert!((sum - whole).abs() < 1e-9, "{}: {found:?}", shape.name());
            assert!(parts.iter().all(|(_, part)| *part > -1e-9), "{found:?}");
        }
    }
}

#[test]
fn networks_have_the_paths_of_their_shape() {
    for shape in SHAPES {
        let network = shape.generate(3_000, Nanos::from_millis(1), 5);
        let count = network.links.len();
        assert!(
            (1_500..=3_001).contains(&count),
            "{}: {count}",
            shape.name()
        );
        assert!(network.paths.len() >= count);
        for path in &network.paths {
            let mut links = path.clone();
            links.sort_unstable();
            links.dedup();
            assert_eq!(links.len(), path.len(), "a link twice: {path:?}");
            assert!(!path.is_empty());
        }
        let load: u64 = network.links.iter().map(|link| link.load).sum();
        let hops: usize = network.paths.iter().map(Vec::len).sum();
        assert_eq!(load, hops as u64);
    }
    let hops = |shape: usize| {
        let network = SHAPES[shape].generate(3_000, Nanos::from_millis(1), 5);
        network.paths.iter().map(Vec::len).max().unwrap_or(0)
    };
    // Star, tree of 1,500 nodes with five levels, fat tree.
    assert_eq!([hops(0), hops(1), hops(2)], [2, 8, 6]);
}

/// Parses the arguments of `scaling`.
fn arguments(words: &[&str]) -> ScalingArgs {
    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        scaling: ScalingArgs,
    }
    let words = std::iter::once(&"scaling").chain(words);
    let line = <Line as clap::Parser>::try_parse_from(words);
    line.unwrap_or_else(|error| panic!("{error}")).scaling
}

#[test]
fn costs_come_from_a_file_and_the_command_line() {
    let folder = Folder::new();
    let file = folder.file("costs.json");
    // A bench may print more than the model reads.
    let text = r#"{"links": 10000, "serial_ns": 40, "classify_ns": 30.5, "event_ns": 100,
                   "crossing_ns": 60, "barrier_ns": 80}"#;
    std::fs::write(&file, text).expect("a file");
    let costs = arguments(&["--costs", &file, "--event-ns", "150"]).costs();
    let expected = Costs {
        serial_ns: 40.0,
        classify_ns: 30.5,
        event_ns: 150.0,
        crossing_ns: 60.0,
        barrier_ns: 80.0,
    };
    assert_eq!(costs.expect("all costs"), expected);

    std::fs::write(&file, r#"{"serial_ns": 40, "classify_ns": -1}"#).expect("a file");
    for (words, refusal) in [
        (
            vec!["--costs", &file],
            "classify_ns=-1: a cost is 0 or more",
        ),
        (
            vec!["--costs", &file, "--classify-ns", "3"],
            "no event_ns: write --event-ns NS, or --costs FILE with measured costs",
        ),
        (
            vec![],
            "no serial_ns: write --serial-ns NS, or --costs FILE with measured costs",
        ),
    ] {
        let error = arguments(&words).costs().expect_err(refusal);
        assert_eq!(error.to_string(), refusal);
    }
}
