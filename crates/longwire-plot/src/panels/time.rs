//! Shared code of panels over time.

use crate::axis::{Axis, TIME, Units};
use crate::frame::{Captions, Frame};
use crate::scene::{FAINT_INK, Fill, Look, Point, Scene, Stroke};
use crate::series::{Window, Zero};
use crate::trace::{Column, Columns, Trace};

/// The most adjacent columns without a value across which a line is still drawn.
const GAP_MAX: usize = 3;

/// Ticks of a vertical axis.
pub(super) const TICKS: usize = 5;

/// Returns the time axis of a window.
pub(super) fn axis(window: &Window, frame: &Frame) -> Axis {
    let Columns { from, span, .. } = window.columns;
    let from = from as f64;
    Axis::linear(from, from + span as f64, ticks(frame), TIME)
}

/// Returns the number of ticks for which a horizontal axis has room.
pub(super) fn ticks(frame: &Frame) -> usize {
    const ROOM: f64 = 65.0;
    ((frame.width / ROOM) as usize).clamp(2, 10)
}

/// Returns the caption of the time axis.
fn label(axis: &Axis, zero: Zero) -> String {
    axis.label(match zero {
        Zero::FirstFrame => "Time since the first frame",
        Zero::RunStart => "Time since the start of the run",
    })
}

/// Returns an axis for values from 0 to the greatest.
pub(super) fn from_zero(most: u64, ticks: usize, units: Units) -> Axis {
    let most = if most > 0 { most as f64 * 1.08 } else { 1.0 };
    Axis::linear(0.0, most, ticks, units)
}

/// Returns an axis for values up to the greatest: from 0, unless all values are
/// close together far above it, and not all equal. It spans at least 1 % of the values.
pub(super) fn close_to(range: Option<(u64, u64)>, ticks: usize, units: Units) -> Axis {
    let (least, most) = range.unwrap_or((0, 0));
    let spread = (most - least) as f64 / most.max(1) as f64;
    if !(1e-4..0.3).contains(&spread) {
        return from_zero(most, ticks, units);
    }
    let (least, most) = (least as f64, most as f64);
    let room = ((most - least) * 0.08).max((most * 0.01 - (most - least)) / 2.0);
    Axis::linear(least - room, most + room, ticks, units)
}

/// Returns the least and the greatest value of several traces.
pub(super) fn range<'a>(traces: impl Iterator<Item = &'a Trace>) -> Option<(u64, u64)> {
    let ranges = traces.filter_map(Trace::range);
    ranges.reduce(|(low, high), (least, most)| (low.min(least), high.max(most)))
}

/// The target of a trace: scene, frame and axes.
pub(super) struct Drawing<'a> {
    pub frame: &'a Frame,
    pub window: &'a Window,
    pub changes: &'a [i64],
    pub x: &'a Axis,
    pub y: &'a Axis,
}

