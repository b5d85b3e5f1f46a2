//! Plain tables with right-aligned columns, and lists.

use std::fmt::Display;

/// Joins the texts of `parts` with `separator`.
pub fn joined(parts: impl IntoIterator<Item = impl ToString>, separator: &str) -> String {
    let parts: Vec<String> = parts.into_iter().map(|part| part.to_string()).collect();
    parts.join(separator)
}

/// A table under construction.
#[derive(Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Returns a table with a header and no rows.
    pub fn new(header: &[&str]) -> Table {
        Table {
            rows: vec![header.iter().map(|cell| (*cell).to_owned()).collect()],
        }
    }

    /// Like [`Table::new`], with header cells separated by bars: `links | rate`.
    pub fn headed(header: &str) -> Table {
        Table::new(&header.split('|').map(str::trim).collect::<Vec<_>>())
    }

    /// Adds a row with one cell per header cell.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Prints the table on stdout under a title, if it has rows.
    pub fn print_under(&self, title: impl Display) {
        if self.rows.len() > 1 {
            println!("\n{title}");
            self.print();
        }
    }

    /// Prints the table on stdout.
    pub fn print(&self) {
        print!("{}", self.text());
    }

    /// Formats the table, one line per row.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let columns = self.rows.first().map_or(0, Vec::len);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let cells = row.iter().zip(&widths);
            let cells = cells.map(|(cell, width)| format!("{cell:>width$}"));
            text += &(joined(cells, "  ") + "\n");
        }
        text
    }
}
