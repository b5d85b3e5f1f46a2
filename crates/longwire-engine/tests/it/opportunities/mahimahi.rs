//! The rate model `mahimahi`, compared with mahimahi's rules.

use longwire_engine::models;
use longwire_testbed::support::rows;
use proptest::prelude::*;

use crate::common::files;
use crate::opportunities::{MILLI, Opportunities, any_frames, any_millis, counted, lines};
use crate::rates::links::both_ways;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn departures_are_those_of_mahimahis_rule(
        millis in any_millis(),
        frames in any_frames(),
        repeats in any::<bool>(),
        epoch in prop_oneof![Just(0u64), 0u64..1 << 50],
        (size, overhead) in prop_oneof![Just((1504u64, -10i64)), Just((1500, -14)), (1u64..4_000, -100i64..100)],
    ) {
        let mut oracle = Opportunities::new(&millis, size, repeats);
        for (arrival, len) in &frames {
            oracle.arrive(*arrival, counted(*len, overhead));
        }
        oracle.drain();
        let expected: Vec<u64> = oracle.departures.iter().map(|at| epoch + at).collect();
        let frames: Vec<(u64, u32)> = frames.iter().map(|(at, len)| (epoch + at, *len)).collect();
        let end = if repeats { "loop" } else { "stop" };
        let rate = format!(
            "mahimahi:file=t,end={end},opportunity={size}b,overhead={overhead}"
        );
        let departures = both_ways(&rate, &lines(&millis), epoch, &frames);
        prop_assert_eq!(&departures, &expected);
        if (size, overhead) == (1_504, -10) {
            // The same file as a trace of rates.
            let trace = both_ways(&format!("trace:t,end={end}"), &lines(&millis), epoch, &frames);
            prop_assert_eq!(trace, expected);
        }
    }
}

/// Wrap-around, computed by hand: opportunities at 2, 2 and 5 ms, then at 7, 7 and 10 ms, and so
/// on. A full frame takes exactly one opportunity.
#[test]
fn a_trace_begins_again_at_its_last_time() {
    let full = vec![(0u64, 1_514u32); 7];
    let at = |rate: &str, frames: &[(u64, u32)]| {
        let departures = both_ways(rate, "2\n2\n5\n", 0, frames).into_iter();
        departures.map(|at| at / MILLI).collect::<Vec<u64>>()
    };
    assert_eq!(at("trace:t", &full), [2, 2, 5, 7, 7, 10, 12]);
    assert_eq!(at("mahimahi:t,stop", &full), [2, 2, 5]);
    // 100 bytes count as 90: sixteen fit in one opportunity, and the seventeenth completes in the
    // next.
    assert_eq!(at("trace:t", &[(0, 100); 18])[15..], [2, 2, 2]);
    assert_eq!(at("trace:t", &[(3 * MILLI, 100); 17])[15..], [5, 7]);
    // A frame that arrives at an opportunity misses it.
    assert_eq!(at("trace:t", &[(5 * MILLI, 100)]), [7]);
}

/// 4 GB, one byte per opportunity, three opportunities per 5 ms.
#[test]
fn a_frame_of_very_many_opportunities_is_delivered_at_once() {
    let rate = "mahimahi:file=t,opportunity=1b,overhead=0";
    let departures = both_ways(rate, "2\n2\n5\n", 0, &[(0, u32::MAX)]);
    assert_eq!(departures, [u64::from(u32::MAX) / 3 * 5 * MILLI]);
}

#[test]
fn wrong_lines_are_refused_with_their_number() {
    for [text, message] in rows(
        "
        1/5/4/      | line 3: 4 ms is before the previous line's 5 ms; sort the lines
        1//2/       | line 2: '' is not a whole number of milliseconds
        1.5/        | line 1: '1.5' is not a whole number of milliseconds
        -1/         | line 1: '-1' is not a whole number of milliseconds
        4294967296/ | line 1: '4294967296' is too large; the maximum is 4294967295
                    | no opportunities
        0/0/        | the trace has no duration: its last opportunity is at 0 ms
        ",
    ) {
        let refused = files::parse_error(&models::RATE, "mahimahi:t.up", &text.replace('/', "\n"));
        assert_eq!(refused, format!("mahimahi: file: t.up: {message}"));
    }
}
