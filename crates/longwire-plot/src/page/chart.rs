//! Charts of a page: SVG that is complete without a script, and data for the script that zooms.
//!
//! The coordinates of a chart's lines are time steps and integer values. An inner `svg` element
//! scales them, so that zooming only changes its `viewBox`.

use std::fmt::Write;

use serde_json::json;

use crate::axis::{Axis, RATE, TIME, Units};
use crate::gather::{Bin, LinkBins, RunGatherer, Sketch};
use crate::page::html::{Html, escaped, script_json};

/// Size of a chart, in units of its SVG.
const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 30.0;

/// Approximate maximum of a chart's integer values, which determines its vertical resolution.
const VALUES_MAX: f64 = 20_000.0;

/// A time marked in all charts: nanoseconds and a label.
pub type Mark = (f64, String);

/// Writes the chart of a link.
pub fn write(html: &mut Html, chart: &Chart, id: &str, label: &str, marks: &[Mark]) {
    let all = chart.lines.iter().flat_map(|line| &line.values);
    let most = all.flatten().copied().fold(0.0, f64::max);
    let most = if most > 0.0 { most * 1.06 } else { 1.0 };
    let unit = most / VALUES_MAX;
    // The last step may extend beyond the end of the axis, which is the same in all charts.
    let steps = chart.span / chart.step;
    html.raw("<figure class=\"chart\"><figcaption>")
        .element("b", chart.kind.title);
    html.raw(" <span class=\"legend\">");
    for line in &chart.lines {
        html.raw(&format!("<i class=\"key {}\"></i>", line.class));
        html.text(&line.name).raw(" ");
    }
    html.raw("</span><small>")
        .text(&chart.note)
        .raw("</small></figcaption>\n");
    frame(html, chart, most, (id, label));
    html.raw("<svg class=\"plot\" ").raw(&format!(
        "x=\"{LEFT}\" y=\"{TOP}\" width=\"{}\" height=\"{}\" viewBox=\"0 0 {steps:.4} {VALUES_MAX}\" \
         preserveAspectRatio=\"none\">",
        WIDTH - LEFT - RIGHT,
        HEIGHT - TOP - BOTTOM
    ));
    for (index, line) in chart.lines.iter().enumerate() {
        let next = chart.lines.get(index + 1);
        lines(html, line, next, unit, chart.kind.stairs);
    }
    for (at, _) in marks {
        let x = at / chart.step;
        html.raw(&format!(
            "<path class=\"mark\" d=\"M{x:.2} 0v{VALUES_MAX}\"/>"
        ));
    }
    html.raw("</svg><g class=\"marks\">");
    for (at, name) in marks {
        let x = LEFT + (WIDTH - LEFT - RIGHT) * (at / chart.span);
        html.raw(&format!("<text x=\"{x:.1}\" y=\"{}\">", TOP - 3.0))
            .text(name)
            .raw("</text>");
    }
    html.raw("</g></svg>\n");
    data(html, chart, unit, marks);
    table(html, chart);
    html.raw("</figure>\n");
}

/// Writes the start of the outer SVG, with axes.
fn frame(html: &mut Html, chart: &Chart, most: f64, (id, label): (&str, &str)) {
    html.raw(&format!(
        "<svg id=\"{id}\" class=\"frame\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         tabindex=\"0\" aria-label=\"{}\">",
        escaped(&format!(
            "{} of {label}; the table below has the values",
            chart.kind.title
        ))
    ));
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    let y = Axis::linear(0.0, most, 4, chart.kind.units);
    html.raw("<g class=\"ty\">");
    for (value, tick) in &y.ticks {
        let at = bottom - (bottom - TOP) * y.place(*value);
        html.raw(&format!(
            "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{right}\"/><text x=\"{}\" y=\"{:.1}\">{tick}</text>",
            LEFT - 6.0,
            at + 4.0
        ));
    }
    html.raw("</g><g class=\"tx\">");
    let x = Axis::linear(0.0, chart.span, 9, TIME);
    for (value, tick) in &x.ticks {
        let at = LEFT + (right - LEFT) * x.place(*value);
        html.raw(&format!(
            "<text x=\"{at:.1}\" y=\"{:.1}\">{tick}</text>",
            bottom + 15.0
        ));
    }
    html.raw(&format!(
        "</g><text class=\"unit yu\" x=\"{}\" y=\"{}\">{}</text>\
         <text class=\"unit xu\" x=\"{right}\" y=\"{}\">{}</text>\
         <path class=\"axis\" d=\"M{LEFT} {TOP}V{bottom}H{right}\"/>",
        LEFT - 6.0,
        TOP - 12.0,
        y.unit,
        bottom + 28.0,
        escaped(&x.label("time")),
    ));
}

