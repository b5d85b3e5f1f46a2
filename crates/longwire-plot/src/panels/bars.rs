//! Panels with bars: counters of runs, drops by reason, lateness, and lengths of loss runs.

use std::collections::{BTreeMap, BTreeSet};

use crate::axis::{Axis, SHARE, TIME, Units, grouped};
use crate::font::Font;
use crate::frame::{Captions, Frame, Note, TICK_SIZE, notes_height, small};
use crate::page::{PartDocument, STATISTICS};
use crate::panels::{Data, LegendEntry, Panel};
use crate::scene::{Anchor, Fill, Look, Scene, Stroke};
use crate::series::LogSeries;

/// Adjacent bars, one per series.
#[derive(Debug)]
pub(super) struct Group {
    pub label: String,
    pub values: Vec<u64>,
}

/// Font size of the numbers above vertical bars.
const NUMBER_SIZE: f64 = 9.5;

/// Draws vertical bars, with values above them where they fit.
pub(super) fn vertical(
    scene: &mut Scene,
    frame: &Frame,
    y: &Axis,
    groups: &[Group],
    looks: &[Look],
) {
    let font = Font::of_weight(false);
    let group_width = frame.width / groups.len().max(1) as f64;
    let width = (group_width * 0.8 / looks.len().max(1) as f64).min(40.0);
    for (index, group) in groups.iter().enumerate() {
        let middle = frame.left + group_width * (index as f64 + 0.5);
        let label = (middle, frame.bottom() + 15.0);
        scene.text(small(&group.label, label, Anchor::Middle));
        let left = middle - width * group.values.len() as f64 / 2.0;
        for (series, (value, look)) in group.values.iter().zip(looks).enumerate() {
            if *value == 0 {
                continue;
            }
            let x = left + width * series as f64;
            let top = frame.y(y.place(*value as f64));
            let (from, to) = ((x + 0.5, top), (x + width - 0.5, frame.bottom()));
            scene.rectangle(from, to, Fill::solid(look.colour));
            let number = grouped(*value as f64, 0);
            // Omit numbers that would overlap.
            if font.width(&number, NUMBER_SIZE) < width - 4.0 {
                let at = (x + width / 2.0, top - 3.0);
                scene.text(small(&number, at, Anchor::Middle).sized(NUMBER_SIZE));
            }
        }
    }
}

/// Height of a horizontal bar, and space between groups of bars.
pub(super) const BAR: f64 = 15.0;
pub(super) const BETWEEN: f64 = 9.0;

/// A group of horizontal bars, with values and labels.
#[derive(Debug)]
pub(super) struct Row {
    pub label: String,
    pub bars: Vec<(f64, String)>,
}

/// Draws horizontal bars, with their values to the right.
pub(super) fn horizontal(scene: &mut Scene, frame: &Frame, x: &Axis, rows: &[Row], looks: &[Look]) {
    let grid = x.ticks.iter().map(|(value, _)| {
        let x = frame.x(x.place(*value));
        ((x, frame.top), (x, frame.bottom()))
    });
    scene.segments(grid.collect(), Stroke::solid(crate::scene::GRID, 1.0));
    let row_height = frame.height / rows.len().max(1) as f64;
    let bar = (row_height * 0.72 / looks.len().max(1) as f64).min(BAR * 1.4);
    for (index, row) in rows.iter().enumerate() {
        let middle = frame.top + row_height * (index as f64 + 0.5);
        let label = (frame.left - 7.0, middle + 3.7);
        scene.text(small(&row.label, label, Anchor::End));
        let top = middle - bar * row.bars.len() as f64 / 2.0;
        for (series, ((value, text), look)) in row.bars.iter().zip(looks).enumerate() {
            let y = top + bar * series as f64;
            let end = frame.x(x.place(*value));
            if end > frame.left {
                let (from, to) = ((frame.left, y + 0.5), (end, y + bar - 0.5));
                scene.rectangle(from, to, Fill::solid(look.colour));
            }
            let size = TICK_SIZE.min(bar);
            let at = (end + 5.0, y + bar / 2.0 + size * 0.36);
            scene.text(small(text, at, Anchor::Start).sized(size));
        }
    }
    frame.edges(scene);
    frame.x_labels(scene, x);
}

/// Returns the height needed for a panel's bars.
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

