//! Charts of a page: SVG that is complete without a script, and the data with which
//! the script zooms.
//!
//! The lines of a chart have coordinates in steps of time and in whole values. An inner
//! `svg` element scales them, so that zooming changes its `viewBox` only.

use std::fmt::Write;

use serde_json::json;

use super::html::{Html, escaped, script_json};
use super::values::{Chart, Line};
use crate::axis::{Axis, TIME};

/// Sizes of a chart, in units of its SVG.
const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 30.0;

/// Values are whole numbers up to about this: the precision of a chart.
const VALUES_MAX: f64 = 20_000.0;

/// A time that is marked in every chart: nanoseconds, and its label.
pub type Mark = (f64, String);

/// Writes a chart of a link.
pub fn write(html: &mut Html, chart: &Chart, id: &str, label: &str, marks: &[Mark]) {
    let all = chart.lines.iter().flat_map(|line| &line.values);
    let most = all.flatten().copied().fold(0.0, f64::max);
    let most = if most > 0.0 { most * 1.06 } else { 1.0 };
    let unit = most / VALUES_MAX;
    // The last step may reach beyond the end, which is the same in every chart.
    let steps = chart.span / chart.step;
    html.raw("<figure class=\"chart\"><figcaption>")
        .element("b", chart.title);
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
        lines(html, line, chart.lines.get(index + 1), unit, chart.stairs);
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

/// Writes the begin of the outer SVG, with axes.
fn frame(html: &mut Html, chart: &Chart, most: f64, (id, label): (&str, &str)) {
    html.raw(&format!(
        "<svg id=\"{id}\" class=\"frame\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         tabindex=\"0\" aria-label=\"{}\">",
        escaped(&format!(
            "{} of {label}; the table below has the values",
            chart.title
        ))
    ));
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    let y = Axis::linear(0.0, most, 4, chart.units);
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

/// The most steps without a value across which a line is drawn, as a share of all.
const GAP_SHARE: usize = 100;

/// Points of a line: steps and heights.
type Run = Vec<(usize, i64)>;

/// Writes a line. Its class says whether the area below it is filled, or that between it
/// and the next line.
fn lines(html: &mut Html, line: &Line, next: Option<&Line>, unit: f64, stairs: bool) {
    let (mut path, mut area) = (String::new(), String::new());
    let floor = next.filter(|_| line.class.contains("band"));
    let floor = floor.map(|next| runs(next, unit, stairs));
    for (index, run) in runs(line, unit, stairs).iter().enumerate() {
        // A point is in the middle of its step.
        let begin = run[0].0 as f64 + if stairs { 0.0 } else { 0.5 };
        let (top, shape) = (run[0].1, shape(run, stairs));
        let _ = write!(path, "M{begin} {top}{shape}");
        match floor.as_ref().map(|floor| floor.get(index)) {
            None => {
                let _ = write!(area, "M{begin} {VALUES_MAX}V{top}{shape}V{VALUES_MAX}z");
            }
            Some(Some(floor)) if floor.len() == run.len() => {
                let back: Run = floor.iter().rev().copied().collect();
                let low = back[0].1;
                let _ = write!(
                    area,
                    "M{begin} {top}{shape}V{low}{}z",
                    self::shape(&back, false)
                );
            }
            Some(_) => {}
        }
    }
    if line.class.contains("fill") || line.class.contains("band") {
        html.raw(&format!(
            "<path class=\"area {}\" d=\"{area}\"/>",
            line.class
        ));
    }
    html.raw(&format!(
        "<path class=\"line {}\" d=\"{path}\"/>",
        line.class
    ));
}

/// Returns the points of a line, in runs without long gaps; of stairs, without gaps.
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

/// Returns a run as a path from its first point on, with relative moves.
fn shape(run: &[(usize, i64)], stairs: bool) -> String {
    let mut shape = String::new();
    if stairs || run.len() == 1 {
        // A single point is a short line.
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

/// Writes the values for the script.
fn data(html: &mut Html, chart: &Chart, unit: f64, marks: &[Mark]) {
    let lines = chart.lines.iter().map(|line| {
        let values = line.values.iter();
        let values = values.map(|value| value.map(|value| (value / unit).round() as i64));
        json!({ "n": line.name, "c": line.class, "v": values.collect::<Vec<Option<i64>>>() })
    });
    let json = json!({
        "step": chart.step,
        "unit": unit,
        "units": chart.units.all(),
        "stairs": chart.stairs,
        "lines": lines.collect::<Vec<_>>(),
        "marks": marks,
    });
    html.raw("<script type=\"application/json\">");
    html.raw(&script_json(&json.to_string()));
    html.raw("</script>\n");
}

/// Writes the values with fewer steps as a table.
fn table(html: &mut Html, chart: &Chart) {
    let (step, lines) = &chart.table;
    let names = lines.iter().map(|line| line.name.clone());
    let head: Vec<String> = ["from".to_owned()].into_iter().chain(names).collect();
    let rows = (0..lines.first().map_or(0, |line| line.values.len())).map(|row| {
        let values = lines.iter().map(|line| match line.values[row] {
            Some(value) => chart.units.write(value),
            None => "–".to_owned(),
        });
        [TIME.write(row as f64 * step)]
            .into_iter()
            .chain(values)
            .collect()
    });
    html.raw("<details><summary>Table, steps of ");
    html.text(&TIME.write(*step)).raw("</summary>");
    html.table(&head, rows);
    html.raw("</details>\n");
}