/// A line bridges gaps of at most 1/`GAP_SHARE` of all steps.
const GAP_SHARE: usize = 100;

/// Points of a line, as steps and heights.
type Run = Vec<(usize, i64)>;

/// Writes a line. Its class determines whether the area below it, or up to the next line, is
/// filled.
fn lines(html: &mut Html, line: &Line, next: Option<&Line>, unit: f64, stairs: bool) {
    let (mut path, mut area) = (String::new(), String::new());
    let floor = next.filter(|_| line.class.contains("band"));
    let floor = floor.map(|next| runs(next, unit, stairs));
    for (index, run) in runs(line, unit, stairs).iter().enumerate() {
        // A point lies in the middle of its step.
        let begin = run[0].0 as f64 + if stairs { 0.0 } else { 0.5 };
        let (top, shape) = (run[0].1, shape(run, stairs));
        let _ = write!(path, "M{begin} {top}{shape}");
        match floor.as_ref().map(|floor| floor.get(index)) {
            None => {
                let _ = write!(area, "M{begin} {VALUES_MAX}V{top}{shape}V{VALUES_MAX}z");
            }
            Some(Some(floor)) if floor.len() == run.len() => {
                let back: Run = floor.iter().rev().copied().collect();
                let (low, back) = (back[0].1, self::shape(&back, false));
                let _ = write!(area, "M{begin} {top}{shape}V{low}{back}z");
            }
            Some(_) => {}
        }
    }
    let class = line.class;
    if class.contains("fill") || class.contains("band") {
        html.raw(&format!("<path class=\"area {class}\" d=\"{area}\"/>"));
    }
    html.raw(&format!("<path class=\"line {class}\" d=\"{path}\"/>"));
}

/// Returns the points of a line, in runs without long gaps; for stairs, without any gaps.
fn runs(line: &Line, unit: f64, stairs: bool) -> Vec<Run> {
    let gap = if stairs {
        1
    } else {
        (line.values.len() / GAP_SHARE).max(3)
    };
    let mut runs: Vec<Run> = Vec::new();
    for (index, value) in line.values.iter().enumerate() {
        let Some(value) = value else { continue };
        let point = (index, height(*value, unit));
        match runs.last_mut() {
            Some(run) if run.last().is_some_and(|(last, _)| index - last <= gap) => run.push(point),
            _ => runs.push(vec![point]),
        }
    }
    runs
}

/// Returns the SVG path commands of a run, relative to its first point.
fn shape(run: &[(usize, i64)], stairs: bool) -> String {
    let mut shape = String::new();
    if stairs || run.len() == 1 {
        // A single point is drawn as a short line.
        shape += if stairs { "h1" } else { "h.5" };
    }
    for two in run.windows(2) {
        let [(from, before), (to, next)] = [two[0], two[1]];
        let (right, down) = (to as i64 - from as i64, next - before);
        let _ = if stairs {
            write!(shape, "v{down}h1")
        } else {
            write!(shape, "l{right} {down}")
        };
    }
    shape
}

/// Returns the distance of a value from the upper edge.
fn height(value: f64, unit: f64) -> i64 {
    (VALUES_MAX - value / unit).round() as i64
}

