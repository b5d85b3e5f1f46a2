//! `bench control`: a network with a thousand changes per second under traffic.
//!
//! The bench starts `longwire run FILE --control …` between two veth ports, with one
//! link in use and many idle ones, and `longwire generate` with a receiver, whose
//! probes are numbered. The link drops nothing and keeps the order even when its delay
//! and rate change, so every lost or reordered probe is the emulator's fault.

mod load;
mod site;

use std::time::Duration;

use clap::Args;
use longwire_engine::Nanos;
use serde::Serialize;
use serde_json::Value;

use self::load::{ControlLoad, RequestTimes};
use self::site::Site;
use crate::harness::Measurement;
use longwire::Error;
use longwire::report::artifacts::is_late;

/// Options of `bench control`.
#[derive(Clone, Debug, Args)]
pub struct ControlArgs {
    /// Duration of each row's measurement
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub time: Nanos,
    /// Packets per second
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub pps: u64,
    /// Changes per second, of the second row
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub changes: u32,
    /// Idle links in addition to the one in use
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    pub links: u32,
}

/// The results of one run.
#[derive(Debug, Serialize)]
pub struct ControlRow {
    /// Requested changes per second.
    changes_per_s: u32,
    /// Completed changes per second.
    changed_per_s: f64,
    /// Changes that failed; must be 0.
    changes_failed: u64,
    /// Time from the request of a change to the response.
    change_ms: Option<Quantiles>,
    /// Time from the query of one link to the response.
    get_ms: Option<Quantiles>,
    /// Probes that crossed the link.
    sent: u64,
    /// Probes that did not arrive.
    lost: u64,
    /// Frames dropped by the receiver's full buffer, not by the link.
    unseen: u64,
    reordered: u64,
    duplicates: u64,
    /// Artifacts of the emulator, lateness excluded.
    artifacts: u64,
    /// Frames handed over later than the tolerance (1 ms).
    late: u64,
    /// 99th percentile of lateness at the receiver's port.
    late_p99_us: f64,
    /// Frames dropped by the model: must be 0.
    dropped: u64,
}

/// Quantiles of times in milliseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Quantiles {
    p50: f64,
    p99: f64,
    max: f64,
}

impl Measurement for ControlArgs {
    type Found = Vec<ControlRow>;

    const ABOUT: &'static str = "Probes across a link while its delay and rate change, through two veth ports.\nThe link loses nothing and keeps the order.";

    fn quick(&self) -> ControlArgs {
        ControlArgs {
            time: Nanos::from_millis(500),
            pps: 2_000,
            changes: 100,
            links: 100,
        }
    }

    fn measure(&self, _port: &str) -> Result<Vec<ControlRow>, Error> {
        let rates = [0, self.changes];
        rates.into_iter().map(|rate| row(self, rate)).collect()
    }
}

fn row(args: &ControlArgs, changes_per_s: u32) -> Result<ControlRow, Error> {
    let time = Duration::from_nanos(args.time.as_nanos());
    let site = Site::new(args.links)?;
    let running = site.start()?;
    running.wait()?;
    let generator = running.generate(args.pps, time)?;
    let load = ControlLoad {
        address: running.address(),
        changes_per_s,
        time,
    };
    let (changes, gets) = load.run()?;
    let generated = generator.finish()?;
    let report = running.stop()?;
    Ok(summed(
        changes_per_s,
        &changes,
        &gets,
        &generated,
        &report,
        time,
    ))
}

/// Combines the results of the three programs into a row.
fn summed(
    changes_per_s: u32,
    changes: &RequestTimes,
    gets: &RequestTimes,
    generated: &Value,
    report: &Value,
    time: Duration,
) -> ControlRow {
    let of = |value: &Value| value.as_u64().unwrap_or(0);
    let received = &generated["received"];
    let ports = report["ports"].as_array().map_or(&[][..], Vec::as_slice);
    let links = report["links"].as_array().map_or(&[][..], Vec::as_slice);
    let artifacts = |late: bool| {
        let kinds = ports
            .iter()
            .filter_map(|port| port["artifacts"].as_object());
        let kinds = kinds.flatten().filter(|(kind, _)| is_late(kind) == late);
        kinds.map(|(_, count)| of(count)).sum()
    };
    let dropped = links.iter().filter_map(|link| link["dropped"].as_object());
    let p99 = ports
        .iter()
        .filter_map(|port| port["lateness_us"]["p99"].as_f64());
    ControlRow {
        changes_per_s,
        changed_per_s: changes.done() as f64 / time.as_secs_f64(),
        changes_failed: changes.failed,
        change_ms: changes.quantiles(),
        get_ms: gets.quantiles(),
        sent: of(&received["sent"]),
        lost: of(&received["lost"]).saturating_sub(of(&received["unseen"])),
        unseen: of(&received["unseen"]),
        reordered: of(&received["reordered"]),
        duplicates: of(&received["duplicates"]),
        artifacts: artifacts(false),
        late: artifacts(true),
        late_p99_us: p99.fold(0.0, f64::max),
        dropped: dropped.flatten().map(|(_, count)| of(count)).sum(),
    }
}
