//! Text tables: CSV and similar.
//!
//! The first row determines the separator: commas, semicolons, tabs or spaces. It is a header
//! unless it starts with a number. Fields may be double-quoted. Empty lines and lines that start
//! with `#` are ignored, and so are rows with a missing value (empty, `-`, `NA`). Times may be
//! given as durations.

use alloc::borrow::Cow;

use serde_json::Value;

use super::quantity::Quantity;
use super::series::{Series, SeriesBuilder};
use crate::prelude::*;
use longwire_units::fields::Separator;

/// Selection of rows and columns to read from a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Quantity of the values.
    pub quantity: Quantity,
    /// Value column, by name or by number from 1.
    pub column: Option<String>,
    /// Unit of values without a unit; overrides the header.
    pub unit: Option<String>,
    /// Source of row times.
    pub times: RowTimes,
    /// Unit of times without a unit; overrides the header.
    pub time_unit: Option<String>,
    /// Row filter: column and required text.
    pub filter: Option<(String, String)>,
}

/// Source of row times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowTimes {
    /// The default time column.
    Usual,
    /// This column.
    Column(String),
    /// No column: rows at a fixed interval in nanoseconds.
    Every(u64),
}

impl Mapping {
    /// Returns the default mapping for a quantity.
    pub fn usual(quantity: Quantity) -> Mapping {
        Mapping {
            quantity,
            column: None,
            unit: None,
            times: RowTimes::Usual,
            time_unit: None,
            filter: None,
        }
    }
}

/// Reads a table line by line.
#[derive(Debug)]
pub struct TableReader {
    mapping: Mapping,
    columns: Option<Columns>,
    rows: SeriesBuilder,
    /// End of the previous row, in tables with durations.
    elapsed: u64,
}

/// Positions of columns in a row.
#[derive(Debug)]
struct Columns {
    separator: Separator,
    time: Option<Column>,
    /// Whether times are durations.
    is_duration: bool,
    value: Column,
    filter: Option<(usize, String)>,
}

/// A column's position, and the scale of its numbers without a unit.
#[derive(Clone, Copy, Debug)]
struct Column {
    index: usize,
    scale: Option<u64>,
}

impl TableReader {
    /// Creates a reader. `for_ramps` is set if the series will be interpolated linearly.
    pub fn new(mapping: Mapping, for_ramps: bool) -> TableReader {
        TableReader {
            mapping,
            columns: None,
            rows: SeriesBuilder::new(for_ramps),
            elapsed: 0,
        }
    }

