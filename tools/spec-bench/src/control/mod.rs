//! `bench control`: a network that is changed a thousand times a second while
//! it carries traffic.
//!
//! The programs themselves run: `longwire run FILE --control …` between two
//! veth ports, with many idle links beside the one that is used, and `longwire
//! generate` with a receiver, whose probes are numbered. The link loses nothing
//! and keeps the order, whatever its delay and rate are changed to; so every
//! probe that is lost or disordered is the emulator's own.

mod load;
mod site;

use std::time::Duration;

use clap::Args;
use longwire_engine::Nanos;
use serde::Serialize;
use serde_json::Value;

use self::load::{Asked, Load};
use self::site::Site;
use longwire::Error;
use longwire::report::artifacts::is_late;
use longwire::table::Table;

/// What `bench control` takes.
#[derive(Clone, Debug, Args)]
pub struct ControlArgs {
    /// How long each row is measured
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub time: Nanos,
    /// Packets a second
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub pps: u64,
    /// Changes a second, of the second row
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub changes: u32,
    /// Links beside the one that is used
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    pub links: u32,
}

impl ControlArgs {
    pub(super) fn quickened(&self, quick: bool) -> ControlArgs {
        match quick {
            false => self.clone(),
            true => ControlArgs {
                time: Nanos::from_millis(500),
                pps: 2_000,
                changes: 100,
                links: 100,
            },
        }
    }
}

/// One run.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    /// Changes a second that were asked for.
    changes_per_s: u32,
    /// Those that were made, a second.
    changed_per_s: f64,
    /// Those that failed; must be none.
    changes_failed: u64,
    /// From asking to the answer that it was made.
    change_ms: Option<Quantiles>,
    /// From asking for one link to the answer.
    get_ms: Option<Quantiles>,
    /// Probes that crossed the link.
    sent: u64,
    /// Probes that did not arrive.
    lost: u64,
    /// Frames that the receiver had no room for: they are no loss of the link.
    unseen: u64,
    reordered: u64,
    duplicates: u64,
    /// What the emulator itself could not do, lateness apart.
    artifacts: u64,
    /// Frames handed over more than the tolerance (1 ms) late.
    late: u64,
    /// The 99th percentile of lateness at the port of the receiver.
    late_p99_us: f64,
    /// What the model dropped: must be none.
    dropped: u64,
}

/// Of times in milliseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Quantiles {
    p50: f64,
    p99: f64,
    max: f64,
}

pub(super) fn measure(args: &ControlArgs) -> Result<Vec<Row>, Error> {
    let rates = [0, args.changes];
    rates.into_iter().map(|rate| row(args, rate)).collect()
}

fn row(args: &ControlArgs, changes_per_s: u32) -> Result<Row, Error> {
    let time = Duration::from_nanos(args.time.as_nanos());
    let site = Site::new(args.links)?;
    let running = site.start()?;
    running.wait()?;
    let generator = running.generate(args.pps, time)?;
    let load = Load {
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

/// One row of what all three said.
fn summed(
    changes_per_s: u32,
    changes: &Asked,
    gets: &Asked,
    generated: &Value,
    report: &Value,
    time: Duration,
) -> Row {
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
    Row {
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

pub(super) fn print(rows: &[Row]) {
    println!("Probes across a link whose delay and rate change meanwhile, through two veth ports;");
    println!("times in ms. The link loses nothing and keeps the order.");
    let columns = [
        "changes/s",
        "done/s",
        "failed",
        "p50",
        "p99",
        "GET p50",
        "p99",
        "max",
        "sent",
        "lost",
        "reordered",
        "artifacts",
        "late",
        "late p99 us",
        "unseen",
    ];
    let mut table = Table::new(&columns);
    let quantile = |found: Option<Quantiles>, of: fn(Quantiles) -> f64| {
        found.map_or("-".to_owned(), |found| format!("{:.3}", of(found)))
    };
    for row in rows {
        table.row(vec![
            row.changes_per_s.to_string(),
            format!("{:.1}", row.changed_per_s),
            row.changes_failed.to_string(),
            quantile(row.change_ms, |times| times.p50),
            quantile(row.change_ms, |times| times.p99),
            quantile(row.get_ms, |times| times.p50),
            quantile(row.get_ms, |times| times.p99),
            quantile(row.get_ms, |times| times.max),
            row.sent.to_string(),
            (row.lost + row.dropped).to_string(),
            (row.reordered + row.duplicates).to_string(),
            row.artifacts.to_string(),
            row.late.to_string(),
            format!("{:.1}", row.late_p99_us),
            row.unseen.to_string(),
        ]);
    }
    table.print();
}
