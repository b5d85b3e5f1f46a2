//! Figures of runs, drawn from verdict logs and reports.
//!
//! ```
//! use longwire_plot::{PlotError, PlotOptions, plot, svg};
//!
//! # use longwire_capture::log::{Fate, LogWriter, Name, Row};
//! # let path = std::env::temp_dir().join(format!("plot-{}.csv", std::process::id()));
//! # let mut log = LogWriter::create(&path)?;
//! # log.write(&Row {
//! #     frame: 0,
//! #     link: Name::from("up"),
//! #     arrival_ns: 0,
//! #     length: 60,
//! #     verdict: Fate::Deliver,
//! #     departure_ns: Some(1_000),
//! #     release_ns: Some(20_001_000),
//! #     reason: None,
//! #     ecn_marked: false,
//! #     corrupted: false,
//! #     copy: 0,
//! #     queue_packets: 1,
//! #     queue_bytes: 60,
//! # })?;
//! # log.finish()?;
//! let options = PlotOptions {
//!     width: 1000.0,
//!     ..PlotOptions::default()
//! };
//! // `path` names a verdict log.
//! let figure = plot(&[path.clone()], &options, |_done, _all| ())?;
//! assert!(svg::render(&figure.scene).contains("<svg"));
//! # std::fs::remove_file(path).expect("it was written");
//! # Ok::<(), PlotError>(())
//! ```
//!
//! A log is read twice, for its time span and for its frames. Memory use depends on the width of
//! the figure, not on the number of rows. Drawing creates a [`Scene`], which is then written as
//! [`svg`], [`pdf`] or [`png`]. [`page`] creates an HTML file about a run. Equal inputs yield equal
//! bytes.

mod axis;
mod error;
mod figure;
mod font;
mod frame;
mod gather;
mod input;
pub mod page;
mod panels;
pub mod pdf;
pub mod png;
mod runs;
pub mod scene;
mod series;
pub mod svg;
mod trace;

use std::path::{Path, PathBuf};

pub use axis::{Axis, Units};
pub use error::PlotError;
pub use gather::{LinkPattern, LogDirection, RunGatherer, Selection, SharedGatherer};
use input::{Input, Span, survey};
use longwire_engine::Nanos;
use panels::{Data, LegendEntry};
pub use panels::{Panel, QueueUnit};
pub use scene::Scene;
use serde::Serialize;
use series::{Window, gather, too_many};
use trace::Columns;

use crate::figure::{Multiples, unique};
use crate::input::OneRun;
use crate::scene::Look;

/// Default number of throughput bins.
const BINS: u64 = 250;

/// Maximum number of throughput bins, which are kept in memory for every link.
const BINS_MAX: u64 = 200_000;

/// Minimum time span drawn, in nanoseconds.
const SPAN_MIN: u64 = 1_000;

/// Figure options.
#[derive(Clone, Debug, Default)]
pub struct PlotOptions {
    /// Links to draw.
    pub selection: Selection,
    /// Legend names of the inputs, in input order; by default, parts of their paths.
    pub labels: Vec<String>,
    /// Cell of each input in a figure of small multiples. Inputs with the same name share a cell,
    /// and names of the form `ROW/COLUMN` form a table.
    pub cells: Vec<String>,
    /// Number of cell columns.
    pub columns: Option<usize>,
    /// Panels, in this order; by default, those that suit the inputs.
    pub panels: Vec<Panel>,
    /// Title; by default, the names of the inputs.
    pub title: Option<String>,
    /// Start of the time range, relative to the first frame of a log or, with the report of its
    /// run, to the start of the run.
    pub from: Option<Nanos>,
    /// End of the time range, on the same scale.
    pub until: Option<Nanos>,
    /// Width of a throughput bin.
    pub bin: Option<Nanos>,
    /// Unit of queue lengths.
    pub queue_unit: QueueUnit,
    /// Width in units.
    pub width: f64,
    /// Height in units; by default, the sum of the panels' heights.
    pub height: Option<f64>,
}

/// A drawn figure.
#[derive(Debug)]
pub struct Figure {
    /// The drawing.
    pub scene: Scene,
    /// Panels, from the top.
    pub panels: Vec<Panel>,
    /// Links drawn, in legend order.
    pub links: Vec<LinkDrawn>,
}

