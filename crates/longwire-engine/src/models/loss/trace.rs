//! Recorded loss over time.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use longwire_units::Nanos;
use longwire_units::random::Stream;

use super::{ECN, LossDecision, LossModel, PLACE, PlacedLoss, placed};
use crate::frame_context::FrameContext;
use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};
use crate::trace::{Chances, read_chances};
use crate::trace::{END, FILE, Quantity, TIME_COLUMN, TIME_UNIT, WHERE};
use crate::verdict::DropReason;

/// Registry entry.
pub const ENTRY: Entry<PlacedLoss> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "trace",
    summary: "frames are lost with the probability of the moment from a table of times and \
              probabilities, independently, or from a loss model of the crate netem-trace, whose \
              patterns depend on how many frames in a row were lost; counted from when the link \
              has come to be",
    params: &[
        FILE.help(
            "the file: rows of a time and a probability, between commas, tabs or blanks; the \
             first row may name the columns and their units, as in time_s,loss_percent; or \
             netem-trace's JSON or TOML",
        ),
        END.help(
            "what follows the end: loop, the beginning; hold, the last probability; stop, no \
             losses; the last row counts as long as the one before",
        ),
        TIME_COLUMN,
        TIME_UNIT,
        LOSS_COLUMN,
        LOSS_UNIT,
        WHERE,
        PLACE,
        ECN,
    ],
};

const LOSS_COLUMN: Param = Param::new("loss-column", Unit::Text("loss_percent"))
    .help("the column of probabilities, by name or number");

const LOSS_UNIT: Param = Param::new("loss-unit", Unit::Choice(&["percent", "ratio"])).help(
    "the unit of probabilities that have none; without it, as the column's name says, or ratio",
);

fn build(arguments: &Arguments<'_>) -> Result<PlacedLoss, SpecError> {
    let chances = read_chances(arguments, Quantity::Loss, LOSS_COLUMN.name, LOSS_UNIT.name)?;
    let keys = [TIME_COLUMN, TIME_UNIT, LOSS_COLUMN, LOSS_UNIT, WHERE];
    let trace = TraceLoss {
        file: arguments.word(FILE.name).unwrap_or_default().to_string(),
        given: arguments.given(&keys),
        chances,
    };
    placed(arguments, trace)
}

/// Recorded loss.
#[derive(Clone, Debug)]
struct TraceLoss {
    file: String,
    given: Vec<(&'static str, String)>,
    chances: Chances,
}

impl LossModel for TraceLoss {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn start(&mut self, epoch: Nanos) {
        self.chances.start(epoch);
    }

    fn judge(&mut self, frame: &FrameContext<'_>, stream: &mut Stream) -> LossDecision {
        let chosen = self.chances.toss(frame.at, stream);
        chosen.then_some(DropReason::Loss)
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (file, end) = (&self.file, self.chances.end());
        write!(f, "trace:file={file},end={end}")?;
        self.given
            .iter()
            .try_for_each(|(key, word)| write!(f, ",{key}={word}"))
    }
}
