//! Section about fidelity.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::Page;
use super::document::{PartDocument, RunDocument};
use super::html::Html;
use crate::axis::{SHARE, TIME, grouped};

/// Maximum number of links and ports shown.
const PARTS_MAX: usize = 16;

/// Lateness statistics, in report order.
pub const STATISTICS: [(&str, &str); 6] = [
    ("p50", "median"),
    ("p99", "p99"),
    ("p999", "p99.9"),
    ("max", "max"),
    ("mean", "mean"),
    ("stddev", "stddev"),
];

/// Writes the section.
pub(super) fn write(html: &mut Html, page: &Page) {
    let Some(report) = &page.report else {
        let what = "Without the report, lateness and artifacts are unknown.";
        html.element("p", what);
        return;
    };
    if let Some(verdict) = &report.verdict {
        html.raw("<p><b>")
            .text(&capitalized(&verdict.line))
            .raw(".</b></p>\n");
        if !verdict.hints.is_empty() {
            html.list(&verdict.hints).raw("\n");
        }
    }
    // The lateness of a network is measured at its ports, because frames from many links leave
    // through one.
    let measured = if report.ports.is_empty() {
        &report.links
    } else {
        &report.ports
    };
    let measured = measured.iter();
    let measured = measured.filter(|part| part.packets_in + part.packets_out > 0);
    let measured: Vec<&PartDocument> = measured.take(PARTS_MAX).collect();
    lateness(html, &measured);
    for part in &measured {
        histogram(html, part);
    }
    artifacts(html, &measured);
    machine(html, report);
}

pub(super) fn capitalized(line: &str) -> String {
    let mut rest = line.chars();
    let first = rest.next().into_iter().flat_map(char::to_uppercase);
    first.chain(rest).collect()
}

fn micros(value: Option<&f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |micros| TIME.write(micros * 1e3))
}

fn lateness(html: &mut Html, parts: &[&PartDocument]) {
    html.raw("<h3>Lateness</h3><p>Handover − release, the error of the emulator. ");
    html.raw("<i>Own</i> excludes pauses of the machine and the start.</p>\n");
    let rows = parts.iter().flat_map(|part| {
        let of_kind = [(&part.lateness_us, ""), (&part.lateness_own_us, ", own")].into_iter();
        of_kind.filter_map(|(lateness, kind)| {
            let lateness = lateness.as_ref()?;
            let cells = STATISTICS.map(|(key, _)| micros(lateness.get(key)));
            Some([vec![format!("{}{kind}", part.name)], cells.to_vec()].concat())
        })
    });
    let head = [""].into_iter().chain(STATISTICS.map(|(_, label)| label));
    html.table(head, rows);
}

/// Size of a histogram, in units of its SVG.
const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 130.0;
const BOTTOM: f64 = 22.0;
const TOP: f64 = 18.0;

/// Minimum number of buckets drawn.
const BUCKETS_MIN: usize = 10;

/// Returns the upper bounds of histogram buckets in microseconds: 1, 2 and 5 in each decade.
fn bounds() -> impl Iterator<Item = u64> {
    let decades = (0..7).flat_map(|power| [1, 2, 5].map(|mark| mark * 10u64.pow(power)));
    decades.take_while(|bound| *bound <= 1_000_000)
}

