//! Recorded duplication over time.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use longwire_units::Nanos;
use longwire_units::random::Stream;

use super::random::{COPIES, DELAY, copies, delay_word};
use super::{Copies, DuplicationModel};
use crate::frame_context::FrameContext;
use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};
use crate::trace::{Chances, read_chances};
use crate::trace::{END, FILE, Quantity, TIME_COLUMN, TIME_UNIT, WHERE};

/// Registry entry.
pub const ENTRY: Entry<Box<dyn DuplicationModel>> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "trace",
    summary: "duplicates with a probability over time from a table, or from a duplicate model of \
              the crate netem-trace, whose patterns depend on the number of duplicated frames in \
              a row; times count from the start of the link",
    params: &[
        Param {
            help: "file: rows of time and probability, separated by commas, tabs or blanks; the \
                   first row may name columns and units, such as time_s,duplicate_percent; or \
                   JSON or TOML of netem-trace",
            unit: Unit::File(EXAMPLE),
            ..FILE
        },
        END.help(
            "after the last row: loop repeats the trace, hold keeps the last probability, stop \
             adds no duplicates; the last row lasts as long as the previous one",
        ),
        TIME_COLUMN,
        TIME_UNIT,
        DUPLICATE_COLUMN,
        DUPLICATE_UNIT,
        WHERE,
        COPIES,
        DELAY,
    ],
};

/// A small table with the columns of the parameters' examples.
const EXAMPLE: &str = "time_s,duplicate_percent,cell\n0,0.5,7\n1,1,7\n";

const DUPLICATE_COLUMN: Param = Param::new("duplicate-column", Unit::Text("duplicate_percent"))
    .help("column of probabilities, by name or number");

const DUPLICATE_UNIT: Param = Param::new("duplicate-unit", Unit::Choice(&["percent", "ratio"]))
    .help("unit of probabilities without one; default: that of the column's name, or ratio");

fn build(arguments: &Arguments<'_>) -> Result<Box<dyn DuplicationModel>, SpecError> {
    let (column, unit) = (DUPLICATE_COLUMN.name, DUPLICATE_UNIT.name);
    let chances = read_chances(arguments, Quantity::Duplication, column, unit)?;
    let keys = [
        TIME_COLUMN,
        TIME_UNIT,
        DUPLICATE_COLUMN,
        DUPLICATE_UNIT,
        WHERE,
    ];
    Ok(Box::new(TraceDuplication {
        file: arguments.word(FILE.name).unwrap_or_default().to_string(),
        given: arguments.given(&keys),
        chances,
        copies: copies(arguments)?,
    }))
}

/// Recorded duplication.
#[derive(Clone, Debug)]
struct TraceDuplication {
    file: String,
    given: Vec<(&'static str, String)>,
    chances: Chances,
    copies: Copies,
}

impl DuplicationModel for TraceDuplication {
    fn start(&mut self, epoch: Nanos) {
        self.chances.start(epoch);
    }

    fn judge(&mut self, frame: &FrameContext<'_>, stream: &mut Stream) -> Option<Copies> {
        let chosen = self.chances.toss(frame.at, stream);
        chosen.then_some(self.copies)
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Copies { count, own_delay } = self.copies;
        let (file, end) = (&self.file, self.chances.end());
        write!(f, "trace:file={file},end={end}")?;
        self.given
            .iter()
            .try_for_each(|(key, word)| write!(f, ",{key}={word}"))?;
        write!(f, ",copies={count},delay={}", delay_word(own_delay))
    }
}
