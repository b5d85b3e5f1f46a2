//! `longwire generate --profile`: device tests that consist of several generator runs.

mod args;
mod config;
mod service;
mod text;

pub use args::{ProfileArgs, ProfileKind};
pub use text::probe_lines;

use std::io;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use longwire_engine::{Nanos, Probability};
use longwire_traffic::profile::{PortTester, ProfileError, ProfileReport};

use crate::cli::refuse_page;
use crate::commands::generate::{GenerateArgs, say, start_feed};
use crate::error::EXIT_FIDELITY;
use crate::receiving::refused;
use crate::report::finish::write_file;
use crate::signals::stop_flag;
use crate::{Error, Globals};

impl From<ProfileError> for Error {
    fn from(error: ProfileError) -> Error {
        match error {
            ProfileError::RateTooHigh { .. } | ProfileError::Generator(_) => Error::usage(error),
            ProfileError::Receive { port, source } => refused(&port, *source),
            error => Error::failed(error),
        }
    }
}

/// Runs the selected test; returns exit code 3 if the device fails.
///
/// # Errors
/// If an option is invalid, a port cannot be opened, or a run cannot be started.
pub fn run(args: &GenerateArgs, globals: &Globals) -> Result<ExitCode, Error> {
    check(args)?;
    refuse_page(args.pump.report.report.as_deref())?;
    let stop = stop_flag()?;
    let mut tester = tester(args, globals, &stop)?;
    let (profile, traffic) = (&args.profile, &args.traffic);
    let report = match profile.profile {
        Some(ProfileKind::Y1564) => {
            ProfileReport::Y1564(config::y1564(profile, traffic)?.run(&mut tester)?)
        }
        Some(ProfileKind::Rfc2889) => {
            ProfileReport::Rfc2889(config::rfc2889(profile, traffic)?.run(&mut tester)?)
        }
        _ => ProfileReport::Rfc2544(config::rfc2544(profile, traffic)?.run(&mut tester)?),
    };
    let kept = write_file(args.pump.report.report.as_deref(), &report);
    if globals.json {
        println!(
            "{}",
            serde_json::to_string_pretty(&report).map_err(io::Error::from)?
        );
    } else if !globals.quiet {
        text::print(&report, globals);
    }
    // After the report, which is always shown.
    kept?;
    Ok(if report.passed() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(EXIT_FIDELITY)
    })
}

/// Refuses conflicting options.
fn check(args: &GenerateArgs) -> Result<(), Error> {
    let (profile, traffic, record) = (&args.profile, &args.traffic, &args.pump.record);
    let is_paced = traffic.topspeed || traffic.count.is_some() || traffic.time.is_some();
    let has_rate = traffic.rate.is_some() || profile.profile == Some(ProfileKind::Y1564);
    Error::refuse_first(&[
        (
            args.receive.is_none(),
            "--profile needs --receive PORT behind the device",
        ),
        (
            traffic.no_probe,
            "--profile needs probes; remove --no-probe",
        ),
        (
            is_paced,
            "--profile sets --topspeed, --count and --time; give --rate and --trial",
        ),
        (
            profile.resolution == Probability::ZERO,
            "--resolution 0% never ends; use 0.1%",
        ),
        (
            profile.trial < Nanos::from_millis(100),
            "--trial is below the minimum of 100ms",
        ),
        (
            record.capture.is_some() || record.log.is_some(),
            "--capture and --log do not work with --profile, which has several runs",
        ),
        (
            !has_rate,
            "--profile needs --rate, the 100 % load, such as 1gbit",
        ),
    ])
}

/// Returns the tester between the ports of --to and --receive.
///
/// # Errors
/// If an option is invalid.
fn tester<'a>(
    args: &'a GenerateArgs,
    globals: &'a Globals,
    stop: &'a AtomicBool,
) -> Result<PortTester<'a, Error>, Error> {
    // The runs print only errors.
    let quiet = Globals {
        quiet: true,
        verbose: false,
        ..globals.clone()
    };
    Ok(PortTester {
        config: args.traffic.config(args.pump.seed.seed)?,
        receive: args.receive.as_deref().unwrap_or_default(),
        settle: args.settle,
        stop,
        start: Box::new(move |feed| Ok(start_feed(&args.pump, feed, &quiet)?.0)),
        progress: Box::new(|trial, outcome| Ok(say(&text::progress(trial, outcome), globals)?)),
    })
}
