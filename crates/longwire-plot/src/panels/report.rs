//! Panels of a run's report: counts, drops by reason, lateness.

use std::collections::BTreeMap;

use super::bars::{BAR, BETWEEN, Row, horizontal};
use super::{Data, Panel};
use crate::axis::{Axis, TIME, Units, grouped};
use crate::frame::{Captions, Frame};
use crate::page::PartDocument;
use crate::scene::{Look, Scene};

/// Returns the height that a panel's bars need.
pub(super) fn height(panel: Panel, data: &Data) -> f64 {
    let (rows, series) = match panel {
        Panel::Lateness if least_lateness(data).is_none() => (1, 1),
        Panel::Lateness => (LATENESS.len(), measured(data).count()),
        Panel::Counts => (COUNTS.len(), data.reports.len()),
        _ => (reasons(data).len(), drops(data).len()),
    };
    let rows = rows.max(1) as f64;
    (rows * (BAR * series.max(1) as f64 + BETWEEN)).max(50.0)
}

/// A count: its name, and its field of a report.
type Count = (&'static str, fn(&PartDocument) -> u64);

const COUNTS: [Count; 4] = [
    ("in", |link| link.packets_in),
    ("out", |link| link.packets_out),
    ("dropped", |link| sum(link.drops().values())),
    ("artifacts", |link| sum(link.artifacts.values())),
];

fn sum<'a>(counts: impl Iterator<Item = &'a u64>) -> u64 {
    counts.fold(0, |sum, count| sum.saturating_add(*count))
}

pub(super) fn draw_counts(scene: &mut Scene, frame: &Frame, data: &Data) {
    let rows = COUNTS.iter().map(|(name, of)| {
        let counts = data.reports.iter().map(|link| of(&link.data));
        row(name, counts)
    });
    let rows: Vec<Row> = rows.collect();
    let looks: Vec<Look> = data.reports.iter().map(|of| of.look).collect();
    draw(scene, frame, &rows, &looks, "Frames", "");
}

pub(super) fn draw_drops(scene: &mut Scene, frame: &Frame, data: &Data) {
    let (reasons, drops) = (reasons(data), drops(data));
    let rows = reasons.iter().map(|reason| {
        let counts = drops.iter().map(|(_, drops)| drops.get(reason));
        let counts = counts.map(|count| count.copied().unwrap_or(0));
        row(&reason.replace('_', " "), counts)
    });
    let rows: Vec<Row> = rows.collect();
    let looks: Vec<Look> = drops.iter().map(|(look, _)| *look).collect();
    draw(scene, frame, &rows, &looks, "Drops by reason", "");
    if rows.is_empty() {
        frame.nothing(scene, "no drops");
    }
}

/// Returns the drops of each link by reason. Where a run has both a log and a report, the log
/// counts, as it can be cut by `--from` and `--until`.
fn drops(data: &Data) -> Vec<(Look, BTreeMap<String, u64>)> {
    let logs = data.logs.iter();
    let logs = logs.map(|of| (of.look, of.data.reasons.clone()));
    let reports = data.reports.iter();
    let reports = reports.filter(|of| data.logs.iter().all(|log| log.look != of.look));
    let reports = reports.map(|of| (of.look, of.data.drops()));
    logs.chain(reports).collect()
}

/// Returns the reasons of all drops.
fn reasons(data: &Data) -> Vec<String> {
    let counts = drops(data).into_iter().flat_map(|(_, drops)| drops);
    let counted = counts.filter(|(_, count)| *count > 0);
    let mut reasons: Vec<String> = counted.map(|(reason, _)| reason).collect();
    reasons.sort();
    reasons.dedup();
    reasons
}

fn row(label: &str, counts: impl Iterator<Item = u64>) -> Row {
    let bars = counts.map(|count| (count as f64, grouped(count as f64, 0)));
    Row {
        label: label.to_owned(),
        bars: bars.collect(),
    }
}

fn draw(
    scene: &mut Scene,
    frame: &Frame,
    rows: &[Row],
    looks: &[Look],
    heading: &str,
    remark: &str,
) {
    // The margin holds the numbers to the right of the bars.
    let x = Axis::linear(0.0, (most(rows) * 1.12).max(1.0), 8, Units::FRAMES);
    horizontal(scene, frame, &x, rows, looks);
    let captions = Captions {
        heading,
        lift: 0.0,
        remark: remark.to_owned(),
        x: "Frames".to_owned(),
        y: String::new(),
    };
    frame.captions(scene, &captions);
}

fn most(rows: &[Row]) -> f64 {
    let bars = rows.iter().flat_map(|row| &row.bars);
    bars.map(|(value, _)| *value).fold(0.0, f64::max)
}

/// Measures of lateness: name, and field of a report.
const LATENESS: [(&str, &str); 4] = [
    ("median", "p50"),
    ("p99", "p99"),
    ("p99.9", "p999"),
    ("max", "max"),
];

pub(super) fn draw_lateness(scene: &mut Scene, frame: &Frame, data: &Data) {
    let rows = LATENESS.iter().map(|(name, field)| {
        let late = measured(data).map(|(lateness, _)| {
            let nanos = nanos(lateness, field).max(0.0);
            (nanos, TIME.write(nanos))
        });
        Row {
            label: (*name).to_owned(),
            bars: late.collect(),
        }
    });
    let rows: Vec<Row> = rows.collect();
    let captions = Captions {
        heading: "Lateness",
        lift: 0.0,
        remark: "handover − release, the error of the emulator".to_owned(),
        x: "Lateness (logarithmic)".to_owned(),
        y: String::new(),
    };
    let Some(least) = least_lateness(data) else {
        frame.edges(scene);
        frame.captions(scene, &captions);
        frame.nothing(
            scene,
            "no lateness: all frames were handed over at their release",
        );
        return;
    };
    // A bar begins a decade below the least value, so that it is visible.
    let low = 10f64.powf(least.log10().floor() - 1.0);
    let x = Axis::logarithmic(low, most(&rows) * 2.0, TIME);
    let looks: Vec<Look> = measured(data).map(|(_, look)| look).collect();
    horizontal(scene, frame, &x, &rows, &looks);
    frame.captions(scene, &captions);
}

/// Returns the measured lateness: of a network's ports, because its links have
/// none.
fn measured(data: &Data) -> impl Iterator<Item = (&BTreeMap<String, f64>, Look)> {
    let reports = data.reports.iter();
    reports.filter_map(|of| Some((of.data.lateness_us.as_ref()?, of.look)))
}

/// Returns a field of a report's lateness, which is in microseconds.
fn nanos(lateness: &BTreeMap<String, f64>, field: &str) -> f64 {
    lateness.get(field).map_or(0.0, |micros| micros * 1e3)
}

/// Returns the least lateness above 0, in nanoseconds.
fn least_lateness(data: &Data) -> Option<f64> {
    let measured = measured(data);
    let times = measured.flat_map(|(late, _)| LATENESS.map(|(_, field)| nanos(late, field)));
    times.filter(|late| *late > 0.0).reduce(f64::min)
}
