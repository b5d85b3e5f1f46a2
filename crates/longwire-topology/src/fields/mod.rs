//! The fields there are: one table for each section of the file, from which
//! the reader, its messages and the JSON schema follow.

mod attach;
mod events;
mod hosts;
mod links;

pub use attach::{ATTACH, PORT};
pub use events::{ADD, CHANGE, EVENT, RAMP, SET};
pub use hosts::{HOST, UNDERLAY, UNDERLAY_MTU_MAX, UNDERLAY_MTU_MIN};
pub use links::{DEFAULTS, DOWNWARDS, LINK, ONE_WAY, PATH, TEMPLATE};

/// A table of the file.
#[derive(Debug)]
pub struct Section {
    /// Its header, as in `[switching]`.
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
    /// The text before the equals sign.
    pub name: &'static str,
    /// The kind of its values.
    pub kind: Kind,
    /// One line of help.
    pub help: &'static str,
}

/// The kinds of values.
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
    /// A table of texts or tables by names of the user's.
    TextOrTableMap(&'static Section),
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

/// The most hosts.
pub const HOSTS_MAX: usize = 256;

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
            "on-port-loss",
            Kind::Choice(&["end", "continue"]),
            "what happens when a port goes away: the run ends (by default), or continues without it, and frames for it are lost",
        ),
        field(
            "ports",
            Kind::TextOrTableMap(&PORT),
            "ports by name, as in left = \"packet:eth1\", left = { opens = \"tap:lw0\", carrier = \"access.down\" }, or left.attach = { pod = \"shop/cart-0\", to = \"10.0.0.2\" }; numbered from 0 in the order of the file",
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
            "host",
            Kind::Tables(&HOST),
            "a machine that runs a part of the network",
        ),
        field(
            "underlay",
            Kind::Table(&UNDERLAY),
            "the network between the hosts",
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

impl Section {
    /// The field of a name.
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}
