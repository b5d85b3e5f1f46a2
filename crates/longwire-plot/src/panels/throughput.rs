//! Offered and delivered throughput over time.

use super::Data;
use super::time::{Drawing, TICKS, axis, from_zero};
use crate::axis::{RATE, TIME};
use crate::frame::Frame;
use crate::gather::Served;
use crate::scene::{Look, Point, Scene, Stroke};

pub(super) fn draw(scene: &mut Scene, frame: &Frame, data: &Data) {
    let rates = |bytes: &u64| rate(*bytes, data.window.bin);
    let bins = data.logs.iter();
    let bins = bins.flat_map(|series| series.data.offered.iter().chain(&series.data.delivered));
    let most = bins.map(rates).fold(0.0, f64::max);
    let x = axis(&data.window, frame);
    let y = from_zero(most.ceil() as u64, TICKS, RATE);
    let drawing = Drawing {
        frame,
        window: &data.window,
        changes: &data.changes,
        x: &x,
        y: &y,
    };
    let bin = TIME.write(data.window.bin as f64);
    let remark = format!("thick: delivered, thin: offered, dotted: configured rate; bins of {bin}");
    drawing.axes(scene, "Throughput", 0.0, remark, y.label("Throughput"));
    // Below the lines of traffic: the rate of one direction is often that of the other.
    for series in data.shown() {
        in_force(scene, &drawing, &series.data.served, series.look, most);
    }
    for series in data.shown() {
        let stroke = Stroke {
            opacity: 0.6,
            ..series.look.stroke(0.8)
        };
        steps(scene, &drawing, &series.data.offered, stroke);
    }
    for series in data.shown() {
        let stroke = series.look.stroke(1.6);
        steps(scene, &drawing, &series.data.delivered, stroke);
    }
}

/// Draws the rate in force, where it is on the scale of the throughput: a link that
/// carries little would otherwise be a line at the lower edge.
fn in_force(scene: &mut Scene, drawing: &Drawing<'_>, bins: &[Served], look: Look, most: f64) {
    let stroke = Stroke {
        dash: Some((1.5, 2.5)),
        ..Stroke::solid(look.colour, 1.2)
    };
    let bin = drawing.window.bin as f64;
    let mut line: Vec<Point> = Vec::new();
    for (index, served) in bins.iter().enumerate() {
        let Some(rate) = served.rate().filter(|rate| *rate <= most * 1.08) else {
            scene.line(std::mem::take(&mut line), stroke);
            continue;
        };
        let from = drawing.window.columns.from as f64 + index as f64 * bin;
        for at in [from, from + bin] {
            let x = drawing.frame.x(drawing.x.place(at));
            line.push((x, drawing.frame.y(drawing.y.place(rate))));
        }
    }
    scene.line(line, stroke);
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
