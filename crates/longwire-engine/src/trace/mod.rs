//! Recorded traces: files of others, read into compact schedules.
//!
//! The engine reads no file itself: everything comes through
//! [`Arguments`], piece by piece, and a line that is wrong is refused with
//! its number.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

use crate::spec::{Arguments, Param, SpecError, Unit};
use crate::units::Nanos;

mod fields;
pub mod moment;
pub mod number;
pub mod quantity;
pub mod series;
pub mod table;

pub use quantity::Quantity;
pub use series::{Cursor, END, End, Series, SeriesBuilder, Stretch};
pub use table::{Mapping, TableReader, Times};

/// The parameter that names a trace's file. The example has the columns that
/// the examples of [`TIME_COLUMN`] and [`WHERE`] name, and one for each
/// quantity.
pub const FILE: Param = Param {
    name: "file",
    unit: Unit::File(EXAMPLE),
    default: None,
    help: "the file with the trace",
};

/// A small table.
const EXAMPLE: &str = "\
time_s,rate_mbps,delay_ms,loss_percent,cell
0,10,20,0.5,7
1,5,30,1,7
";

/// The parameter that says when a table's rows begin.
pub const TIME_COLUMN: Param = Param {
    name: "time-column",
    unit: Unit::Text("time_s"),
    default: None,
    help: "a table's column of times, by name or number; or 1s: its rows are so far apart",
};

/// The parameter that says which unit a table's times have.
pub const TIME_UNIT: Param = Param {
    name: "time-unit",
    unit: Unit::Choice(&["s", "ms", "us", "ns", "min", "h"]),
    default: None,
    help: "the unit of times; without it, as the column's name says, or s",
};

/// The parameter that picks rows of a table.
pub const WHERE: Param = Param {
    name: "where",
    unit: Unit::Text("cell/7"),
    default: None,
    help: "COLUMN/VALUE: only rows of a table with that value in that column count",
};

/// Reads the times and one quantity of a table, as the parameters of a
/// model say: [`FILE`], [`END`], [`TIME_COLUMN`], [`TIME_UNIT`], [`WHERE`],
/// and the two of the quantity's own, `delay-column` and `delay-unit` or
/// whatever its name is, which are passed as `column` and `unit`.
///
/// # Errors
/// What cannot be read, with its line; and an [`End`] that the trace does not
/// have.
pub fn read_table(
    arguments: &Arguments<'_>,
    quantity: Quantity,
    column: &'static str,
    unit: &'static str,
) -> Result<Series, SpecError> {
    let mapping = mapping(arguments, quantity, column, unit)?;
    read_rows(arguments, TableReader::new(mapping))
}

/// Like [`read_table`], for a series whose values are joined by straight
/// lines.
///
/// # Errors
/// As those of [`read_table`].
pub fn read_ramps(
    arguments: &Arguments<'_>,
    quantity: Quantity,
    column: &'static str,
    unit: &'static str,
) -> Result<Series, SpecError> {
    let mapping = mapping(arguments, quantity, column, unit)?;
    read_rows(arguments, TableReader::for_ramps(mapping))
}

fn read_rows(arguments: &Arguments<'_>, mut reader: TableReader) -> Result<Series, SpecError> {
    arguments.lines(FILE.name, &mut |_, line| reader.line(line))?;
    let series = reader.finish();
    let series = series.map_err(|message| arguments.file_error(FILE.name, message))?;
    check_end(arguments, &series)?;
    Ok(series)
}

/// What the parameters say of a table.
fn mapping(
    arguments: &Arguments<'_>,
    quantity: Quantity,
    column: &'static str,
    unit: &'static str,
) -> Result<Mapping, SpecError> {
    let times = match arguments.word(TIME_COLUMN.name) {
        None => Times::Usual,
        Some(text) => match text.parse::<Nanos>() {
            Ok(step) if step > Nanos::ZERO => Times::Every(step.as_nanos()),
            _ => Times::Column(text.to_owned()),
        },
    };
    let filter = arguments.word(WHERE.name).map(|text| {
        let (name, value) = text.split_once('/').ok_or_else(|| {
            let message = format!("where={text}: write COLUMN/VALUE, for example where=cell/7");
            arguments.unfit(message)
        })?;
        Ok::<_, SpecError>((name.trim().to_owned(), value.trim().to_owned()))
    });
    let text = |key| arguments.word(key).map(String::from);
    Ok(Mapping {
        quantity,
        column: text(column),
        unit: text(unit),
        times,
        time_unit: text(TIME_UNIT.name),
        filter: filter.transpose()?,
    })
}

/// Refuses to stop at the end of a series that has none.
fn check_end(arguments: &Arguments<'_>, series: &Series) -> Result<(), SpecError> {
    if series.is_constant() && End::read(arguments)? == End::Stop {
        let message = "it has one row, which does not say when it ends: end=stop needs two";
        return Err(arguments.file_error(FILE.name, message));
    }
    Ok(())
}
