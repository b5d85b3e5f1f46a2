//! `longwire generate --profile`: device tests, each consisting of several generator runs.

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use longwire_engine::{Nanos, Probability};
use longwire_traffic::arrivals::LoadRate;
use longwire_traffic::profile::{PortTester, ProfileError, ProfileReport, Rfc2544, Rfc2889, Y1564};
use longwire_traffic::sizes::FCS_LEN;

use self::service::services;
use crate::cli::{TrafficArgs, refuse_page};
use crate::commands::generate::GenerateArgs;
use crate::commands::replay;
use crate::error::EXIT_FIDELITY;
use crate::receiving::refused;
use crate::report::{print_json, print_line, write_file};
use crate::signals::stop_flag;
use crate::{Error, Globals};

mod args;
mod service;
mod text;

pub use args::{ProfileArgs, ProfileKind};
pub use text::probe_lines;

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
    let tester = &mut tester(args, globals, &stop)?;
    let (profile, traffic) = (&args.profile, &args.traffic);
    let report = match profile.profile {
        Some(ProfileKind::Y1564) => ProfileReport::Y1564(y1564(profile, traffic)?.run(tester)?),
        Some(ProfileKind::Rfc2889) => {
            ProfileReport::Rfc2889(rfc2889(profile, traffic)?.run(tester)?)
        }
        _ => ProfileReport::Rfc2544(rfc2544(profile, traffic)?.run(tester)?),
    };
    let kept = write_file(args.pump.report.report.as_deref(), &report);
    if globals.json {
        print_json(&report)?;
    } else if !globals.quiet {
        text::print(&report, globals);
    }
    // Check after printing the report, which is always shown.
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
            "--profile sets --topspeed, --count and --time itself; give --rate and --trial",
        ),
        (
            profile.resolution == Probability::ZERO,
            "the search with --resolution 0% would never end; use 0.1%",
        ),
        (
            profile.trial < Nanos::from_millis(100),
            "--trial is below the minimum of 100ms",
        ),
        (
            record.capture.is_some() || record.log.is_some(),
            "--capture and --log do not work with --profile, which makes several runs",
        ),
        (
            !has_rate,
            "--profile needs --rate, the 100 % load, such as 1gbit",
        ),
    ])
}

/// Returns the tester between the --to and --receive ports.
///
/// # Errors
/// If an option is invalid.
fn tester<'a>(
    args: &'a GenerateArgs,
    globals: &'a Globals,
    stop: &'a AtomicBool,
) -> Result<PortTester<'a, Error>, Error> {
    // Individual runs print only errors.
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
        start: Box::new(move |feed| {
            let outputs = args.pump.outputs(false, feed.is_paced())?;
            Ok(replay::start(&args.pump, feed, outputs, &quiet)?.0)
        }),
        progress: Box::new(|trial, outcome| {
            if globals.talks() {
                print_line(format_args!("{}", text::progress(trial, outcome)));
            }
            Ok(())
        }),
    })
}

/// Returns the RFC 2544 benchmarks that the options select.
///
/// # Errors
/// If the rate is missing, or its framing is invalid.
pub(super) fn rfc2544(args: &ProfileArgs, traffic: &TrafficArgs) -> Result<Rfc2544, Error> {
    let rate = traffic.load_rate("ethernet")?;
    let sizes = args.frame_sizes.iter();
    Ok(Rfc2544 {
        rate: rate.ok_or_else(|| Error::usage("give --rate, the 100 % load, such as 1gbit"))?,
        sizes: sizes.map(|size| size - FCS_LEN).collect(),
        tests: args.tests.iter().map(|test| test.test()).collect(),
        trial: args.trial,
        resolution: parts_per_million(args.resolution),
        acceptable_loss: args.acceptable_loss.as_f64(),
        min_throughput: parts_per_million(args.min_throughput),
        bursts: args.bursts,
    })
}

/// Returns the RFC 2889 benchmarks that the options select.
///
/// # Errors
/// If the rate is missing, or its framing is invalid.
pub(super) fn rfc2889(args: &ProfileArgs, traffic: &TrafficArgs) -> Result<Rfc2889, Error> {
    Ok(Rfc2889 {
        loads: rfc2544(args, traffic)?,
        tests: args.switch_tests.iter().map(|test| test.test()).collect(),
        addresses: args.addresses,
        learning_rate: LoadRate::Packets(args.teaching_rate),
        aging: args.aging_time,
    })
}

/// Returns the Y.1564 activation test that the options describe.
///
/// # Errors
/// If there is no service, or a service or the arrivals are invalid.
pub(super) fn y1564(args: &ProfileArgs, traffic: &TrafficArgs) -> Result<Y1564, Error> {
    Ok(Y1564 {
        services: services(args)?,
        step: args.trial,
        performance: args.performance_time,
        arrivals: traffic.arrival_model()?,
    })
}

/// Converts a probability to parts per million; a nonzero probability yields at least 1.
fn parts_per_million(share: Probability) -> u32 {
    let parts = (share.as_f64() * 1e6).round() as u32;
    parts.max(u32::from(share != Probability::ZERO))
}