/// Writes a histogram of a part's lateness, with bars on a logarithmic scale.
fn histogram(html: &mut Html, part: &PartDocument) {
    let counts: BTreeMap<Option<u64>, u64> = part.lateness_histogram_us.iter().copied().collect();
    let all: u64 = counts.values().sum();
    if all == 0 {
        return;
    }
    let buckets: Vec<Option<u64>> = bounds().map(Some).chain([None]).collect();
    // Draw the buckets up to the last non-empty one, but at least `BUCKETS_MIN`.
    let last = buckets
        .iter()
        .rposition(|bound| counts.get(bound) > Some(&0))
        .unwrap_or(0);
    let buckets = &buckets[..(last + 1).max(BUCKETS_MIN)];
    let label = |bound: &Option<u64>| match bound {
        Some(micros) => format!("≤ {}", TIME.write(*micros as f64 * 1e3)),
        None => "more".to_owned(),
    };
    html.raw("<figure class=\"chart histogram\"><figcaption><b>Lateness of ")
        .text(&part.name)
        .raw("</b> <small>frames by lateness, logarithmic scale</small></figcaption>\n");
    let mut bars = String::new();
    let wide = WIDTH / buckets.len() as f64;
    for (index, bound) in buckets.iter().enumerate() {
        let count = counts.get(bound).copied().unwrap_or(0);
        let room = HEIGHT - TOP - BOTTOM;
        // Add 1, so that a single frame is visible.
        let tall = (count as f64 + 1.0).ln() / (all as f64 + 1.0).ln() * room;
        let (left, top) = (index as f64 * wide, HEIGHT - BOTTOM - tall);
        let middle = left + wide / 2.0;
        let _ = write!(
            bars,
            "<rect class=\"bar\" x=\"{:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{tall:.1}\"/>\
             <text x=\"{middle:.1}\" y=\"{:.1}\">{}</text>",
            left + 2.0,
            wide - 4.0,
            HEIGHT - 7.0,
            label(bound).trim_start_matches("≤ ")
        );
        if count > 0 {
            let share = SHARE.write(count as f64 / all as f64);
            let _ = write!(
                bars,
                "<text x=\"{middle:.1}\" y=\"{:.1}\">{share}</text>",
                top - 4.0
            );
        }
    }
    html.raw(&format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         aria-label=\"Histogram of lateness; the table below has the values\">{bars}\
         <path class=\"axis\" d=\"M0 {0}H{WIDTH}\"/></svg>\n<details><summary>Table</summary>",
        HEIGHT - BOTTOM
    ));
    let rows = buckets.iter().filter_map(|bound| {
        let count = *counts.get(bound)? as f64;
        let share = SHARE.write(count / all as f64);
        Some(vec![label(bound), grouped(count, 0), share])
    });
    html.table(["late", "frames", "share"], rows);
    html.raw("</details></figure>\n");
}

fn artifacts(html: &mut Html, parts: &[&PartDocument]) {
    html.raw("<h3>Artifacts</h3>\n");
    let counts = parts.iter().flat_map(|part| &part.artifacts);
    let counts = counts.filter(|(_, count)| **count > 0);
    let kinds: BTreeSet<&String> = counts.map(|(kind, _)| kind).collect();
    if kinds.is_empty() {
        html.element("p", "None: all frames were treated as configured.");
        return;
    }
    html.element("p", "Frames that the emulator did not treat as configured.");
    let rows = parts.iter().map(|part| {
        let count = |kind: &&String| part.artifacts.get(*kind).copied().unwrap_or(0);
        let counts = kinds.iter().map(|kind| grouped(count(kind) as f64, 0));
        [part.name.clone()].into_iter().chain(counts).collect()
    });
    let head = kinds.iter().map(|kind| kind.replace('_', " "));
    html.table([String::new()].into_iter().chain(head), rows);
}

/// Writes the section about the machine: its pauses, and the stops of the process.
fn machine(html: &mut Html, report: &RunDocument) {
    html.raw("<h3>The machine</h3>\n");
    let rows = [
        ("pauses of the machine", &report.pauses),
        ("stops of the process", &report.stops),
    ];
    let rows = rows.into_iter().filter_map(|(name, of)| {
        let of = of.as_ref()?;
        let [longest, total] = [of.max_us, of.total_us].map(|us| micros(Some(&us)));
        Some(vec![
            name.to_owned(),
            grouped(of.count as f64, 0),
            longest,
            total,
        ])
    });
    html.table(["", "times", "longest", "total"], rows);
    let [used, waited] = [report.cpu_s, report.core_wait_s].map(|s| TIME.write(s * 1e9));
    let what = format!(
        "The emulator used {used} of CPU time, and waited {waited} for cores used by other programs."
    );
    html.element("p", &what);
}
