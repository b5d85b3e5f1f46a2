//! The full text report, for `--verbose`.

use std::collections::BTreeSet;
use std::io::{self, Write};

use longwire_hosts::HostsReport;
use longwire_network::Changes;
use longwire_runtime::counters::{Effects, LATENESS, NamedCounts, QueueLengths, Spread};
use longwire_runtime::deciding::PortReport;
use longwire_runtime::report::{DISTRIBUTIONS, Distribution};
use longwire_runtime::{LinkReport, RunReport};

use super::changes::change_line;
use super::columns::{Columns, Tone};
use super::ending::Ending;
use super::overload::Overload;
use super::require::Place;
use super::summary::findings;
use super::verdict::Verdict;
use super::words::{count, count_of, micros};
use super::{received, replay};
use crate::cli::Paint;
use crate::table::Table;

/// Maximum number of changes shown.
const CHANGES_SHOWN: usize = 20;

/// Writes the full report, including counters that are 0.
///
/// # Errors
/// If `out` cannot be written.
pub fn write(
    out: &mut impl Write,
    ending: &Ending<'_>,
    verdict: &Verdict,
    paint: Paint,
) -> io::Result<()> {
    let report = ending.run;
    write_ports(out, &report.ports, paint)?;
    write_links(out, &report.links, paint)?;
    if let Some(line) = Overload::of(&report.links).and_then(|overload| overload.range()) {
        writeln!(out, "{line}")?;
    }
    replay::write_inputs(out, &report.inputs, paint)?;
    if ending.shows_receivers {
        received::write(out, &report.links, &ending.received, paint)?;
    }
    if let Some(hosts) = &report.hosts {
        write_hosts(out, hosts)?;
    }
    write_changes(out, &ending.changes)?;
    write_run(out, report, paint)?;
    verdict.write_stops(out, &report.stops)?;
    verdict.write(out, paint)?;
    let mut lines = ending.lines.iter();
    lines.try_for_each(|line| writeln!(out, "{line}"))
}

fn write_ports(out: &mut impl Write, ports: &[PortReport], paint: Paint) -> io::Result<()> {
    let mut table = Columns::new("port", ports, |port| &port.name, |port| &port.traffic);
    for kind in names_of(table.items().map(|port| &port.artifacts)) {
        table.row("artifacts", kind, Tone::Bad, |port| {
            share(port.artifacts.of(kind), Place::Port(port).frames())
        });
    }
    let excused = |port: &PortReport| !port.lateness_own_us.is_as_late_as(&port.lateness_us);
    let all: fn(&PortReport) -> Spread = |port| port.lateness_us;
    let own: fn(&PortReport) -> Spread = |port| port.lateness_own_us;
    let own = table.items().any(excused).then_some(("own lateness", own));
    for (group, of) in std::iter::once(("lateness", all)).chain(own) {
        for statistic in &LATENESS {
            let cell = |port: &PortReport| match port.traffic.packets_out {
                0 => "-".to_owned(),
                _ => micros((statistic.of)(&of(port))),
            };
            table.row(group, statistic.label, Tone::Plain, cell);
        }
    }
    table.row("memory", "max", Tone::Plain, |port| {
        binary(port.memory.memory_max)
    });
    table.write(out, paint)
}

fn write_links(out: &mut impl Write, links: &[LinkReport], paint: Paint) -> io::Result<()> {
    let mut table = Columns::new("link", links, |link| &link.name, |link| &link.traffic);
    for reason in names_of(table.items().map(|link| &link.drops)) {
        table.row("drops", reason, Tone::Emulated, |link| {
            share(link.drops.of(reason), link.traffic.packets_in)
        });
    }
    effects(&mut table);
    table.row("late", "", Tone::Bad, |link| {
        count(link.handovers.late + link.handovers.overload)
    });
    let queued = |of: fn(&QueueLengths) -> u64| {
        move |link: &LinkReport| link.queue.map_or("-".to_owned(), |queue| count(of(&queue)))
    };
    let packets = queued(|queue| queue.queue_packets_max);
    let bytes = queued(|queue| queue.queue_bytes_max);
    table.row("queue", "max packets", Tone::Plain, packets);
    table.row("queue", "max bytes", Tone::Plain, bytes);
    for distribution in &DISTRIBUTIONS {
        departures(&mut table, distribution);
    }
    table.row("in flight", "", Tone::Plain, |link| count(link.in_flight));
    table.write(out, paint)
}

/// Adds rows for effects: a fixed set always, others only if not 0.
fn effects(table: &mut Columns<'_, LinkReport>) {
    for (index, counter) in Effects::COUNTERS.iter().enumerate() {
        let value = |link: &LinkReport| {
            let value = link.effects.counted().nth(index);
            value.map_or(0, |(_, value)| value)
        };
        let (group, name) = match counter.row {
            Some(row) => row,
            None if table.items().any(|link| value(link) > 0) => ("effects", counter.name),
            None => continue,
        };
        table.row(group, name, Tone::Emulated, |link| {
            share(value(link), link.traffic.packets_in)
        });
    }
}

/// Adds rows for a replay's departure times.
fn departures(table: &mut Columns<'_, LinkReport>, distribution: &Distribution) {
    let has = |is: fn(&LinkReport) -> bool| table.items().any(is);
    let (name, extra): (_, fn(&LinkReport) -> String) = match distribution.name {
        "gap" if has(|link| link.departures.is_some()) => ("drift", drift),
        "sent" if has(|link| link.send_stamps.is_some()) => ("stamps", stamps),
        _ => return,
    };
    for statistic in &LATENESS[..4] {
        table.row(distribution.group, statistic.label, Tone::Plain, |link| {
            let found = (distribution.of)(link);
            found.map_or("-".to_owned(), |found| micros((statistic.of)(&found)))
        });
    }
    table.row(distribution.group, name, Tone::Plain, extra);
}

fn drift(link: &LinkReport) -> String {
    let drift = link.departures.as_ref().and_then(|found| found.drift_ppm);
    drift.map_or("-".to_owned(), |drift| format!("{drift:.3} ppm"))
}

fn stamps(link: &LinkReport) -> String {
    link.send_stamps.as_ref().map_or("-".to_owned(), |found| {
        format!("{} by {}", count(found.count), found.by)
    })
}

/// Writes a row for each other host.
fn write_hosts(out: &mut impl Write, hosts: &HostsReport) -> io::Result<()> {
    let mut table =
        Table::headed("host | sent | received | lost | late | round trip us | clock ms | ± us");
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

/// Returns the union of the counter names.
fn names_of<'a>(counts: impl Iterator<Item = &'a NamedCounts>) -> BTreeSet<&'a str> {
    let names = counts.flat_map(|counts| counts.keys());
    names.map(AsRef::as_ref).collect()
}

/// Formats a count with its percentage of the total: `12 (0.10%)`.
fn share(part: u64, whole: u64) -> String {
    if part == 0 || whole == 0 {
        return count(part);
    }
    let percent = part as f64 / whole as f64 * 100.0;
    format!("{} ({percent:.2}%)", count(part))
}

/// Formats a memory size: `12.5 MiB`.
fn binary(bytes: u64) -> String {
    match bytes as f64 {
        b if b >= 1_073_741_824.0 => format!("{:.1} GiB", b / 1_073_741_824.0),
        b if b >= 1_048_576.0 => format!("{:.1} MiB", b / 1_048_576.0),
        b => format!("{:.1} KiB", b / 1_024.0),
    }
}

#[cfg(test)]
mod tests {
    use longwire_runtime::counters::Traffic;

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
