//! Sections about the request: options, changes, and how to repeat the run.

use std::collections::BTreeSet;

use longwire_units::calendar;
use serde_json::Value;

use super::Page;
use super::chart::Mark;
use super::document::{ChangeDocument, ChangesDocument, RunDocument};
use super::fidelity::capitalized;
use super::html::{Html, shell_word};
use crate::axis::{TIME, grouped};

/// Maximum number of changes listed, and of changes marked in charts.
const CHANGES_MAX: usize = 200;
const MARKS_MAX: usize = 30;

/// Maximum number of links whose options are listed.
const OPTIONS_MAX: usize = 20;

/// Values of options that have no effect.
const NEUTRAL: [&str; 2] = ["none", "in-order"];

/// Writes the title and the verdict.
pub(super) fn head(html: &mut Html, page: &Page) {
    html.raw("<header>").element("h1", &page.title);
    let Some(report) = &page.report else {
        html.raw(
            "<p class=\"verdict none\">Seed, options, lateness, artifacts and verdict are missing \
             without a report. Add it: longwire report RUN.parquet REPORT.json</p></header>\n",
        );
        return;
    };
    if let Some(verdict) = &report.verdict {
        let class = match verdict.grade.as_str() {
            "faithful" => "good",
            "nearly-faithful" | "no-frames" => "nearly",
            _ => "bad",
        };
        html.raw(&format!("<p class=\"verdict {class}\"><b>"));
        html.text(&capitalized(&verdict.line)).raw("</b></p>");
    } else {
        html.raw(
            "<p class=\"verdict none\">No verdict: the report is from an earlier version.</p>",
        );
    }
    let mut facts = Vec::new();
    if report.epoch_ns > 0 {
        facts.push(format!("started {}", utc(report.epoch_ns)));
    }
    facts.push(format!("took {}", TIME.write(report.duration_s * 1e9)));
    facts.extend(report.seed.map(|seed| format!("seed {seed}")));
    let version = report.version.as_ref();
    facts.extend(version.map(|version| format!("Longwire {version}")));
    html.raw("<p class=\"facts\">")
        .text(&facts.join(" · "))
        .raw("</p></header>\n");
}

/// Writes the command line and the options of each link.
pub(super) fn asked(html: &mut Html, page: &Page) {
    let Some(report) = &page.report else {
        html.element("p", "The options are unknown without a report.");
        return;
    };
    command(html, report);
    let configured = report.links.iter().filter(|link| !link.config.is_empty());
    let configured: Vec<_> = configured.take(OPTIONS_MAX).collect();
    let options: BTreeSet<&String> = configured.iter().flat_map(|of| of.config.keys()).collect();
    let rows = options.into_iter().filter_map(|option| {
        let values = configured.iter().map(|of| of.config.get(option));
        let values = values.map(|value| value.map_or_else(String::new, words));
        let values: Vec<String> = values.collect();
        let told = values.iter().any(|value| !NEUTRAL.contains(&&**value));
        told.then(|| [vec![option.clone()], values].concat())
    });
    let rows: Vec<Vec<String>> = rows.collect();
    if !rows.is_empty() {
        let names = configured.iter().map(|of| of.name.as_str());
        html.table(["option"].into_iter().chain(names), rows);
    }
    if configured.is_empty() {
        return;
    }
    let changes = page.changes();
    if changes.is_some_and(|changes| !changes.made.is_empty()) {
        html.element("p", "Options at the start; changes are listed below.");
    }
    if report.links.len() > configured.len() {
        let (shown, all) = (configured.len(), report.links.len());
        let what = format!("{shown} of {all} directions; the report has all options.");
        html.element("p", &what);
    }
}

fn command(html: &mut Html, report: &RunDocument) {
    if report.command.is_empty() {
        let what = "No command line: the report is from an earlier version.";
        html.element("p", what);
        return;
    }
    let words: Vec<String> = report.command.iter().map(|word| shell_word(word)).collect();
    html.raw("<pre>").text(&words.join(" ")).raw("</pre>\n");
}

