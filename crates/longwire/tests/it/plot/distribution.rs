//! The panel of delay distributions.

use super::form::{BLUE, coordinates, tick};
use super::{BEGIN, log, row, rows, svg};
use longwire_capture::log::Row;
use longwire_testbed::support::Folder;

const PANEL: [&str; 2] = ["--panel", "delay-cdf"];

#[test]
fn a_constant_delay_is_a_step_at_its_value() {
    let dir = Folder::new();
    // Each has a tick on the axis, which begins at 0.
    for (delay, far) in [(8_000_000, "2"), (20_000_001, "5"), (123_456_789, "100")] {
        let rows = rows().into_iter().map(|row| Row {
            release_ns: row.release_ns.map(|_| row.arrival_ns + delay),
            ..row
        });
        let input = log(&dir, "constant.csv", &rows.collect::<Vec<_>>());
        let figure = svg(&dir, &[&[&*input], &PANEL[..]].concat());
        let (zero, tick) = (tick(&figure, "0"), tick(&figure, far));
        let far: f64 = far.parse().unwrap_or(f64::NAN);
        let place = zero + (tick - zero) / far * delay as f64 / 1e6;
        for colour in [BLUE, "#d55e00"] {
            let steps = coordinates(&figure, colour);
            let steps = steps.iter().filter(|(x, _)| (x - place).abs() < 0.02);
            assert!(steps.count() >= 2, "{delay} {colour} {place}");
        }
    }
}

/// Compares each vertex of the curve with a count of all delays, which are within 0.6 %
/// of each other.
#[test]
fn close_delays_are_drawn_exactly() {
    let dir = Folder::new();
    let delays: Vec<i64> = (0..500).map(|n| 8_000_000 + n * n % 497 * 100).collect();
    let rows: Vec<Row> = (0..500)
        .map(|n| Row {
            release_ns: Some(BEGIN + n as i64 * 1_000_000 + delays[n]),
            ..row(n as u64, "up", n as i64)
        })
        .collect();
    let input = log(&dir, "close.csv", &rows);
    let figure = svg(&dir, &[&[&*input], &PANEL[..]].concat());
    let (low, high) = (tick(&figure, "8.00"), tick(&figure, "8.04"));
    let scale = super::form::Scale::of(&figure, 100.0);
    let line = figure
        .lines()
        .find(|line| line.contains("stroke-width=\"1.6\""));
    let curve = coordinates(line.unwrap_or_default(), BLUE);
    assert!(curve.len() > 100, "{curve:?}");
    for (x, y) in curve {
        let delay = 8e6 + (x - low) / (high - low) * 40_000.0;
        let share = |slack: f64| {
            let at_most = delays.iter().filter(|of| **of as f64 <= delay + slack);
            at_most.count() as f64 / 5.0
        };
        let drawn = scale.value(y);
        // A vertex is at the lower or upper end of its step.
        let (least, most) = (share(-150.0), share(150.0));
        assert!(
            least - 0.2 <= drawn && drawn <= most + 0.2,
            "{delay} {drawn} {least} {most}"
        );
    }
}

#[test]
fn equal_curves_are_all_visible() {
    let dir = Folder::new();
    let input = log(&dir, "equal.csv", &rows());
    let figure = svg(&dir, &[&[&*input], &PANEL[..]].concat());
    let curves: Vec<&str> = figure
        .lines()
        .filter(|line| line.contains("stroke-width=\"1.6\""))
        .collect();
    let [first, second] = curves[..] else {
        panic!("{curves:?}");
    };
    assert_eq!(coordinates(first, BLUE), coordinates(second, "#d55e00"));
    // The second curve is dashed, so that the first shows through.
    assert!(!first.contains("stroke-dasharray"), "{first}");
    assert!(second.contains("stroke-dasharray=\"6 6\""), "{second}");
}
