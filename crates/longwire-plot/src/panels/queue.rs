//! Queue length over time.

use super::time::{Drawing, TICKS, axis, from_zero, range};
use super::{Data, QueueUnit};
use crate::axis::{BYTES, Units};
use crate::frame::Frame;
use crate::scene::Scene;
use crate::series::LogSeries;
use crate::trace::Trace;

pub(super) fn draw(scene: &mut Scene, frame: &Frame, data: &Data) {
    let (of, units): (fn(&LogSeries) -> &Trace, Units) = match data.queue_unit {
        QueueUnit::Packets => (|series| &series.queue_packets, Units::PACKETS),
        QueueUnit::Bytes => (|series| &series.queue_bytes, BYTES),
    };
    let traces = || data.logs.iter().map(|series| of(&series.data));
    let most = range(traces()).map_or(0, |(_, most)| most);
    let (x, y) = (axis(&data.window, frame), from_zero(most, TICKS, units));
    let drawing = Drawing {
        frame,
        window: &data.window,
        changes: &data.changes,
        x: &x,
        y: &y,
    };
    let remark = if traces().any(|trace| trace.points().is_none()) {
        "line: mean over time, shaded: minimum to maximum"
    } else {
        ""
    };
    drawing.axes(scene, "Queue", 0.0, remark.to_owned(), y.label("Queue"));
    for series in data.shown() {
        drawing.extent(scene, of(&series.data), series.look);
    }
    for series in data.shown() {
        drawing.mean(scene, of(&series.data), series.look);
    }
}
