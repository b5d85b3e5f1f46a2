//! Recorded delays over time.

use alloc::boxed::Box;
use alloc::format;

use super::DelayModel;
use super::schedule::{CHANGE, Change, DelaySchedule, ScheduledDelay};
use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};
use crate::trace::{END, End, FILE, Quantity, TIME_COLUMN, TIME_UNIT, WHERE};
use crate::trace::{read_ramps, read_table};

/// Registry entry.
pub const ENTRY: Entry<Box<dyn DelayModel>> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "trace",
    summary: "delays over time from a table of times and delays, counted from the link's \
              start; a frame's is that of the moment at which it enters the medium",
    params: &[
        FILE.help(
            "the file: rows of a time and a delay, between commas, tabs or blanks; the first row \
             may name the columns and their units, as in time_s,delay_ms",
        ),
        CHANGE,
        END.help(
            "what follows the end: loop, the beginning; hold, the last delay; stop, no delay; the \
             last row counts as long as the one before",
        ),
        TIME_COLUMN,
        TIME_UNIT,
        DELAY_COLUMN,
        DELAY_UNIT,
        WHERE,
    ],
};

const DELAY_COLUMN: Param = Param::new("delay-column", Unit::Text("delay_ms"))
    .help("the column of delays, by name or number");

const DELAY_UNIT: Param = Param::new("delay-unit", Unit::Choice(&["ms", "us", "ns", "s"]))
    .help("the unit of delays that have none; without it, as the column's name says");

fn build(arguments: &Arguments<'_>) -> Result<Box<dyn DelayModel>, SpecError> {
    let change = Change::read(arguments)?;
    let read = match change {
        Change::Step => read_table,
        Change::Linear => read_ramps,
    };
    let series = read(
        arguments,
        Quantity::Delay,
        DELAY_COLUMN.name,
        DELAY_UNIT.name,
    )?;
    let keys = [TIME_COLUMN, TIME_UNIT, DELAY_COLUMN, DELAY_UNIT, WHERE];
    let file = arguments.word(FILE.name).unwrap_or_default();
    Ok(Box::new(ScheduledDelay {
        head: format!("trace:file={file}"),
        schedule: DelaySchedule::new(series, change, End::read(arguments)?),
        given: arguments.given(&keys),
    }))
}
