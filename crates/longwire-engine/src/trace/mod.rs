//! Recorded traces: third-party files, parsed into compact schedules.
//!
//! The engine does no file I/O: [`Arguments`] provides the text in pieces. An invalid line is
//! rejected with its number.

use longwire_units::Nanos;

use crate::prelude::*;
use crate::spec::{Arguments, Param, SpecError, Unit};

mod chances;
pub mod format;
mod human;
pub mod netem_trace;
pub mod pensieve;
pub mod quantity;
pub mod schedule;
pub mod series;
pub mod table;
pub mod trains;

pub use chances::{Chances, read_chances};
pub use format::{Contents, Format, Patterns, TraceReader};
pub use quantity::Quantity;
pub use series::{Cursor, END, End, Series, SeriesBuilder, Stretch};
pub use table::{Mapping, RowTimes, TableReader};

/// Path of the trace. The example has the columns named in [`TIME_COLUMN`] and [`WHERE`], and a
/// column per quantity.
pub const FILE: Param = Param::new("file", Unit::File(EXAMPLE))
    .help("recorded trace, in one of the formats of docs/traces.md");

/// Example table.
const EXAMPLE: &str = "\
time_s,rate_mbps,delay_ms,loss_percent,cell
0,10,20,0.5,7
1,5,30,1,7
";

/// Time column of a table.
pub const TIME_COLUMN: Param = Param::new("time-column", Unit::Text("time_s"))
    .help("column of times, by name or number, or the interval between rows, such as 1s");

/// Unit of a table's times.
pub const TIME_UNIT: Param = Param::new(
    "time-unit",
    Unit::Choice(&["s", "ms", "us", "ns", "min", "h"]),
)
.help("unit of times; default: the unit in the column's name, or s");

/// Row filter of a table.
pub const WHERE: Param = Param::new("where", Unit::Text("cell/7"))
    .help("use only rows with this value in this column: COLUMN/VALUE");

/// Format of a trace.
pub const FORMAT: Param = Param::with_default("format", Unit::Text("auto"), "auto").help(
    "table, mahimahi, pensieve, cellreplay, netem-trace or json; auto: detect from the first line",
);

/// Reads delays over time according to the model's parameters: those in this module, `delay-column`
/// and `delay-unit`. `for_ramps` is set for linear interpolation, which only tables support.
///
/// # Errors
/// If a line is invalid (the message has its number), or the trace does not support the [`End`].
pub fn read_delays(arguments: &Arguments<'_>, for_ramps: bool) -> Result<Series, SpecError> {
    let series = match read(arguments, Quantity::Delay, for_ramps)? {
        Contents::Series(series, _) => Ok(series),
        Contents::Trains(trains) => trains.base_delays(),
        Contents::Schedule(_) | Contents::Patterns(..) => Err(
            "contains delivery opportunities, not values over time; use it as a rate trace"
                .to_owned(),
        ),
    };
    series.map_err(|message| arguments.file_error(FILE.name, message))
}

/// Reads a trace according to the model's parameters: those in this module, and the quantity's
/// column and unit, such as `rate-column` and `rate-unit`. `for_ramps` is set for linear
/// interpolation, which only tables support.
///
/// # Errors
/// If a line is invalid (the message has its number), or the trace does not support the [`End`].
pub(crate) fn read(
    arguments: &Arguments<'_>,
    quantity: Quantity,
    for_ramps: bool,
) -> Result<Contents, SpecError> {
    let mapping = mapping(arguments, quantity)?;
    let mut reader = TraceReader::new(format(arguments)?, mapping, for_ramps);
    arguments.pieces(FILE.name, &mut |piece| reader.feed(piece))?;
    let contents = reader.finish();
    let contents = contents.map_err(|message| arguments.file_error(FILE.name, message))?;
    match &contents {
        Contents::Series(series, repeats) => check_end(arguments, series, *repeats)?,
        Contents::Patterns(patterns, repeats) => check_end(arguments, &patterns.series, *repeats)?,
        Contents::Schedule(_) | Contents::Trains(_) => {}
    }
    Ok(contents)
}

/// Returns the requested format; `None` to detect it.
fn format(arguments: &Arguments<'_>) -> Result<Option<Format>, SpecError> {
    let word = arguments.word(FORMAT.name).unwrap_or("auto");
    if word == "auto" {
        return Ok(None);
    }
    let found = Format::ALL.iter().find(|(name, _)| *name == word);
    found.map(|(_, format)| Some(*format)).ok_or_else(|| {
        let names: Vec<&str> = Format::ALL.iter().map(|(name, _)| *name).collect();
        let known = names.join(", ");
        arguments.invalid(format!("format: '{word}' is not one of auto, {known}"))
    })
}

/// Returns the mapping specified by the parameters.
fn mapping(arguments: &Arguments<'_>, quantity: Quantity) -> Result<Mapping, SpecError> {
    let times = match arguments.word(TIME_COLUMN.name) {
        None => RowTimes::Usual,
        Some(text) => match text.parse::<Nanos>() {
            Ok(step) if step > Nanos::ZERO => RowTimes::Every(step.as_nanos()),
            _ => RowTimes::Column(text.to_owned()),
        },
    };
    let filter = arguments.word(WHERE.name).map(|text| {
        let (name, value) = text.split_once('/').ok_or_else(|| {
            let message = format!("where={text}: expected COLUMN/VALUE; for example: where=cell/7");
            arguments.invalid(message)
        })?;
        Ok::<_, SpecError>((name.trim().to_owned(), value.trim().to_owned()))
    });
    let text = |key: &str| arguments.word(key).map(String::from);
    let name = quantity.name();
    Ok(Mapping {
        quantity,
        column: text(&format!("{name}-column")),
        unit: text(&format!("{name}-unit")),
        times,
        time_unit: text(TIME_UNIT.name),
        filter: filter.transpose()?,
    })
}

/// Rejects an [`End`] that the series does not support.
fn check_end(arguments: &Arguments<'_>, series: &Series, repeats: bool) -> Result<(), SpecError> {
    let end = End::read(arguments)?;
    let message = match end {
        End::Stop if series.is_constant() => {
            "end=stop needs at least two rows; a single row has no end"
        }
        End::Stop | End::Hold if repeats => "repeats forever; write end=loop",
        _ => return Ok(()),
    };
    Err(arguments.file_error(FILE.name, message))
}
