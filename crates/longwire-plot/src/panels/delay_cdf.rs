//! Delay distribution: the share of frames delivered within each delay.

use super::time::{close_to, ticks};
use super::{Data, LegendEntry};
use crate::axis::{Axis, SHARE, TIME};
use crate::frame::{Captions, Frame, Note, notes_height};
use crate::gather::FineSketch;
use crate::scene::{Look, Point, Scene, Stroke};
use crate::series::LogSeries;

/// Dash length of coinciding curves.
const DASH: f64 = 6.0;

/// The scale is logarithmic if delays exceed the median by more than this factor.
const SPREAD_MAX: u64 = 20;

pub(super) fn draw(scene: &mut Scene, frame: &Frame, data: &Data) {
    let delivered = data.logs.iter().filter(|of| of.data.delays.total() > 0);
    let delivered: Vec<&LegendEntry<LogSeries>> = delivered.collect();
    let notes = notes(data);
    let x = axis(&delivered, ticks(frame));
    let y = Axis::linear(0.0, 1.0, 5, SHARE);
    let shown = data.shown().filter(|of| of.data.delays.total() > 0);
    let curves = shown.map(|of| (of.look, curve(&of.data, &x, frame)));
    let curves: Vec<(Look, Vec<Point>)> = curves.collect();
    let strokes: Vec<Stroke> = (0..curves.len()).map(|at| stroke(at, &curves)).collect();
    let are_equal = (strokes.iter().zip(&curves)).any(|(of, (look, _))| of.dash != look.dash);
    let remark = if are_equal {
        "; coinciding curves: dashes of each colour"
    } else {
        ""
    };
    let captions = Captions {
        heading: "Delay distribution",
        lift: notes_height(&notes, frame.width),
        remark: format!("cumulative share of delivered frames{remark}"),
        x: x.label("One-way delay"),
        y: y.label("Frames"),
    };
    frame.axes(scene, &x, &y, &captions);
    frame.notes(scene, &notes);
    if delivered.is_empty() {
        frame.nothing(scene, "no frame was delivered");
    }
    for ((_, line), stroke) in curves.into_iter().zip(strokes) {
        scene.line(line, stroke);
    }
}

/// Returns the stroke of a curve. Coinciding curves alternate in dashes of equal length.
fn stroke(at: usize, curves: &[(Look, Vec<Point>)]) -> Stroke {
    let (look, line) = &curves[at];
    let equal = |curves: &[(Look, Vec<Point>)]| {
        curves.iter().filter(|(_, other)| other == line).count() as f64
    };
    let (all, below) = (equal(curves), equal(&curves[..at]));
    let mut stroke = look.stroke(1.6);
    if below > 0.0 {
        stroke.dash = Some((DASH * (all - below), DASH * below));
    }
    stroke
}

/// Returns the usual quantiles as notes.
pub(super) fn notes(data: &Data) -> Vec<Note> {
    if data.cell.is_some() {
        return Vec::new();
    }
    let delivered = data.logs.iter().filter(|of| of.data.delays.total() > 0);
    delivered.map(|of| (of.look, note(of))).collect()
}

/// Returns an axis that covers all delays.
fn axis(delivered: &[&LegendEntry<LogSeries>], ticks: usize) -> Axis {
    let delays = || delivered.iter().map(|of| &of.data.delays);
    let ranges = delays().filter_map(FineSketch::range);
    let range = ranges.reduce(|(low, high), (least, most)| (low.min(least), high.max(most)));
    let median = delays().filter_map(|delays| delays.quantile(0.5)).max();
    match range {
        Some((least, most))
            if least > 0 && most > median.unwrap_or(0).saturating_mul(SPREAD_MAX) =>
        {
            Axis::logarithmic(least as f64 / 1.1, most as f64 * 1.1, TIME)
        }
        range => close_to(range, ticks, TIME),
    }
}

/// Returns a curve with a step at each delay that occurred. Steps too small to be visible are
/// merged.
fn curve(series: &LogSeries, x: &Axis, frame: &Frame) -> Vec<Point> {
    const SEEN: f64 = 0.25;
    let delays = &series.delays;
    let all = delays.total() as f64;
    let mut points: Vec<Point> = vec![(frame.left, frame.bottom())];
    let (mut below, mut last) = (0u64, (f64::MIN, frame.bottom()));
    let steps = delays.counts().count();
    for (index, (delay, count)) in delays.counts().enumerate() {
        below += u64::from(count);
        let point = (frame.x(x.place(delay as f64)), frame.y(below as f64 / all));
        let (moved_x, moved_y) = (point.0 - last.0, last.1 - point.1);
        if moved_x > SEEN || moved_y > SEEN || index + 1 == steps {
            points.push((point.0, last.1));
            points.push(point);
            last = point;
        }
    }
    points.push((frame.right(), frame.y(1.0)));
    points
}

fn note(of: &LegendEntry<LogSeries>) -> String {
    let delays = &of.data.delays;
    let most = delays.range().map_or(0, |(_, most)| most);
    let at = |quantile| TIME.write(delays.quantile(quantile).unwrap_or(0) as f64);
    format!(
        "{}: median {}, p99 {}, max {}",
        of.label,
        at(0.5),
        at(0.99),
        TIME.write(most as f64)
    )
}
