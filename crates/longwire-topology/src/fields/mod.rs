//! The field tables, one per section of the file. Parser, messages and JSON schema follow
//! from them.

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
    /// Its header, such as `[switching]`.
    pub name: &'static str,
    /// One line of help.
    pub help: &'static str,
    /// Its fields, without link options.
    pub fields: &'static [Field],
    /// Whether it also takes link options.
    pub options: bool,
}

/// A field of a section.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// The key in the file.
    pub name: &'static str,
    /// The type of its value.
    pub kind: Kind,
    /// One line of help.
    pub help: &'static str,
}

/// The type of a value.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A string.
    Text,
    /// A string or a list of strings.
    Texts,
    /// A list of strings with a length in this range.
    Tuple(usize, usize),
    /// A list of pairs of strings.
    Pairs,
    /// An integer in this range.
    Number(u64, u64),
    /// `true` or `false`.
    Flag,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A table of strings with arbitrary keys.
    TextMap,
    /// A table of strings or tables with arbitrary keys.
    TextOrTableMap(&'static Section),
    /// A table.
    Table(&'static Section),
    /// Tables with arbitrary keys.
    TableMap(&'static Section),
    /// An array of tables, `[[name]]`.
    Tables(&'static Section),
}

const fn field(name: &'static str, kind: Kind, help: &'static str) -> Field {
    Field { name, kind, help }
}

/// Maximum number of links.
pub const LINKS_MAX: u64 = 1 << 22;

/// Maximum number of ports.
pub const PORTS_MAX: u64 = 1024;

/// Maximum number of hosts.
pub const HOSTS_MAX: usize = 256;

/// Maximum number of steps of a ramp.
pub const STEPS_MAX: u64 = 1_000_000;

/// The top level of the file.
pub static FILE: Section = Section {
    name: "file",
    help: "A topology: ports, links and their scenario",
    options: false,
    fields: &[
        field(
            "seed",
            Kind::Number(0, i64::MAX as u64),
            "random seed; default: --seed, or 1",
        ),
        field(
            "classify",
            Kind::Choice(&["first", "specific"]),
            "which of several matching rules applies: the first in the file (default), or the most specific",
        ),
        field(
            "unmatched",
            Kind::Text,
            "handling of unmatched frames: pass (default), drop, or link:NAME, which they cross in direction up",
        ),
        field(
            "on-port-loss",
            Kind::Choice(&["end", "continue"]),
            "handling of a lost port: end the run (default), or continue and drop frames for it",
        ),
        field(
            "ports",
            Kind::TextOrTableMap(&PORT),
            "ports by name, such as left = \"packet:eth1\", left = { opens = \"tap:lw0\", carrier = \"access.down\" }, or left.attach = { pod = \"shop/cart-0\", to = \"10.0.0.2\" }; numbered from 0 in file order",
        ),
        field(
            "switching",
            Kind::Table(&SWITCHING),
            "how output ports are selected",
        ),
        field(
            "defaults",
            Kind::Table(&DEFAULTS),
            "default options of all links",
        ),
        field(
            "templates",
            Kind::TableMap(&TEMPLATE),
            "named options that links refer to",
        ),
        field("link", Kind::Tables(&LINK), "one link, or many"),
        field("path", Kind::Tables(&PATH), "links crossed in sequence"),
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
            "changes during the run, sorted by time",
        ),
    ],
};

/// `[switching]`.
pub static SWITCHING: Section = Section {
    name: "switching",
    help: "How output ports are selected",
    options: false,
    fields: &[
        field(
            "mode",
            Kind::Choice(&["bridge", "pairs", "static"]),
            "bridge learns addresses (default with three or more ports), pairs connects ports in pairs (default with two), static uses stations only",
        ),
        field(
            "ageing",
            Kind::Text,
            "ageing time of learned addresses; default: 300s",
        ),
        field(
            "table-size",
            Kind::Number(1, 1 << 24),
            "maximum number of learned addresses; default: 65,536",
        ),
        field(
            "storm-limit",
            Kind::Text,
            "maximum flooded frames/s per ingress port, such as 1kpps; default: unlimited",
        ),
        field(
            "storm-burst",
            Kind::Number(1, 1 << 20),
            "maximum burst of flooded frames under the storm limit; default: 100",
        ),
        field(
            "reserved",
            Kind::Choice(&["drop", "pass"]),
            "frames to 01-80-C2-00-00-00 … 0F (spanning tree, LLDP): drop, as IEEE 802.1D bridges do, or pass",
        ),
        field(
            "loop-detection",
            Kind::Flag,
            "whether to detect and report loops; default: true",
        ),
        field(
            "pairs",
            Kind::Pairs,
            "pairs of port names; not needed with two ports",
        ),
        field(
            "stations",
            Kind::TextMap,
            "stations with a fixed port: \"02:00:00:00:00:01\" = \"left\", append @VLAN to the address in a VLAN",
        ),
    ],
};

impl Section {
    /// Returns the field with a name.
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}
