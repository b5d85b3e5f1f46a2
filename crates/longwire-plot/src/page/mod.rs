//! The page about a run: a self-contained HTML file with charts.
//!
//! A page combines a report ([`RunDocument`]) and the rows of a log ([`RunGatherer`]). With only
//! one of them, it states what is missing.

mod chart;
mod document;
mod fidelity;
mod happened;
pub(crate) mod html;
mod request;

use std::path::PathBuf;

pub use document::{PartDocument, RunDocument};
use html::Html;

use crate::PlotError;
use crate::gather::{Gathered, RunGatherer, Selection, gather_file};
use crate::input::{Input, InputKind};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Maximum number of link directions with charts.
const LINKS_MAX: usize = 8;

/// Maximum number of bins in all charts together, which limits the size of the page.
const BINS_MAX: usize = 6_000;

/// Sources of a page.
#[derive(Debug, Default)]
pub struct PageInput {
    /// Title; by default, the command.
    pub title: Option<String>,
    /// Rows of a log.
    pub log: Option<RunGatherer>,
    /// Report.
    pub report: Option<RunDocument>,
}

/// A page under construction.
struct Page {
    title: String,
    log: Option<Gathered>,
    report: Option<RunDocument>,
}

/// Renders a page about a run.
pub fn render(input: PageInput) -> String {
    let title = title(&input);
    let log = input.log.map(|log| log.finish(LINKS_MAX, BINS_MAX));
    let page = Page {
        title,
        log: log.filter(|log| log.rows > 0),
        report: input.report,
    };
    let mut html = Html::default();
    html.raw("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n");
    html.raw("<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n");
    // Forbid loading any resource, even if a name in the report refers to one.
    html.raw(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n",
    );
    html.element("title", &page.title);
    html.raw("\n<style>")
        .raw(STYLE)
        .raw("</style></head><body><main>\n");
    request::head(&mut html, &page);
    request::asked(&mut html, &page);
    happened::write(&mut html, &page);
    fidelity::write(&mut html, &page);
    request::changes(&mut html, &page);
    request::repeat(&mut html, &page);
    html.raw("</main>\n<script>")
        .raw(SCRIPT)
        .raw("</script></body></html>\n");
    html.finish()
}

/// Renders a page about a run from its files: a log, a report or both.
///
/// # Errors
/// If a file cannot be read, if there are two of a kind, or if log and report belong to different
/// runs.
pub fn render_files(
    files: &[PathBuf],
    title: Option<String>,
    selection: &Selection,
    mut progress: impl FnMut(u64, u64),
) -> Result<String, PlotError> {
    let mut input = PageInput {
        title,
        ..PageInput::default()
    };
    let mut log = None;
    for file in files {
        match Input::kind(file)? {
            InputKind::Log if log.is_none() => log = Some(file),
            InputKind::Report if input.report.is_none() => {
                input.report = Some(RunDocument::read(file)?);
            }
            kind => {
                let what = format!(
                    "a second {}; a page takes one log, one report, or both from one run",
                    kind.name()
                );
                let path = file.clone();
                return Err(PlotError::Nothing { path, what });
            }
        }
    }
    let epoch = input.report.as_ref().map(|report| report.epoch_ns);
    if let Some(path) = log {
        let epoch = epoch.and_then(|epoch| i64::try_from(epoch).ok());
        let gatherer = gather_file(path, selection, epoch, &mut progress)?;
        let nothing = |what: String| PlotError::Nothing {
            path: path.clone(),
            what,
        };
        if !selection.is_all() && gatherer.is_empty() {
            return Err(nothing(format!("no link matches {selection}")));
        }
        if let Some(report) = &input.report
            && !gatherer.is_of(report.epoch_ns)
        {
            let what = "log and report are from different runs".to_owned();
            return Err(nothing(what));
        }
        input.log = Some(gatherer);
    }
    Ok(render(input))
}

/// Returns the requested title or, by default, the command of the run.
fn title(input: &PageInput) -> String {
    const LONG: usize = 70;
    if let Some(title) = &input.title {
        return title.clone();
    }
    let command = input
        .report
        .as_ref()
        .map_or(&[][..], |report| &report.command);
    let inner = command.iter().position(|word| word == "--");
    let title = match inner {
        Some(at) => format!("{} through Longwire", command[at + 1..].join(" ")),
        None if command.is_empty() => "Longwire run".to_owned(),
        None => command.join(" "),
    };
    match title.chars().count() {
        ..=LONG => title,
        _ => title.chars().take(LONG - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests;