/// A counter: its name and its accessor in a report.
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
    let rows = COUNTS.map(|(name, of)| row(name, data.reports.iter().map(|link| of(&link.data))));
    let looks: Vec<Look> = data.reports.iter().map(|of| of.look).collect();
    draw_frames(scene, frame, &rows, &looks, "Frames");
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
    draw_frames(scene, frame, &rows, &looks, "Drops by reason");
    if rows.is_empty() {
        frame.nothing(scene, "no drops");
    }
}

/// Returns the drops of each link by reason. If a run has both a log and a report, the log is used,
/// because `--from` and `--until` only apply to it.
fn drops(data: &Data) -> Vec<(Look, BTreeMap<String, u64>)> {
    let logs = data.logs.iter();
    let logs = logs.map(|of| (of.look, of.data.reasons.clone()));
    let reports = data.reports.iter();
    let reports = reports.filter(|of| data.logs.iter().all(|log| log.look != of.look));
    let reports = reports.map(|of| (of.look, of.data.drops()));
    logs.chain(reports).collect()
}

/// Returns all drop reasons.
fn reasons(data: &Data) -> BTreeSet<String> {
    let counts = drops(data).into_iter().flat_map(|(_, drops)| drops);
    let counted = counts.filter(|(_, count)| *count > 0);
    counted.map(|(reason, _)| reason).collect()
}

fn row(label: &str, counts: impl Iterator<Item = u64>) -> Row {
    let bars = counts.map(|count| (count as f64, grouped(count as f64, 0)));
    Row {
        label: label.to_owned(),
        bars: bars.collect(),
    }
}

fn draw_frames(scene: &mut Scene, frame: &Frame, rows: &[Row], looks: &[Look], heading: &str) {
    // The margin has space for the numbers to the right of the bars.
    let x = Axis::linear(0.0, (most(rows) * 1.12).max(1.0), 8, Units::FRAMES);
    horizontal(scene, frame, &x, rows, looks);
    let captions = Captions {
        heading,
        x: "Frames".to_owned(),
        ..Captions::default()
    };
    frame.captions(scene, &captions);
}

fn most(rows: &[Row]) -> f64 {
    let bars = rows.iter().flat_map(|row| &row.bars);
    bars.map(|(value, _)| *value).fold(0.0, f64::max)
}

/// Lateness statistics: report field and name.
const LATENESS: &[(&str, &str)] = STATISTICS.split_at(4).0;

