//! The probe's table.

use std::io::{self, Write};

use super::{OneDirection, ProbeResult};
use crate::table::Table;

/// Prints measured and expected results, if stdout has a reader.
pub fn print(findings: &ProbeResult) {
    let mut table = Table::headed(" | expected up | measured up | expected down | measured down");
    let mut row = |name: &str,
                   expected: fn(&OneDirection) -> String,
                   measured: fn(&OneDirection) -> String| {
        table.row(vec![
            name.to_owned(),
            expected(&findings.up),
            measured(&findings.up),
            expected(&findings.down),
            measured(&findings.down),
        ]);
    };
    row(
        "one-way delay",
        |way| format!("{:.3} ms", way.expected.delay_ms),
        |way| millis(way.delay_ms),
    );
    row(
        "  99th percentile",
        |_| String::new(),
        |way| millis(way.delay_p99_ms),
    );
    row(
        "TCP payload",
        |way| match way.expected.tcp_mbit {
            Some(mbit) => megabits(mbit),
            None => "unlimited".to_owned(),
        },
        |way| way.tcp_mbit.map_or("none".to_owned(), megabits),
    );
    row(
        "loss",
        |way| match way.expected.loss.as_slice() {
            [] => "0 %".to_owned(),
            models => models.join(" + "),
        },
        |way| format!("{:.2} % of {}", way.loss_percent, way.datagrams),
    );
    let rtt = millis(findings.rtt_ms);
    let text = format!(
        "{}round trip: expected {:.3} ms, measured {rtt}\n\n",
        table.text(),
        findings.rtt_expected_ms
    );
    let _ = io::stdout().write_all(text.as_bytes());
}

fn millis(value: Option<f64>) -> String {
    value.map_or("none".to_owned(), |ms| format!("{ms:.3} ms"))
}

fn megabits(mbit: f64) -> String {
    if mbit >= 1_000.0 {
        return format!("{:.2} Gbit/s", mbit / 1e3);
    }
    format!("{mbit:.3} Mbit/s")
}