/// Writes the values for use by the script.
fn data(html: &mut Html, chart: &Chart, unit: f64, marks: &[Mark]) {
    let lines = chart.lines.iter().map(|line| {
        let values = line.values.iter();
        let values = values.map(|value| value.map(|value| (value / unit).round() as i64));
        json!({ "n": line.name, "c": line.class, "v": values.collect::<Vec<Option<i64>>>() })
    });
    let json = json!({
        "step": chart.step,
        "unit": unit,
        "units": chart.kind.units.all(),
        "stairs": chart.kind.stairs,
        "lines": lines.collect::<Vec<_>>(),
        "marks": marks,
    });
    html.raw("<script type=\"application/json\">")
        .raw(&script_json(&json.to_string()))
        .raw("</script>\n");
}

/// Writes the values as a table with fewer steps.
fn table(html: &mut Html, chart: &Chart) {
    let (step, lines) = &chart.table;
    let names = lines.iter().map(|line| line.name.as_str());
    let rows = (0..lines.first().map_or(0, |line| line.values.len())).map(|row| {
        let values = lines.iter().map(|line| match line.values[row] {
            Some(value) => chart.kind.units.write(value),
            None => "–".to_owned(),
        });
        let from = TIME.write(row as f64 * step);
        [from].into_iter().chain(values).collect()
    });
    html.raw("<details><summary>Table, steps of ");
    html.text(&TIME.write(*step)).raw("</summary>");
    html.table(["from"].into_iter().chain(names), rows);
    html.raw("</details>\n");
}

/// Number of steps in charts of rates and counts.
const STEPS: usize = 300;

/// Mean number of delivered frames per step in charts of delays.
const FRAMES_A_STEP: u64 = 4;

/// Number of rows in the table of a chart.
const TABLE_ROWS: usize = 40;

/// A line of a chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Name in the legend.
    pub name: String,
    /// Classes in the style sheet.
    pub class: &'static str,
    /// Values; `None` is a gap.
    pub values: Vec<Option<f64>>,
}

/// A chart over time.
pub struct Chart {
    kind: &'static ChartKind,
    /// Explanation of the values, with the width of a step.
    note: String,
    /// Width of a step in nanoseconds.
    step: f64,
    /// End of the time axis, in nanoseconds.
    span: f64,
    /// Lines, drawn from first to last.
    lines: Vec<Line>,
    /// Width of a table step in nanoseconds, and the same lines with few values.
    table: (f64, Vec<Line>),
}

/// Returns the charts of a link. The chart of drops is omitted if there are none.
pub fn charts(data: &RunGatherer, link: &LinkBins) -> impl Iterator<Item = Chart> {
    let count = if link.reasons.is_empty() { 3 } else { 4 };
    KINDS[..count].iter().map(|kind| chart(data, link, kind))
}

struct ChartKind {
    title: &'static str,
    note: &'static str,
    units: Units,
    /// Whether each value holds for its whole step.
    stairs: bool,
    lines: fn(&LinkBins, &[Bin], f64) -> Vec<Line>,
}

static KINDS: [ChartKind; 4] = [
    ChartKind {
        title: "Throughput",
        note: "bytes without framing; offered at the time of arrival, delivered at the time of \
               release; the configured rate is derived from departures",
        units: RATE,
        stairs: true,
        lines: throughput,
    },
    ChartKind {
        title: "One-way delay",
        note: "release − arrival, at the time of arrival; the queueing part includes serialisation",
        units: TIME,
        stairs: false,
        lines: delay,
    },
    ChartKind {
        title: "Queue",
        note: "packets in the queue and in service; the queue drains between arrivals",
        units: Units::PACKETS,
        stairs: false,
        lines: queue,
    },
    ChartKind {
        title: "Drops by reason",
        note: "dropped frames/s, at the time of arrival",
        units: Units::BARE,
        stairs: true,
        lines: drops,
    },
];

