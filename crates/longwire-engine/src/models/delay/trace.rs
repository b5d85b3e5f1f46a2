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
    summary: "delays over time from a table; a frame has the delay at the time it enters the \
              medium, counted from the start of the link",
    params: &[
        FILE.help(
            "file: rows of time and delay, separated by commas, tabs or blanks; the first row may \
             name columns and units, such as time_s,delay_ms",
        ),
        CHANGE,
        END.help(
            "after the last row: loop repeats the trace, hold keeps the last delay, stop adds no \
             delay; the last row lasts as long as the previous one",
        ),
        TIME_COLUMN,
        TIME_UNIT,
        DELAY_COLUMN,
        DELAY_UNIT,
        WHERE,
    ],
};

const DELAY_COLUMN: Param =
    Param::new("delay-column", Unit::Text("delay_ms")).help("column of delays, by name or number");

const DELAY_UNIT: Param = Param::new("delay-unit", Unit::Choice(&["ms", "us", "ns", "s"]))
    .help("unit of delays without one; default: that of the column's name");

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
