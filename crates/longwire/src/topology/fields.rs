//! The fields there are: one table for each section of the file, from which
//! the reader, its messages and the JSON schema follow.

/// A table of the file.
#[derive(Debug)]
pub struct Section {
    /// How it is written, as in `[switching]`.
    pub name: &'static str,
    /// One line of help.
    pub help: &'static str,
    /// Its own fields.
    pub fields: &'static [Field],
    /// Whether it takes the options of a link too.
    pub options: bool,
}

/// A field of a section.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// What stands before the equals sign.
    pub name: &'static str,
    /// What stands behind it.
    pub kind: Kind,
    /// One line of help.
    pub help: &'static str,
}

/// What a field takes.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A text.
    Text,
    /// One text or a list of them.
    Texts,
    /// A list of texts of this length.
    Tuple(usize, usize),
    /// A list of pairs of texts.
    Pairs,
    /// A whole number in these bounds.
    Number(u64, u64),
    /// `true` or `false`.
    Flag,
    /// One of some words.
    Choice(&'static [&'static str]),
    /// A table of texts by names of the user's.
    TextMap,
    /// A table.
    Table(&'static Section),
    /// Tables by names of the user's.
    TableMap(&'static Section),
    /// An array of tables, `[[name]]`.
    Tables(&'static Section),
}

const fn field(name: &'static str, kind: Kind, help: &'static str) -> Field {
    Field { name, kind, help }
}

/// The most links a file may make.
pub const LINKS_MAX: u64 = 1 << 22;

/// The most ports.
pub const PORTS_MAX: u64 = 1024;

/// The most steps of a ramp.
pub const STEPS_MAX: u64 = 1_000_000;

/// The file.
pub static FILE: Section = Section {
    name: "file",
    help: "A topology: ports, links between them, and what happens to them",
    options: false,
    fields: &[
        field(
            "seed",
            Kind::Number(0, i64::MAX as u64),
            "what all randomness follows from; that of --seed when it is not given, which is 1 by itself",
        ),
        field(
            "classify",
            Kind::Choice(&["first", "specific"]),
            "which matcher counts when several match: the first of the file (by default), or the most specific",
        ),
        field(
            "unmatched",
            Kind::Text,
            "what becomes of frames that no matcher is about: pass (by default), drop, or link:NAME, which they cross upwards",
        ),
        field(
            "ports",
            Kind::TextMap,
            "ports by name, as in left = \"packet:eth1\"; numbered from 0 in the order of the file",
        ),
        field(
            "switching",
            Kind::Table(&SWITCHING),
            "which port a frame leaves by",
        ),
        field(
            "defaults",
            Kind::Table(&DEFAULTS),
            "options under those of every link",
        ),
        field(
            "templates",
            Kind::TableMap(&TEMPLATE),
            "options by name, for links that name them",
        ),
        field("link", Kind::Tables(&LINK), "a link, or many"),
        field(
            "path",
            Kind::Tables(&PATH),
            "links that are crossed one after the other",
        ),
        field(
            "at",
            Kind::Tables(&EVENT),
            "what changes while it runs, in order of time",
        ),
    ],
};

/// `[switching]`.
pub static SWITCHING: Section = Section {
    name: "switching",
    help: "Which port a frame leaves by",
    options: false,
    fields: &[
        field(
            "mode",
            Kind::Choice(&["bridge", "pairs", "static"]),
            "bridge learns where stations are (by default with three ports and more), pairs joins ports two by two (by default with two), static knows stations only",
        ),
        field(
            "ageing",
            Kind::Text,
            "how long a bridge remembers a station that it does not hear of; 300s by default",
        ),
        field(
            "table-size",
            Kind::Number(1, 1 << 24),
            "how many stations a bridge remembers; 65,536 by default",
        ),
        field(
            "storm-limit",
            Kind::Text,
            "how many frames a second that arrive at one port may be flooded, as in 1kpps; not limited by default",
        ),
        field(
            "storm-burst",
            Kind::Number(1, 1 << 20),
            "how many frames may be flooded at once, within the storm limit; 100 by default",
        ),
        field(
            "reserved",
            Kind::Choice(&["drop", "pass"]),
            "frames to 01-80-C2-00-00-00 … 0F (spanning tree, LLDP): drop, as bridges do, or pass",
        ),
        field(
            "loop-detection",
            Kind::Flag,
            "whether loops are looked for and said; true by default",
        ),
        field(
            "pairs",
            Kind::Pairs,
            "pairs of ports by name; those of two ports are known",
        ),
        field(
            "stations",
            Kind::TextMap,
            "stations whose port is given: \"02:00:00:00:00:01\" = \"left\", with @VLAN behind the address for a tagged one",
        ),
    ],
};

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

impl Section {
    /// The field of a name.
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}
