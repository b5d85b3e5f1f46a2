//! `longwire plot`: draws figures of runs.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use longwire_capture::whole_file;
use longwire_engine::Nanos;
use longwire_plot::{
    Figure, LinkDrawn, Panel, PlotError, PlotOptions, QueueUnit, Scene, pdf, plot, png, svg,
};
use serde::Serialize;

use super::report::SelectionArgs;
use crate::progress::Progress;
use crate::report::output::{printable, write_json};
use crate::report::words::count_of;
use crate::table::joined;
use crate::{Error, Globals};

const EXAMPLES: &str = "\
Logs (--log FILE) have the panels throughput, queue, delay, delay-cdf and loss-runs; reports
(--report FILE, or the output of --json) have counts, drops and lateness. Inputs share axes.
A log's time axis starts at its first frame, or, if its report is given, at the start of the
run, with dashed lines at changes. At most 32 links are drawn, one colour each; select links
with --link and --direction.

--cell draws inputs in separate cells with equal axes; inputs with the same name share a
cell. Names such as cubic/lte form a grid with row cubic and column lte.

Throughput counts bytes without framing: offered at arrival, delivered at release. The
configured rate is derived from departures. Delay is release - arrival, plotted at arrival.
A loss run is a sequence of consecutive losses; duplicates do not count. Memory does not
grow with the log; where frames are too dense for dots, columns show the mean and the range.

Examples:
  longwire simulate in.pcap out.pcap --rate 10mbit --queue 60p --log run.parquet
  longwire plot run.parquet -o run.svg
  longwire plot run.parquet run.json -o changes.svg --panel throughput,delay
  longwire plot run.parquet -o start.png --from 2s --until 2.5s --bin 5ms
  longwire plot fifo.csv codel.csv -o both.svg --panel queue,delay,delay-cdf
  longwire plot network.parquet -o core.pdf --link 'core*' --direction up
  longwire plot cubic.parquet reno.parquet -o both.pdf --label CUBIC,Reno --direction up
  longwire plot a.parquet b.parquet c.parquet d.parquet -o grid.pdf --direction up \
      --cell cubic/lte,cubic/wifi,reno/lte,reno/wifi
  longwire exec --delay 20ms --report run.json -- ping -c 100 far
  longwire plot run.json -o run.png";

/// Arguments of `plot`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct PlotArgs {
    /// Verdict logs (.csv, .parquet) and reports (.json)
    #[arg(value_name = "INPUT", required = true)]
    pub inputs: Vec<PathBuf>,

    /// Figure to write: .svg, .pdf or .png
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,

    /// Links to draw.
    #[command(flatten)]
    pub selection: SelectionArgs,

    /// Names of the inputs in the legend, in order
    #[arg(long, value_name = "TEXT", value_delimiter = ',')]
    pub label: Vec<String>,

    /// Cell in which to draw each input, in order; names ROW/COLUMN form a grid
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub cell: Vec<String>,

    /// Number of cell columns; default: about as many as rows
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=12))]
    pub columns: Option<u8>,

    /// Panels, in this order; default: the panels that fit the inputs
    #[arg(long, value_name = "PANEL", value_delimiter = ',')]
    #[arg(value_parser = choice(PANELS.map(|(panel, help)| (panel, panel.name(), help))))]
    pub panel: Vec<Panel>,

    /// Title; default: the inputs' names
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,

    /// Start at this time of the axis, which begins at the first frame, or at the run's start if
    /// its report is given
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub from: Option<Nanos>,

    /// Stop at this time of the axis
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub until: Option<Nanos>,

    /// Width of a throughput bin, such as 100ms; default: about 1/250 of the time axis
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub bin: Option<Nanos>,

    /// Unit of queue lengths
    #[arg(long, value_name = "UNIT", value_parser = choice(UNITS), default_value = UNITS[0].1)]
    pub queue_unit: QueueUnit,

    /// Width of the figure in pixels of the SVG
    #[arg(long, value_name = "N", default_value_t = 1000)]
    #[arg(value_parser = clap::value_parser!(u32).range(400..=8000))]
    pub width: u32,

    /// Height of the figure in pixels of the SVG; default: derived from the panels
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(100..=8000))]
    pub height: Option<u32>,

    /// PNG pixels per SVG pixel
    #[arg(long, value_name = "N", default_value_t = 2)]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=4))]
    pub scale: u8,
}

/// Panels with their help, in help order.
const PANELS: [(Panel, &str); 8] = [
    (Panel::Throughput, "Offered and delivered bit/s over time"),
    (Panel::Queue, "Queue length over time"),
    (Panel::Delay, "One-way delay over time, with drops marked"),
    (Panel::DelayCdf, "Cumulative distribution of the delay"),
    (Panel::LossRuns, "Lengths of loss runs"),
    (Panel::Drops, "Drops by reason"),
    (Panel::Lateness, "Lateness of handovers, from reports"),
    (
        Panel::Counts,
        "Counts of frames in, frames out, drops and artifacts, from reports",
    ),
];