    /// Reads the next line.
    ///
    /// # Errors
    /// If the line is invalid.
    pub fn line(&mut self, text: &str) -> Result<(), String> {
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            return Ok(());
        }
        if let Some(columns) = &self.columns {
            let fields = columns.separator.fields(text);
            return self.row(fields);
        }
        let separator = Separator::of(text);
        let cells: Vec<String> = separator.fields(text).map(Cow::into_owned).collect();
        let is_header = !cells.first().is_some_and(|cell| begins_as_number(cell));
        let header = if is_header { cells.as_slice() } else { &[] };
        let columns = Columns::find(&self.mapping, separator, header, cells.len())?;
        self.columns = Some(columns);
        if is_header {
            Ok(())
        } else {
            self.row(separator.fields(text))
        }
    }

    /// Reads a list of objects, whose keys are column names.
    ///
    /// # Errors
    /// A message with the row number.
    pub fn objects(&mut self, rows: &[Value]) -> Result<(), String> {
        let no_object = "not an object such as {\"duration_ms\": 1000, \"rate_kbps\": 500}";
        let keys = rows.first().and_then(Value::as_object);
        let keys = keys.ok_or_else(|| format!("row 1: {no_object}"))?.keys();
        let header: Vec<String> = keys.cloned().collect();
        // Unused: objects have no separator.
        let columns = Columns::find(&self.mapping, Separator::Blanks, &header, header.len())?;
        self.columns = Some(columns);
        for (index, object) in rows.iter().enumerate() {
            let row = object.as_object().ok_or_else(|| no_object.to_owned());
            let row = row.and_then(|fields| {
                let fields: Result<Vec<_>, _> = header
                    .iter()
                    .map(|key| json_field(fields.get(key)))
                    .collect();
                self.row(fields?.into_iter())
            });
            row.map_err(|message| format!("row {}: {message}", index + 1))?;
        }
        Ok(())
    }

    /// Reads a row's fields.
    fn row<'a>(&mut self, fields: impl Iterator<Item = Cow<'a, str>>) -> Result<(), String> {
        let Some(columns) = &self.columns else {
            return Ok(());
        };
        let (mut time, mut value, mut kept) = (None, None, columns.filter.is_none());
        let mut count = 0;
        for (index, field) in fields.enumerate() {
            count = index + 1;
            if columns.time.is_some_and(|column| column.index == index) {
                time = Some(field.clone());
            }
            if let Some((column, wanted)) = &columns.filter
                && *column == index
            {
                kept = field == wanted.as_str();
            }
            if columns.value.index == index {
                value = Some(field);
            }
        }
        let lacking = |column: &Column| {
            let number = column.index + 1;
            format!("{count} fields, but column {number} is needed")
        };
        let value = value.ok_or_else(|| lacking(&columns.value))?;
        if !kept {
            return Ok(());
        }
        let time = match columns.time {
            Some(column) => {
                let time = time.ok_or_else(|| lacking(&column))?;
                Quantity::Time.read(&time, column.scale)?
            }
            None => 0,
        };
        let start = match self.mapping.times {
            RowTimes::Every(step) => pass(&mut self.elapsed, step)?,
            _ if columns.is_duration && time == 0 => return Ok(()),
            _ if columns.is_duration => pass(&mut self.elapsed, time)?,
            _ => time,
        };
        if matches!(value.as_ref(), "" | "-" | "NA") {
            if self.rows.is_empty() {
                // The series starts at the first value.
                self.elapsed = 0;
            }
            return Ok(());
        }
        let (quantity, scale) = (self.mapping.quantity, columns.value.scale);
        self.rows.push(start, quantity.read(&value, scale)?)
    }

    /// Returns the series.
    ///
    /// # Errors
    /// If there are no rows, or none with a value.
    pub fn finish(self) -> Result<Series, String> {
        if self.columns.is_none() {
            return Err("no data: only comments or empty lines".to_owned());
        }
        if let (Some((column, value)), true) = (&self.mapping.filter, self.rows.is_empty()) {
            return Err(format!("no row has '{value}' in column '{column}'"));
        }
        match self.elapsed {
            0 => self.rows.finish(),
            length => self.rows.finish_at(length),
        }
    }
}

/// Adds a row's duration and returns its start.
fn pass(elapsed: &mut u64, duration: u64) -> Result<u64, String> {
    let start = *elapsed;
    *elapsed = start
        .checked_add(duration)
        .ok_or("the sum of the durations is too large")?;
    Ok(start)
}

/// Returns a JSON value as text; empty if null or absent.
fn json_field(value: Option<&Value>) -> Result<Cow<'_, str>, String> {
    match value {
        None | Some(Value::Null) => Ok(Cow::Borrowed("")),
        Some(Value::String(text)) => Ok(Cow::Borrowed(text)),
        Some(Value::Number(number)) => Ok(Cow::Owned(number.to_string())),
        Some(Value::Bool(is)) => Ok(Cow::Borrowed(if *is { "true" } else { "false" })),
        Some(other) => Err(format!("'{other}' is neither a number nor text")),
    }
}

impl Columns {
    /// Finds the columns in a table of this width, by the names in the header if there is one.
    fn find(
        mapping: &Mapping,
        separator: Separator,
        header: &[String],
        width: usize,
    ) -> Result<Columns, String> {
        let find = |requested: Option<&String>, quantity, place, unit: &Option<String>| {
            let index = match requested {
                Some(name) => named(name, header, width)?,
                None => usual(quantity, header, width, place)?,
            };
            Ok::<Column, String>(Column {
                index,
                scale: scale(quantity, unit.as_deref(), header.get(index))?,
            })
        };
        let time_column = |name| find(name, Quantity::Time, 0, &mapping.time_unit);
        let time = match &mapping.times {
            RowTimes::Every(_) => None,
            RowTimes::Column(name) => Some(time_column(Some(name))?),
            RowTimes::Usual => {
                let duration = header.iter().find(|cell| is_duration(cell));
                let named = time_column(None);
                Some(match duration {
                    Some(_) if named.is_err() => time_column(duration)?,
                    _ => named?,
                })
            }
        };
        // Without names, the order is time, then value.
        let place = usize::from(time.is_some());
        let column = mapping.column.as_ref();
        let value = find(column, mapping.quantity, place, &mapping.unit)?;
        let filter = mapping.filter.as_ref();
        let filter = filter
            .map(|(name, wanted)| Ok::<_, String>((named(name, header, width)?, wanted.clone())))
            .transpose()?;
        let name = time.and_then(|time| header.get(time.index));
        Ok(Columns {
            separator,
            time,
            is_duration: name.is_some_and(|name| is_duration(name)),
            value,
            filter,
        })
    }
}

