//! The delay distribution panel.

use longwire_capture::log::Row;
use longwire_testbed::support::Folder;

use super::form::{BLUE, RED, coordinates, tick};
use super::{log, rows, svg};

/// Draws the panel for a log with these rows.
fn drawn(rows: &[Row]) -> String {
    let dir = Folder::new();
    let input = log(&dir, "run.csv", rows);
    svg(&dir, &format!("{input} --panel delay-cdf"))
}

/// Returns the lines of the curves.
fn curves(figure: &str) -> Vec<&str> {
    let curves = figure
        .lines()
        .filter(|line| line.contains("stroke-width=\"1.6\""));
    curves.collect()
}

#[test]
fn a_constant_delay_is_a_step_at_its_value() {
    // Each delay has a tick on the axis, which begins at 0.
    for (delay, far) in [(8_000_000, "2"), (20_000_001, "5"), (123_456_789, "100")] {
        let rows = rows().into_iter().map(|row| Row {
            release_ns: row.release_ns.map(|_| row.arrival_ns + delay),
            ..row
        });
        let figure = drawn(&rows.collect::<Vec<_>>());
        let (zero, tick) = (tick(&figure, "0"), tick(&figure, far));
        let far: f64 = far.parse().unwrap_or(f64::NAN);
        let place = zero + (tick - zero) / far * delay as f64 / 1e6;
        for colour in [BLUE, RED] {
            let steps = coordinates(&figure, colour);
            let steps = steps.iter().filter(|(x, _)| (x - place).abs() < 0.02);
            assert!(steps.count() >= 2, "{delay} {colour} {place}");
        }
    }
}

#[test]
fn equal_curves_are_all_visible() {
    let figure = drawn(&rows());
    let curves = curves(&figure);
    let [first, second] = curves[..] else {
        panic!("{curves:?}");
    };
    assert_eq!(coordinates(first, BLUE), coordinates(second, RED));
    // The second curve is dashed, so that the first is visible where they overlap.
    assert!(!first.contains("stroke-dasharray"), "{first}");
    assert!(second.contains("stroke-dasharray=\"6 6\""), "{second}");
}
