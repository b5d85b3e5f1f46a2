//! The report of a network as text.

mod summary;
mod verdict;

pub use summary::change_line;

use std::io::{self, Write};

use longwire_fabric::{Changes, LinkRow, NetworkReport};
use longwire_hosts::HostsReport;
use longwire_runtime::RunReport;
use longwire_units::number_of;

use crate::cli::Paint;
use crate::report::Verdict;
use crate::report::words::count_of;
use crate::table::Table;

/// Links that are shown as text; the others are in the JSON.
const SHOWN: usize = 20;

/// Changes that are shown as text.
const CHANGES_SHOWN: usize = 20;

/// Writes a report: its summary, or if `verbose` all of it.
///
/// # Errors
/// If `out` cannot be written.
pub fn write_text(
    out: &mut impl Write,
    report: &NetworkReport,
    verbose: bool,
    paint: Paint,
) -> io::Result<()> {
    if !verbose {
        return summary::of(report).write(out, paint);
    }
    write_ports(out, &report.run)?;
    write_links(out, &report.links)?;
    if let Some(line) = verdict::overload_line(report) {
        writeln!(out, "{line}")?;
    }
    if let Some(hosts) = &report.hosts {
        write_hosts(out, hosts)?;
    }
    write_changes(out, &report.changes)?;
    write_rest(out, &report.run)?;
    let verdict = verdict::of(report);
    verdict.write_stops(out, &report.run.stops)?;
    verdict.write(out, paint)
}

/// Returns the verdict on a network.
pub fn verdict_on(report: &NetworkReport) -> Verdict {
    verdict::of(report)
}

fn write_ports(out: &mut impl Write, run: &RunReport) -> io::Result<()> {
    let mut ports = Table::new(&[
        "port",
        "in",
        "out",
        "artifacts",
        "late p50 us",
        "p99",
        "max",
    ]);
    for port in &run.ports {
        let artifacts: u64 = port.artifacts.total();
        ports.row(vec![
            port.name.clone(),
            port.traffic.packets_in.to_string(),
            port.traffic.packets_out.to_string(),
            artifacts.to_string(),
            format!("{:.1}", port.lateness_us.p50),
            format!("{:.1}", port.lateness_us.p99),
            format!("{:.1}", port.lateness_us.max),
        ]);
    }
    writeln!(out, "{}", ports.text())
}

/// Writes a row for each of the other hosts.
fn write_hosts(out: &mut impl Write, hosts: &HostsReport) -> io::Result<()> {
    let mut table = Table::new(&[
        "host",
        "sent",
        "received",
        "lost",
        "late",
        "round trip us",
        "clock ms",
        "± us",
    ]);
    for peer in &hosts.peers {
        let offset = peer.clock_offset_ns;
        let offset = offset.map_or("-".to_owned(), |by| format!("{:+.3}", by as f64 / 1e6));
        table.row(vec![
            peer.name.clone(),
            peer.frames_sent.to_string(),
            peer.frames_received.to_string(),
            peer.frames_lost.to_string(),
            peer.frames_late.to_string(),
            format!("{:.1}", peer.round_trip_ns as f64 / 1e3),
            offset,
            format!("{:.1}", peer.clock_uncertainty_ns as f64 / 1e3),
        ]);
    }
    writeln!(out, "{}", table.text())
}

fn write_links(out: &mut impl Write, links: &[LinkRow]) -> io::Result<()> {
    let used = links.iter().filter(|row| row.totals.traffic.packets_in > 0);
    let mut used: Vec<&LinkRow> = used.collect();
    used.sort_by_key(|row| std::cmp::Reverse(row.totals.traffic.bytes_in));
    let mut table = Table::new(&[
        "link",
        "in",
        "out",
        "dropped",
        "late",
        "bytes out",
        "why dropped",
    ]);
    for row in used.iter().take(SHOWN) {
        let reasons = row.dropped.iter();
        let reasons = reasons.map(|(reason, count)| format!("{reason} {count}"));
        table.row(vec![
            row.name.clone(),
            row.totals.traffic.packets_in.to_string(),
            row.totals.traffic.packets_out.to_string(),
            row.totals.drops.total().to_string(),
            row.late().to_string(),
            row.totals.traffic.bytes_out.to_string(),
            reasons.collect::<Vec<_>>().join(", "),
        ]);
    }
    write!(out, "{}", table.text())?;
    let more = used.len().saturating_sub(SHOWN);
    let unused = links.len() - used.len();
    let remark = match (more, unused) {
        (0, 0) => return Ok(()),
        (0, unused) => format!("{} carried no frames", count_of(unused as u64, "link")),
        (more, 0) => format!("{more} more carried frames"),
        (more, unused) => format!("{more} more carried frames, {unused} carried none"),
    };
    writeln!(out, "{remark}; --json has all links")
}

fn write_changes(out: &mut impl Write, changes: &Changes) -> io::Result<()> {
    if changes.made.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    for done in changes.made.iter().take(CHANGES_SHOWN) {
        writeln!(out, "{}", change_line(done))?;
    }
    let more = changes.made.len().saturating_sub(CHANGES_SHOWN) as u64 + changes.forgotten;
    if more > 0 {
        writeln!(out, "and {}", number_of(more, "more change"))?;
    }
    Ok(())
}

fn write_rest(out: &mut impl Write, run: &RunReport) -> io::Result<()> {
    let switch = &run.switch;
    let flooded: u64 = switch.flooded.iter().sum();
    writeln!(
        out,
        "\nswitch: {} forwarded, {flooded} flooded, {} learnt; {} passed without a link, {} \
         dropped without a rule",
        switch.forwarded,
        number_of(switch.learnt, "station"),
        run.counts.passed,
        run.counts.unmatched_dropped
    )?;
    for line in summary::findings(run) {
        writeln!(out, "{line}")?;
    }
    writeln!(
        out,
        "{:.3} s, {:.2} s of CPU, seed {}, {} still inside",
        run.duration_s,
        run.cpu_s,
        run.seed,
        number_of(run.in_flight, "frame")
    )?;
    for note in &run.notes {
        writeln!(out, "note: {note}")?;
    }
    Ok(())
}
