//! Figures of a log and a report of the same run.

use longwire_testbed::support::Folder;

use super::form::{BLUE, coordinates, labels, tick};
use super::{BEGIN, MS, log_since, rows, svg};
use crate::common::program::longwire;
use crate::common::write;

/// Writes the log of a run whose first frame arrives 100 ms after the start; returns its path.
fn late_log(dir: &Folder) -> String {
    log_since(dir, "run.csv", Some(BEGIN - 100 * MS), &rows())
}

/// Writes a report with a change 250 ms after its start; returns its path.
fn report(dir: &Folder, epoch: i64) -> String {
    let path = dir.file("run.json");
    let links = ["up", "down"].map(|name| {
        format!(
            r#"{{"name": "{name}", "packets_in": 5, "packets_out": 4, "lateness_us": null,
               "drops": {{"queue_full": 17}}}}"#
        )
    });
    let at = 250 * MS;
    let text = format!(
        r#"{{"links": [{}], "epoch_ns": {epoch},
            "changes": {{"made": [{{"at_ns": {at}, "by": "control", "links": 1}}]}}}}"#,
        links.join(",")
    );
    write(&path, &text);
    path
}

#[test]
fn changes_and_frames_count_from_the_start_of_the_run() {
    let dir = Folder::new();
    let (log, report) = (late_log(&dir), report(&dir, BEGIN - 100 * MS));
    let figure = svg(&dir, &format!("{log} {report} --panel delay"));
    assert_eq!(labels(&figure, "Time since the start of the run (s)"), 1);
    let (zero, second) = (tick(&figure, "0.0"), tick(&figure, "1.0"));
    let place = |seconds: f64| zero + seconds * (second - zero);
    let change = figure.lines().find(|line| line.contains("\"3 3\""));
    let change = change.and_then(|line| line.split('M').nth(1)?.split(' ').next());
    let change: f64 = change.and_then(|x| x.parse().ok()).unwrap_or(f64::NAN);
    assert!((change - place(0.25)).abs() < 0.02, "{change}");
    let dots = figure.lines().find(|line| line.contains("linecap"));
    let first = coordinates(dots.unwrap_or_default(), BLUE)[0].0;
    assert!((first - place(0.1)).abs() < 0.02, "{first}");
    // --from and --until refer to the run's time axis.
    let cut = "--panel loss-runs --from 100ms --until 200ms";
    let figure = svg(&dir, &format!("{log} {report} {cut}"));
    assert_eq!(labels(&figure, "up: 0 of 100 lost (0%), longest run 0"), 1);
    // Without a report, time starts at the log's first frame.
    let figure = svg(&dir, &format!("{log} --panel delay"));
    assert_eq!(labels(&figure, "Time since the first frame (s)"), 1);
}

#[test]
fn a_report_of_another_run_moves_and_marks_nothing() {
    let dir = Folder::new();
    let (log, report) = (late_log(&dir), report(&dir, BEGIN - 200 * MS));
    let figure = svg(&dir, &format!("{log} {report} --panel delay"));
    assert_eq!(labels(&figure, "Time since the first frame (s)"), 1);
    assert!(!figure.contains("\"3 3\""));
    // The report of another run has separate legend entries in panels that draw it.
    assert_eq!(labels(&figure, "up"), 1, "there is one log");
    let figure = svg(&dir, &format!("{log} {report} --panel delay,counts"));
    assert_eq!(labels(&figure, "run.csv up"), 1);
    assert_eq!(labels(&figure, "run.json up"), 1);
}

#[test]
fn a_run_has_each_link_once_in_the_legend() {
    let dir = Folder::new();
    let (log, report) = (late_log(&dir), report(&dir, BEGIN - 100 * MS));
    for panels in ["throughput,delay", "delay,counts", "drops", "counts"] {
        let figure = svg(&dir, &format!("{log} {report} --panel {panels}"));
        for link in ["up", "down"] {
            assert_eq!(labels(&figure, link), 1, "{panels}");
            assert_eq!(labels(&figure, &format!("run.csv {link}")), 0, "{panels}");
        }
        // Only two colours are used, one per link.
        assert!(!figure.contains("#009e73"), "{panels}");
    }
    // The panel shows the log's drops, which --from and --until can select; the report has the same
    // ones.
    let figure = svg(&dir, &format!("{log} {report} --panel drops"));
    let bars = figure.lines().filter(|line| line.ends_with(">4</text>"));
    let bars = bars.filter(|line| !line.contains("text-anchor"));
    assert_eq!((bars.count(), labels(&figure, "17")), (1, 0));
    let summary = longwire(format!("plot {log} {report} -o {}", dir.file("out.svg"))).stdout;
    assert!(
        summary.ends_with("of up (1,000 frames), down (100 frames)\n"),
        "{summary}"
    );
}
