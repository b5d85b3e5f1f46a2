//! Tables of text: comma-separated values and similar.
//!
//! A row is a line; fields are separated by commas, semicolons, tabs or blanks, by
//! those that the first row has, and may be in double quotes. The first row names the
//! columns, unless it begins with a number. Empty lines and lines that begin with `#`
//! are ignored. A row whose value is missing (empty, `-`, `NA`) is skipped.

use alloc::borrow::{Cow, ToOwned};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::fields::Separator;
use super::quantity::Quantity;
use super::series::{Series, SeriesBuilder};

/// Selection of a table's rows and columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The quantity of the values.
    pub quantity: Quantity,
    /// The column of values, by name or by number from 1.
    pub column: Option<String>,
    /// The unit of values without one, regardless of the header.
    pub unit: Option<String>,
    /// When rows begin.
    pub times: RowTimes,
    /// The unit of times without one, regardless of the header.
    pub time_unit: Option<String>,
    /// Only rows with this text (second) in this column (first) count.
    pub filter: Option<(String, String)>,
}

/// Source of the rows' times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowTimes {
    /// The column of times.
    Usual,
    /// This column.
    Column(String),
    /// Rows follow each other at this distance in nanoseconds.
    Every(u64),
}

impl Mapping {
    /// Returns the default mapping of this quantity.
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
    count: u64,
}

/// Positions of the columns in a row.
#[derive(Debug)]
struct Columns {
    separator: Separator,
    time: Option<Column>,
    value: Column,
    filter: Option<(usize, String)>,
}

/// Position of a quantity, and the scale of numbers without a unit.
#[derive(Clone, Copy, Debug)]
struct Column {
    index: usize,
    scale: Option<u64>,
}

impl TableReader {
    /// Creates a reader for `mapping`.
    pub fn new(mapping: Mapping) -> TableReader {
        TableReader {
            mapping,
            columns: None,
            rows: SeriesBuilder::default(),
            count: 0,
        }
    }

    /// Creates a reader for `mapping`, for a series whose values are interpolated
    /// linearly.
    pub fn for_ramps(mapping: Mapping) -> TableReader {
        TableReader {
            rows: SeriesBuilder::for_ramps(),
            ..TableReader::new(mapping)
        }
    }

    /// Reads the next line.
    ///
    /// # Errors
    /// A fault of the line.
    pub fn line(&mut self, text: &str) -> Result<(), String> {
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            return Ok(());
        }
        if let Some(columns) = &self.columns {
            return row(
                columns,
                &self.mapping,
                text,
                &mut self.rows,
                &mut self.count,
            );
        }
        let separator = Separator::of(text);
        let cells: Vec<String> = separator.fields(text).map(Cow::into_owned).collect();
        let is_header = !cells.first().is_some_and(|cell| begins_as_number(cell));
        let header = if is_header { cells.as_slice() } else { &[] };
        let columns = Columns::find(&self.mapping, separator, header, cells.len())?;
        let columns = self.columns.insert(columns);
        if is_header {
            Ok(())
        } else {
            row(
                columns,
                &self.mapping,
                text,
                &mut self.rows,
                &mut self.count,
            )
        }
    }

    /// Returns the series of all rows.
    ///
    /// # Errors
    /// If there were none, or none with a value.
    pub fn finish(self) -> Result<Series, String> {
        if self.columns.is_none() {
            return Err("it is empty".to_owned());
        }
        if let (Some((column, value)), true) = (&self.mapping.filter, self.rows.is_empty()) {
            return Err(format!("no row has '{value}' in its column '{column}'"));
        }
        match self.mapping.times {
            RowTimes::Every(step) => {
                let length = self.count.checked_mul(step).ok_or("it is too long")?;
                self.rows.finish_at(length)
            }
            _ => self.rows.finish(),
        }
    }
}

