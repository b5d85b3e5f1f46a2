use longwire_testbed::support::rows;

use crate::receive::{Drift, StreamReport, TraceReport};

use super::*;

fn parse(text: &str) -> ReceiveRequirement {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn spread(value: f64) -> Spread {
    Spread {
        count: 1,
        min: value,
        p50: value,
        p90: value,
        p99: value,
        p999: value,
        max: value,
        mean: value,
        ..Spread::default()
    }
}

/// Returns a report: a trace with three losses and a gap error of 5 us, and a stream with two
/// losses, 7 us and a drift of -3 ppm.
fn report() -> ReceiveReport {
    let timing = |error, ppm| Timing {
        gap_error_us: spread(error),
        offset_us: spread(error),
        drift: Some(Drift {
            ppm,
            ..Drift::default()
        }),
    };
    let mut stream = StreamReport {
        delay_us: spread(40.0),
        jitter_us: 2.0,
        timing: timing(7.0, -3.0),
        ..StreamReport::default()
    };
    stream.sequence.lost = 2;
    ReceiveReport {
        packets: 100,
        streams: vec![stream],
        trace: Some(TraceReport {
            lost: 1,
            behind_last: 2,
            timing: timing(5.0, 1.0),
            ..TraceReport::default()
        }),
        ..ReceiveReport::default()
    }
}

#[test]
fn the_maximum_of_several_values_counts() {
    for [text, expected] in rows(
        "
        packets>=100,lost=5 |
        lost<5 | lost<5: was 5
        gap_error.p99<=7us |
        gap_error.p99<7us | gap_error.p99<7us: was 7 us
        gap_error.p99<1us | gap_error.p99<1us: was 7 us
        drift<=3 |
        drift<2.5 | drift<2.5: was 3 ppm
        delay.min>39us,delay.max<0.041ms |
        jitter<2us | jitter<2us: was 2 us
        changed=0,foreign=0,unseen=0,streams=1 |
        ",
    ) {
        assert_eq!(parse(text).unmet(&report()).join("; "), expected, "{text}");
    }
}

#[test]
fn unmeasured_values_fail_the_clause() {
    let unmet = parse("gap_error.p50<1s,drift<1000").unmet(&ReceiveReport::default());
    assert_eq!(unmet.len(), 2);
    assert!(unmet[0].contains("not measured"), "{unmet:?}");
}

#[test]
fn invalid_clauses_are_refused_with_a_remedy() {
    for (text, says) in [
        ("", "empty requirement"),
        ("lost", "not a comparison"),
        ("loss=0", "known: packets"),
        ("gap_error.p98<1us", ".p99"),
        ("gap.p99<5", "gap.p99<5"),
        ("drift<1ppm", "drift<1ppm"),
    ] {
        let error = text.parse::<ReceiveRequirement>().err();
        let error = error.map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains(says), "{text}: {error}");
    }
}
