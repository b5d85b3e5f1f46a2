//! Panels over time: one-way delay with drop marks, queue length, throughput.

use crate::axis::{Axis, BYTES, RATE, TIME, Units};
use crate::frame::{Captions, Frame, small};
use crate::gather::Served;
use crate::panels::{Data, LegendEntry, QueueUnit};
use crate::scene::{Anchor, FAINT_INK, Fill, Look, Point, Scene, Stroke};
use crate::series::{LogSeries, Window};
use crate::trace::{Column, Columns, Trace};

/// Maximum number of adjacent columns without a value that a line bridges.
const GAP_MAX: usize = 3;

/// Number of ticks on a vertical axis.
pub(super) const TICKS: usize = 5;

/// Returns the time axis of a window.
fn axis(window: &Window, frame: &Frame) -> Axis {
    let Columns { from, span, .. } = window.columns;
    let from = from as f64;
    Axis::linear(from, from + span as f64, ticks(frame), TIME)
}

/// Returns the number of ticks that fit on a horizontal axis.
pub(super) fn ticks(frame: &Frame) -> usize {
    const ROOM: f64 = 65.0;
    ((frame.width / ROOM) as usize).clamp(2, 10)
}

/// Returns an axis from 0 to the maximum.
pub(super) fn from_zero(most: u64, ticks: usize, units: Units) -> Axis {
    let most = if most > 0 { most as f64 * 1.08 } else { 1.0 };
    Axis::linear(0.0, most, ticks, units)
}

/// Returns an axis up to the maximum. It starts at 0 unless the values differ and lie close
/// together, far above 0. It spans at least 1 % of the values.
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

/// Returns the minimum and maximum of several traces.
pub(super) fn range<'a>(traces: impl Iterator<Item = &'a Trace>) -> Option<(u64, u64)> {
    let ranges = traces.filter_map(Trace::range);
    ranges.reduce(|(low, high), (least, most)| (low.min(least), high.max(most)))
}

/// Context for drawing a trace: frame, data and axes.
struct Drawing<'a> {
    frame: &'a Frame,
    data: &'a Data,
    x: Axis,
    y: Axis,
}

