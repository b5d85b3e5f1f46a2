//! The amount of output: one line at the start and ten at the end, more with `-v`, none with `-q`.

use std::ops::RangeInclusive;

use longwire_testbed::support::Folder;

use crate::common::program::{Ran, longwire};

/// Commands that print a report and need no network; `%/` is the test's folder.
const COMMANDS: [&str; 5] = [
    "generate --to pcap:%/made.pcap --rate 1kpps --count 300",
    "simulate %/made.pcap %/out.pcap --rate 1mbit --delay 20ms --loss nth:every=5",
    "replay %/made.pcap --to null --delay 1ms --loss nth:every=5 --tolerance 10s",
    "generate --to null --rate 1kpps --count 100 --delay 1ms --tolerance 10s",
    "run null null --rate 1mbit --delay 20ms --time 20ms",
];

/// Runs all commands with `options`, and checks the number of lines on stderr and stdout.
#[track_caller]
fn assert_lines(
    options: &str,
    stderr: &RangeInclusive<usize>,
    stdout: &RangeInclusive<usize>,
) -> [Ran; 5] {
    let dir = Folder::new();
    COMMANDS.map(|command| {
        let command = command.replace("%/", &dir.file(""));
        let ran = longwire(format!("{command} {options}")).well();
        let lines = (ran.stderr.lines().count(), ran.stdout.lines().count());
        let right = stderr.contains(&lines.0) && stdout.contains(&lines.1);
        assert!(right, "{lines:?} lines: {ran:?}");
        ran
    })
}

#[test]
fn a_run_is_a_line_at_the_start_and_at_most_ten_at_the_end() {
    let runs = assert_lines("", &(1..=1), &(2..=10));
    let link =
        "link.up: rate 1mbit, queue 24224b (derived), loss nth:every=5,offset=0, delay 20ms\n";
    assert_eq!(runs[1].stderr, link);
    assert!(
        runs[2].stderr.starts_with("sending to null; out: "),
        "{runs:?}"
    );
    let table = "frames    in  out  dropped\nlink.up  300  240  60 (20.0%): 60 loss\n";
    assert!(runs[1].stdout.starts_with(table), "{runs:?}");
    let end = runs[1].stdout.lines().last().unwrap_or_default();
    assert!(end.starts_with("faithful: 240 frames"), "{runs:?}");
    let both = "link, each direction: rate 1mbit, queue 24224b (derived), delay 20ms\n";
    assert_eq!(runs[4].stderr, both);
    assert_lines("-q", &(0..=0), &(0..=0));
    for ran in assert_lines("-v", &(1..=99), &(30..=999)) {
        ran.prints("lateness").prints("seed 1");
    }
}

#[test]
fn a_quiet_run_prints_unmet_conditions() {
    let ran = longwire("run null null --time 1ms -q --require packets_in>0").exits(3);
    let unmet = "not met: packets_in>0: link.up had 0\nnot met: packets_in>0: link.down had 0\n";
    assert_eq!((&*ran.stdout, &*ran.stderr), ("", unmet));
}

/// Asserts that values in seconds are whole microseconds, and values in microseconds whole
/// nanoseconds. Returns the number of values with a fraction.
fn assert_rounded(value: &serde_json::Value, scale: f64) -> usize {
    match value {
        serde_json::Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| {
                let scale = match name.as_str() {
                    name if name.ends_with("_per_s") => f64::INFINITY,
                    name if name.ends_with("_us") => 1e3,
                    name if name.ends_with("_s") => 1e6,
                    _ => scale,
                };
                assert_rounded(value, scale)
            });
            fields.sum()
        }
        serde_json::Value::Array(values) => values
            .iter()
            .map(|value| assert_rounded(value, scale))
            .sum(),
        serde_json::Value::Number(number) if scale.is_finite() => {
            let number = number.as_f64().expect("a number");
            assert_eq!(number, (number * scale).round() / scale, "{number}");
            usize::from(number.fract() > 0.0)
        }
        _ => 0,
    }
}

#[test]
fn times_in_reports_are_rounded() {
    let run = "generate --to null --rate 1kpps --count 100 --delay 1ms --tolerance 10s --json";
    let report = longwire(run).json();
    let seen = assert_rounded(&report, f64::INFINITY);
    assert!(seen > 10, "{seen}: {report}");

    let dir = Folder::new();
    let sent = dir.file("sent.pcap");
    let pace = "--rate 1kpps --arrivals poisson --count 300";
    longwire(format!("generate --to pcap:{sent} {pace}")).well();
    let received = longwire(format!("receive pcap:{sent} --json")).json();
    let seen = assert_rounded(&received, f64::INFINITY);
    assert!(seen > 5, "{seen}: {received}");
}
