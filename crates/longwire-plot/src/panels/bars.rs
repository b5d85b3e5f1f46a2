//! Vertical and horizontal bars.

use crate::axis::{Axis, grouped};
use crate::font::Font;
use crate::frame::{Frame, TICK_SIZE, small};
use crate::scene::{Anchor, Fill, Look, Scene, Stroke, Text};

/// Adjacent bars: one of each series.
#[derive(Debug)]
pub(super) struct Group {
    pub label: String,
    pub values: Vec<u64>,
}

/// Size of the numbers above vertical bars.
const NUMBER_SIZE: f64 = 9.5;

/// Draws vertical bars, with their values above them where there is room.
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
            let fill = Fill::solid(look.colour);
            let (from, to) = ((x + 0.5, top), (x + width - 0.5, frame.bottom()));
            scene.rectangle(from, to, fill);
            let number = grouped(*value as f64, 0);
            // A number must not overlap that of the next bar.
            if font.width(&number, NUMBER_SIZE) < width - 4.0 {
                let at = (x + width / 2.0, top - 3.0);
                scene.text(Text {
                    size: NUMBER_SIZE,
                    ..small(&number, at, Anchor::Middle)
                });
            }
        }
    }
}

/// Height of a horizontal bar, and room between groups of them.
pub(super) const BAR: f64 = 15.0;
pub(super) const BETWEEN: f64 = 9.0;

/// A group of horizontal bars: values and labels.
#[derive(Debug)]
pub(super) struct Row {
    pub label: String,
    pub bars: Vec<(f64, String)>,
}

/// Draws horizontal bars with their values to the right of them.
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
            scene.text(Text {
                size,
                ..small(
                    text,
                    (end + 5.0, y + bar / 2.0 + size * 0.36),
                    Anchor::Start,
                )
            });
        }
    }
    frame.edges(scene);
    for (value, label) in &x.ticks {
        let at = (frame.x(x.place(*value)), frame.bottom() + 15.0);
        scene.text(small(label, at, Anchor::Middle));
    }
}