impl<'a> Drawing<'a> {
    fn new(frame: &'a Frame, data: &'a Data, y: Axis) -> Drawing<'a> {
        Drawing {
            frame,
            data,
            x: axis(&data.window, frame),
            y,
        }
    }

    /// Draws axes and captions.
    fn axes(&self, scene: &mut Scene, heading: &str, lift: f64, remark: String) {
        let captions = Captions {
            heading,
            lift,
            remark,
            x: self.x.label(self.data.window.caption),
            y: self.y.label(heading),
        };
        self.frame.axes(scene, &self.x, &self.y, &captions);
        let Columns { from, span, .. } = self.data.window.columns;
        let shown = from..from.saturating_add_unsigned(span);
        for at in self.data.changes.iter().filter(|at| shown.contains(at)) {
            let x = self.frame.x(self.x.place(*at as f64));
            let stroke = Stroke::solid(FAINT_INK, 0.8).dashed(Some((3.0, 3.0)));
            scene.line(vec![(x, self.frame.top), (x, self.frame.bottom())], stroke);
        }
    }

    /// Draws the traces of the current cell: first all ranges, then all means.
    fn traces(&self, scene: &mut Scene, of: fn(&LogSeries) -> &Trace) {
        for series in self.data.shown() {
            self.extent(scene, of(&series.data), series.look);
        }
        for series in self.data.shown() {
            self.mean(scene, of(&series.data), series.look);
        }
    }

    fn point(&self, at: f64, value: f64) -> Point {
        let (x, y) = (self.x.place(at), self.y.place(value));
        (self.frame.x(x), self.frame.y(y))
    }

    /// Returns the position of the middle of a column.
    fn middle(&self, column: usize) -> f64 {
        let Columns { from, span, count } = self.data.window.columns;
        from as f64 + (column as f64 + 0.5) * span as f64 / count as f64
    }

    /// Draws few values as dots or steps; draws more values as a shaded range from the minimum to
    /// the maximum of each column.
    fn extent(&self, scene: &mut Scene, trace: &Trace, look: Look) {
        if let Some(points) = trace.points() {
            if trace.is_held() {
                return self.stairs(scene, points, look);
            }
            let dots = points.iter();
            let dots = dots.map(|(at, value)| self.point(*at as f64, *value as f64));
            return scene.dots(dots.collect(), 1.7, Fill::solid(look.colour).faded(0.6));
        }
        let edge = Stroke::solid(look.colour, 0.7).faded(0.55);
        let shade = Fill::solid(look.colour).faded(0.22);
        for run in runs(trace) {
            let edge_of = |of: fn(&Column) -> u64| -> Vec<Point> {
                let points = run.iter();
                let points = points.map(|(i, c)| self.point(self.middle(*i), of(c) as f64));
                points.collect()
            };
            let (mut upper, mut lower) = (edge_of(|c| c.most), edge_of(|c| c.least));
            if let ([(x, high)], [(_, low)]) = (&upper[..], &lower[..]) {
                // An isolated column is drawn one column wide.
                let half = self.frame.width / self.data.window.columns.count as f64 / 2.0;
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

    /// Draws values that hold until the next value.
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
    fn mean(&self, scene: &mut Scene, trace: &Trace, look: Look) {
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

/// Returns the columns with values, in runs without long gaps.
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

/// Returns a remark that explains the traces.
pub(super) fn remark<'a>(traces: impl Iterator<Item = &'a Trace>) -> &'static str {
    let few: Vec<bool> = traces.map(|trace| trace.points().is_some()).collect();
    match (few.contains(&true), few.contains(&false)) {
        (false, _) => "line: mean, shaded: minimum to maximum",
        (true, false) => "one dot per frame",
        (true, true) => "one dot per frame; if many, line: mean, shaded: minimum to maximum",
    }
}

/// Height of a link's lane of drop marks.
const LANE: f64 = 8.0;

/// Opacity of marks, by the number of drops in the column relative to that of the column with the
/// most drops.
const SHADES: [f64; 4] = [0.4, 0.6, 0.8, 1.0];

/// Returns the height of all lanes, one per link with drops.
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

pub(super) fn draw_delay(scene: &mut Scene, frame: &Frame, data: &Data) {
    let traces = || data.logs.iter().map(|series| &series.data.delay);
    let drawing = Drawing::new(frame, data, close_to(range(traces()), TICKS, TIME));
    // From the top: heading, lanes, frame.
    let lift = rug_height(data);
    let marks = if lift > 0.0 {
        "; marks above: drops, darker for more"
    } else {
        ""
    };
    let remark = format!("release − arrival; {}{marks}", remark(traces()));
    drawing.axes(scene, "One-way delay", lift, remark);
    drawing.traces(scene, |series| &series.delay);
    if range(traces()).is_none() {
        frame.nothing(scene, "no frame was delivered");
    }
    if data.cell.is_none() {
        draw_rug(scene, &drawing);
    }
}

fn draw_rug(scene: &mut Scene, drawing: &Drawing<'_>) {
    let (frame, data) = (drawing.frame, drawing.data);
    let lanes = data.logs.iter().filter(|series| dropped(series));
    for (lane, series) in lanes.enumerate() {
        let bottom = frame.top - 4.0 - lane as f64 * LANE;
        let most = series.data.drops.columns().map(|(_, count)| count).max();
        let most = most.unwrap_or(1) as f64;
        for (index, opacity) in SHADES.iter().enumerate() {
            // The lightest shade marks the fewest drops and is still visible.
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
            let stroke = Stroke::solid(series.look.colour, 1.0).faded(*opacity);
            scene.segments(marks.collect(), stroke);
        }
    }
    let lanes = rug_height(data);
    if lanes > 0.0 {
        // Centred on all lanes; the axis labels start below the lowest lane.
        let at = (frame.left - 7.0, frame.top - lanes / 2.0 - 1.0);
        scene.text(small("drops", at, Anchor::End));
    }
}

pub(super) fn draw_queue(scene: &mut Scene, frame: &Frame, data: &Data) {
    let (of, units): (fn(&LogSeries) -> &Trace, Units) = match data.queue_unit {
        QueueUnit::Packets => (|series| &series.queue_packets, Units::PACKETS),
        QueueUnit::Bytes => (|series| &series.queue_bytes, BYTES),
    };
    let traces = || data.logs.iter().map(|series| of(&series.data));
    let most = range(traces()).map_or(0, |(_, most)| most);
    let drawing = Drawing::new(frame, data, from_zero(most, TICKS, units));
    let remark = if traces().any(|trace| trace.points().is_none()) {
        "line: mean over time, shaded: minimum to maximum"
    } else {
        ""
    };
    drawing.axes(scene, "Queue", 0.0, remark.to_owned());
    drawing.traces(scene, of);
}

pub(super) fn draw_throughput(scene: &mut Scene, frame: &Frame, data: &Data) {
    let rates = |bytes: &u64| rate(*bytes, data.window.bin);
    let bins = data.logs.iter();
    let bins = bins.flat_map(|series| series.data.offered.iter().chain(&series.data.delivered));
    let most = bins.map(rates).fold(0.0, f64::max);
    let drawing = Drawing::new(frame, data, from_zero(most.ceil() as u64, TICKS, RATE));
    let bin = TIME.write(data.window.bin as f64);
    let remark = format!("thick: delivered, thin: offered, dotted: configured rate; bins of {bin}");
    drawing.axes(scene, "Throughput", 0.0, remark);
    // Draw configured rates below the traffic lines, so that they hide none.
    for series in data.shown() {
        in_force(scene, &drawing, &series.data.served, series.look, most);
    }
    for series in data.shown() {
        let stroke = series.look.stroke(0.8).faded(0.6);
        steps(scene, &drawing, &series.data.offered, stroke);
    }
    for series in data.shown() {
        let stroke = series.look.stroke(1.6);
        steps(scene, &drawing, &series.data.delivered, stroke);
    }
}

/// Draws the configured rate where it is within the scale of the throughput. A scale that included
/// it would flatten a lightly loaded link to a line at the lower edge.
fn in_force(scene: &mut Scene, drawing: &Drawing<'_>, bins: &[Served], look: Look, most: f64) {
    let stroke = Stroke::solid(look.colour, 1.2).dashed(Some((1.5, 2.5)));
    let bin = drawing.data.window.bin as f64;
    let mut line: Vec<Point> = Vec::new();
    for (index, served) in bins.iter().enumerate() {
        let Some(rate) = served.rate().filter(|rate| *rate <= most * 1.08) else {
            scene.line(std::mem::take(&mut line), stroke);
            continue;
        };
        let from = drawing.data.window.columns.from as f64 + index as f64 * bin;
        line.extend([from, from + bin].map(|at| drawing.point(at, rate)));
    }
    scene.line(line, stroke);
}

fn rate(bytes: u64, bin: u64) -> f64 {
    bytes as f64 * 8.0 * 1e9 / bin as f64
}

/// Draws a line with a step at each bin, from the first to the last non-empty bin. If several bins
/// share a column, the line passes through their minimum and maximum, so that neither is lost.
fn steps(scene: &mut Scene, drawing: &Drawing<'_>, bins: &[u64], stroke: Stroke) {
    let place = |at: f64, bytes: u64| drawing.point(at, rate(bytes, drawing.data.window.bin));
    let some = |bytes: &u64| *bytes > 0;
    let (Some(first), Some(last)) = (bins.iter().position(some), bins.iter().rposition(some))
    else {
        return;
    };
    let group = bins.len().div_ceil(drawing.data.window.columns.count);
    let bin = drawing.data.window.bin as f64;
    let mut at = drawing.data.window.columns.from as f64 + first as f64 * bin;
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