/// A link in a figure.
#[derive(Clone, Debug, Serialize)]
pub struct LinkDrawn {
    /// Name in the legend.
    pub name: String,
    /// Number of frames counted, including copies.
    pub frames: u64,
}

/// Draws a figure from files.
///
/// Calls `progress` occasionally with the work done and the total work, both in an arbitrary unit.
///
/// # Errors
/// If a file cannot be read or contains nothing to draw, or if the options contradict the inputs or
/// each other.
pub fn plot(
    files: &[PathBuf],
    options: &PlotOptions,
    mut progress: impl FnMut(u64, u64),
) -> Result<Figure, PlotError> {
    let inputs = files.iter().map(|path| Input::open(path));
    let inputs: Vec<Input> = inputs.collect::<Result<_, _>>()?;
    let panels = choose(options, &inputs)?;
    let mut steps = Steps::new(&inputs, &mut progress);
    let mut spans = Vec::new();
    for input in &inputs {
        spans.push(match input.report {
            None => Some(survey(&input.path, |done, all| steps.at(done, all))?),
            Some(_) => None,
        });
        steps.next();
    }
    let run = OneRun::of(&inputs, &mut spans);
    let mut data = Data {
        logs: Vec::new(),
        reports: Vec::new(),
        window: window(&spans, run.caption, options)?,
        changes: run.changes,
        queue_unit: options.queue_unit,
        cell: None,
    };
    let multiples = multiples(files, options)?;
    let drawn = inputs.iter().map(|input| is_drawn(input, &panels));
    let drawn: Vec<bool> = drawn.collect();
    let named = named(files, &drawn, run.is_one);
    for (index, (input, span)) in inputs.into_iter().zip(&spans).enumerate() {
        let names = InputNames {
            index,
            named: &named,
            options,
            cell: multiples.as_ref().map(|of| of.of_input(index)),
        };
        if drawn[index] {
            add(&mut data, input, *span, &names, &mut steps)?;
        }
        steps.next();
    }
    let title = options.title.clone().unwrap_or_else(|| title(&named));
    if multiples.is_some() {
        check_cells(&panels)?;
    }
    let size = (options.width, options.height);
    let scene = figure::draw(&mut data, &panels, multiples.as_ref(), &title, size)?;
    Ok(Figure {
        scene,
        panels,
        links: links(&data, multiples.as_ref()),
    })
}

/// Returns the links of a figure, in legend order.
fn links(data: &Data, multiples: Option<&Multiples>) -> Vec<LinkDrawn> {
    let drawn = |label: &str, cell: usize, frames: u64| {
        let cell = multiples.map(|of| of.cells()[cell].name());
        let name = cell.map_or(label.to_owned(), |cell| format!("{cell} {label}"));
        LinkDrawn { name, frames }
    };
    let logs = data.logs.iter();
    let logs = logs.map(|of| drawn(&of.label, of.cell, of.data.rows));
    let mut links: Vec<LinkDrawn> = logs.collect();
    for of in &data.reports {
        let link = drawn(&of.label, of.cell, of.data.packets_in);
        if links.iter().all(|other| other.name != link.name) {
            links.push(link);
        }
    }
    links
}

/// Whether any panel draws an input.
fn is_drawn(input: &Input, panels: &[Panel]) -> bool {
    panels.iter().any(|panel| match input.report {
        None => panel.is_of_logs(),
        Some(_) => panel.is_of_reports(),
    })
}

/// Returns the inputs whose names distinguish links: those that are drawn or, if all belong to one
/// run, the first.
fn named(files: &[PathBuf], drawn: &[bool], is_one_run: bool) -> Vec<PathBuf> {
    let named = files.iter().zip(drawn).filter(|(_, drawn)| **drawn);
    let most = if is_one_run { 1 } else { files.len() };
    named.map(|(path, _)| path.clone()).take(most).collect()
}

/// Rejects panels that cannot have cells.
fn check_cells(panels: &[Panel]) -> Result<(), PlotError> {
    let Some(panel) = panels.iter().find(|panel| !panel.has_cells()) else {
        return Ok(());
    };
    let (name, how) = (panel.name(), "select other panels with --panel");
    let what = format!("--cell does not support panel {name}; {how}");
    Err(PlotError::Usage(what))
}

