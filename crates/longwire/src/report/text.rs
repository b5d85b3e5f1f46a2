//! The report as a table: a column a link, a row a measure.

use std::collections::BTreeSet;
use std::io::{self, Write};

use longwire_runtime::ledger::{Effects, LATENESS, NamedCounts};
use longwire_runtime::report::DISTRIBUTIONS;
use longwire_runtime::{LinkReport, RunReport};

use super::require::frames;
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

/// Writes the report: the table, all of it if `verbose`, the receivers and the verdict.
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
    write_table(out, &report.links, verbose, paint)?;
    replay::write_inputs(out, &report.inputs, verbose, paint)?;
    received::write(out, &report.links, received, verbose, paint)?;
    let cpu = match report.cpu_s {
        cpu if cpu > 0.0 => format!(", {cpu:.2} s of CPU"),
        _ => String::new(),
    };
    let line = format!("{:.3} s{cpu}, seed {}", report.duration_s, report.seed);
    writeln!(out, "{}", paint.dim(line))?;
    for note in &report.closing_notes {
        writeln!(out, "note: {note}")?;
    }
    Verdict::of(report).write(out, paint)
}

fn write_table(
    out: &mut impl Write,
    links: &[LinkReport],
    verbose: bool,
    paint: Paint,
) -> io::Result<()> {
    let rows = rows(links, verbose);
    let group_width = width(rows.iter().map(|row| row.group));
    let name_width = width(rows.iter().map(|row| row.name.as_str()));
    let cell_width = |index: usize| {
        let cells = rows.iter().filter_map(move |row| row.cells.get(index));
        width(cells.map(String::as_str)).max(links[index].name.len())
    };
    let widths: Vec<usize> = (0..links.len()).map(cell_width).collect();

    write!(out, "{:group_width$} {:name_width$}", "", "")?;
    for (link, width) in links.iter().zip(&widths) {
        let name = format!("{:>width$}", link.name);
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

/// Returns the rows; counts of zero only with `all`.
fn rows(links: &[LinkReport], all: bool) -> Vec<ReportRow> {
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
    let drops = counted(links, all, |link| &link.drops);
    for reason in &drops {
        add("drops", reason, Tone::Emulated, &|link| {
            share(link.drops.of(reason), link.traffic.packets_in)
        });
    }
    if drops.is_empty() {
        add("drops", "", Tone::Plain, &|_| "0".to_owned());
    }
    let artifacts = counted(links, all, |link| &link.artifacts);
    for kind in &artifacts {
        add("artifacts", kind, Tone::Wrong, &|link| {
            share(link.artifacts.of(kind), frames(link))
        });
    }
    if artifacts.is_empty() {
        add("artifacts", "", Tone::Plain, &|_| "0".to_owned());
    }
    distributions(links, all, &mut add);
    if all || links.iter().any(|link| link.queue.queue_packets_max > 0) {
        add("queue", "max packets", Tone::Plain, &|link| {
            count(link.queue.queue_packets_max)
        });
        add("queue", "max bytes", Tone::Plain, &|link| {
            count(link.queue.queue_bytes_max)
        });
    }
    effects(links, all, &mut add);
    if all || links.iter().any(|link| link.in_flight > 0) {
        add("delay line", "in flight", Tone::Plain, &|link| {
            count(link.in_flight)
        });
    }
    if all || links.iter().any(|link| link.memory.memory_max > 0) {
        add("memory", "max", Tone::Plain, &|link| {
            binary(link.memory.memory_max)
        });
    }
    rows
}

/// Returns the rows of effects that the ledger gives a row.
fn effects(links: &[LinkReport], all: bool, add: &mut AddRow<'_>) {
    for (index, counter) in Effects::COUNTERS.iter().enumerate() {
        let value = |link: &LinkReport| {
            let value = link.effects.counted().nth(index);
            value.map_or(0, |(_, value)| value)
        };
        if let Some((group, name)) = counter.row
            && (all || links.iter().any(|link| value(link) > 0))
        {
            add(group, name, Tone::Emulated, &|link| {
                share(value(link), link.traffic.packets_in)
            });
        }
    }
}

/// Adds a row: its group, its name, its tone, and the cell of each link.
type AddRow<'a> = dyn FnMut(&'static str, &str, Tone, &dyn Fn(&LinkReport) -> String) + 'a;

/// Returns the rows of distributions: of lateness, of the emulator's own where it differs,
/// and of a replay's departures.
fn distributions(links: &[LinkReport], all: bool, add: &mut AddRow<'_>) {
    // Virtual time is never late: one row reports it.
    let late = all || links.iter().any(|link| link.lateness_us.max > 0.0);
    let excused = |link: &LinkReport| !link.lateness_own_us.is_as_late_as(&link.lateness_us);
    let excused = links.iter().any(excused);
    for distribution in &DISTRIBUTIONS {
        let statistics = match distribution.name {
            "lateness" if late => &LATENESS[..],
            "lateness" => &LATENESS[3..4],
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
/// Returns the names of counts: those above zero in any link, or `all`.
fn counted<'a>(
    links: &'a [LinkReport],
    all: bool,
    counts: impl Fn(&'a LinkReport) -> &'a NamedCounts,
) -> BTreeSet<&'a str> {
    let counts = links.iter().flat_map(|link| counts(link).iter());
    let counts = counts.filter(|(_, count)| all || **count > 0);
    counts.map(|(name, _)| name.as_ref()).collect()
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
    fn the_table_has_a_column_a_link_and_hides_what_never_happened() {
        let link = |name: &str, lost| LinkReport {
            name: name.to_owned(),
            traffic: Traffic {
                packets_in: 1_000,
                packets_out: 1_000 - lost,
                ..Traffic::default()
            },
            drops: [("loss", lost), ("mtu", 0)].into(),
            artifacts: [("late", 0)].into(),
            ..LinkReport::default()
        };
        let mut out = Vec::new();
        let links = [link("up", 10), link("down", 0)];
        assert!(write_table(&mut out, &links, false, Paint::PLAIN).is_ok());
        let text = String::from_utf8_lossy(&out);
        assert!(
            text.contains("drops     loss     10 (1.00%)      0\n"),
            "{text}"
        );
        assert!(!text.contains("mtu"), "{text}");
        assert!(!text.contains("in flight"), "{text}");
        let widths: BTreeSet<usize> = text.lines().map(str::len).collect();
        assert_eq!(widths.len(), 1, "columns are aligned:\n{text}");
    }
}
