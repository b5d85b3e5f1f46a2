//! Several traces, each with its own output, on one time base and in one order.

use longwire_engine::Nanos;
use longwire_engine::replay::Pace;
use longwire_runtime::feed::trace::{TraceConfig, TraceFeed};
use longwire_runtime::{Feed, FeedFrame};

use crate::traces;

/// Writes a trace of frames at these microseconds.
fn trace(name: &str, micros: &[u64]) -> String {
    let frames: Vec<(u64, u32)> = micros.iter().copied().zip(0..).collect();
    traces::trace(&format!("together-{name}.pcap"), &frames)
}

/// Returns three rounds of these traces, each with its own output.
fn apart(traces: Vec<String>) -> TraceConfig {
    TraceConfig {
        traces,
        apart: true,
        rounds: Some(3),
        ..TraceConfig::default()
    }
}

/// Returns due times in microseconds, with outputs.
fn frames(config: TraceConfig, max: usize) -> Vec<(u64, usize)> {
    let outputs = config.traces.len();
    let mut feed = TraceFeed::open(config).unwrap();
    assert_eq!(feed.outputs(), outputs);
    let mut frames = Vec::new();
    let take = &mut |fed: FeedFrame<'_>| frames.push((fed.due.as_nanos() / 1_000, fed.output));
    while !feed.feed(max, take).unwrap().end {}
    frames
}

#[test]
fn merged_traces_are_ordered_by_stamp_in_every_round() {
    for max in [1, 2, 64] {
        let traces = vec![
            trace("short", &[100, 110, 120]),
            trace("long", &[0, 110, 500, 1_200]),
        ];
        // Equal timestamps keep the order of the traces.
        let round = [
            (0, 1),
            (100, 0),
            (110, 0),
            (110, 1),
            (120, 0),
            (500, 1),
            (1_200, 1),
        ];
        // A round takes 1,200 us plus the mean gap.
        let expected = [0, 1_400, 2_800].map(|base| round.map(|(at, output)| (base + at, output)));
        assert_eq!(frames(apart(traces), max), expected.concat());
    }
}

#[test]
fn the_gap_and_the_speed_asked_for_hold_for_all() {
    let config = TraceConfig {
        pace: Pace::Trace("2x".parse().unwrap()),
        round_gap: Some(Nanos::from_micros(7)),
        ..apart(vec![
            trace("a", &[0, 100]),
            trace("b", &[40]),
            trace("c", &[60]),
        ])
    };
    let expected = [0, 57, 114].map(|base| {
        let round = [(0, 0), (20, 1), (30, 2), (50, 0)];
        round.map(|(at, output)| (base + at, output))
    });
    assert_eq!(frames(config, 5), expected.concat());
}

/// Rate and limit apply to all frames. Their order follows the timestamps at any pace.
#[test]
fn rates_and_top_speed_keep_the_order() {
    let traces = vec![trace("x", &[0, 100, 110]), trace("y", &[50])];
    let order = [0, 1, 0, 0].repeat(3);
    let at_a_rate = TraceConfig {
        pace: Pace::Packets("1mpps".parse().unwrap()),
        ..apart(traces.clone())
    };
    let numbered = (0..).zip(order.clone()).collect::<Vec<_>>();
    assert_eq!(frames(at_a_rate, 4), numbered);
    let top_speed = TraceConfig {
        pace: Pace::TopSpeed,
        limit: Some(6),
        ..apart(traces)
    };
    let outputs = order[..6].iter().map(|output| (0, *output));
    assert_eq!(frames(top_speed, 4), outputs.collect::<Vec<_>>());
}
