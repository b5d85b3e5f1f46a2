//! Fields of changes.

use super::{Field, Kind, LINK, PATH, STEPS_MAX, Section, field};

const SET_FIELD: Field = field(
    "set",
    Kind::TableMap(&SET),
    "options by link name; * and ? are wildcards, a suffix .up or .down selects one direction",
);
const ON_FIELD: Field = field("on", Kind::Texts, "links to turn on");
const OFF_FIELD: Field = field(
    "off",
    Kind::Texts,
    "links to turn off; they drop queued and arriving frames",
);
const PAUSE_FIELD: Field = field(
    "pause",
    Kind::Texts,
    "links to pause; they hold arriving frames until turned on",
);
const MOVE_FIELD: Field = field(
    "move",
    Kind::TextMap,
    "moves frames: current link or path = new link or path",
);
const OUTAGE_FIELD: Field = field(
    "outage",
    Kind::Text,
    "time for which moved frames are lost, such as 50ms; default: 0",
);

/// `[[at]]`.
pub static EVENT: Section = Section {
    name: "at",
    help: "A change during the run",
    options: false,
    fields: &[
        field(
            "time",
            Kind::Text,
            "time since the start of the run, such as 30s",
        ),
        SET_FIELD,
        ON_FIELD,
        OFF_FIELD,
        PAUSE_FIELD,
        MOVE_FIELD,
        OUTAGE_FIELD,
        field(
            "ramp",
            Kind::TableMap(&RAMP),
            "options to change in steps, by link name",
        ),
        field("every", Kind::Text, "repetition period"),
        field(
            "times",
            Kind::Number(1, 1_000_000_000),
            "total number of repetitions; default: unlimited",
        ),
    ],
};

/// A change to a running network: the immediate actions in `[[at]]`, plus links and paths to add or
/// remove.
pub static CHANGE: Section = Section {
    name: "change",
    help: "An atomic change to a running network",
    options: false,
    fields: &[
        field(
            "at",
            Kind::Text,
            "time since the start of the run, such as 30s; default: now",
        ),
        field("in", Kind::Text, "time from now, such as 500ms"),
        SET_FIELD,
        ON_FIELD,
        OFF_FIELD,
        PAUSE_FIELD,
        MOVE_FIELD,
        OUTAGE_FIELD,
        field(
            "add",
            Kind::Table(&ADD),
            "links and paths to add; their rules follow the existing ones",
        ),
        field(
            "remove",
            Kind::Texts,
            "links and paths to remove, by name or pattern; frames in flight still arrive",
        ),
    ],
};

/// `add` in a change.
pub static ADD: Section = Section {
    name: "add",
    help: "Links and paths to add",
    options: false,
    fields: &[
        field("link", Kind::Tables(&LINK), "links, as under [[link]]"),
        field("path", Kind::Tables(&PATH), "paths, as under [[path]]"),
    ],
};

/// A table in `set`.
pub static SET: Section = Section {
    name: "set",
    help: "Options to set",
    options: true,
    fields: &[],
};

/// A table in `ramp`.
pub static RAMP: Section = Section {
    name: "ramp",
    help: "An option that changes in steps",
    options: false,
    fields: &[
        field(
            "option",
            Kind::Choice(&["rate", "delay", "loss", "corrupt", "duplicate"]),
            "the option to change",
        ),
        field(
            "from",
            Kind::Text,
            "first value, such as 10mbit, 20ms or 1%",
        ),
        field("to", Kind::Text, "last value"),
        field("time", Kind::Text, "duration"),
        field(
            "steps",
            Kind::Number(1, STEPS_MAX),
            "number of steps; default: 100",
        ),
    ],
};
