//! A table with a column per port or link and a row per measure.

use std::io::{self, Write};

use crate::cli::Paint;

/// The colour of a row's cells.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    /// Caused by the models.
    Emulated,
    /// Caused by the emulator.
    Bad,
}

/// A row: a measure, and a cell for each column.
struct ReportRow {
    group: &'static str,
    name: String,
    cells: Vec<String>,
    tone: Tone,
}

/// The table.
pub(super) struct Columns<'a> {
    title: &'static str,
    names: Vec<&'a str>,
    rows: Vec<ReportRow>,
}

impl<'a> Columns<'a> {
    /// Returns a table with columns of these names.
    pub fn new(title: &'static str, names: Vec<&'a str>) -> Columns<'a> {
        Columns {
            title,
            names,
            rows: Vec::new(),
        }
    }

    /// Adds a row. The group's name is printed before its first row only.
    pub fn row(
        &mut self,
        group: &'static str,
        name: &str,
        tone: Tone,
        cells: impl Iterator<Item = String>,
    ) {
        self.rows.push(ReportRow {
            group,
            name: name.to_owned(),
            cells: cells.collect(),
            tone,
        });
    }

    /// Writes the table, unless it has no columns.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn write(&self, out: &mut impl Write, paint: Paint) -> io::Result<()> {
        if self.names.is_empty() {
            return Ok(());
        }
        let groups = self.rows.iter().map(|row| row.group);
        let group_width = width(groups.chain([self.title]));
        let name_width = width(self.rows.iter().map(|row| row.name.as_str()));
        let cell_width = |(index, name): (usize, &&str)| {
            let cells = self.rows.iter().map(|row| row.cells[index].as_str());
            width(cells.chain([*name]))
        };
        let widths: Vec<usize> = self.names.iter().enumerate().map(cell_width).collect();
        write!(out, "{:group_width$} {:name_width$}", self.title, "")?;
        for (name, width) in self.names.iter().zip(&widths) {
            let name = format!("{name:>width$}");
            write!(out, "  {}", paint.bold(name))?;
        }
        writeln!(out)?;
        let mut last_group = "";
        for row in &self.rows {
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
                    Tone::Bad => paint.bad(text),
                };
                write!(out, "  {text}")?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

fn width<'a>(texts: impl Iterator<Item = &'a str>) -> usize {
    texts.map(str::len).max().unwrap_or(0)
}
