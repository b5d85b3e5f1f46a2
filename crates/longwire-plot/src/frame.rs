//! Plot area of a panel, with heading, axes, grid and labels.

use super::axis::Axis;
use super::font::Font;
use super::scene::{Anchor, Fill, Point, Scene, Stroke, Text};
use crate::scene::Look;

/// Font size of panel headings.
pub const HEADING_SIZE: f64 = 13.0;
/// Font size of axis captions.
pub const LABEL_SIZE: f64 = 11.0;
/// Font size of tick labels and remarks.
pub const TICK_SIZE: f64 = 10.5;

/// Rectangle in which data is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame {
    /// Left edge, in units.
    pub left: f64,
    /// Upper edge, in units.
    pub top: f64,
    /// Width in units.
    pub width: f64,
    /// Height in units.
    pub height: f64,
    /// Position among small multiples, if any.
    pub cell: Option<CellPlace>,
}

/// Position of a frame among small multiples, which share their axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellPlace {
    /// Whether the frame is in the first column, where the vertical axis is labelled.
    pub is_left: bool,
    /// Whether the frame is at the bottom of its column, where the horizontal axis is labelled.
    pub is_bottom: bool,
    /// Left, top, width and height of all cells together, for the cell that draws the shared
    /// captions.
    pub captions: Option<(f64, f64, f64, f64)>,
}

/// Texts around a panel.
#[derive(Debug, Default)]
pub struct Captions<'a> {
    /// Name of the panel.
    pub heading: &'a str,
    /// Additional height of the heading above the frame, in units.
    pub lift: f64,
    /// A hint on how to read the panel.
    pub remark: String,
    /// Caption of the horizontal axis, with its unit.
    pub x: String,
    /// Caption of the vertical axis, with its unit.
    pub y: String,
}

impl Frame {
    /// Returns the right edge.
    pub fn right(&self) -> f64 {
        self.left + self.width
    }

    /// Returns the lower edge.
    pub fn bottom(&self) -> f64 {
        self.top + self.height
    }

    /// Returns the position at a fraction of the width, from the left.
    pub fn x(&self, share: f64) -> f64 {
        self.left + self.width * share
    }

    /// Returns the position at a fraction of the height, from the bottom.
    pub fn y(&self, share: f64) -> f64 {
        self.bottom() - self.height * share
    }

    /// Draws grid, axes and captions.
    pub fn axes(&self, scene: &mut Scene, x: &Axis, y: &Axis, captions: &Captions<'_>) {
        let across = |share: f64| ((self.left, self.y(share)), (self.right(), self.y(share)));
        let up = |share: f64| ((self.x(share), self.top), (self.x(share), self.bottom()));
        let mut grid: Vec<(Point, Point)> = Vec::new();
        grid.extend(y.ticks.iter().map(|(value, _)| across(y.place(*value))));
        grid.extend(x.ticks.iter().map(|(value, _)| up(x.place(*value))));
        scene.segments(grid, Stroke::solid(crate::scene::GRID, 1.0));
        self.edges(scene);
        if self.cell.is_none_or(|cell| cell.is_bottom) {
            self.x_labels(scene, x);
        }
        let has_y = self.cell.is_none_or(|cell| cell.is_left);
        for (value, label) in y.ticks.iter().filter(|_| has_y) {
            let at = (self.left - 7.0, self.y(y.place(*value)) + 3.7);
            scene.text(small(label, at, Anchor::End));
        }
        self.captions(scene, captions);
    }

    /// Draws the labels of a horizontal axis.
    pub fn x_labels(&self, scene: &mut Scene, x: &Axis) {
        for (value, label) in &x.ticks {
            let at = (self.x(x.place(*value)), self.bottom() + 15.0);
            scene.text(small(label, at, Anchor::Middle));
        }
    }

    /// Draws the left and lower edges.
    pub fn edges(&self, scene: &mut Scene) {
        let corner = (self.left, self.bottom());
        let edges = vec![
            ((self.left, self.top), corner),
            (corner, (self.right(), self.bottom())),
        ];
        scene.segments(edges, Stroke::solid(crate::scene::AXIS, 1.0));
    }

