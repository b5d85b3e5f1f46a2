//! One-way delay over time, with a lane of marks for drops above it.

use super::time::{Drawing, TICKS, axis, close_to, range, remark};
use super::{Data, LegendEntry};
use crate::axis::TIME;
use crate::frame::{Frame, small};
use crate::scene::{Anchor, Point, Scene, Stroke};
use crate::series::LogSeries;

/// Height of one link's lane of marks.
const LANE: f64 = 8.0;

/// Darkness of a mark, by the number of drops in its column relative to the
/// greatest.
const SHADES: [f64; 4] = [0.4, 0.6, 0.8, 1.0];

/// Returns the height of all lanes: one for each link with drops.
pub(super) fn rug_height(data: &Data) -> f64 {
    if data.cell.is_some() {
        return 0.0;
    }
    let lanes = data.logs.iter().filter(|series| dropped(series));
    match lanes.count() {
        0 => 0.0,
        lanes => lanes as f64 * LANE + 3.0,
    }
}

fn dropped(series: &LegendEntry<LogSeries>) -> bool {
    series.data.drops.columns().next().is_some()
}

pub(super) fn draw(scene: &mut Scene, frame: &Frame, data: &Data) {
    let traces = || data.logs.iter().map(|series| &series.data.delay);
    let (x, y) = (
        axis(&data.window, frame),
        close_to(range(traces()), TICKS, TIME),
    );
    let drawing = Drawing {
        frame,
        window: &data.window,
        changes: &data.changes,
        x: &x,
        y: &y,
    };
    let marks = if rug_height(data) > 0.0 {
        "; marks above: drops, darker where there are more"
    } else {
        ""
    };
    let remark = format!("release − arrival; {}{marks}", remark(traces()));
    // The heading stands above the lanes, and the lanes above the frame.
    let (lift, y) = (rug_height(data), y.label("One-way delay"));
    drawing.axes(scene, "One-way delay", lift, remark, y);
    for series in data.shown() {
        drawing.extent(scene, &series.data.delay, series.look);
    }
    for series in data.shown() {
        drawing.mean(scene, &series.data.delay, series.look);
    }
    if range(traces()).is_none() {
        frame.nothing(scene, "no frame was delivered");
    }
    if data.cell.is_none() {
        draw_rug(scene, frame, &drawing, data);
    }
}

fn draw_rug(scene: &mut Scene, frame: &Frame, drawing: &Drawing<'_>, data: &Data) {
    let lanes = data.logs.iter().filter(|series| dropped(series));
    for (lane, series) in lanes.enumerate() {
        let bottom = frame.top - 4.0 - lane as f64 * LANE;
        let most = series.data.drops.columns().map(|(_, count)| count).max();
        let most = most.unwrap_or(1) as f64;
        for (index, opacity) in SHADES.iter().enumerate() {
            // The lightest shade stands for the fewest drops, and is always
            // visible.
            let of_shade = |count: u64| {
                let shade = (count as f64 / most * SHADES.len() as f64).ceil() as usize;
                shade.clamp(1, SHADES.len()) == index + 1
            };
            let columns = series.data.drops.columns();
            let marks = columns.filter(|(_, count)| of_shade(*count));
            let marks = marks.map(|(column, _)| -> (Point, Point) {
                let x = frame.x(drawing.x.place(drawing.middle(column)));
                ((x, bottom - LANE + 2.0), (x, bottom))
            });
            let stroke = Stroke {
                opacity: *opacity,
                ..Stroke::solid(series.look.colour, 1.0)
            };
            scene.segments(marks.collect(), stroke);
        }
    }
    let lanes = rug_height(data);
    if lanes > 0.0 {
        // In the middle of all lanes: below the lowest, the labels of the axis begin.
        let at = (frame.left - 7.0, frame.top - lanes / 2.0 - 1.0);
        scene.text(small("drops", at, Anchor::End));
    }
}
