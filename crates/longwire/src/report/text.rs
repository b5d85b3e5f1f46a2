//! The report as text: its summary, or everything with `--verbose`.

use std::collections::BTreeSet;
use std::io::{self, Write};

use longwire_fabric::Changes;
use longwire_hosts::HostsReport;
use longwire_runtime::fabric::PortReport;
use longwire_runtime::ledger::{Effects, LATENESS, NamedCounts, Spread};
use longwire_runtime::report::{DISTRIBUTIONS, Distribution};
use longwire_runtime::{LinkReport, RunReport};

use super::changes::change_line;
use super::columns::{Columns, Tone};
use super::overload::Overload;
use super::require::Place;
use super::summary::{Summary, findings};
use super::verdict::Verdict;
use super::words::{count, count_of, micros};
use super::{received, replay};
use crate::cli::Paint;
use crate::receiving::ReceivedByLink;
use crate::table::Table;

/// Maximum columns of ports and links.
const COLUMNS_MAX: usize = 8;

/// Maximum changes shown as text.
const CHANGES_SHOWN: usize = 20;

/// The parts of a report that are shown as text.
#[derive(Clone, Copy)]
pub struct Shown<'a> {
    /// The report.
    pub run: &'a RunReport,
    /// The changes of the run.
    pub changes: &'a Changes,
    /// The reports of receivers.
    pub received: &'a ReceivedByLink,
}

/// Writes the report: its summary, or if `verbose` all of it, including counters of
/// zero.
///
/// # Errors
/// If `out` cannot be written.
pub fn write(
    out: &mut impl Write,
    shown: &Shown<'_>,
    verbose: bool,
    paint: Paint,
) -> io::Result<()> {
    if !verbose {
        return Summary::of(shown).write(out, paint);
    }
    let report = shown.run;
    write_ports(out, &report.ports, paint)?;
    write_links(out, &report.links, paint)?;
    if let Some(line) = Overload::of(&report.links).and_then(|overload| overload.range()) {
        writeln!(out, "{line}")?;
    }
    replay::write_inputs(out, &report.inputs, paint)?;
    received::write(out, &report.links, shown.received, paint)?;
    if let Some(hosts) = &report.hosts {
        write_hosts(out, hosts)?;
    }
    write_changes(out, shown.changes)?;
    write_run(out, report, paint)?;
    let verdict = Verdict::of(report);
    verdict.write_stops(out, &report.stops)?;
    verdict.write(out, paint)
}

/// Returns the items with the most frames, in their original order, and a remark about
/// the rest.
fn busiest<'a, T>(all: &'a [T], frames: fn(&T) -> u64, noun: &str) -> (Vec<&'a T>, Option<String>) {
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|index| std::cmp::Reverse(frames(&all[*index])));
    order.truncate(COLUMNS_MAX);
    order.sort_unstable();
    let hidden = all.len().saturating_sub(COLUMNS_MAX) as u64;
    let remark = (hidden > 0).then(|| {
        let more = count_of(hidden, &format!("more {noun}"));
        format!("{more}; --json has all {noun}s")
    });
    (order.into_iter().map(|index| &all[index]).collect(), remark)
}

fn write_ports(out: &mut impl Write, ports: &[PortReport], paint: Paint) -> io::Result<()> {
    let (ports, remark) = busiest(ports, |port| port.traffic.packets_in, "port");
    let names = ports.iter().map(|port| port.name.as_str());
    let mut columns = Columns::new("port", names.collect());
    let plain = Tone::Plain;
    columns.row(
        "in",
        "packets",
        plain,
        ports.iter().map(|port| count(port.traffic.packets_in)),
    );
    columns.row(
        "in",
        "bytes",
        plain,
        ports.iter().map(|port| count(port.traffic.bytes_in)),
    );
    columns.row(
        "out",
        "packets",
        plain,
        ports.iter().map(|port| count(port.traffic.packets_out)),
    );
    columns.row(
        "out",
        "bytes",
        plain,
        ports.iter().map(|port| count(port.traffic.bytes_out)),
    );
    for kind in names_of(ports.iter().map(|port| &port.artifacts)) {
        let cells = ports.iter().map(|port| {
            let frames = Place::Port(port).frames();
            share(port.artifacts.of(kind), frames)
        });
        columns.row("artifacts", kind, Tone::Bad, cells);
    }
    let excused = |port: &&PortReport| !port.lateness_own_us.is_as_late_as(&port.lateness_us);
    let all: fn(&PortReport) -> Spread = |port| port.lateness_us;
    let own: fn(&PortReport) -> Spread = |port| port.lateness_own_us;
    let of = [("lateness", all)];
    let own = ports.iter().any(excused).then_some(("own lateness", own));
    for (group, of) in of.into_iter().chain(own) {
        for statistic in &LATENESS {
            let cells = ports.iter().map(|port| match port.traffic.packets_out {
                0 => "-".to_owned(),
                _ => micros((statistic.of)(&of(port))),
            });
            columns.row(group, statistic.label, plain, cells);
        }
    }
    columns.row(
        "memory",
        "max",
        plain,
        ports.iter().map(|port| binary(port.memory.memory_max)),
    );
    columns.write(out, paint)?;
    remark.map_or(Ok(()), |remark| writeln!(out, "{remark}"))
}

