//! Fields of changes.

use super::{Field, Kind, LINK, PATH, STEPS_MAX, Section, field};

const SET_FIELD: Field = field("set", Kind::TableMap(&SET)).help(
    "options by link name; * and ? are wildcards, a suffix .up or .down selects one direction",
);
const ON_FIELD: Field = field("on", Kind::Texts).help("links to turn on");
const OFF_FIELD: Field =
    field("off", Kind::Texts).help("links to turn off; they drop queued and arriving frames");
const PAUSE_FIELD: Field =
    field("pause", Kind::Texts).help("links to pause; they hold arriving frames until turned on");
const MOVE_FIELD: Field =
    field("move", Kind::TextMap).help("moves frames: current link or path = new link or path");
const OUTAGE_FIELD: Field = field("outage", Kind::Text)
    .help("time for which moved frames are lost, such as 50ms; default: 0");

/// `[[at]]`.
pub static EVENT: Section = Section {
    help: "A change during the run",
    options: false,
    fields: &[
        field("time", Kind::Text).help("time since the start of the run, such as 30s"),
        SET_FIELD,
        ON_FIELD,
        OFF_FIELD,
        PAUSE_FIELD,
        MOVE_FIELD,
        OUTAGE_FIELD,
        field("ramp", Kind::TableMap(&RAMP)).help("options to change in steps, by link name"),
        field("every", Kind::Text).help("period after which the event repeats, such as 10s"),
        field("times", Kind::Number(1, 1_000_000_000))
            .help("number of occurrences, including the first; default: unlimited"),
    ],
};

/// A change to a running network: the immediate actions in `[[at]]`, plus links and paths to add or
/// remove.
pub static CHANGE: Section = Section {
    help: "An atomic change to a running network",
    options: false,
    fields: &[
        field("at", Kind::Text).help("time since the start of the run, such as 30s; default: now"),
        field("in", Kind::Text).help("time from now, such as 500ms"),
        SET_FIELD,
        ON_FIELD,
        OFF_FIELD,
        PAUSE_FIELD,
        MOVE_FIELD,
        OUTAGE_FIELD,
        field("add", Kind::Table(&ADD))
            .help("links and paths to add; their rules follow the existing ones"),
        field("remove", Kind::Texts)
            .help("links and paths to remove, by name or pattern; frames in flight still arrive"),
    ],
};

/// `add` in a change.
pub static ADD: Section = Section {
    help: "Links and paths to add",
    options: false,
    fields: &[
        field("link", Kind::Tables(&LINK)).help("links, as under [[link]]"),
        field("path", Kind::Tables(&PATH)).help("paths, as under [[path]]"),
    ],
};

/// A table in `set`.
pub static SET: Section = Section {
    help: "Options to set",
    options: true,
    fields: &[],
};

/// A table in `ramp`.
pub static RAMP: Section = Section {
    help: "An option that changes in steps",
    options: false,
    fields: &[
        field(
            "option",
            Kind::Choice(&["rate", "delay", "loss", "corrupt", "duplicate"]),
        )
        .help("the option to change"),
        field("from", Kind::Text).help("first value, such as 10mbit, 20ms or 1%"),
        field("to", Kind::Text).help("last value, such as 1mbit, 50ms or 5%"),
        field("time", Kind::Text).help("time from the first value to the last, such as 10s"),
        field("steps", Kind::Number(1, STEPS_MAX)).help("number of steps; default: 100"),
    ],
};