/// Reads a row of values.
fn row(
    columns: &Columns,
    mapping: &Mapping,
    text: &str,
    rows: &mut SeriesBuilder,
    count: &mut u64,
) -> Result<(), String> {
    let (mut time, mut value, mut kept) = (None, None, columns.filter.is_none());
    let mut fields = 0;
    for (index, field) in columns.separator.fields(text).enumerate() {
        fields = index + 1;
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
        format!("it has {fields} fields, but column {number} is needed")
    };
    let value = value.ok_or_else(|| lacking(&columns.value))?;
    if !kept {
        return Ok(());
    }
    let start = match (&mapping.times, columns.time) {
        (RowTimes::Every(step), _) => count.checked_mul(*step).ok_or("it is too long")?,
        (_, Some(column)) => {
            let time = time.ok_or_else(|| lacking(&column))?;
            Quantity::Time.read(&time, column.scale)?
        }
        (_, None) => 0,
    };
    *count += 1;
    if matches!(value.as_ref(), "" | "-" | "NA") {
        return Ok(());
    }
    rows.push(start, mapping.quantity.read(&value, columns.value.scale)?)
}

impl Columns {
    /// Finds the columns of a table of this width by the names in the header, which may
    /// be missing.
    fn find(
        mapping: &Mapping,
        separator: Separator,
        header: &[String],
        width: usize,
    ) -> Result<Columns, String> {
        let find = |requested: Option<&str>, quantity, place, unit: &Option<String>| {
            let index = match requested {
                Some(name) => named(name, header, width)?,
                None => usual(quantity, header, width, place)?,
            };
            Ok::<Column, String>(Column {
                index,
                scale: scale(quantity, unit.as_deref(), header.get(index))?,
            })
        };
        let time = match &mapping.times {
            RowTimes::Every(_) => None,
            RowTimes::Usual => Some(find(None, Quantity::Time, 0, &mapping.time_unit)?),
            RowTimes::Column(name) => Some(find(
                Some(name.as_str()),
                Quantity::Time,
                0,
                &mapping.time_unit,
            )?),
        };
        // Without names, times come first and then the values.
        let place = usize::from(time.is_some());
        let column = mapping.column.as_deref();
        let value = find(column, mapping.quantity, place, &mapping.unit)?;
        let filter = mapping.filter.as_ref();
        let filter = filter
            .map(|(name, wanted)| Ok::<_, String>((named(name, header, width)?, wanted.clone())))
            .transpose()?;
        Ok(Columns {
            separator,
            time,
            value,
            filter,
        })
    }
}

/// Finds a column by the name or number that the user gave.
fn named(name: &str, header: &[String], width: usize) -> Result<usize, String> {
    let wanted = name.to_lowercase();
    if let Some(index) = header.iter().position(|cell| cell.to_lowercase() == wanted) {
        return Ok(index);
    }
    match name.parse::<usize>() {
        Ok(number) if (1..=width).contains(&number) => Ok(number - 1),
        _ if header.is_empty() => Err(format!(
            "there is no column '{name}': it has {width} without names; write a number from 1"
        )),
        _ => Err(format!(
            "there is no column '{name}'; it has {}",
            header.join(", ")
        )),
    }
}

/// Finds a column by its customary names, or by its position in a table of two columns
/// without names.
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
                "its {width} columns have no names; say which is which: {name}-column={}",
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
            "no column is called {name}; say which it is: {name}-column=NAME, with NAME one of {}",
            header.join(", ")
        )),
        (Some((_, first)), Some((_, second))) => Err(format!(
            "both '{first}' and '{second}' may be the {name}; say which: {name}-column=NAME"
        )),
    }
}

/// Returns the scale of a column: of the requested unit, or that in its name, or the
/// customary one.
fn scale(
    quantity: Quantity,
    requested: Option<&str>,
    header: Option<&String>,
) -> Result<Option<u64>, String> {
    if let Some(unit) = requested {
        let name = quantity.name();
        let unknown = || format!("'{unit}' is no unit of a {name}");
        return quantity.scale(unit).map(Some).ok_or_else(unknown);
    }
    let of_header = header.and_then(|cell| split_unit(quantity, cell).1);
    let unit = of_header.or_else(|| quantity.usual_unit().map(ToString::to_string));
    Ok(unit.and_then(|unit| quantity.scale(&unit)))
}

/// Splits a column's name: `rate_mbps`, `Delay (ms)`, `loss [%]`. The name is returned
/// in lower case with underscores for blanks.
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
    // The unit itself may hold underscores: bytes_per_s.
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