/// Drawing progress; every input is read twice.
struct Steps<'a> {
    done: u64,
    all: u64,
    report: &'a mut dyn FnMut(u64, u64),
}

impl Steps<'_> {
    /// Number of progress steps per pass over an input.
    const PARTS: u64 = 1_000;

    fn new<'a>(inputs: &[Input], report: &'a mut dyn FnMut(u64, u64)) -> Steps<'a> {
        Steps {
            done: 0,
            all: inputs.len() as u64 * 2 * Steps::PARTS,
            report,
        }
    }

    fn at(&mut self, done: u64, all: u64) {
        let part = u128::from(done) * u128::from(Steps::PARTS) / u128::from(all.max(1));
        let part = (part as u64).min(Steps::PARTS);
        (self.report)(self.done + part, self.all);
    }

    fn next(&mut self) {
        self.done += Steps::PARTS;
        (self.report)(self.done, self.all);
    }
}

/// Returns the time range to draw.
fn window(
    spans: &[Option<Span>],
    caption: &'static str,
    options: &PlotOptions,
) -> Result<Window, PlotError> {
    let usage = |message: String| Err(PlotError::Usage(message));
    let spans = spans.iter().flatten();
    let last = spans.map(|span| span.last.saturating_sub(span.origin));
    let last = last.max().unwrap_or(0).max(0).cast_unsigned();
    let from = options.from.map_or(0, Nanos::as_nanos);
    let until = options.until.map_or(last + 1, Nanos::as_nanos);
    let [from_text, until_text, last_text] = [from, until, last].map(Nanos::from_nanos);
    if from > last {
        return usage(format!(
            "--from {from_text} is after the last frame, at {last_text}"
        ));
    }
    if until <= from {
        let what = format!("--until {until_text} must be after --from {from_text}");
        return usage(what);
    }
    let span = (until - from).max(SPAN_MIN);
    let bin = match options.bin {
        None => axis::round_step(span as f64 / BINS as f64).max(1.0) as u64,
        Some(bin) => bin.as_nanos(),
    };
    if bin == 0 {
        return usage("--bin must be above 0".to_owned());
    }
    if span.div_ceil(bin) > BINS_MAX {
        let least = Nanos::from_nanos(span.div_ceil(BINS_MAX));
        return usage(format!(
            "--bin must be at least {least} for this time span: a figure has at most {BINS_MAX} \
             bins"
        ));
    }
    // Extend the range so that the last bin is as wide as the others, unless `until` ends it.
    let span = match options.until {
        None => span.div_ceil(bin).saturating_mul(bin),
        Some(_) => span,
    };
    // One column per unit of the frame's width.
    let count = (options.width - figure::LEFT - figure::RIGHT).max(1.0) as usize;
    let from = from.cast_signed();
    Ok(Window {
        columns: Columns { from, span, count },
        caption,
        bin,
    })
}

/// Returns the cells of the inputs, if there are any.
fn multiples(files: &[PathBuf], options: &PlotOptions) -> Result<Option<Multiples>, PlotError> {
    for (option, names) in [("--label", &options.labels), ("--cell", &options.cells)] {
        if !names.is_empty() && names.len() != files.len() {
            let (files, names) = (files.len(), names.len());
            let what = format!("{option}: {files} inputs, but {names} names");
            return Err(PlotError::Usage(what));
        }
    }
    if options.cells.is_empty() {
        return match options.columns {
            None => Ok(None),
            Some(_) => Err(PlotError::Usage("--columns needs --cell".to_owned())),
        };
    }
    Multiples::arrange(&options.cells, options.columns).map(Some)
}

/// Position of an input among all inputs, from which its legend names derive.
struct InputNames<'a> {
    index: usize,
    /// Inputs whose names distinguish links.
    named: &'a [PathBuf],
    options: &'a PlotOptions,
    cell: Option<usize>,
}

impl InputNames<'_> {
    /// Returns the legend name of a link in a file. `is_only` is set if the file has no other link.
    fn of(&self, path: &Path, link: &str, is_only: bool) -> String {
        match self.options.labels.get(self.index) {
            Some(label) if is_only => label.clone(),
            Some(label) => format!("{label} {link}"),
            None if self.is_by_link() => link.to_owned(),
            None => format!("{} {link}", short_name(path, self.named)),
        }
    }

    /// Whether the legend name is the link's name alone: in a cell, which has the input's name, or
    /// if all inputs belong to one run.
    fn is_by_link(&self) -> bool {
        self.cell.is_some() || self.named.len() == 1
    }
}

