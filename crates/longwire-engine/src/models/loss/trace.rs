//! Recorded loss over time.

use super::{ECN, LossDecision, LossModel, PLACE, PlacedLoss, placed};
use crate::models::prelude::*;
use crate::trace::{Chances, END, FILE, Quantity, TIME_COLUMN, TIME_UNIT, WHERE, read_chances};

pub const ENTRY: Entry<PlacedLoss> = Entry::new(
    "trace",
    "loss probability over time, from a table or a netem-trace loss model (a list of \
     probabilities, indexed by the number of consecutive losses so far). Times are relative to the \
     link's start",
    &[
        FILE.help(
            "file: rows of time and probability, separated by commas, tabs or spaces; the first \
             row may name columns and units, such as time_s,loss_percent; or netem-trace JSON or \
             TOML",
        ),
        END.help(
            "after the last row: loop repeats the trace, hold keeps the last probability, stop \
             loses no frame; the last row lasts as long as the previous one",
        ),
        TIME_COLUMN,
        TIME_UNIT,
        LOSS_COLUMN,
        LOSS_UNIT,
        WHERE,
        PLACE,
        ECN,
    ],
    |arguments| placed(arguments, read_chances(arguments, Quantity::Loss)?),
);

const LOSS_COLUMN: Param = Param::new("loss-column", Unit::Text("loss_percent"))
    .help("column of probabilities, by name or number");

const LOSS_UNIT: Param = Param::new("loss-unit", Unit::Choice(&["percent", "ratio"])).help(
    "unit of probabilities written without one; default: the unit in the column's name, or ratio",
);

impl LossModel for Chances {
    fn start(&mut self, epoch: Nanos) {
        Chances::start(self, epoch);
    }

    fn judge(&mut self, frame: &FrameContext<'_>, stream: &mut Stream) -> LossDecision {
        self.toss(frame.at, stream).then_some(DropReason::Loss)
    }
}
