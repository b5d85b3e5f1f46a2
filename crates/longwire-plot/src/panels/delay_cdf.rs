//! The distribution of delays: the share of frames by their greatest delay.

use super::time::ticks;
use super::{Data, LegendEntry};
use crate::axis::{Axis, SHARE, TIME};
use crate::frame::{Captions, Frame, Note, notes_height};
use crate::scene::{Point, Scene};
use crate::series::LogSeries;

/// The scale is logarithmic if delays exceed this multiple of the median.
const SPREAD_MAX: u64 = 20;

pub(super) fn draw(scene: &mut Scene, frame: &Frame, data: &Data) {
    let delivered = data.logs.iter().filter(|of| !of.data.delays.is_empty());
    let delivered: Vec<&LegendEntry<LogSeries>> = delivered.collect();
    let notes = notes(data);
    let x = axis(&delivered, ticks(frame));
    let y = Axis::linear(0.0, 1.0, 5, SHARE);
    let captions = Captions {
        heading: "Delay distribution",
        lift: notes_height(&notes, frame.width),
        remark: "share of the delivered frames with at most this delay".to_owned(),
        x: x.label("One-way delay"),
        y: y.label("Frames"),
    };
    frame.axes(scene, &x, &y, &captions);
    frame.notes(scene, &notes);
    if delivered.is_empty() {
        frame.nothing(scene, "no frame was delivered");
        return;
    }
    for series in delivered
        .iter()
        .filter(|of| data.cell.is_none_or(|cell| of.cell == cell))
    {
        let line = curve(&series.data, &x, frame);
        scene.line(line, series.look.stroke(1.6));
    }
}

/// Returns the usual quantiles as notes.
pub(super) fn notes(data: &Data) -> Vec<Note> {
    if data.cell.is_some() {
        return Vec::new();
    }
    let delivered = data.logs.iter().filter(|of| !of.data.delays.is_empty());
    delivered.map(|of| (of.look, note(of))).collect()
}

/// Returns an axis from the least delay to the greatest, with some margin.
fn axis(delivered: &[&LegendEntry<LogSeries>], ticks: usize) -> Axis {
    let delays = || delivered.iter().map(|of| &of.data.delays);
    let least = delays().map(|delays| delays.min()).min().unwrap_or(0);
    let most = delays().map(|delays| delays.max()).max().unwrap_or(0);
    let median = delays().map(|delays| delays.value_at_quantile(0.5)).max();
    let wide = most > median.unwrap_or(0).saturating_mul(SPREAD_MAX);
    if wide && least > 0 {
        return Axis::logarithmic(least as f64 / 1.1, most as f64 * 1.1, TIME);
    }
    let room = (most - least) as f64 * 0.03;
    let low = (least as f64 - room).max(0.0);
    Axis::linear(low, most as f64 + room, ticks, TIME)
}

/// Returns a curve with a step at each delay that occurred. Steps too small to be
/// seen are joined.
fn curve(series: &LogSeries, x: &Axis, frame: &Frame) -> Vec<Point> {
    const SEEN: f64 = 0.25;
    let delays = &series.delays;
    let all = delays.len() as f64;
    let mut points: Vec<Point> = vec![(frame.left, frame.bottom())];
    let (mut below, mut last) = (0u64, (f64::MIN, frame.bottom()));
    let count = delays.iter_recorded().count();
    for (index, value) in delays.iter_recorded().enumerate() {
        // The histogram has three digits of each value, but its ends exactly.
        let at = value.value_iterated_to().clamp(delays.min(), delays.max());
        below += value.count_at_value();
        let point = (frame.x(x.place(at as f64)), frame.y(below as f64 / all));
        let (moved_x, moved_y) = (point.0 - last.0, last.1 - point.1);
        if moved_x > SEEN || moved_y > SEEN || index + 1 == count {
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
    let at = |quantile| TIME.write(delays.value_at_quantile(quantile) as f64);
    let most = of.data.delay.range().map_or(0, |(_, most)| most);
    format!(
        "{}: median {}, p99 {}, max {}",
        of.label,
        at(0.5),
        at(0.99),
        TIME.write(most as f64)
    )
}