/// Adds the links of an input, each with a label and a look.
fn add(
    data: &mut Data,
    input: Input,
    span: Option<Span>,
    names: &InputNames<'_>,
    steps: &mut Steps<'_>,
) -> Result<(), PlotError> {
    let Input { path, report } = input;
    let selection = &names.options.selection;
    if let Some(span) = span {
        let at = |done, all| steps.at(done, all);
        let links = gather(&path, span, &data.window, selection, at)?;
        let is_only = links.len() == 1;
        for link in links {
            let label = names.of(&path, &link.link, is_only);
            let entry = entry(data, label, names, link);
            data.logs.push(entry.ok_or_else(|| too_many(&path))?);
        }
    }
    if let Some(mut report) = report {
        report.links.retain(|link| selection.has(&link.name));
        if report.links.is_empty() {
            let what = format!("no link matches {selection}");
            return Err(PlotError::nothing(&path, what));
        }
        let is_only = report.links.len() == 1;
        for link in report.links {
            let label = names.of(&path, &link.name, is_only);
            let entry = entry(data, label, names, link);
            data.reports.push(entry.ok_or_else(|| too_many(&path))?);
        }
    }
    Ok(())
}

/// Returns a new legend entry, with the look of an existing entry for the same link, if there is
/// one.
fn entry<T>(data: &Data, label: String, names: &InputNames<'_>, link: T) -> Option<LegendEntry<T>> {
    let entries: Vec<(Look, &String)> = data.legend().collect();
    let mut same = entries.iter().filter(|_| names.is_by_link());
    let look = match same.find(|(_, known)| **known == label) {
        Some((look, _)) => *look,
        None => Look::of(unique(entries.iter().map(|(look, _)| *look)).len())?,
    };
    Some(LegendEntry {
        label,
        look,
        cell: names.cell.unwrap_or(0),
        data: link,
    })
}

/// Returns the legend name of a file: the shortest part of its path that distinguishes it from the
/// other files.
fn short_name(path: &Path, files: &[PathBuf]) -> String {
    let of = |form: fn(&Path) -> Option<&std::ffi::OsStr>| {
        let name = form(path)?;
        let alike = files.iter().filter(|other| form(other) == Some(name));
        (alike.count() == 1).then(|| name.to_string_lossy().into_owned())
    };
    let name = of(Path::file_stem).or_else(|| of(Path::file_name));
    name.unwrap_or_else(|| path.display().to_string())
}

/// Returns the default title: the file names, or their number if there are many.
fn title(files: &[PathBuf]) -> String {
    if files.len() > 3 {
        return format!("{} runs", files.len());
    }
    if let [file] = files {
        let name = file.file_name();
        return name.map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    }
    let names = files.iter().map(|path| short_name(path, files));
    names.collect::<Vec<String>>().join(", ")
}

/// Returns the panels specified in the options, or those that suit the inputs.
fn choose(options: &PlotOptions, inputs: &[Input]) -> Result<Vec<Panel>, PlotError> {
    let is_report = |input: &Input| input.report.is_some();
    let has_reports = inputs.iter().any(is_report);
    let has_logs = !inputs.iter().all(is_report);
    for panel in &options.panels {
        let has = panel.is_of_logs() && has_logs || panel.is_of_reports() && has_reports;
        if !has {
            let needed = if panel.is_of_logs() {
                "a verdict log (.csv or .parquet); only reports were given"
            } else {
                "a run's report (.json); only logs were given"
            };
            let what = format!("--panel {} needs {needed}", panel.name());
            return Err(PlotError::Usage(what));
        }
    }
    if !options.panels.is_empty() {
        return Ok(options.panels.clone());
    }
    if !options.cells.is_empty() {
        return Ok(vec![Panel::Throughput, Panel::Delay]);
    }
    let usual = Panel::ALL.into_iter();
    let usual = usual.filter(|panel| panel.is_usual(has_logs, has_reports));
    Ok(usual.collect())
}
