//! The whole report of links, for `--verbose`: a column a link, a row a measure.

use std::collections::BTreeSet;
use std::io::{self, Write};

use longwire_runtime::ledger::{Effects, LATENESS, NamedCounts};
use longwire_runtime::report::DISTRIBUTIONS;
use longwire_runtime::{LinkReport, RunReport};

use super::require::frames;
use super::summary::Summary;
use super::verdict::Verdict;
use super::words::{count, micros};
use super::{received, replay};
use crate::cli::Paint;
use crate::receiving::ReceivedByLink;

/// One row: a measure, and a cell for each link.
struct ReportRow {
    group: &'static str,
    name: String,
    cells: Vec<String>,
    tone: Tone,
}

/// The colour of a row's cells.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tone {
    Plain,
    /// Caused by the models.
    Emulated,
    /// Caused by the emulator.
    Wrong,
}

/// Writes the report: its summary, or if `verbose` all of it, with counters at zero.
///
/// # Errors
/// If `out` cannot be written.
pub fn write(
    out: &mut impl Write,
    report: &RunReport,
    received: &ReceivedByLink,
    verbose: bool,
    paint: Paint,
) -> io::Result<()> {
    if !verbose {
        return Summary::of_links(report, received).write(out, paint);
    }
    write_table(out, &report.links, paint)?;
    replay::write_inputs(out, &report.inputs, paint)?;
    received::write(out, &report.links, received, paint)?;
    let cpu = match report.cpu_s {
        cpu if cpu > 0.0 => format!(", {cpu:.2} s of CPU"),
        _ => String::new(),
    };
    let line = format!("{:.3} s{cpu}, seed {}", report.duration_s, report.seed);
    writeln!(out, "{}", paint.dim(line))?;
    for note in &report.closing_notes {
        writeln!(out, "note: {note}")?;
    }
    let verdict = Verdict::of(report);
    verdict.write_stops(out, &report.stops)?;
    verdict.write(out, paint)
}

