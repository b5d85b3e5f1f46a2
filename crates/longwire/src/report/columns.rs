//! A table with a column per port or link and a row per metric.

use std::io::{self, Write};

use longwire_runtime::counters::Traffic;

use super::words::{count, count_of};
use crate::cli::Paint;

/// Maximum number of port and link columns.
const COLUMNS_MAX: usize = 8;

/// Colour of a row's cells.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    /// Caused by the models.
    Emulated,
    /// Caused by the emulator.
    Bad,
}

/// A row: a metric, with a cell for each column.
struct ReportRow {
    group: &'static str,
    name: String,
    cells: Vec<String>,
    tone: Tone,
}

/// Table of the items with the most frames.
pub(super) struct Columns<'a, T> {
    noun: &'static str,
    items: Vec<&'a T>,
    names: Vec<&'a str>,
    rows: Vec<ReportRow>,
    /// Number of items without a column.
    hidden: u64,
}

impl<'a, T> Columns<'a, T> {
    /// Returns a table of the busiest items, in their original order, with rows for frames and
    /// bytes.
    pub fn new(
        noun: &'static str,
        all: &'a [T],
        name: fn(&T) -> &str,
        traffic: fn(&T) -> &Traffic,
    ) -> Columns<'a, T> {
        let mut order: Vec<usize> = (0..all.len()).collect();
        order.sort_by_key(|index| std::cmp::Reverse(traffic(&all[*index]).packets_in));
        order.truncate(COLUMNS_MAX);
        order.sort_unstable();
        let items: Vec<&T> = order.into_iter().map(|index| &all[index]).collect();
        let mut table = Columns {
            noun,
            names: items.iter().map(|item| name(item)).collect(),
            items,
            rows: Vec::new(),
            hidden: all.len().saturating_sub(COLUMNS_MAX) as u64,
        };
        let plain = Tone::Plain;
        table.row("in", "packets", plain, |it| count(traffic(it).packets_in));
        table.row("in", "bytes", plain, |it| count(traffic(it).bytes_in));
        table.row("out", "packets", plain, |it| count(traffic(it).packets_out));
        table.row("out", "bytes", plain, |it| count(traffic(it).bytes_out));
        table
    }

    /// Returns the items that have a column.
    pub fn items(&self) -> impl Iterator<Item = &'a T> + use<'a, '_, T> {
        self.items.iter().copied()
    }

    /// Adds a row; only the first row of a group shows the group's name.
    pub fn row(
        &mut self,
        group: &'static str,
        name: &str,
        tone: Tone,
        cell: impl Fn(&T) -> String,
    ) {
        self.rows.push(ReportRow {
            group,
            name: name.to_owned(),
            cells: self.items().map(cell).collect(),
            tone,
        });
    }

    /// Writes the table if it has columns.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn write(&self, out: &mut impl Write, paint: Paint) -> io::Result<()> {
        if self.names.is_empty() {
            return Ok(());
        }
        let group_width = width(self.rows.iter().map(|row| row.group).chain([self.noun]));
        let name_width = width(self.rows.iter().map(|row| row.name.as_str()));
        let cell_width = |(index, name): (usize, &&str)| {
            let cells = self.rows.iter().map(|row| row.cells[index].as_str());
            width(cells.chain([*name]))
        };
        let widths: Vec<usize> = self.names.iter().enumerate().map(cell_width).collect();
        write!(out, "{:group_width$} {:name_width$}", self.noun, "")?;
        for (name, width) in self.names.iter().zip(&widths) {
            write!(out, "  {}", paint.bold(format!("{name:>width$}")))?;
        }
        writeln!(out)?;
        let mut last_group = "";
        for row in &self.rows {
            let is_first = row.group != last_group;
            last_group = row.group;
            let group = if is_first { row.group } else { "" };
            write!(out, "{group:group_width$} {:name_width$}", row.name)?;
            for (cell, width) in row.cells.iter().zip(&widths) {
                let text = format!("{cell:>width$}");
                let text = match row.tone {
                    _ if cell == "0" || cell == "-" => paint.dim(text),
                    Tone::Plain => text,
                    Tone::Emulated => paint.warn(text),
                    Tone::Bad => paint.bad(text),
                };
                write!(out, "  {text}")?;
            }
            writeln!(out)?;
        }
        if self.hidden > 0 {
            let more = count_of(self.hidden, &format!("more {}", self.noun));
            writeln!(out, "{more}; --json has all {}s", self.noun)?;
        }
        Ok(())
    }
}

fn width<'a>(texts: impl Iterator<Item = &'a str>) -> usize {
    texts.map(str::len).max().unwrap_or(0)
}
