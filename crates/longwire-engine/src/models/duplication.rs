//! Duplication: frames that are delivered several times.

use dyn_clone::DynClone;

use longwire_units::parse_count;

use crate::coin::EveryNth;
use crate::models::prelude::*;
use crate::trace::{Chances, END, FILE, Quantity, TIME_COLUMN, TIME_UNIT, WHERE, read_chances};

/// Duplicates of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copies {
    /// Number of copies in addition to the original.
    pub count: u32,
    /// Whether each copy draws a delay from the link's delay model; otherwise copies share the
    /// original's delay.
    pub own_delay: bool,
}

/// A process that duplicates frames on the medium.
pub trait DuplicationModel: DynClone + fmt::Debug + Send + Sync {
    /// Called once, before any other method. `epoch` is the origin of schedules.
    fn start(&mut self, _epoch: Nanos) {}

    /// Decides the copies of this frame. Called for every frame that reaches the medium, even if it
    /// is lost there.
    fn judge(&mut self, frame: &FrameContext<'_>, stream: &mut Stream) -> Option<Copies>;
}

dyn_clone::clone_trait_object!(DuplicationModel);

/// Duplication models.
pub static KIND: Kind<Described<dyn DuplicationModel>> = Kind {
    name: "duplicate",
    example: "1%",
    entries: &[RANDOM, NTH, TRACE],
};

const RANDOM: Entry<Described<dyn DuplicationModel>> = Entry::new(
    "random",
    "duplicates frames on the medium independently; lost frames are not duplicated",
    &[
        Param::new("rate", Unit::Probability).help("probability that a frame is duplicated"),
        COPIES,
        DELAY,
    ],
    |arguments| duplication(arguments, Chosen::Random(arguments.required("rate")?)),
);

const COPIES: Param = Param::with_default("copies", Unit::Count, "1")
    .within("1", "100", "1 to 100")
    .help("number of extra copies, 1 to 100");

/// Delay of copies.
const DELAY: Param = Param::with_default("delay", Unit::Choice(&["same", "own"]), "same")
    .help("same: copies arrive with the frame; own: each copy draws its own delay");

const NTH: Entry<Described<dyn DuplicationModel>> = Entry::new(
    "nth",
    "duplicates every n-th frame that reaches the medium; lost frames are not duplicated",
    &[
        Param::new("every", Unit::Count)
            .help("distance between duplicated frames; 1 duplicates all"),
        Param::with_default("offset", Unit::Count, "0").help("frames to skip first"),
        COPIES,
        DELAY,
    ],
    |arguments| {
        let nth = EveryNth::read(arguments, "duplicates")?;
        duplication(arguments, Chosen::Nth(nth))
    },
);

const TRACE: Entry<Described<dyn DuplicationModel>> = Entry::new(
    "trace",
    "duplication probability over time, from a table or a netem-trace duplicate model (a list of \
     probabilities, indexed by the number of consecutive duplicated frames so far). Times are \
     relative to the link's start",
    &[
        Param {
            help: "file: rows of time and probability, separated by commas, tabs or spaces; the \
                   first row may name columns and units, such as time_s,duplicate_percent; or \
                   netem-trace JSON or TOML",
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
    |arguments| {
        let chances = read_chances(arguments, Quantity::Duplication)?;
        duplication(arguments, Chosen::Trace(chances))
    },
);

/// Example table with the column names used in the parameters' examples.
const EXAMPLE: &str = "time_s,duplicate_percent,cell\n0,0.5,7\n1,1,7\n";

const DUPLICATE_COLUMN: Param = Param::new("duplicate-column", Unit::Text("duplicate_percent"))
    .help("column of probabilities, by name or number");

const DUPLICATE_UNIT: Param = Param::new("duplicate-unit", Unit::Choice(&["percent", "ratio"]))
    .help(
        "unit of probabilities written without one; default: the unit in the column's name, or \
         ratio",
    );

/// How frames are chosen for duplication.
#[derive(Clone, Debug)]
enum Chosen {
    Random(Probability),
    Nth(EveryNth),
    Trace(Chances),
}

#[derive(Clone, Debug)]
struct Duplication {
    choice: Chosen,
    copies: Copies,
}

fn duplication(
    arguments: &Arguments<'_>,
    choice: Chosen,
) -> Result<Described<dyn DuplicationModel>, SpecError> {
    Ok(arguments.described(Box::new(Duplication {
        choice,
        copies: Copies {
            count: arguments.read(COPIES.name, parse_count)? as u32,
            own_delay: arguments.choice(DELAY.name)? == 1,
        },
    })))
}

impl DuplicationModel for Duplication {
    fn start(&mut self, epoch: Nanos) {
        if let Chosen::Trace(chances) = &mut self.choice {
            chances.start(epoch);
        }
    }

    fn judge(&mut self, frame: &FrameContext<'_>, stream: &mut Stream) -> Option<Copies> {
        let chosen = match &mut self.choice {
            Chosen::Random(rate) => stream.chance(*rate),
            Chosen::Nth(nth) => nth.chooses(),
            Chosen::Trace(chances) => chances.toss(frame.at, stream),
        };
        chosen.then_some(self.copies)
    }
}
