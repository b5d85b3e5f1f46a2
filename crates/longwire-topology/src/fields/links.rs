//! Fields of links and paths.

use super::{Field, Kind, LINKS_MAX, Section, field};

const UP: Field = field(
    "up",
    Kind::Table(&ONE_WAY),
    "options of the direction up: the one that match is about",
);
const DOWN: Field = field(
    "down",
    Kind::Table(&DOWNWARDS),
    "options of the direction down: the way back",
);
const PRESET: Field = field(
    "preset",
    Kind::Text,
    "a preset that lies under the options, as in lte",
);

/// `[defaults]`.
pub static DEFAULTS: Section = Section {
    name: "defaults",
    help: "Options under those of every link",
    options: true,
    fields: &[PRESET, UP, DOWN],
};

/// `[templates.NAME]`.
pub static TEMPLATE: Section = Section {
    name: "templates",
    help: "Options by name",
    options: true,
    fields: &[PRESET, UP, DOWN],
};

/// `up` of a link.
pub static ONE_WAY: Section = Section {
    name: "up",
    help: "Options of one direction",
    options: true,
    fields: &[],
};

/// `down` of a link.
pub static DOWNWARDS: Section = Section {
    name: "down",
    help: "Options of the direction down",
    options: true,
    fields: &[field(
        "match",
        Kind::Texts,
        "which frames cross the link downwards; the link's matchers with source and destination swapped by default",
    )],
};

/// `[[link]]`.
pub static LINK: Section = Section {
    name: "link",
    help: "A link, or many",
    options: true,
    fields: &[
        field(
            "name",
            Kind::Text,
            "its name; of many links, with {n}, {a} or {b} in it",
        ),
        field("template", Kind::Text, "the template under its options"),
        PRESET,
        field(
            "match",
            Kind::Texts,
            "which frames cross it upwards, as in \"src=10.0.0.1,dst=10.0.0.2\"; one or several",
        ),
        field(
            "shared",
            Kind::Flag,
            "whether both directions share one queue and one rate; false by default",
        ),
        UP,
        DOWN,
        field(
            "count",
            Kind::Number(1, LINKS_MAX),
            "so many links, with {n} for the number of each",
        ),
        field(
            "first",
            Kind::Number(0, u32::MAX as u64),
            "the number of the first; 1 by default",
        ),
        field(
            "between",
            Kind::Tuple(1, 2),
            "links between the hosts of two networks, with {a} and {b} for their addresses; or from those of one to anywhere",
        ),
        field(
            "pairing",
            Kind::Choice(&["one-to-one", "all"]),
            "which hosts of the two networks: the first with the first (by default), or each with each",
        ),
        field(
            "csv",
            Kind::Text,
            "a CSV file with a link a line; its header names options, with up- and down- before them for one direction, and name, match, template, shared",
        ),
    ],
};

/// `[[path]]`.
pub static PATH: Section = Section {
    name: "path",
    help: "Links that are crossed one after the other",
    options: false,
    fields: &[
        field("name", Kind::Text, "its name"),
        field(
            "via",
            Kind::Texts,
            "the links in order; NAME.down crosses one downwards. The way back crosses them the other way round",
        ),
        field("match", Kind::Texts, "which frames cross it in this order"),
        field(
            "match-back",
            Kind::Texts,
            "which frames cross it backwards; the matchers with source and destination swapped by default",
        ),
    ],
};
