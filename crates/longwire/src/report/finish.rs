//! Writes the report at the end of a run, and determines the exit code.

use std::env;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use longwire_capture::{same_file, whole_file};
use longwire_plot::page::{self, PageInput, RunDocument};
use longwire_runtime::{RunReport, shutdown};
use serde::Serialize;

use super::ending::{Ending, ReportStream};
use super::output::{ignore_closed, print_error, print_line, write_json};
use super::require::Grade;
use super::summary::Summary;
use super::verdict::machine_was_busy;
use super::{Verdict, artifacts, text};
use crate::cli::{Paint, ReportArgs};
use crate::error::{EXIT_FAILED, EXIT_FIDELITY, EXIT_NEARLY};
use crate::{Error, Globals};

/// For commands that call plugins on the main thread: if a call never returns, the program ends
/// with a report that contains only the error.
pub fn on_stuck_plugin(seed: u64, args: &ReportArgs, globals: &Globals, place: ReportStream) {
    let (args, globals) = (args.clone(), globals.clone());
    shutdown::on_stuck_main(move |error| {
        let report = RunReport {
            seed,
            error: Some(error),
            ..RunReport::default()
        };
        let ending = Ending {
            place,
            ..Ending::of(&report)
        };
        if let Err(error) = finish(&report, &ending, &args, &globals) {
            print_error(&error);
        }
    });
}

/// Writes the report of a run, as JSON from `json`, and prints each unmet condition on stderr. A
/// closed output affects neither the file nor the exit code.
///
/// Returns the exit code: 1 if the run ended early or the report file cannot be written, 3 if
/// `--require` is not met, 4 if it fails only because the run is nearly faithful, otherwise 0.
///
/// # Errors
/// If the report cannot be printed.
pub fn finish(
    json: &impl Serialize,
    ending: &Ending<'_>,
    args: &ReportArgs,
    globals: &Globals,
) -> Result<ExitCode, Error> {
    let (report, place) = (ending.run, ending.place);
    let verdict = Verdict::of(report);
    let grade = verdict.grade;
    let json = &Document::new(json, verdict);
    let text = |out: &mut Vec<u8>, paint: Paint| {
        if globals.verbose {
            text::write(out, ending, &json.verdict, paint)
        } else {
            Summary::of(ending, json.verdict.clone()).write(out, paint)
        }
    };
    let kept = if args.is_page() {
        write_page(args, json)
    } else {
        write_file(args.report.as_deref(), json)
    };
    ignore_closed(match place {
        ReportStream::Stdout if globals.json => write_json(&mut io::stdout().lock(), json),
        // The JSON is printed last, below.
        ReportStream::Stderr if globals.json => Ok(()),
        _ if globals.quiet => Ok(()),
        ReportStream::Stdout => write_text(&mut io::stdout(), text, globals),
        ReportStream::Stderr => {
            let _ = write_text(&mut io::stderr(), text, globals);
            Ok(())
        }
    })?;
    // The report on stderr already contains the error.
    let shown = place == ReportStream::Stderr && (globals.json || !globals.quiet);
    if let Some(error) = &report.error
        && !shown
    {
        print_error(&error);
    }
    let unmet = print_unmet(ending, grade, args);
    // The report has been printed; only writing the file failed.
    if let Err(error) = &kept {
        print_error(&error);
    }
    if globals.json && place == ReportStream::Stderr {
        // Print JSON last, because earlier lines on stderr may come from other programs.
        let mut out = BufWriter::new(io::stderr().lock());
        ignore_closed(write_json(&mut out, json).and_then(|()| out.flush()))?;
    }
    let failed = report.error.is_some() || kept.is_err();
    let required = args.require.as_ref();
    let misses = required.is_some_and(|required| required.misses(grade));
    let is_nearly = misses && grade == Grade::NearlyFaithful;
    Ok(match unmet {
        _ if failed => ExitCode::from(EXIT_FAILED),
        0 => ExitCode::SUCCESS,
        1 if is_nearly => ExitCode::from(EXIT_NEARLY),
        _ => ExitCode::from(EXIT_FIDELITY),
    })
}

/// Prints each unmet condition, and returns their number.
fn print_unmet(ending: &Ending<'_>, grade: Grade, args: &ReportArgs) -> usize {
    let Some(required) = &args.require else {
        return 0;
    };
    let mut unmet = required.unmet(ending.run, grade);
    unmet.extend(required.unmet_by_receivers(ending.run, &ending.received));
    let busy = machine_was_busy(ending.run);
    for clause in &unmet {
        let is_grade = clause.contains("faithful: ");
        let is_excused = busy && (is_grade || is_of_lateness(clause));
        let end = if is_excused { TOO_BUSY } else { "" };
        print_line(format_args!("not met: {clause}{end}"));
    }
    unmet.len()
}

