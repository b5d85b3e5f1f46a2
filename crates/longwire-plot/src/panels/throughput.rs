//! Offered and delivered throughput over time.

use super::Data;
use super::time::{Drawing, axis, from_zero};
use crate::axis::{RATE, TIME};
use crate::frame::Frame;
use crate::scene::{Point, Scene, Stroke};

pub(super) fn draw(scene: &mut Scene, frame: &Frame, data: &Data) {
    let rates = |bytes: &u64| rate(*bytes, data.window.bin);
    let bins = data.logs.iter();
    let bins = bins.flat_map(|series| series.data.offered.iter().chain(&series.data.delivered));
    let most = bins.map(rates).fold(0.0, f64::max);
    let x = axis(&data.window);
    let y = from_zero(most.ceil() as u64, RATE);
    let drawing = Drawing {
        frame,
        window: &data.window,
        x: &x,
        y: &y,
    };
    let bin = TIME.write(data.window.bin as f64);
    let remark = format!("solid: delivered, dashed: offered; bins of {bin}");
    drawing.axes(scene, "Throughput", 0.0, remark, y.label("Throughput"));
    for series in &data.logs {
        let stroke = Stroke {
            dash: Some((4.0, 2.5)),
            ..Stroke::solid(series.colour, 0.9)
        };
        steps(scene, &drawing, &series.data.offered, stroke);
    }
    for series in &data.logs {
        let stroke = Stroke::solid(series.colour, 1.6);
        steps(scene, &drawing, &series.data.delivered, stroke);
    }
}

fn rate(bytes: u64, bin: u64) -> f64 {
    bytes as f64 * 8.0 * 1e9 / bin as f64
}

/// Draws a line with a step at each bin, from the first bin that is not empty to
/// the last. Where several bins share a column, the line goes through the least
/// and the greatest of them, so that none is lost.
fn steps(scene: &mut Scene, drawing: &Drawing<'_>, bins: &[u64], stroke: Stroke) {
    let place = |at: f64, bytes: u64| -> Point {
        let value = rate(bytes, drawing.window.bin);
        (
            drawing.frame.x(drawing.x.place(at)),
            drawing.frame.y(drawing.y.place(value)),
        )
    };
    let some = |bytes: &u64| *bytes > 0;
    let (Some(first), Some(last)) = (bins.iter().position(some), bins.iter().rposition(some))
    else {
        return;
    };
    let group = bins.len().div_ceil(drawing.window.columns.count);
    let bin = drawing.window.bin as f64;
    let mut at = drawing.window.columns.from as f64 + first as f64 * bin;
    let mut points = vec![place(at, 0)];
    for bins in bins[first..=last].chunks(group) {
        let (least, most) = (bins.iter().min(), bins.iter().max());
        let (least, most) = (least.copied().unwrap_or(0), most.copied().unwrap_or(0));
        let ends = at + bins.len() as f64 * bin;
        points.push(place(at, least));
        if most > least {
            points.push(place((at + ends) / 2.0, most));
        }
        points.push(place(ends, least));
        at = ends;
    }
    points.push(place(at, 0));
    scene.line(points, stroke);
}