    /// Draws the heading and axis captions.
    pub fn captions(&self, scene: &mut Scene, captions: &Captions<'_>) {
        if let Some(cell) = self.cell {
            if let Some((left, top, width, height)) = cell.captions {
                Frame {
                    left,
                    top,
                    width,
                    height,
                    cell: None,
                }
                .captions(scene, captions);
            }
            return;
        }
        let above = self.top - 10.0 - captions.lift;
        let heading = small(captions.heading, (self.left, above), Anchor::Start);
        scene.text(heading.sized(HEADING_SIZE).bold());
        let remark = small(&captions.remark, (self.right(), above), Anchor::End);
        scene.text(remark.faint());
        let x = (self.left + self.width / 2.0, self.bottom() + 31.0);
        scene.text(small(&captions.x, x, Anchor::Middle).sized(LABEL_SIZE));
        let y = (self.left - 58.0, self.top + self.height / 2.0);
        let caption = small(&captions.y, y, Anchor::Middle).sized(LABEL_SIZE);
        scene.text(caption.turned(true));
    }

    /// Writes a remark in the middle of a panel without data.
    pub fn nothing(&self, scene: &mut Scene, why: &str) {
        let at = (self.left + self.width / 2.0, self.top + self.height / 2.0);
        let remark = small(why, at, Anchor::Middle).sized(HEADING_SIZE);
        scene.text(remark.faint());
    }

    /// Writes one remark per series above the frame.
    pub fn notes(&self, scene: &mut Scene, notes: &[Note]) {
        let lines = flow(notes, self.width);
        let top = self.top - notes_height(notes, self.width);
        draw_flow(scene, &lines, (self.left, top), NOTE_LINE, TICK_SIZE);
    }
}

/// A remark, with the look of its series.
pub type Note = (Look, String);

/// Height of a line of notes, and space below them.
const NOTE_LINE: f64 = 17.0;
const NOTE_GAP: f64 = 6.0;

/// Returns the height of notes above a frame of this width.
pub fn notes_height(notes: &[Note], width: f64) -> f64 {
    match flow(notes, width).len() {
        0 => 0.0,
        lines => lines as f64 * NOTE_LINE + NOTE_GAP,
    }
}

/// Lays out notes next to each other, in as many lines as needed; returns their positions from the
/// left.
pub fn flow(notes: &[Note], width: f64) -> Vec<Vec<(f64, &Note)>> {
    const APART: f64 = 24.0;
    let font = Font::of_weight(false);
    let mut lines: Vec<Vec<(f64, &Note)>> = Vec::new();
    let mut at = 0.0;
    for note in notes {
        let wide = SWATCH + font.width(&note.1, LABEL_SIZE);
        match lines.last_mut() {
            Some(line) if at + wide <= width => line.push((at, note)),
            _ => {
                at = 0.0;
                lines.push(vec![(at, note)]);
            }
        }
        at += wide + APART;
    }
    lines
}

/// Space for a colour sample before a note.
const SWATCH: f64 = 17.0;

/// Draws the lines laid out by [`flow`], starting below a point.
pub fn draw_flow(
    scene: &mut Scene,
    lines: &[Vec<(f64, &Note)>],
    (left, top): Point,
    line_height: f64,
    size: f64,
) {
    for (index, line) in lines.iter().enumerate() {
        let middle = top + line_height * (index as f64 + 0.5);
        for (at, (look, text)) in line {
            let left = left + at;
            swatch(scene, *look, (left, middle));
            let at = (left + SWATCH, middle + size * 0.36);
            scene.text(small(text, at, Anchor::Start).sized(size));
        }
    }
}

/// Draws the sample of a series: its colour, or a line if it is dashed.
fn swatch(scene: &mut Scene, look: Look, (left, middle): Point) {
    if look.dash.is_some() {
        let line = vec![(left - 8.0, middle), (left + 12.0, middle)];
        scene.line(line, look.stroke(2.0));
        return;
    }
    let (from, to) = ((left, middle - 5.0), (left + 11.0, middle + 5.0));
    scene.rectangle(from, to, Fill::solid(look.colour));
}

/// Returns a text in the size of tick labels.
pub fn small(text: &str, at: Point, anchor: Anchor) -> Text {
    Text {
        at,
        text: text.to_owned(),
        size: TICK_SIZE,
        bold: false,
        colour: crate::scene::INK,
        anchor,
        upwards: false,
    }
}