impl Drawing<'_> {
    /// Draws the axes and the captions.
    pub(super) fn axes(
        &self,
        scene: &mut Scene,
        heading: &str,
        lift: f64,
        remark: String,
        y: String,
    ) {
        let captions = Captions {
            heading,
            lift,
            remark,
            x: label(self.x, self.window.zero),
            y,
        };
        self.frame.axes(scene, self.x, self.y, &captions);
        let Columns { from, span, .. } = self.window.columns;
        let shown = from..from.saturating_add_unsigned(span);
        for at in self.changes.iter().filter(|at| shown.contains(at)) {
            let x = self.frame.x(self.x.place(*at as f64));
            let stroke = Stroke {
                dash: Some((3.0, 3.0)),
                ..Stroke::solid(FAINT_INK, 0.8)
            };
            scene.line(vec![(x, self.frame.top), (x, self.frame.bottom())], stroke);
        }
    }

    fn point(&self, at: f64, value: f64) -> Point {
        (
            self.frame.x(self.x.place(at)),
            self.frame.y(self.y.place(value)),
        )
    }

    /// Returns the position of the middle of a column.
    pub(super) fn middle(&self, column: usize) -> f64 {
        let Columns { from, span, count } = self.window.columns;
        from as f64 + (column as f64 + 0.5) * span as f64 / count as f64
    }

    /// Draws a dot or a step for each value if there are few, else the shaded range from
    /// the least to the greatest of each column.
    pub(super) fn extent(&self, scene: &mut Scene, trace: &Trace, look: Look) {
        if let Some(points) = trace.points() {
            if trace.is_held() {
                self.stairs(scene, points, look);
                return;
            }
            let dots = points.iter();
            let dots = dots.map(|(at, value)| self.point(*at as f64, *value as f64));
            let fill = Fill {
                opacity: 0.6,
                ..Fill::solid(look.colour)
            };
            scene.dots(dots.collect(), 1.7, fill);
            return;
        }
        let edge = Stroke {
            opacity: 0.55,
            ..Stroke::solid(look.colour, 0.7)
        };
        let shade = Fill {
            opacity: 0.22,
            ..Fill::solid(look.colour)
        };
        for run in runs(trace) {
            let middle = |index: &usize| self.middle(*index);
            let upper = run
                .iter()
                .map(|(i, c)| self.point(middle(i), c.most as f64));
            let mut upper: Vec<Point> = upper.collect();
            let lower = run
                .iter()
                .map(|(i, c)| self.point(middle(i), c.least as f64));
            let mut lower: Vec<Point> = lower.collect();
            if let ([(x, high)], [(_, low)]) = (&upper[..], &lower[..]) {
                // An isolated column is as wide as a column.
                let half = self.frame.width / self.window.columns.count as f64 / 2.0;
                (upper, lower) = (
                    vec![(x - half, high - half), (x + half, high - half)],
                    vec![(x - half, low + half), (x + half, low + half)],
                );
            }
            scene.line(upper.clone(), edge);
            scene.line(lower.clone(), edge);
            upper.extend(lower.into_iter().rev());
            scene.area(upper, shade);
        }
    }

    /// Draws values that hold until the next.
    fn stairs(&self, scene: &mut Scene, points: &[(i64, u64)], look: Look) {
        let mut line: Vec<Point> = Vec::with_capacity(points.len() * 2);
        for (at, value) in points {
            let (x, y) = self.point(*at as f64, *value as f64);
            if let Some((_, before)) = line.last() {
                line.push((x, *before));
            }
            line.push((x, y));
        }
        scene.line(line, look.stroke(1.2));
    }

    /// Draws the mean of each column, if there are too many values for dots.
    pub(super) fn mean(&self, scene: &mut Scene, trace: &Trace, look: Look) {
        if trace.points().is_some() {
            return;
        }
        for run in runs(trace) {
            let line = run.iter();
            let line = line.map(|(index, column)| self.point(self.middle(*index), column.mean()));
            scene.line(line.collect(), look.stroke(1.4));
        }
    }
}

/// Returns the columns that have values, in runs without long gaps.
fn runs(trace: &Trace) -> Vec<Vec<(usize, Column)>> {
    let mut runs: Vec<Vec<_>> = Vec::new();
    for (index, column) in trace.columns() {
        match runs.last_mut() {
            Some(run) if run.last().is_some_and(|(last, _)| index - last <= GAP_MAX) => {
                run.push((index, *column));
            }
            _ => runs.push(vec![(index, *column)]),
        }
    }
    runs
}

/// Returns a remark on how to read a trace.
pub(super) fn remark<'a>(traces: impl Iterator<Item = &'a Trace>) -> &'static str {
    let few: Vec<bool> = traces.map(|trace| trace.points().is_some()).collect();
    match (few.contains(&true), few.contains(&false)) {
        (false, _) => "line: mean, shaded: minimum to maximum",
        (true, false) => "one dot per frame",
        (true, true) => "one dot per frame; if many, line: mean, shaded: minimum to maximum",
    }
}
