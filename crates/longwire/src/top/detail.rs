//! Draws one direction: its options and recent history.

use longwire_control::responses::Columns;
use longwire_network::options_in_words;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Sparkline};

use super::draw::{clock, colour, height_of, wrapped};
use super::source::{CHANGES_SHOWN, Detail};
use crate::report::words::{count, count_of, micros, rate};
use crate::table::joined;

/// A history row: name, formatted last value, and values.
struct Row {
    name: &'static str,
    now: String,
    values: Vec<u64>,
    shade: Color,
}

/// Maximum lines for the options and for the counters.
const HEAD_MAX: u16 = 3;

pub fn draw(frame: &mut Frame<'_>, area: Rect, detail: &Detail) {
    let rows = rows(&detail.columns);
    let head = head(detail);
    let [about_lines, count_lines] =
        [&head[0], &head[1]].map(|line| height_of(line, area.width, HEAD_MAX));
    let [about, counts] = head.map(wrapped);
    let above = about_lines + count_lines;
    let height = area.height.saturating_sub(above + 1 + CHANGES_SHOWN as u16) / rows.len() as u16;
    let mut parts = vec![
        Constraint::Length(about_lines),
        Constraint::Length(count_lines + 1),
    ];
    parts.extend(rows.iter().map(|_| Constraint::Length(height.clamp(1, 4))));
    parts.push(Constraint::Min(0));
    let areas = Layout::vertical(parts).split(area);
    frame.render_widget(about, areas[0]);
    frame.render_widget(counts, areas[1]);
    for (row, area) in rows.iter().zip(&areas[2..]) {
        draw_row(frame, *area, row);
    }
    frame.render_widget(wrapped(changes(detail)), areas[rows.len() + 2]);
}

/// Returns the name with the options, and the counters.
fn head(detail: &Detail) -> [Line<'_>; 2] {
    let link = &detail.link;
    let is_down = detail.name.ends_with(".down");
    let way = link.down.as_ref().filter(|_| is_down).unwrap_or(&link.up);
    let totals = &way.counted.totals;
    let options = options_in_words(&way.options);
    let reasons = way.counted.dropped.iter();
    let reasons = reasons.map(|(name, drops)| format!("{name} {}", count(*drops)));
    let mut reasons = joined(reasons, ", ");
    if !reasons.is_empty() {
        reasons = format!(" ({reasons})");
    }
    [
        Line::from(vec![
            detail.name.as_str().bold(),
            Span::raw(format!("  {}  {options}", way.state.name())),
        ]),
        Line::from(format!(
            "in {}  out {}  dropped {}{reasons}  marked {}  late {}",
            count(totals.traffic.packets_in),
            count(totals.traffic.packets_out),
            count(totals.drops.total()),
            count(totals.effects.ecn_marked),
            count(totals.handovers.late + totals.handovers.overload),
        )),
    ]
}

fn rows(columns: &Columns) -> Vec<Row> {
    let last = |values: &[f64]| values.last().copied().unwrap_or(0.0);
    let whole = |values: &[f64]| values.iter().map(|value| *value as u64).collect();
    let known = |values: &[Option<f64>]| -> Vec<f64> {
        values.iter().map(|value| value.unwrap_or(0.0)).collect()
    };
    let (median, high) = (known(&columns.delay_p50_us), known(&columns.delay_p99_us));
    let queued_us = micros(last(&known(&columns.queueing_p50_us)));
    let mut drops = vec![0.0; columns.elapsed_s.len()];
    for column in columns.drops_per_s.values() {
        for (sum, value) in drops.iter_mut().zip(column) {
            *sum += value;
        }
    }
    let queued = columns.queued_frames.last().copied().unwrap_or(0);
    vec![
        Row {
            name: "delivered",
            now: rate(last(&columns.bits_out_per_s)),
            values: whole(&columns.bits_out_per_s),
            shade: Color::Blue,
        },
        Row {
            name: "queue",
            now: count_of(queued, "frame"),
            values: columns.queued_frames.clone(),
            shade: Color::Magenta,
        },
        Row {
            name: "delay p50",
            now: format!("{} ({queued_us} queued)", micros(last(&median))),
            values: whole(&median),
            shade: Color::Cyan,
        },
        Row {
            name: "delay p99",
            now: micros(last(&high)),
            values: whole(&high),
            shade: Color::Cyan,
        },
        Row {
            name: "drops",
            now: format!("{:.0}/s", last(&drops)),
            values: whole(&drops),
            shade: Color::Red,
        },
    ]
}

fn draw_row(frame: &mut Frame<'_>, area: Rect, row: &Row) {
    let parts = [
        Constraint::Length(12),
        Constraint::Length(28),
        Constraint::Min(1),
    ];
    let [name, now, line] = Layout::horizontal(parts).areas(area);
    frame.render_widget(Paragraph::new(row.name), name);
    frame.render_widget(Paragraph::new(row.now.as_str()), now);
    let width = usize::from(line.width);
    let values = &row.values[row.values.len().saturating_sub(width)..];
    let sparkline = Sparkline::default().data(values).style(colour(row.shade));
    frame.render_widget(sparkline, line);
}

fn changes(detail: &Detail) -> Vec<Line<'_>> {
    let last = detail.changes.changes.iter().rev().take(CHANGES_SHOWN);
    let lines = last.map(|done| {
        let at = clock(done.at_ns as f64 / 1e9);
        Line::from(format!("{at}  {}", done.change)).dim()
    });
    lines.collect()
}