fn write_links(out: &mut impl Write, links: &[LinkReport], paint: Paint) -> io::Result<()> {
    let (links, remark) = busiest(links, |link| link.traffic.packets_in, "link");
    let names = links.iter().map(|link| link.name.as_str());
    let mut columns = Columns::new("link", names.collect());
    let plain = Tone::Plain;
    columns.row(
        "in",
        "packets",
        plain,
        links.iter().map(|link| count(link.traffic.packets_in)),
    );
    columns.row(
        "in",
        "bytes",
        plain,
        links.iter().map(|link| count(link.traffic.bytes_in)),
    );
    columns.row(
        "out",
        "packets",
        plain,
        links.iter().map(|link| count(link.traffic.packets_out)),
    );
    columns.row(
        "out",
        "bytes",
        plain,
        links.iter().map(|link| count(link.traffic.bytes_out)),
    );
    for reason in names_of(links.iter().map(|link| &link.drops)) {
        let cells = links
            .iter()
            .map(|link| share(link.drops.of(reason), link.traffic.packets_in));
        columns.row("drops", reason, Tone::Emulated, cells);
    }
    effects(&mut columns, &links);
    let late = links
        .iter()
        .map(|link| count(link.handovers.late + link.handovers.overload));
    columns.row("late", "", Tone::Bad, late);
    let queues = |of: fn(&LinkReport) -> Option<u64>| {
        let cells = links
            .iter()
            .map(move |link| of(link).map_or("-".to_owned(), count));
        cells.collect::<Vec<_>>().into_iter()
    };
    let packets = queues(|link| Some(link.queue?.queue_packets_max));
    columns.row("queue", "max packets", plain, packets);
    columns.row(
        "queue",
        "max bytes",
        plain,
        queues(|link| Some(link.queue?.queue_bytes_max)),
    );
    for distribution in &DISTRIBUTIONS {
        departures(&mut columns, &links, distribution);
    }
    columns.row(
        "in flight",
        "",
        plain,
        links.iter().map(|link| count(link.in_flight)),
    );
    columns.write(out, paint)?;
    remark.map_or(Ok(()), |remark| writeln!(out, "{remark}"))
}

/// Adds the rows of effects: those of a fixed row always, others if not 0.
fn effects(columns: &mut Columns<'_>, links: &[&LinkReport]) {
    for (index, counter) in Effects::COUNTERS.iter().enumerate() {
        let value = |link: &LinkReport| {
            let value = link.effects.counted().nth(index);
            value.map_or(0, |(_, value)| value)
        };
        let (group, name) = match counter.row {
            Some(row) => row,
            None if links.iter().any(|link| value(link) > 0) => ("effects", counter.name),
            None => continue,
        };
        let cells = links
            .iter()
            .map(|link| share(value(link), link.traffic.packets_in));
        columns.row(group, name, Tone::Emulated, cells);
    }
}

/// Adds the rows of a replay's departures.
fn departures(columns: &mut Columns<'_>, links: &[&LinkReport], distribution: &Distribution) {
    let (is_measured, extra): (_, fn(&LinkReport) -> String) = match distribution.name {
        "gap" => (links.iter().any(|link| link.departures.is_some()), drift),
        "sent" => (links.iter().any(|link| link.send_stamps.is_some()), stamps),
        _ => return,
    };
    if !is_measured {
        return;
    }
    for statistic in &LATENESS[..4] {
        let cells = links.iter().map(|link| {
            let found = (distribution.of)(link);
            found.map_or("-".to_owned(), |found| micros((statistic.of)(&found)))
        });
        columns.row(distribution.group, statistic.label, Tone::Plain, cells);
    }
    let name = if distribution.name == "gap" {
        "drift"
    } else {
        "stamps"
    };
    columns.row(
        distribution.group,
        name,
        Tone::Plain,
        links.iter().map(|link| extra(link)),
    );
}

fn drift(link: &LinkReport) -> String {
    let departures = link.departures.as_ref();
    let drift = departures.and_then(|found| found.drift_ppm);
    drift.map_or("-".to_owned(), |drift| format!("{drift:.3} ppm"))
}