/// Queue units with names and help; the first is the default.
const UNITS: [(QueueUnit, &str, &str); 2] = [
    (QueueUnit::Packets, "packets", "In packets"),
    (QueueUnit::Bytes, "bytes", "In bytes"),
];

/// Returns a parser of one of several values, each with its name and help.
fn choice<T: Copy + Send + Sync + 'static, const N: usize>(
    values: [(T, &'static str, &'static str); N],
) -> impl TypedValueParser<Value = T> {
    let names = values.map(|(_, name, help)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(names).map(move |name| {
        let chosen = values.iter().find(|(_, known, _)| *known == name);
        chosen.map_or_else(
            || unreachable!("clap refuses other names"),
            |chosen| chosen.0,
        )
    })
}

/// Renders a figure; the number is the scale of a PNG.
type Render = fn(&Scene, u8) -> Result<Vec<u8>, PlotError>;

/// Draws a figure.
///
/// # Errors
/// If an input cannot be drawn, or the picture cannot be written.
pub fn run(args: &PlotArgs, globals: &Globals) -> Result<ExitCode, Error> {
    let render = renderer_of(&args.output)?;
    refuse_overwriting(&args.inputs, &args.output)?;
    let options = PlotOptions {
        selection: args.selection.selection(),
        labels: args.label.clone(),
        cells: args.cell.clone(),
        columns: args.columns.map(usize::from),
        panels: args.panel.clone(),
        title: args.title.clone(),
        from: args.from,
        until: args.until,
        bin: args.bin,
        queue_unit: args.queue_unit,
        width: args.width.into(),
        height: args.height.map(f64::from),
    };
    let mut progress = Progress::new(Progress::SHARE, globals);
    let figure = plot(&args.inputs, &options, |done, all| {
        progress.at(done, Some(all));
    });
    progress.clear();
    let figure = figure?;
    let bytes = render(&figure.scene, args.scale)?;
    whole_file::write(&args.output, |out| out.write_all(&bytes))
        .map_err(Error::file(&args.output, "cannot write the figure"))?;
    say(&figure, &args.output, globals)?;
    Ok(ExitCode::SUCCESS)
}

#[derive(Serialize)]
struct FigureJson<'a> {
    output: String,
    panels: Vec<&'static str>,
    links: &'a [LinkDrawn],
}

/// Prints a summary of the figure.
fn say(figure: &Figure, output: &Path, globals: &Globals) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let panels: Vec<&str> = figure.panels.iter().map(|panel| panel.name()).collect();
    if globals.json {
        let json = FigureJson {
            output: output.display().to_string(),
            panels,
            links: &figure.links,
        };
        return write_json(&mut out, &json);
    }
    if globals.quiet {
        return Ok(());
    }
    let links = figure.links.iter();
    let links = links.map(|link| format!("{} ({})", link.name, count_of(link.frames, "frame")));
    let (output, panels, links) = (output.display(), panels.join(", "), joined(links, ", "));
    // Link names come from the log and may contain control characters.
    let line = printable(&format_args!("{output}: {panels} of {links}"));
    writeln!(out, "{line}")
}

/// Returns the renderer for the file name.
fn renderer_of(output: &Path) -> Result<Render, Error> {
    let extension = output.extension().unwrap_or_default();
    match extension.to_ascii_lowercase().to_str() {
        Some("svg") => Ok(|scene, _| Ok(svg::render(scene).into_bytes())),
        Some("pdf") => Ok(|scene, _| pdf::render(scene).map_err(PlotError::Picture)),
        Some("png") => {
            Ok(|scene, scale| png::render(scene, scale.into()).map_err(PlotError::Picture))
        }
        _ => Err(Error::usage(format!(
            "--output '{}': name must end in .svg, .pdf or .png",
            output.display()
        ))),
    }
}

/// Refuses an output that would overwrite an input.
///
/// # Errors
/// [`Error::Usage`] if it would.
pub(super) fn refuse_overwriting(inputs: &[PathBuf], output: &Path) -> Result<(), Error> {
    let identity = |path: &Path| {
        let metadata = fs::metadata(path).ok()?;
        Some((metadata.dev(), metadata.ino()))
    };
    let Some(written) = identity(output) else {
        return Ok(());
    };
    let is_input = inputs.iter().any(|input| identity(input) == Some(written));
    let output = output.display();
    let message = format!("OUT '{output}' is also an INPUT; choose another name");
    Error::refuse_first(&[(is_input, &message)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_panel_can_be_named() {
        for panel in Panel::ALL {
            assert!(PANELS.iter().any(|(known, _)| *known == panel), "{panel:?}");
        }
    }
}
