//! Queue length over time.

use super::time::{Drawing, axis, from_zero, range, remark};
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
    let (x, y) = (axis(&data.window), from_zero(most, units));
    let drawing = Drawing {
        frame,
        window: &data.window,
        x: &x,
        y: &y,
    };
    let remark = format!("as each frame left it on arrival; {}", remark(traces()));
    drawing.axes(scene, "Queue", 0.0, remark, y.label("Queue"));
    for series in &data.logs {
        drawing.extent(scene, of(&series.data), series.colour);
    }
    for series in &data.logs {
        drawing.mean(scene, of(&series.data), series.colour);
    }
}
