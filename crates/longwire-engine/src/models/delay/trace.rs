//! Recorded delays over time.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use longwire_units::Nanos;
use longwire_units::random::Stream;

use super::DelayModel;
use super::schedule::{CHANGE, Change, DelaySchedule};
use crate::frame_context::FrameContext;
use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};
use crate::trace::{END, End, FILE, Quantity, TIME_COLUMN, TIME_UNIT, WHERE};
use crate::trace::{read_ramps, read_table};

/// The registry line.
pub const ENTRY: Entry<Box<dyn DelayModel>> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "trace",
    summary: "delays over time from a table of times and delays, counted from the link's \
              start; a frame's is that of the moment at which it enters the medium",
    params: &[
        Param {
            help: "the file: rows of a time and a delay, between commas, tabs or blanks; the \
                   first row may name the columns and their units, as in time_s,delay_ms",
            ..FILE
        },
        CHANGE,
        Param {
            help: "what follows the end: loop, the beginning; hold, the last delay; stop, no \
                   delay; the last row counts as long as the one before",
            ..END
        },
        TIME_COLUMN,
        TIME_UNIT,
        DELAY_COLUMN,
        DELAY_UNIT,
        WHERE,
    ],
};

const DELAY_COLUMN: Param = Param {
    name: "delay-column",
    unit: Unit::Text("delay_ms"),
    default: None,
    help: "the column of delays, by name or number",
};

const DELAY_UNIT: Param = Param {
    name: "delay-unit",
    unit: Unit::Choice(&["ms", "us", "ns", "s"]),
    default: None,
    help: "the unit of delays that have none; without it, as the column's name says",
};

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
    // The given parameters, for `describe`.
    let keys = [TIME_COLUMN, TIME_UNIT, DELAY_COLUMN, DELAY_UNIT, WHERE];
    let given = keys.iter().filter_map(|key| {
        let word = arguments.word(key.name)?;
        Some((key.name, word.to_string()))
    });
    Ok(Box::new(Trace {
        file: arguments.word(FILE.name).unwrap_or_default().to_string(),
        given: given.collect(),
        schedule: DelaySchedule::new(series, change, End::read(arguments)?),
    }))
}

/// Recorded delays.
#[derive(Clone, Debug)]
struct Trace {
    file: String,
    given: Vec<(&'static str, String)>,
    schedule: DelaySchedule,
}

impl DelayModel for Trace {
    fn start(&mut self, epoch: Nanos) {
        self.schedule.epoch = epoch;
    }

    fn draw(&mut self, frame: &FrameContext<'_>, _stream: &mut Stream) -> Nanos {
        self.schedule.at(frame.at)
    }

    fn least(&self) -> Nanos {
        self.schedule.least()
    }

    /// Returns the mean over time, in the long run.
    fn mean(&self) -> Nanos {
        self.schedule.mean()
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DelaySchedule { change, end, .. } = &self.schedule;
        write!(
            f,
            "trace:file={},change={},end={end}",
            self.file,
            change.word()
        )?;
        self.given
            .iter()
            .try_for_each(|(key, word)| write!(f, ",{key}={word}"))
    }
}
