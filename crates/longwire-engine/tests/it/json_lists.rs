//! JSON lists as traces: rows of named values of the Sabre simulator, rows of netem-trace
//! recordings, and lists of netem-trace models.

use longwire_engine::trace::{Contents, Format, Mapping, Quantity, RowTimes};
use longwire_testbed::support::rows;

use crate::common::traces::{self, read, read_usual};

const MS: u64 = 1_000_000;
const KBIT: u64 = 1_000;
const MBIT: u64 = 1_000_000;

/// A trace in Sabre's format, ending with an entry of unknown rate.
const SABRE: &str = r#"[
    {"duration_ms": 1020, "bandwidth_kbps": 1051, "latency_ms": 100},
    {"duration_ms": 2791, "bandwidth_kbps": 46.5, "latency_ms": 20},
    {"duration_ms": 0, "bandwidth_kbps": 9, "latency_ms": 1},
    {"duration_ms": 1000, "bandwidth_kbps": null, "latency_ms": 20}
]"#;

fn stretches(contents: Result<Contents, String>) -> Vec<(u64, u64)> {
    match contents {
        Ok(Contents::Series(series, false)) => traces::stretches(&series),
        other => panic!("no series: {other:?}"),
    }
}

#[test]
fn rows_with_durations_are_rates_and_delays() {
    let rates = [(1_051 * KBIT, 1_020 * MS), (46_500, 3_791 * MS)];
    let delays = [(100 * MS, 1_020 * MS), (20 * MS, 3_791 * MS)];
    // On several lines, on one line, and on one longer than the line limit.
    let line = SABRE.replace('\n', "");
    let long = SABRE
        .replacen('\n', &" ".repeat(70_000), 1)
        .replace('\n', "");
    for text in [SABRE, &line, &long, &format!("\u{feff}{SABRE}\n")] {
        assert_eq!(stretches(read_usual(Quantity::Rate, text)), rates);
        assert_eq!(stretches(read_usual(Quantity::Delay, text)), delays);
    }
    let named = read(Some(Format::Json), &Mapping::usual(Quantity::Rate), SABRE);
    assert_eq!(stretches(named), rates);
    // The series starts at the first value.
    let late = SABRE.replace("1051", "null");
    let later = [(46_500, 3_791 * MS)];
    assert_eq!(stretches(read_usual(Quantity::Rate, &late)), later);
    // The same data as a table.
    let table = "duration_ms,bandwidth_kbps\n1020,1051\n2791,46.5\n1000,\n";
    assert_eq!(stretches(read_usual(Quantity::Rate, table)), rates);
}

#[test]
fn rows_have_the_columns_of_tables() {
    let text = r#"[{"at": "2026-01-01T00:00:00+00:00", "down": "4 Mbps", "cell": "a"},
        {"at": "2026-01-01T01:00:01+01:00", "down": "8 Mbps", "cell": "b"},
        {"cell": "a", "at": "2025-12-31T23:00:03-01:00", "down": "2 Mbps"}]"#;
    let mapping = Mapping {
        column: Some("down".to_owned()),
        times: RowTimes::Column("at".to_owned()),
        filter: Some(("cell".to_owned(), "a".to_owned())),
        ..Mapping::usual(Quantity::Rate)
    };
    let expected = [(4 * MBIT, 3_000 * MS), (2 * MBIT, 3_000 * MS)];
    assert_eq!(stretches(read(None, &mapping, text)), expected);
    let every = Mapping {
        times: RowTimes::Every(500 * MS),
        ..Mapping::usual(Quantity::Loss)
    };
    let text = r#"[{"loss": 0.5}, {"loss": 0.25}]"#;
    let half = Quantity::LOSS_STEPS / 2;
    let expected = [(half, 500 * MS), (half / 2, 500 * MS)];
    assert_eq!(stretches(read(None, &every, text)), expected);
}

#[test]
fn recorded_rows_and_models_need_no_object_around_them() {
    let expected = [(2 * MBIT, 25 * MS), (4 * MBIT, 50 * MS), (MBIT, 2 * MS)];
    for text in [
        r#"[["25ms", ["2Mbps", "4Mbps", "4Mbps"]], ["2ms", ["1Mbps"]]]"#,
        "[\n  [\n    25.0,\n    [2.0, 4.0, 4.0]\n  ],\n  [2, [1]]\n]\n",
    ] {
        assert_eq!(
            stretches(read_usual(Quantity::Rate, text)),
            expected,
            "{text}"
        );
    }
    let models = r#"[{"StaticBwConfig": {"bw": "2Mbps", "duration": "25ms"}},
        {"TraceBwConfig": [["25ms", ["4Mbps", "4Mbps"]], ["2ms", ["1Mbps"]]]}]"#;
    assert_eq!(stretches(read_usual(Quantity::Rate, models)), expected);
    let toml = "[StaticDelayConfig]\ndelay = \"5ms\"\nduration = \"1s\"\n";
    assert_eq!(
        stretches(read_usual(Quantity::Delay, toml)),
        [(5 * MS, 1_000 * MS)]
    );
}

#[test]
fn faults_of_lists_are_told_with_their_row() {
    for [text, expected] in rows(
        r#"
        []                                               | zero duration
        [1, 2]                                           | pattern 1: not a model; write
        [{"duration_ms": 1, "rate_kbps": 5}, 7]          | row 2: not an object
        [{"duration_ms": 1, "rate_kbps": -5}]            | row 1: rate: '-5' is negative
        [{"duration_ms": 1, "rate_kbps": {}}, {}]        | not a model; write
        [{"duration_ms": 1, "rate_kbps": 1}, {"rate_kbps": []}] | row 2: '[]' is neither a number nor text
        [{"duration_ms": 1, "rate": 5}]                  | row 1: rate: '5' has no unit
        [{"rate_kbps": 5, "x": 1}]                       | no column named time
        [{"duration_ms": 1,                              | EOF
        "#,
    ) {
        let error = read_usual(Quantity::Rate, text).expect_err(text);
        assert!(error.contains(expected), "{text}: {error}");
    }
    let rates = r#"[{"duration_ms": 1, "rate_kbps": 5}]"#;
    let error = read_usual(Quantity::Loss, rates).expect_err("rates instead of losses");
    assert!(error.contains("no column named loss"), "{error}");
    let mapping = Mapping {
        column: Some("down".to_owned()),
        ..Mapping::usual(Quantity::Rate)
    };
    let model = r#"[{"StaticBwConfig": {"bw": "2Mbps", "duration": "25ms"}}]"#;
    let error = read(None, &mapping, model).expect_err("a model has no columns");
    assert!(error.contains("has no columns"), "{error}");
}