fn write_table(out: &mut impl Write, links: &[LinkReport], paint: Paint) -> io::Result<()> {
    let rows = rows(links);
    let names: Vec<&str> = links.iter().map(|link| link.name.as_str()).collect();
    let group_width = width(rows.iter().map(|row| row.group));
    let name_width = width(rows.iter().map(|row| row.name.as_str()));
    let cell_width = |index: usize| {
        let cells = rows.iter().filter_map(move |row| row.cells.get(index));
        width(cells.map(String::as_str)).max(names[index].len())
    };
    let widths: Vec<usize> = (0..links.len()).map(cell_width).collect();

    write!(out, "{:group_width$} {:name_width$}", "", "")?;
    for (name, width) in names.iter().zip(&widths) {
        let name = format!("{name:>width$}");
        write!(out, "  {}", paint.bold(name))?;
    }
    writeln!(out)?;
    let mut last_group = "";
    for row in &rows {
        // The name of a group precedes its first row only.
        let group = if row.group == last_group {
            ""
        } else {
            row.group
        };
        last_group = row.group;
        write!(out, "{group:group_width$} {:name_width$}", row.name)?;
        for (cell, width) in row.cells.iter().zip(&widths) {
            let text = format!("{cell:>width$}");
            let text = match row.tone {
                _ if cell == "0" || cell == "-" => paint.dim(text),
                Tone::Plain => text,
                Tone::Emulated => paint.warn(text),
                Tone::Wrong => paint.bad(text),
            };
            write!(out, "  {text}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn width<'a>(texts: impl Iterator<Item = &'a str>) -> usize {
    texts.map(str::len).max().unwrap_or(0)
}

/// Returns the rows.
fn rows(links: &[LinkReport]) -> Vec<ReportRow> {
    let mut rows = Vec::new();
    let mut add = |group, name: &str, tone, cell: &dyn Fn(&LinkReport) -> String| {
        rows.push(ReportRow {
            group,
            name: name.to_owned(),
            cells: links.iter().map(cell).collect(),
            tone,
        });
    };
    add("in", "packets", Tone::Plain, &|link| {
        count(link.traffic.packets_in)
    });
    add("in", "bytes", Tone::Plain, &|link| {
        count(link.traffic.bytes_in)
    });
    add("out", "packets", Tone::Plain, &|link| {
        count(link.traffic.packets_out)
    });
    add("out", "bytes", Tone::Plain, &|link| {
        count(link.traffic.bytes_out)
    });
    for reason in names(links, |link| &link.drops) {
        add("drops", reason, Tone::Emulated, &|link| {
            share(link.drops.of(reason), link.traffic.packets_in)
        });
    }
    for kind in names(links, |link| &link.artifacts) {
        add("artifacts", kind, Tone::Wrong, &|link| {
            share(link.artifacts.of(kind), frames(link))
        });
    }
    distributions(links, &mut add);
    add("queue", "max packets", Tone::Plain, &|link| {
        count(link.queue.queue_packets_max)
    });
    add("queue", "max bytes", Tone::Plain, &|link| {
        count(link.queue.queue_bytes_max)
    });
    effects(&mut add, links);
    add("delay line", "in flight", Tone::Plain, &|link| {
        count(link.in_flight)
    });
    add("memory", "max", Tone::Plain, &|link| {
        binary(link.memory.memory_max)
    });
    rows
}

/// Adds the rows of effects: those with a row in the table always, others unless they are 0.
fn effects(add: &mut AddRow<'_>, links: &[LinkReport]) {
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
        add(group, name, Tone::Emulated, &|link| {
            share(value(link), link.traffic.packets_in)
        });
    }
}

/// Adds a row: its group, its name, its tone, and the cell of each link.
type AddRow<'a> = dyn FnMut(&'static str, &str, Tone, &dyn Fn(&LinkReport) -> String) + 'a;

/// Returns the rows of distributions: of lateness, of the emulator's own where it differs,
/// and of a replay's departures.
fn distributions(links: &[LinkReport], add: &mut AddRow<'_>) {
    let excused = |link: &LinkReport| !link.lateness_own_us.is_as_late_as(&link.lateness_us);
    let excused = links.iter().any(excused);
    for distribution in &DISTRIBUTIONS {
        let statistics = match distribution.name {
            "lateness" => &LATENESS[..],
            "lateness-own" if !excused => &[],
            "gap" if links.iter().all(|link| link.departures.is_none()) => &[],
            "sent" if links.iter().all(|link| link.send_stamps.is_none()) => &[],
            _ => &LATENESS[..4],
        };
        for statistic in statistics {
            add(distribution.group, statistic.label, Tone::Plain, &|link| {
                let found = (distribution.of)(link);
                let is_lateness = distribution.name.starts_with("lateness");
                let found = found.filter(|_| !is_lateness || link.traffic.packets_out > 0);
                found.map_or("-".to_owned(), |found| micros((statistic.of)(&found)))
            });
        }
        match distribution.name {
            "gap" if !statistics.is_empty() => add("drift", "", Tone::Plain, &drift),
            "sent" if !statistics.is_empty() => {
                add(distribution.group, "stamps", Tone::Plain, &stamps);
            }
            _ => {}
        }
    }
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

/// Returns the names of counts of all links.
fn names<'a>(
    links: &'a [LinkReport],
    counts: impl Fn(&'a LinkReport) -> &'a NamedCounts,
) -> BTreeSet<&'a str> {
    let counts = links.iter().flat_map(|link| counts(link).keys());
    counts.map(AsRef::as_ref).collect()
}

/// Formats a count and its share of the whole: `12 (0.10%)`.
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
    fn the_table_has_a_column_a_link_and_all_counters() {
        let link = |name: &str, lost| LinkReport {
            name: name.to_owned(),
            traffic: Traffic {
                packets_in: 1_000,
                packets_out: 1_000 - lost,
                ..Traffic::default()
            },
            drops: [("loss", lost), ("mtu", 0)].into(),
            artifacts: [("late", 0)].into(),
            effects: Effects {
                ecn_marked: lost,
                ..Effects::default()
            },
            ..LinkReport::default()
        };
        let mut out = Vec::new();
        let links = [link("link.up", 10), link("link.down", 0)];
        assert!(write_table(&mut out, &links, Paint::PLAIN).is_ok());
        let text = String::from_utf8_lossy(&out);
        let row = |name: &str| {
            let line = text.lines().find(|line| line.contains(name));
            let words: Vec<&str> = line.unwrap_or("").split_whitespace().collect();
            words.join(" ")
        };
        assert_eq!(row("link."), "link.up link.down");
        assert_eq!(row("loss "), "drops loss 10 (1.00%) 0");
        assert_eq!(row("mtu"), "mtu 0 0");
        assert_eq!(row("late "), "artifacts late 0 0");
        assert_eq!(row("ecn_marked"), "effects ecn_marked 10 (1.00%) 0");
        assert_eq!(row("icmp_sent"), "");
        assert_eq!(row("in flight"), "delay line in flight 0 0");
        let widths: BTreeSet<usize> = text.lines().map(str::len).collect();
        assert_eq!(widths.len(), 1, "columns are aligned:\n{text}");
    }
}