/// Whether a column with this name contains durations.
fn is_duration(name: &str) -> bool {
    split_unit(Quantity::Time, name).0 == "duration"
}

/// Finds a column by the user's name or number.
fn named(name: &str, header: &[String], width: usize) -> Result<usize, String> {
    let wanted = name.to_lowercase();
    if let Some(index) = header.iter().position(|cell| cell.to_lowercase() == wanted) {
        return Ok(index);
    }
    match name.parse::<usize>() {
        Ok(number) if (1..=width).contains(&number) => Ok(number - 1),
        _ if header.is_empty() => Err(format!(
            "no column '{name}': the {width} columns have no names; write a number from 1"
        )),
        _ => Err(format!(
            "no column '{name}'; columns are {}",
            header.join(", ")
        )),
    }
}

/// Finds a column by its default names, or by position in a table of two unnamed columns.
fn usual(
    quantity: Quantity,
    header: &[String],
    width: usize,
    place: usize,
) -> Result<usize, String> {
    let name = quantity.name();
    if header.is_empty() {
        if width > 2 || place >= width {
            return Err(format!(
                "the {width} columns have no names; set {name}-column={}",
                place + 1
            ));
        }
        return Ok(place);
    }
    let fits = |cell: &String| {
        let (base, _) = split_unit(quantity, cell);
        quantity.names().contains(&base.as_str())
    };
    let mut fitting = header.iter().enumerate().filter(|(_, cell)| fits(cell));
    match (fitting.next(), fitting.next()) {
        (Some((index, _)), None) => Ok(index),
        (None, _) => Err(format!(
            "no column named {name}; set {name}-column=NAME, with NAME one of {}",
            header.join(", ")
        )),
        (Some((_, first)), Some((_, second))) => Err(format!(
            "'{first}' and '{second}' may both be the {name}; set {name}-column=NAME"
        )),
    }
}

/// Returns a column's scale: from the requested unit, the unit in its name, or the default unit.
fn scale(
    quantity: Quantity,
    requested: Option<&str>,
    header: Option<&String>,
) -> Result<Option<u64>, String> {
    if let Some(unit) = requested {
        let name = quantity.name();
        let unknown = || format!("'{unit}' is not a unit of {name}");
        return quantity.scale(unit).map(Some).ok_or_else(unknown);
    }
    let of_header = header.and_then(|cell| split_unit(quantity, cell).1);
    let unit = of_header.or_else(|| quantity.usual_unit().map(ToString::to_string));
    Ok(unit.and_then(|unit| quantity.scale(&unit)))
}

/// Splits a column header into name and unit: `rate_mbps`, `Delay (ms)`, `loss [%]`. The name is
/// converted to lower case, with spaces replaced by underscores.
fn split_unit(quantity: Quantity, cell: &str) -> (String, Option<String>) {
    let base = |text: &str| text.trim().to_lowercase().replace([' ', '-'], "_");
    let cell = cell.trim();
    for (open, close) in [('(', ')'), ('[', ']')] {
        let inner = cell
            .strip_suffix(close)
            .and_then(|cell| cell.rsplit_once(open));
        if let Some((name, unit)) = inner {
            let unit = unit.trim();
            let known = quantity.scale(unit).map(|_| unit.to_owned());
            return (base(name.trim_end_matches('_')), known);
        }
    }
    // The unit itself may contain underscores: bytes_per_s.
    for (at, mark) in cell.char_indices() {
        if matches!(mark, '_' | ' ' | '-') && quantity.scale(&cell[at + 1..]).is_some() {
            return (base(&cell[..at]), Some(cell[at + 1..].to_owned()));
        }
    }
    (base(cell), None)
}

fn begins_as_number(cell: &str) -> bool {
    let unsigned = cell.strip_prefix(['-', '+', '.']).unwrap_or(cell);
    unsigned.starts_with(|c: char| c.is_ascii_digit())
}