fn stamps(link: &LinkReport) -> String {
    let stamps = link.send_stamps.as_ref();
    stamps.map_or("-".to_owned(), |found| {
        format!("{} by {}", count(found.count), found.by)
    })
}

/// Writes a row per other host.
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

fn write_changes(out: &mut impl Write, changes: &Changes) -> io::Result<()> {
    for done in changes.made.iter().take(CHANGES_SHOWN) {
        writeln!(out, "{}", change_line(done))?;
    }
    let more = changes.made.len().saturating_sub(CHANGES_SHOWN) as u64 + changes.forgotten;
    if more > 0 {
        writeln!(out, "and {}", count_of(more, "more change"))?;
    }
    Ok(())
}

fn write_run(out: &mut impl Write, run: &RunReport, paint: Paint) -> io::Result<()> {
    let switch = &run.switch;
    let flooded: u64 = switch.flooded.iter().sum();
    if switch.forwarded + flooded + run.counts.passed > 0 {
        writeln!(
            out,
            "switch: {} forwarded, {flooded} flooded, {} learnt; {} passed without a link",
            switch.forwarded,
            count_of(switch.learnt, "station"),
            run.counts.passed,
        )?;
    }
    for line in findings(run) {
        writeln!(out, "{line}")?;
    }
    let cpu = match run.cpu_s {
        cpu if cpu > 0.0 => format!(", {cpu:.2} s of CPU"),
        _ => String::new(),
    };
    let line = format!("{:.3} s{cpu}, seed {}", run.duration_s, run.seed);
    writeln!(out, "{}", paint.dim(line))?;
    for note in &run.closing_notes {
        writeln!(out, "note: {note}")?;
    }
    Ok(())
}

/// Returns the union of the counts' names.
fn names_of<'a>(counts: impl Iterator<Item = &'a NamedCounts>) -> BTreeSet<&'a str> {
    counts
        .flat_map(|counts| counts.keys())
        .map(AsRef::as_ref)
        .collect()
}

/// Formats a count and its share of the total: `12 (0.10%)`.
fn share(part: u64, whole: u64) -> String {
    if part == 0 || whole == 0 {
        return count(part);
    }
    let percent = part as f64 / whole as f64 * 100.0;
    format!("{} ({percent:.2}%)", count(part))
}

/// Formats a size in memory: `12.5 MiB`.
fn binary(bytes: u64) -> String {
    match bytes as f64 {
        b if b >= 1_073_741_824.0 => format!("{:.1} GiB", b / 1_073_741_824.0),
        b if b >= 1_048_576.0 => format!("{:.1} MiB", b / 1_048_576.0),
        b => format!("{:.1} KiB", b / 1_024.0),
    }
}

#[cfg(test)]
mod tests {
    use longwire_runtime::ledger::Traffic;

    use super::*;

    #[test]
    fn the_tables_have_a_column_a_link_or_port_and_all_counters() {
        let traffic = |lost| Traffic {
            packets_in: 1_000,
            packets_out: 1_000 - lost,
            ..Traffic::default()
        };
        let link = |name: &str, lost| LinkReport {
            name: name.to_owned(),
            traffic: traffic(lost),
            drops: [("loss", lost), ("mtu", 0)].into(),
            effects: Effects {
                ecn_marked: lost,
                ..Effects::default()
            },
            ..LinkReport::default()
        };
        let port = |name: &str| PortReport {
            name: name.to_owned(),
            traffic: traffic(0),
            artifacts: [("late", 0)].into(),
            ..PortReport::default()
        };
        let mut out = Vec::new();
        let links = [link("link.up", 10), link("link.down", 0)];
        assert!(write_links(&mut out, &links, Paint::PLAIN).is_ok());
        let of_links = out.len();
        assert!(write_ports(&mut out, &[port("a"), port("b")], Paint::PLAIN).is_ok());
        let text = String::from_utf8_lossy(&out);
        let row = |name: &str| {
            let line = text.lines().find(|line| line.contains(name));
            let words: Vec<&str> = line.unwrap_or("").split_whitespace().collect();
            words.join(" ")
        };
        assert_eq!(row("link."), "link link.up link.down");
        assert_eq!(row("loss "), "drops loss 10 (1.00%) 0");
        assert_eq!(row("mtu"), "mtu 0 0");
        assert_eq!(row("artifacts"), "artifacts late 0 0");
        assert_eq!(row("ecn_marked"), "effects ecn_marked 10 (1.00%) 0");
        assert_eq!(row("icmp_sent"), "");
        assert_eq!(row("in flight"), "in flight 0 0");
        let widths: BTreeSet<usize> = text[..of_links].lines().map(str::len).collect();
        assert_eq!(widths.len(), 1, "columns are aligned:\n{text}");
    }
}
