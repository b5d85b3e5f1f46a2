//! Tests of a device that are made of several runs of the generator: how fast
//! it is without loss, how much it delays, what a service of it is worth.
//!
//! A test asks a [`Tester`] for trials and judges what they came to. The one
//! for real ports is `live::Live`. Loss that the generator or the receiver
//! may have caused is never taken for the device's: see [`trial::Verdict`].

mod args;
mod live;
mod received;
mod rfc2544;
mod rfc2889;
mod search;
mod service;
mod text;
mod trial;
mod y1564;

#[cfg(test)]
mod tests;

pub use args::{ProfileArgs, ProfileKind};
pub use received::Received;
pub use rfc2544::{Rfc2544, Rfc2544Report};
pub use rfc2889::{Rfc2889, Rfc2889Report};
pub use search::{Limit, Search, highest};
pub use service::{Limits, Service};
pub use trial::{Headers, Outcome, Tester, Trial, Verdict};
pub use y1564::{Y1564, Y1564Report};

use std::io;
use std::process::ExitCode;

use serde::Serialize;

use crate::commands::generate::GenerateArgs;
use crate::error::EXIT_FIDELITY;
use crate::report::finish::write_file;
use crate::signals::stop_flag;
use crate::{Error, Globals};

/// What a profile found.
#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Report {
    /// Throughput, latency, loss and bursts.
    Rfc2544(Rfc2544Report),
    /// A switch.
    Rfc2889(Rfc2889Report),
    /// Services.
    Y1564(Y1564Report),
}

impl Report {
    /// Whether everything was as asked for.
    pub fn passed(&self) -> bool {
        match self {
            Report::Rfc2544(report) => report.passed,
            Report::Rfc2889(report) => report.passed,
            Report::Y1564(report) => report.passed,
        }
    }
}

/// Runs the test that was asked for: exit code 3 if the device fails it.
///
/// # Errors
/// If an option is wrong, a port cannot be opened, or a run not be started.
pub fn run(args: &GenerateArgs, globals: &Globals) -> Result<ExitCode, Error> {
    args.profile.check(args)?;
    let stop = stop_flag()?;
    let mut tester = live::Live::new(args, globals, &stop)?;
    let report = match args.profile.profile {
        Some(ProfileKind::Y1564) => {
            Report::Y1564(Y1564::new(&args.profile, &args.traffic)?.run(&mut tester)?)
        }
        Some(ProfileKind::Rfc2889) => {
            Report::Rfc2889(Rfc2889::new(&args.profile, &args.traffic)?.run(&mut tester)?)
        }
        _ => Report::Rfc2544(Rfc2544::new(&args.profile, &args.traffic)?.run(&mut tester)?),
    };
    let kept = write_file(args.pump.report.report.as_deref(), &report);
    if globals.json {
        println!(
            "{}",
            serde_json::to_string_pretty(&report).map_err(io::Error::from)?
        );
    } else {
        text::print(&report, globals);
    }
    // After the report, which is shown in any case.
    kept?;
    Ok(match report.passed() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(EXIT_FIDELITY),
    })
}
