//! Fields of links and paths.

use super::{Field, Kind, LINKS_MAX, Section, field};

const UP: Field =
    field("up", Kind::Table(&ONE_WAY)).help("options of direction up, which match selects");
const DOWN: Field =
    field("down", Kind::Table(&DOWNWARDS)).help("options of direction down, the reverse");
const PRESET: Field =
    field("preset", Kind::Text).help("preset that the options override, such as lte");

/// `[defaults]`.
pub static DEFAULTS: Section = Section {
    help: "Default options of all links",
    options: true,
    fields: &[PRESET, UP, DOWN],
};

/// `[templates.NAME]`.
pub static TEMPLATE: Section = Section {
    help: "Named options",
    options: true,
    fields: &[PRESET, UP, DOWN],
};

/// `up` of a link.
pub static ONE_WAY: Section = Section {
    help: "Options of direction up",
    options: true,
    fields: &[],
};

/// `down` of a link.
pub static DOWNWARDS: Section = Section {
    help: "Options of direction down",
    options: true,
    fields: &[field("match", Kind::Texts).help(
        "matchers for direction down; default: the link's match with source and destination \
             swapped",
    )],
};

/// `[[link]]`.
pub static LINK: Section = Section {
    help: "One link, or many",
    options: true,
    fields: &[
        field("name", Kind::Text).help("name; with count or between, it contains {n}, {a} or {b}"),
        field("template", Kind::Text).help("template that the options override"),
        PRESET,
        field("match", Kind::Texts)
            .help("matchers for direction up, such as \"src=10.0.0.1,dst=10.0.0.2\""),
        field("shared", Kind::Flag)
            .help("whether both directions share one queue and rate; default: false"),
        UP,
        DOWN,
        field("count", Kind::Number(1, LINKS_MAX))
            .help("number of links; {n} in name and match is replaced by the link's number"),
        field("first", Kind::Number(0, u32::MAX as u64))
            .help("number of the first link; default: 1"),
        field("between", Kind::Tuple(1, 2)).help(
            "one link per host of a subnet, or per pair of hosts of two; {a} and {b} are their \
             addresses",
        ),
        field("pairing", Kind::Choice(&["one-to-one", "all"])).help(
            "pairing of the hosts of two subnets: one-to-one in order (default), or all \
             combinations",
        ),
        field("csv", Kind::Text).help(
            "CSV file with one link per line; columns are name, match, template, shared and \
             options, with a prefix up- or down- for one direction",
        ),
    ],
};

/// `[[path]]`.
pub static PATH: Section = Section {
    help: "Links crossed in sequence",
    options: false,
    fields: &[
        field("name", Kind::Text).help("name of the path"),
        field("via", Kind::Texts).help(
            "links in order; NAME.down crosses a link in direction down. The reverse direction \
             crosses them in reverse order",
        ),
        field("match", Kind::Texts).help("matchers for frames that cross the links in this order"),
        field("match-back", Kind::Texts).help(
            "matchers for the reverse direction; default: match with source and destination \
             swapped",
        ),
    ],
};
