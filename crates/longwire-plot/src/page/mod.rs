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

use document::ChangesDocument;
pub use document::{PartDocument, RunDocument};
pub(crate) use fidelity::STATISTICS;
use html::Html;

use crate::PlotError;
use crate::gather::{RunGatherer, Selection, gather_file};
use crate::input::Input;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Maximum number of link directions with charts.
const LINKS_MAX: usize = 8;

/// Maximum number of bins in all charts together, which limits the size of the page.
const BINS_MAX: usize = 6_000;

/// Writes the contents of a section.
type Write = fn(&mut Html, &Page);

/// Sections of every page: identifier, heading and contents.
const SECTIONS: [(&str, &str, Write); 4] = [
    ("asked", "Configuration", request::asked),
    ("happened", "Results", happened::write),
    ("fidelity", "Fidelity", fidelity::write),
    ("changes", "Changes", request::changes),
];

/// Sources of a page.
#[derive(Debug, Default)]
pub struct PageInput {
    /// Title; by default, the command.
    pub title: Option<String>,
    /// Data from the run's log.
    pub log: Option<RunGatherer>,
    /// Report of the run.
    pub report: Option<RunDocument>,
}

/// A page under construction.
struct Page {
    title: String,
    /// Data from the log, completed; `None` for an empty log.
    log: Option<RunGatherer>,
    report: Option<RunDocument>,
}

impl Page {
    /// Returns the changes of the run, if it was changeable.
    fn changes(&self) -> Option<&ChangesDocument> {
        self.report.as_ref()?.changes.as_ref()
    }
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
    for (id, heading, write) in SECTIONS {
        html.raw(&format!("<section id=\"{id}\"><h2>{heading}</h2>\n"));
        write(&mut html, &page);
        html.raw("</section>\n");
    }
    if let Some(report) = &page.report {
        request::repeat(&mut html, report);
    }
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
        let is_report = Input::is_report(file)?;
        if is_report && input.report.is_none() {
            input.report = Some(RunDocument::read(file)?);
        } else if !is_report && log.is_none() {
            log = Some(file);
        } else {
            let kind = if is_report { "report" } else { "log" };
            let what =
                format!("a second {kind}; a page takes one log, one report, or both from one run");
            return Err(PlotError::nothing(file, what));
        }
    }
    if let Some(path) = log {
        let epoch = input.report.as_ref().map(|report| report.epoch_ns);
        let epoch = epoch.and_then(|epoch| i64::try_from(epoch).ok());
        let gatherer = gather_file(path, selection, epoch, &mut progress)?;
        if !selection.is_all() && gatherer.is_empty() {
            let what = format!("no link matches {selection}");
            return Err(PlotError::nothing(path, what));
        }
        if let Some(report) = &input.report
            && !gatherer.is_of(report.epoch_ns)
        {
            let what = "log and report are from different runs";
            return Err(PlotError::nothing(path, what));
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
    let report = input.report.as_ref();
    let command = report.map_or(&[][..], |report| &report.command);
    let title = match command.iter().position(|word| word == "--") {
        Some(at) => format!("{} through Longwire", command[at + 1..].join(" ")),
        None if command.is_empty() => "Longwire run".to_owned(),
        None => command.join(" "),
    };
    if title.chars().count() <= LONG {
        return title;
    }
    title.chars().take(LONG - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests;
