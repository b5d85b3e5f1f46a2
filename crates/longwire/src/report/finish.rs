//! The end of a run: its report written, and the exit code it earned.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use longwire_runtime::{RunReport, shutdown};
use serde::Serialize;

use super::stderr::{ignore_closed, print_line};
use super::text;
use crate::cli::{Paint, ReportArgs};
use crate::error::{EXIT_FAILED, EXIT_FIDELITY};
use crate::receiving::ReceivedByLink;
use crate::{Error, Globals, whole_file};

/// The stream of the report, in words and in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The usual place.
    Stdout,
    /// When stdout belongs to the command or to a capture.
    Stderr,
}

/// Writes the report where it was asked for, and judges it: 1 if the run
/// ended early or the report's file cannot be written, 3 if `--require` is not met, else 0. Every unmet condition is
/// a line on stderr.
///
/// # Errors
/// If it cannot be written.
pub fn finish(
    report: &RunReport,
    args: &ReportArgs,
    globals: &Globals,
    place: Place,
) -> Result<ExitCode, Error> {
    finish_as(report, report, args, globals, place)
}

/// Has a report of the error alone written if a plugin never lets the main
/// thread go on, for a command that calls plugins there.
pub fn on_stuck_plugin(seed: u64, args: &ReportArgs, globals: &Globals, place: Place) {
    let (args, globals) = (args.clone(), globals.clone());
    shutdown::on_stuck_main(move |error| {
        let report = RunReport {
            seed,
            error: Some(error),
            ..RunReport::default()
        };
        if let Err(error) = finish(&report, &args, &globals, place) {
            print_line(format_args!("error: {error}"));
        }
    });
}

/// Like [`finish`], for a command whose JSON holds more than the report.
///
/// # Errors
/// If it cannot be written.
pub fn finish_as(
    json: &impl Serialize,
    report: &RunReport,
    args: &ReportArgs,
    globals: &Globals,
    place: Place,
) -> Result<ExitCode, Error> {
    finish_received(json, report, &ReceivedByLink::new(), args, globals, place)
}

/// Like [`finish_as`], for a run with receivers.
///
/// # Errors
/// If it cannot be written.
pub fn finish_received(
    json: &impl Serialize,
    report: &RunReport,
    received: &ReceivedByLink,
    args: &ReportArgs,
    globals: &Globals,
    place: Place,
) -> Result<ExitCode, Error> {
    let text = |out: &mut Vec<u8>, paint: Paint| {
        text::write(out, report, received, globals.verbose, paint)
    };
    finish_all(json, report, received, text, args, globals, place)
}

/// Like [`finish_as`], for a command that has its own words for its report. A
/// reader of the report that is gone changes neither file nor exit code.
///
/// # Errors
/// If it cannot be written.
pub fn finish_with(
    json: &impl Serialize,
    report: &RunReport,
    text: impl Fn(&mut Vec<u8>, Paint) -> io::Result<()>,
    args: &ReportArgs,
    globals: &Globals,
    place: Place,
) -> Result<ExitCode, Error> {
    let received = ReceivedByLink::new();
    finish_all(json, report, &received, text, args, globals, place)
}

fn finish_all(
    json: &impl Serialize,
    report: &RunReport,
    received: &ReceivedByLink,
    text: impl Fn(&mut Vec<u8>, Paint) -> io::Result<()>,
    args: &ReportArgs,
    globals: &Globals,
    place: Place,
) -> Result<ExitCode, Error> {
    let kept = write_file(args.report.as_deref(), json);
    ignore_closed(match place {
        Place::Stdout if globals.json => write_json(&mut io::stdout().lock(), json),
        // Last of all, see below.
        Place::Stderr if globals.json => Ok(()),
        Place::Stdout => write_text(&mut io::stdout(), text, globals),
        Place::Stderr if globals.quiet => Ok(()),
        Place::Stderr => {
            let _ = write_text(&mut io::stderr(), text, globals);
            Ok(())
        }
    })?;
    // A report on stderr has it already.
    let shown = place == Place::Stderr && (globals.json || !globals.quiet);
    if let Some(error) = &report.error
        && !shown
    {
        print_line(format_args!("error: {error}"));
    }
    let mut unmet = Vec::new();
    if let Some(required) = &args.require {
        unmet.extend(required.unmet(report));
        unmet.extend(required.unmet_by_receivers(&report.links, received));
    }
    for clause in &unmet {
        print_line(format_args!("not met: {clause}"));
    }
    // The report has been shown: the file is missing, and nothing else.
    if let Err(error) = &kept {
        print_line(format_args!("error: {error}"));
    }
    if globals.json && place == Place::Stderr {
        // The end of stderr: lines before it are of others.
        let mut out = BufWriter::new(io::stderr().lock());
        ignore_closed(write_json(&mut out, json).and_then(|()| out.flush()))?;
    }
    let failed = report.error.is_some() || kept.is_err();
    Ok(match (failed, unmet.is_empty()) {
        (true, _) => ExitCode::from(EXIT_FAILED),
        (false, false) => ExitCode::from(EXIT_FIDELITY),
        (false, true) => ExitCode::SUCCESS,
    })
}

fn write_text(
    stream: &mut (impl Write + IsTerminal),
    text: impl Fn(&mut Vec<u8>, Paint) -> io::Result<()>,
    globals: &Globals,
) -> io::Result<()> {
    let paint = Paint::new(globals, stream);
    // In one piece: a command's own output may come to the same terminal.
    let mut written = Vec::new();
    text(&mut written, paint)?;
    stream.write_all(&written)
}

fn write_json(out: &mut impl Write, report: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, report)?;
    writeln!(out)
}

/// Writes a report to its file, if there is to be one.
///
/// # Errors
/// If it cannot be written; then the file is as it was before.
pub fn write_file(path: Option<&Path>, report: &impl Serialize) -> Result<(), Error> {
    let Some(path) = path else { return Ok(()) };
    whole_file::write(path, |mut out| write_json(&mut out, report)).map_err(|source| Error::File {
        path: path.to_owned(),
        action: "cannot write the report",
        source,
    })
}

/// Checks, before a run, that its report can be written to its file.
///
/// # Errors
/// If it cannot.
pub fn check_file(path: Option<&Path>) -> Result<(), Error> {
    let Some(path) = path else { return Ok(()) };
    whole_file::check(path).map_err(|source| Error::File {
        path: path.to_owned(),
        action: "the report cannot be written here; --report takes a file in a directory that \
                 exists",
        source,
    })
}