fn chart(data: &RunGatherer, link: &LinkBins, kind: &'static ChartKind) -> Chart {
    let frames: u64 = link.bins.iter().map(|bin| bin.delay.total()).sum();
    let wanted = if kind.stairs {
        STEPS
    } else {
        (frames / FRAMES_A_STEP).max(STEPS as u64) as usize
    };
    let of = |most: usize| {
        let group = link.bins.len().div_ceil(most.max(1)).max(1);
        let step = data.width as f64 * group as f64;
        (step, (kind.lines)(link, &joined(&link.bins, group), step))
    };
    let (step, lines) = of(wanted);
    Chart {
        kind,
        note: format!("{}; steps of {}", kind.note, TIME.write(step)),
        step,
        span: link.bins.len() as f64 * data.width as f64,
        lines,
        table: of(TABLE_ROWS),
    }
}

/// Merges groups of `group` adjacent bins.
fn joined(bins: &[Bin], group: usize) -> Vec<Bin> {
    let groups = bins.chunks(group).map(|bins| {
        bins.iter().cloned().fold(Bin::default(), |mut all, bin| {
            all.merge(bin);
            all
        })
    });
    groups.collect()
}

fn line(name: &str, class: &'static str, bins: &[Bin], of: impl Fn(&Bin) -> Option<f64>) -> Line {
    Line {
        name: name.to_owned(),
        class,
        values: bins.iter().map(of).collect(),
    }
}

fn throughput(_: &LinkBins, bins: &[Bin], step: f64) -> Vec<Line> {
    let rate = move |bytes: u64| Some(bytes as f64 * 8e9 / step);
    let offered = line("offered", "c2 thin", bins, |bin| rate(bin.offered));
    let delivered = line("delivered", "c1 fill", bins, |bin| rate(bin.delivered));
    let mut in_force = line("configured rate", "c3 dash", bins, |bin| bin.served.rate());
    // Omit configured rates far above the throughput, such as a token bucket's, because they would
    // flatten the other lines.
    let carried = offered.values.iter().chain(&delivered.values);
    let most = carried.flatten().copied().fold(0.0, f64::max) * 1.5;
    for value in &mut in_force.values {
        *value = value.filter(|rate| *rate <= most);
    }
    let mut lines = vec![delivered, offered];
    if in_force.values.iter().any(Option::is_some) {
        lines.push(in_force);
    }
    lines
}

fn delay(_: &LinkBins, bins: &[Bin], _: f64) -> Vec<Line> {
    let of = |sketch: &Sketch, share| sketch.quantile(share).map(|at| at as f64);
    let queueing = |bin: &Bin| of(&bin.sojourn, 0.5);
    vec![
        line("p99", "c1 thin band", bins, |bin| of(&bin.delay, 0.99)),
        line("median", "c1", bins, |bin| of(&bin.delay, 0.5)),
        line("in the queue, median", "c2", bins, queueing),
    ]
}

fn queue(_: &LinkBins, bins: &[Bin], _: f64) -> Vec<Line> {
    let most = |bin: &Bin| bin.queue.mean().map(|_| bin.queue.most as f64);
    vec![
        line("maximum", "c1 thin band", bins, most),
        line("mean", "c1", bins, |bin| bin.queue.mean()),
    ]
}

fn drops(link: &LinkBins, bins: &[Bin], step: f64) -> Vec<Line> {
    const CLASSES: [&str; 6] = [
        "c2 fill", "c1 fill", "c4 fill", "c3 fill", "c5 fill", "c6 fill",
    ];
    let reasons = link.reasons.iter().enumerate();
    let lines = reasons.map(|(index, reason)| {
        let count = |bin: &Bin| bin.drops.get(index).copied().unwrap_or(0);
        let rate = |bin: &Bin| Some(count(bin) as f64 * 1e9 / step);
        let class = CLASSES[index % CLASSES.len()];
        line(&reason.replace('_', " "), class, bins, rate)
    });
    lines.collect()
}
