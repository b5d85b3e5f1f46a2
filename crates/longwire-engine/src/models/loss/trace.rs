//! Loss over time, as it was recorded.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use super::{LossModel, Lost, PLACE, PlacedLoss, placed};
use crate::models::Entry;
use crate::passing::Passing;
use crate::random::Stream;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};
use crate::trace::read_table;
use crate::trace::{Cursor, END, End, FILE, Quantity, Series, TIME_COLUMN, TIME_UNIT, WHERE};
use crate::units::{Nanos, Probability};
use crate::verdict::DropReason;

/// The registry line.
pub const ENTRY: Entry<PlacedLoss> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "trace",
    summary: "frames are lost independently, with the probability of the moment from a table of \
              times and probabilities, counted from when the link has come to be",
    params: &[
        Param {
            help: "the file: rows of a time and a probability, between commas, tabs or blanks; \
                   the first row may name the columns and their units, as in \
                   time_s,loss_percent",
            ..FILE
        },
        Param {
            help: "what follows the end: loop, the beginning; hold, the last probability; stop, \
                   no losses; the last row counts as long as the one before",
            ..END
        },
        TIME_COLUMN,
        TIME_UNIT,
        LOSS_COLUMN,
        LOSS_UNIT,
        WHERE,
        PLACE,
    ],
};

const LOSS_COLUMN: Param = Param {
    name: "loss-column",
    unit: Unit::Text("loss_percent"),
    default: None,
    help: "the column of probabilities, by name or number",
};

const LOSS_UNIT: Param = Param {
    name: "loss-unit",
    unit: Unit::Choice(&["percent", "ratio"]),
    default: None,
    help: "the unit of probabilities that have none; without it, as the column's name says, or \
           ratio",
};

fn build(arguments: &Arguments<'_>) -> Result<PlacedLoss, SpecError> {
    let series = read_table(arguments, Quantity::Loss, LOSS_COLUMN.name, LOSS_UNIT.name)?;
    // As they were given, to be written again.
    let keys = [TIME_COLUMN, TIME_UNIT, LOSS_COLUMN, LOSS_UNIT, WHERE];
    let given = keys.iter().filter_map(|key| {
        let word = arguments.word(key.name)?;
        Some((key.name, word.to_string()))
    });
    let trace = TraceLoss {
        file: arguments.word(FILE.name).unwrap_or_default().to_string(),
        given: given.collect(),
        series,
        end: End::read(arguments)?,
        cursor: Cursor::default(),
        epoch: Nanos::ZERO,
        last: (0, Probability::ZERO),
    };
    placed(arguments, trace)
}

/// Recorded loss.
#[derive(Debug)]
struct TraceLoss {
    file: String,
    given: Vec<(&'static str, String)>,
    series: Series,
    end: End,
    cursor: Cursor,
    epoch: Nanos,
    /// The last value, and the probability that it is: a division spared.
    last: (u64, Probability),
}

impl LossModel for TraceLoss {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn start(&mut self, epoch: Nanos) {
        self.epoch = epoch;
    }

    fn judge(&mut self, frame: &Passing<'_>, stream: &mut Stream) -> Lost {
        let since = frame.at.saturating_sub(self.epoch);
        let stretch = self.series.at(&mut self.cursor, since, self.end);
        let steps = stretch.value.unwrap_or(0);
        if steps != self.last.0 {
            let probability = Probability::from_ratio(steps, Quantity::LOSS_STEPS);
            self.last = (steps, probability.unwrap_or(Probability::ONE));
        }
        stream.chance(self.last.1).then_some(DropReason::Loss)
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "trace:file={},end={}", self.file, self.end)?;
        self.given
            .iter()
            .try_for_each(|(key, word)| write!(f, ",{key}={word}"))
    }
}