pub(super) fn draw_lateness(scene: &mut Scene, frame: &Frame, data: &Data) {
    let rows = LATENESS.iter().map(|(field, name)| {
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
        remark: "handover − release, the error of the emulator".to_owned(),
        x: "Lateness (logarithmic)".to_owned(),
        ..Captions::default()
    };
    let Some(least) = least_lateness(data) else {
        frame.edges(scene);
        frame.captions(scene, &captions);
        let why = "no lateness: all frames were handed over at their release";
        return frame.nothing(scene, why);
    };
    // Bars start a decade below the minimum, so that the minimum is visible.
    let low = 10f64.powf(least.log10().floor() - 1.0);
    let x = Axis::logarithmic(low, most(&rows) * 2.0, TIME);
    let looks: Vec<Look> = measured(data).map(|(_, look)| look).collect();
    horizontal(scene, frame, &x, &rows, &looks);
    frame.captions(scene, &captions);
}

/// Returns the measured lateness: in a network, that of the ports, because links have none.
fn measured(data: &Data) -> impl Iterator<Item = (&BTreeMap<String, f64>, Look)> {
    let reports = data.reports.iter();
    reports.filter_map(|of| Some((of.data.lateness_us.as_ref()?, of.look)))
}

/// Returns a lateness field in nanoseconds; reports use microseconds.
fn nanos(lateness: &BTreeMap<String, f64>, field: &str) -> f64 {
    lateness.get(field).map_or(0.0, |micros| micros * 1e3)
}

/// Returns the minimum non-zero lateness, in nanoseconds.
fn least_lateness(data: &Data) -> Option<f64> {
    let measured = measured(data);
    let times = measured.flat_map(|(late, _)| LATENESS.iter().map(|of| nanos(late, of.0)));
    times.filter(|late| *late > 0.0).reduce(f64::min)
}

/// Maximum run length up to which every length has its own bars.
const LENGTHS_MAX: u64 = 16;

/// The scale is logarithmic if counts exceed the minimum by more than this factor.
const SPREAD_MAX: u64 = 50;

pub(super) fn draw_loss_runs(scene: &mut Scene, frame: &Frame, data: &Data) {
    let lengths = data.logs.iter().flat_map(|of| of.data.runs.runs().keys());
    let classes = classes(lengths.copied().max().unwrap_or(1));
    let groups: Vec<Group> = classes.iter().map(|class| group(*class, data)).collect();
    let y = run_axis(&groups);
    let notes = run_notes(data);
    let captions = Captions {
        heading: "Loss runs",
        lift: notes_height(&notes, frame.width),
        remark: "number of loss runs by length".to_owned(),
        x: "Frames lost in a row".to_owned(),
        y: match y.unit {
            "" => "Runs (logarithmic)".to_owned(),
            _ => "Runs".to_owned(),
        },
    };
    let empty = Axis::linear(0.0, 1.0, 1, Units::FRAMES).without_ticks();
    frame.axes(scene, &empty, &y, &captions);
    frame.notes(scene, &notes);
    let looks: Vec<_> = data.logs.iter().map(|of| of.look).collect();
    vertical(scene, frame, &y, &groups, &looks);
    let mut counts = groups.iter().flat_map(|group| &group.values);
    if counts.all(|count| *count == 0) {
        frame.nothing(scene, "no frame was lost");
    }
}

/// Returns the number of lost frames of each link as notes.
pub(super) fn run_notes(data: &Data) -> Vec<Note> {
    data.logs.iter().map(|of| (of.look, run_note(of))).collect()
}

/// A range of lengths that share their bars, as (first, last).
type Class = (u64, u64);

/// Returns one class per length if there are few lengths. Otherwise, returns 1, 2, and then classes
/// whose size doubles.
fn classes(longest: u64) -> Vec<Class> {
    if longest <= LENGTHS_MAX {
        let lengths = 1..=longest.max(4);
        return lengths.map(|length| (length, length)).collect();
    }
    let mut classes = vec![(1, 1)];
    let mut last = 1u64;
    while last < longest {
        let next = last.saturating_mul(2);
        classes.push((last + 1, next));
        last = next;
    }
    classes
}

fn group((from, to): Class, data: &Data) -> Group {
    let [first, last] = [from, to].map(|length| grouped(length as f64, 0));
    let label = if from == to {
        first
    } else {
        format!("{first}–{last}")
    };
    let count =
        |of: &LegendEntry<LogSeries>| of.data.runs.runs().range(from..=to).map(|(_, n)| n).sum();
    Group {
        label,
        values: data.logs.iter().map(count).collect(),
    }
}

fn run_axis(groups: &[Group]) -> Axis {
    let counts = groups.iter().flat_map(|group| &group.values);
    let counts = counts.copied().filter(|count| *count > 0);
    let (least, most) = (counts.clone().min().unwrap_or(0), counts.max().unwrap_or(0));
    // The margin has space for the numbers above the bars.
    if most > least.saturating_mul(SPREAD_MAX) {
        return Axis::logarithmic(0.5, most as f64 * 2.5, Units::BARE);
    }
    Axis::linear(0.0, most.max(1) as f64 * 1.15, 4, Units::RUNS)
}

fn run_note(of: &LegendEntry<LogSeries>) -> String {
    let (lost, frames) = of.data.runs.lost();
    let longest = of.data.runs.runs().last_key_value();
    let longest = longest.map_or(0, |(length, _)| *length);
    let share = SHARE.write(lost as f64 / frames.max(1) as f64);
    let [lost, frames, longest] = [lost, frames, longest].map(|n| grouped(n as f64, 0));
    let label = &of.label;
    format!("{label}: {lost} of {frames} lost ({share}), longest run {longest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_follow_one_another_and_hold_every_length() {
        for longest in [1, 4, 16, 17, 100, 1 << 40] {
            let classes = classes(longest);
            assert_eq!(classes.first().map(|class| class.0), Some(1));
            assert!(classes.last().is_some_and(|class| class.1 >= longest));
            assert!(classes.windows(2).all(|two| two[0].1 + 1 == two[1].0));
        }
        assert_eq!(classes(20)[..4], [(1, 1), (2, 2), (3, 4), (5, 8)]);
    }
}
