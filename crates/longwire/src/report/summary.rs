//! The report in at most ten lines: frames per link, drop reasons and the verdict.

use std::collections::BTreeMap;
use std::io::{self, Write};

use longwire_runtime::RunReport;
use longwire_units::words::{count, count_of, percent};

use super::changes::change_lines;
use super::ending::Ending;
use super::overload::Overload;
use super::verdict::Verdict;
use super::{received, replay};
use crate::cli::Paint;
use crate::table::joined;

/// Maximum lines of a summary on an 80-column terminal.
const LINES_MAX: usize = 10;

/// Maximum number of links with separate rows; the others share a row.
const LINKS_MAX: usize = 4;

/// Maximum number of drop reasons per row.
const REASONS_MAX: usize = 3;

/// A run's summary.
pub struct Summary {
    /// One row per link direction.
    pub(super) rows: Vec<SummaryRow>,
    /// Lines between the rows and the verdict.
    pub(super) remarks: Vec<String>,
    pub(super) verdict: Verdict,
}

/// Frame counts of one link direction, or of several links.
#[derive(Default)]
pub(super) struct SummaryRow {
    name: String,
    packets_in: u64,
    packets_out: u64,
    drops: BTreeMap<String, u64>,
    /// Frames in flight, and model effects other than drops; none is zero.
    others: BTreeMap<&'static str, u64>,
}

impl Summary {
    /// Returns the summary of a run, with its changes and a line per receiver.
    pub fn of(ending: &Ending<'_>, verdict: Verdict) -> Summary {
        let report = ending.run;
        let rows = report.links.iter().map(|link| {
            // A network shows frames in flight in a separate line.
            let in_flight = link.queue.map(|_| ("in flight", link.in_flight));
            let effects = link.effects.counted().map(|(counter, n)| (counter.name, n));
            let others = effects.chain(in_flight).filter(|(_, n)| *n > 0);
            let drops = link.drops.nonzero();
            SummaryRow {
                name: link.name.clone(),
                packets_in: link.traffic.packets_in,
                packets_out: link.traffic.packets_out,
                drops: drops.map(|(name, n)| (name.to_owned(), n)).collect(),
                others: others.collect(),
            }
        });
        let mut remarks = replay::lines(&report.inputs);
        if ending.shows_receivers {
            remarks.extend(received::lines(&report.links, &ending.received));
        }
        remarks.extend(findings(report));
        if report.in_flight > 0 && report.links.iter().all(|link| link.queue.is_none()) {
            let frames = count_of(report.in_flight, "frame");
            remarks.push(format!("{frames} in flight"));
        }
        remarks.extend(Overload::of(&report.links).and_then(|overload| overload.range()));
        remarks.extend(change_lines(&ending.changes));
        let notes = report.closing_notes.iter();
        remarks.extend(notes.map(|note| format!("note: {note}")));
        remarks.extend(ending.lines.iter().cloned());
        Summary {
            rows: rows.collect(),
            remarks,
            verdict,
        }
    }

    /// Writes at most ten lines, unless the verdict alone is longer.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn write(mut self, out: &mut impl Write, paint: Paint) -> io::Result<()> {
        let table = table(self.rows, paint);
        let hints = &mut self.verdict.hints;
        let room = LINES_MAX.saturating_sub(table.len() + height(&self.verdict.line));
        // The first hint is the most important one for the verdict; reserve room for it.
        let for_remarks = room.saturating_sub(hints.first().map_or(0, |hint| height(hint)));
        let mut shown = fitting(&self.remarks, for_remarks);
        if shown < self.remarks.len() {
            shown = fitting(&self.remarks, for_remarks.saturating_sub(1));
            let more = count_of((self.remarks.len() - shown) as u64, "more line");
            self.remarks.truncate(shown);
            self.remarks
                .push(format!("{more}: -v prints the full report"));
        }
        let used: usize = self.remarks.iter().map(|line| height(line)).sum();
        hints.truncate(fitting(hints, room.saturating_sub(used)));
        for line in table.iter().chain(&self.remarks) {
            writeln!(out, "{line}")?;
        }
        self.verdict.write(out, paint)
    }
}

/// Returns the number of terminal lines that a text occupies.
fn height(text: &str) -> usize {
    // Hints are indented by two columns.
    const WIDTH: usize = 78;
    text.chars().count().div_ceil(WIDTH).max(1)
}

/// Returns the number of leading lines that fit in `room` terminal lines.
fn fitting(lines: &[String], room: usize) -> usize {
    let mut used = 0;
    let fits = lines.iter().take_while(|line| {
        used += height(line);
        used <= room
    });
    fits.count()
}