/// Suffix for a requirement that failed because the machine was busy.
const TOO_BUSY: &str = "; the machine was too busy for this link; run the test again (see \
                        docs/ci.md)";

/// Returns whether a clause covers late frames, such as `up.artifacts-own<5: …`.
fn is_of_lateness(clause: &str) -> bool {
    let measure = clause.split(['<', '>', '=']).next().unwrap_or_default();
    let is_lost = measure.ends_with("-lost") || measure.rsplit('.').any(artifacts::is_lost);
    !is_lost && (measure.contains("artifacts") || measure.contains("lateness"))
}

fn write_text(
    stream: &mut (impl Write + IsTerminal),
    text: impl Fn(&mut Vec<u8>, Paint) -> io::Result<()>,
    globals: &Globals,
) -> io::Result<()> {
    let paint = Paint::new(globals, stream);
    // Use a single write: a command may share the terminal.
    let mut written = Vec::new();
    text(&mut written, paint)?;
    stream.write_all(&written)
}

const UNWRITTEN: &str = "cannot write the report";

/// Writes a report to its file, if any.
///
/// # Errors
/// If it cannot be written; the file is then unchanged.
pub fn write_file(path: Option<&Path>, report: &impl Serialize) -> Result<(), Error> {
    let Some(path) = path else { return Ok(()) };
    let written = whole_file::write(path, |mut out| write_json(&mut out, report));
    written.map_err(Error::file(path, UNWRITTEN))
}

/// Writes a report as an HTML page with charts of the logged rows.
fn write_page(args: &ReportArgs, report: &impl Serialize) -> Result<(), Error> {
    let Some(path) = args.report.as_deref() else {
        return Ok(());
    };
    let report = serde_json::to_value(report).map_err(io::Error::from)?;
    let report: RunDocument = serde_json::from_value(report).map_err(io::Error::from)?;
    let page = page::render(PageInput {
        title: None,
        log: Some(args.rows.get()),
        report: Some(report),
    });
    let written = whole_file::write(path, |out| out.write_all(page.as_bytes()));
    written.map_err(Error::file(path, UNWRITTEN))
}

/// Checks, before a run, that the report can be written to its file.
///
/// # Errors
/// If it cannot be written, or is one of `used`, the other files of the run.
pub fn check_file<'a>(
    path: Option<&Path>,
    used: impl IntoIterator<Item = &'a str>,
) -> Result<(), Error> {
    let Some(path) = path else { return Ok(()) };
    let name = path.to_string_lossy();
    let mut files = used.into_iter();
    if files.any(|file| file == name || same_file(file, &name)) {
        return Err(Error::usage(format!(
            "--report '{name}' is also an input or output; choose another name"
        )));
    }
    whole_file::check(path).map_err(Error::file(
        path,
        "cannot write the report; choose a file in an existing, writable directory",
    ))
}

/// A run's report with its verdict and the command to repeat it.
#[derive(Debug, Serialize)]
pub struct Document<'a, T> {
    #[serde(flatten)]
    report: &'a T,
    verdict: Verdict,
    /// Command line, as words.
    command: Vec<String>,
    /// The program's version.
    version: &'static str,
}

impl<T> Document<'_, T> {
    /// Adds a verdict and this process's command line to a report.
    pub fn new(report: &T, verdict: Verdict) -> Document<'_, T> {
        let mut words = env::args_os();
        let program = words.next().unwrap_or_default();
        let program = Path::new(&program).file_name().unwrap_or_default();
        let program = program.to_string_lossy().into_owned();
        let words = words.map(|word| word.to_string_lossy().into_owned());
        Document {
            report,
            verdict,
            command: std::iter::once(program).chain(words).collect(),
            version: env!("CARGO_PKG_VERSION"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_machine_explains_lateness_and_no_loss() {
        for clause in [
            "artifacts-own<5: up has 7",
            "down.artifacts=0: down has 1",
            "artifacts.late<1%: up has 3",
            "lateness-own.p99<1ms: up has 2 ms",
        ] {
            assert!(is_of_lateness(clause), "{clause}");
        }
        for clause in [
            "artifacts-lost=0: up has 7",
            "artifacts.memory=0: up has 7, and is late",
            "packets_in>0: up has 0",
        ] {
            assert!(!is_of_lateness(clause), "{clause}");
        }
    }
}
