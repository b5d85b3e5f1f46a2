//! `longwire report`: writes an HTML page for a finished run.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use longwire_capture::whole_file;
use longwire_plot::page::render_files;
use longwire_plot::{LinkPattern, LogDirection, Selection};

use super::plot::refuse_overwriting;
use crate::cli::is_page;
use crate::progress::Progress;
use crate::{Error, Globals};

const EXAMPLES: &str = "\
The page is one self-contained HTML file with the run's options, counters, fidelity,
changes and command; charts can be zoomed and have a table. Without a report, the page lacks
options, lateness, artifacts and the verdict; without a log, it lacks charts.

Memory and page size do not grow with the log. Charts show at most 8 directions: the busiest
ones, or the busiest of those selected by --link and --direction.

`--report run.html` of exec, run, replay and simulate writes the page without a log file.

Examples:
  longwire exec --rate 10mbit --log run.parquet --report run.json -- ./client
  longwire report run.parquet run.json -o run.html
  longwire report network.parquet -o core.html --link 'core*' --direction up
  longwire exec --rate 10mbit --report run.html -- ./client";

/// Arguments of `report`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ReportPageArgs {
    /// A verdict log (.csv, .parquet), a report (.json), or both from one run
    #[arg(value_name = "INPUT", required = true, num_args = 1..=2)]
    pub inputs: Vec<PathBuf>,

    /// Page to write, .html
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,

    /// Title; default: the command line
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,

    /// Links that get charts.
    #[command(flatten)]
    pub selection: SelectionArgs,
}

/// Selection of links and of a direction.
#[derive(Clone, Debug, Args)]
pub struct SelectionArgs {
    /// Draw only matching links, optionally with .up or .down; * any text, ? one character
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub link: Vec<LinkPattern>,

    /// Draw only this direction; ab and ba are aliases of up and down
    #[arg(long, value_name = "DIRECTION", value_parser = direction_parser())]
    pub direction: Option<LogDirection>,
}

impl SelectionArgs {
    /// Returns the selected part of the run.
    pub fn selection(&self) -> Selection {
        Selection {
            links: self.link.clone(),
            direction: self.direction,
        }
    }
}

fn direction_parser() -> impl TypedValueParser<Value = LogDirection> {
    let names = LogDirection::ALL.map(LogDirection::name);
    PossibleValuesParser::new(names).map(|name| {
        let mut all = LogDirection::ALL.into_iter();
        let found = all.find(|direction| direction.name() == name);
        found.unwrap_or_else(|| unreachable!("clap refuses other names"))
    })
}

/// Writes the page of a run.
///
/// # Errors
/// If an input cannot be read, or the page cannot be written.
pub fn run(args: &ReportPageArgs, globals: &Globals) -> Result<ExitCode, Error> {
    let output = args.output.display();
    if !is_page(&args.output) {
        return Err(Error::usage(format!(
            "--output '{output}': name must end in .html"
        )));
    }
    refuse_overwriting(&args.inputs, &args.output)?;
    let mut progress = Progress::new(Progress::SHARE, globals);
    let selection = args.selection.selection();
    let page = render_files(&args.inputs, args.title.clone(), &selection, |done, all| {
        progress.at(done, Some(all));
    });
    progress.clear();
    let page = page?;
    whole_file::write(&args.output, |out| out.write_all(page.as_bytes()))
        .map_err(Error::file(&args.output, "cannot write the page"))?;
    if !globals.quiet && !globals.json {
        let kilobytes = page.len().div_ceil(1_000);
        writeln!(io::stdout().lock(), "{output}: {kilobytes} kB")?;
    }
    Ok(ExitCode::SUCCESS)
}