impl SummaryRow {
    fn add(&mut self, other: SummaryRow) {
        self.packets_in += other.packets_in;
        self.packets_out += other.packets_out;
        for (name, n) in other.drops {
            *self.drops.entry(name).or_default() += n;
        }
        for (name, n) in other.others {
            *self.others.entry(name).or_default() += n;
        }
    }

    /// Describes undelivered frames: `12 (0.24%): 10 queue_full, 2 loss`.
    fn missing(&self, paint: Paint) -> String {
        let dropped: u64 = self.drops.values().sum();
        let mut reasons: Vec<(&str, u64)> = self.drops.iter().map(|(a, n)| (&**a, *n)).collect();
        reasons.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        let others: u64 = reasons.iter().skip(REASONS_MAX).map(|(_, n)| n).sum();
        reasons.truncate(REASONS_MAX);
        reasons.extend((others > 0).then_some(("others", others)));
        let reasons = joined(reasons.into_iter().map(reason), ", ");
        let share = percent(dropped as f64 / self.packets_in.max(1) as f64);
        let text = match dropped {
            0 => paint.dim("none"),
            _ => paint.warn(format_args!("{} ({share}): {reasons}", count(dropped))),
        };
        let others = self.others.iter().map(|(name, n)| reason((name, *n)));
        joined(std::iter::once(text).chain(others), "; ")
    }
}

/// Formats a count with its name: `10 queue_full`.
fn reason((name, n): (&str, u64)) -> String {
    format!("{} {name}", count(n))
}

/// Formats the table: the links with the most frames, and the total of the others.
fn table(mut rows: Vec<SummaryRow>, paint: Paint) -> Vec<String> {
    if rows.len() > LINKS_MAX + 1 {
        let mut busiest: Vec<u64> = rows.iter().map(|row| row.packets_in).collect();
        busiest.sort_unstable_by_key(|frames| std::cmp::Reverse(*frames));
        let (mut shown, least) = (Vec::new(), busiest[LINKS_MAX - 1]);
        let mut others = SummaryRow::default();
        let mut hidden: u64 = 0;
        for row in rows {
            if shown.len() < LINKS_MAX && row.packets_in >= least && row.packets_in > 0 {
                shown.push(row);
            } else {
                hidden += 1;
                others.add(row);
            }
        }
        others.name = format!("{} more", count(hidden));
        shown.push(others);
        rows = shown;
    }
    let cells = rows.iter().map(|row| {
        let [frames_in, frames_out] = [row.packets_in, row.packets_out].map(count);
        [row.name.clone(), frames_in, frames_out, row.missing(paint)]
    });
    let cells: Vec<[String; 4]> = cells.collect();
    let head = ["frames", "in", "out", "dropped"].map(str::to_owned);
    let widths = [0, 1, 2].map(|column| {
        let all = std::iter::once(&head).chain(&cells);
        let widths = all.map(|row| row[column].chars().count());
        widths.max().unwrap_or(0)
    });
    let line = |[name, packets_in, packets_out, missing]: &[String; 4]| {
        let [a, b, c] = widths;
        format!("{name:a$}  {packets_in:>b$}  {packets_out:>c$}  {missing}")
    };
    std::iter::once(paint.dim(line(&head)))
        .chain(cells.iter().map(line))
        .collect()
}

/// Returns remarks on frames without a rule, shifted arrivals, unrecorded rows, frames that the
/// switch did not forward, and loops.
pub(super) fn findings(run: &RunReport) -> Vec<String> {
    let (counts, switch) = (&run.counts, &run.switch);
    let mut found = Vec::new();
    if counts.unmatched_dropped > 0 {
        let frames = count_of(counts.unmatched_dropped, "frame");
        found.push(format!("{frames} dropped: no matching rule"));
    }
    if counts.moved > 0 {
        let frames = count_of(counts.moved, "frame");
        found.push(format!(
            "{frames} read too late: arrival shifted by more than --tolerance"
        ));
    }
    if counts.unrecorded > 0 {
        let rows = count_of(counts.unrecorded, "row");
        found.push(format!("{rows} not recorded: the disk was too slow"));
    }
    let unsent = joined(switch.not_forwarded.nonzero().map(reason), ", ");
    if !unsent.is_empty() {
        found.push(format!("not forwarded by the switch: {unsent}"));
    }
    if switch.loop_signs > 0 {
        let times = count_of(switch.loop_signs, "time");
        found.push(format!("possible loop between ports, detected {times}"));
    }
    found
}

#[cfg(test)]
#[path = "summary_tests.rs"]
mod tests;