/// Writes a JSON value in readable form.
fn words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(words).collect::<Vec<_>>().join(" + "),
        value => value.to_string(),
    }
}

/// Returns the marks of changes for charts.
pub(super) fn marks(page: &Page) -> Vec<Mark> {
    let made = page.changes().into_iter().flat_map(|changes| &changes.made);
    made.zip(1..=MARKS_MAX)
        .map(|(change, number)| (change.at_ns as f64, number.to_string()))
        .collect()
}

/// Writes the changes.
pub(super) fn changes(html: &mut Html, page: &Page) {
    let nothing = match (&page.report, page.changes()) {
        (None, _) => "Changes are unknown without a report.",
        (Some(_), None) => "None: the link was not changeable.",
        (Some(_), Some(changes)) if changes.made.is_empty() && changes.forgotten == 0 => "None.",
        (Some(_), Some(changes)) => return list(html, changes),
    };
    html.element("p", nothing);
}

fn list(html: &mut Html, changes: &ChangesDocument) {
    let shown = changes.made.iter().zip(1..=CHANGES_MAX);
    html.table(
        ["", "when", "by", "change", "links"],
        shown.map(|(change, number)| row(number, change)),
    );
    let hidden = changes.made.len().saturating_sub(CHANGES_MAX) as u64 + changes.forgotten;
    if hidden > 0 {
        let what = format!("{} more changes are not listed.", grouped(hidden as f64, 0));
        html.element("p", &what);
    }
}

fn row(number: usize, change: &ChangeDocument) -> Vec<String> {
    let time = |nanos: u64| TIME.write(nanos as f64);
    let when = match change.until_ns {
        Some(until) => format!("{} – {}", time(change.at_ns), time(until)),
        None => time(change.at_ns),
    };
    vec![
        number.to_string(),
        when,
        change.by.clone(),
        describe(&change.change),
        grouped(change.links as f64, 0),
    ]
}

/// Describes a change in the syntax of the control API: `set link.up: rate 4mbit`.
fn describe(change: &Value) -> String {
    const LONG: usize = 400;
    let Some(actions) = change.as_object() else {
        return change.to_string();
    };
    let actions = actions.iter().map(|(action, of)| {
        let Some(targets) = of.as_object() else {
            return format!("{action} {}", words(of));
        };
        let targets = targets.iter().map(|(target, options)| {
            let Some(options) = options.as_object() else {
                return format!("{target}: {}", words(options));
            };
            let options = options
                .iter()
                .map(|(name, value)| format!("{name} {}", words(value)));
            format!("{target}: {}", options.collect::<Vec<_>>().join(", "))
        });
        format!("{action} {}", targets.collect::<Vec<_>>().join("; "))
    });
    let text = actions.collect::<Vec<_>>().join(" / ");
    if text.chars().count() <= LONG {
        return text;
    }
    text.chars().take(LONG).chain(['…']).collect()
}

/// Writes instructions for repeating the run, and the run's notes.
pub(super) fn repeat(html: &mut Html, report: &RunDocument) {
    html.raw("<section id=\"repeat\"><h2>Reproduction</h2>\n");
    command(html, report);
    if let (Some(seed), false) = (report.seed, report.command.is_empty()) {
        let version = report.version.as_deref().unwrap_or("of that time");
        html.element(
            "p",
            &format!(
                "Longwire {version} with the same options and seed {seed} (the default unless \
                 --seed is given) gives the same arrivals the same verdicts. Arrivals of live \
                 traffic differ between runs."
            ),
        );
    }
    if !report.notes.is_empty() {
        html.raw("<h3>Notes of the run</h3>").list(&report.notes);
    }
    html.raw("</section>\n");
}

/// Formats a time since 1970 as a UTC date and time.
fn utc(epoch_ns: u64) -> String {
    let [year, month, day, hour, minute, second] = calendar(epoch_ns / 1_000_000_000);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399, "2000-02-28 23:59:59 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_709_251_200, "2024-03-01 00:00:00 UTC"),
            (4_102_444_799, "2099-12-31 23:59:59 UTC"),
        ] {
            assert_eq!(utc(seconds * 1_000_000_000), text);
        }
    }
}
