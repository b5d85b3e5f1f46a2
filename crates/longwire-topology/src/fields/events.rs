//! Fields of what changes while a network runs.

use super::{Field, Kind, LINK, PATH, STEPS_MAX, Section, field};

const SET_FIELD: Field = field(
    "set",
    Kind::TableMap(&SET),
    "options by names of links, in which * stands for anything and ? for a letter; with .up or .down behind for one direction",
);
const UP_FIELD: Field = field("up", Kind::Texts, "links that are up again");
const DOWN_FIELD: Field = field(
    "down",
    Kind::Texts,
    "links that are down: they lose what arrives",
);
const PAUSE_FIELD: Field = field(
    "pause",
    Kind::Texts,
    "links that hold what they have, until they are up",
);
const MOVE_FIELD: Field = field(
    "move",
    Kind::TextMap,
    "whose frames take another way: name of a link or a path = name of the link or path that they take from now on",
);
const OUTAGE_FIELD: Field = field(
    "outage",
    Kind::Text,
    "how long frames that are moved are lost, as in 50ms; not at all by default",
);

/// `[[at]]`.
pub static EVENT: Section = Section {
    name: "at",
    help: "What changes while it runs",
    options: false,
    fields: &[
        field(
            "time",
            Kind::Text,
            "when, from the start of the run, as in 30s",
        ),
        SET_FIELD,
        UP_FIELD,
        DOWN_FIELD,
        PAUSE_FIELD,
        MOVE_FIELD,
        OUTAGE_FIELD,
        field(
            "ramp",
            Kind::TableMap(&RAMP),
            "options that change in steps, by names of links",
        ),
        field("every", Kind::Text, "repeat it every so often"),
        field(
            "times",
            Kind::Number(1, 1_000_000_000),
            "how often it happens in all; without end by default",
        ),
    ],
};

/// A change of a running network: what `[[at]]` does at once, and links and
/// paths that come and go.
pub static CHANGE: Section = Section {
    name: "change",
    help: "What is to be another in a running network: all of it, or nothing",
    options: false,
    fields: &[
        field(
            "at",
            Kind::Text,
            "when, from the start of the run, as in 30s; at once by default",
        ),
        field("in", Kind::Text, "in how long, as in 500ms"),
        SET_FIELD,
        UP_FIELD,
        DOWN_FIELD,
        PAUSE_FIELD,
        MOVE_FIELD,
        OUTAGE_FIELD,
        field(
            "add",
            Kind::Table(&ADD),
            "links and paths that come; their rules stand behind those that there are",
        ),
        field(
            "remove",
            Kind::Texts,
            "links and paths that go, by name, with * and ?; what is on its way arrives",
        ),
    ],
};

/// `add` of a change.
pub static ADD: Section = Section {
    name: "add",
    help: "Links and paths that come",
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
            "which option",
        ),
        field(
            "from",
            Kind::Text,
            "its first value: a plain one, as in 10mbit, 20ms or 1%",
        ),
        field("to", Kind::Text, "its last value"),
        field("time", Kind::Text, "how long it takes"),
        field(
            "steps",
            Kind::Number(1, STEPS_MAX),
            "in how many steps; 100 by default",
        ),
    ],
};
