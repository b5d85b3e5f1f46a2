//! Field tables, one per section of the file. The parser, messages and JSON schema derive from
//! these tables.

mod events;
mod links;

pub use events::{ADD, CHANGE, EVENT, RAMP, SET};
pub use links::{DEFAULTS, DOWNWARDS, LINK, ONE_WAY, PATH, TEMPLATE};

/// A table of the file.
#[derive(Debug)]
pub struct Section {
    /// One-line help.
    pub help: &'static str,
    /// Fields, excluding link options.
    pub fields: &'static [Field],
    /// Whether the section also accepts link options.
    pub options: bool,
}

/// A field in a section.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Key in the file.
    pub name: &'static str,
    /// Type of the value.
    pub kind: Kind,
    /// One-line help.
    pub help: &'static str,
}

/// Type of a value.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A string.
    Text,
    /// A string or a list of strings.
    Texts,
    /// A list of strings whose length is in this range.
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

const fn field(name: &'static str, kind: Kind) -> Field {
    let help = "";
    Field { name, kind, help }
}

impl Field {
    const fn help(self, help: &'static str) -> Field {
        Field { help, ..self }
    }
}

/// Maximum number of links.
pub const LINKS_MAX: u64 = 1 << 22;

/// Maximum number of ports.
pub const PORTS_MAX: u64 = 1024;

/// Maximum number of hosts.
pub const HOSTS_MAX: usize = 256;

/// Maximum number of steps in a ramp.
pub const STEPS_MAX: u64 = 1_000_000;

/// Minimum underlay MTU in bytes of UDP payload, which every IPv4 host accepts.
pub const UNDERLAY_MTU_MIN: u64 = 548;

/// Maximum underlay MTU in bytes of UDP payload.
pub const UNDERLAY_MTU_MAX: u64 = 65_000;

/// Events of a topology or of a scenario file.
pub(super) const AT: Field =
    field("at", Kind::Tables(&EVENT)).help("changes during the run, sorted by time");

/// The top level of the file.
pub static FILE: Section = Section {
    help: "A topology: ports, links and their scenario",
    options: false,
    fields: &[
        field("seed", Kind::Number(0, i64::MAX as u64)).help("random seed; default: --seed, or 1"),
        field("classify", Kind::Choice(&["first", "specific"])).help(
            "which of several matching rules applies: the first in the file (default) or the most \
             specific",
        ),
        field("unmatched", Kind::Text).help(
            "handling of unmatched frames: pass (default), drop, or link:NAME, which they cross \
             in direction up",
        ),
        field("on-port-loss", Kind::Choice(&["end", "continue"])).help(
            "handling of a lost port: end the run (default), or continue and drop frames for it",
        ),
        field("ports", Kind::TextOrTableMap(&PORT)).help(
            "ports by name, such as left = \"packet:eth1\", left = { opens = \"tap:lw0\", carrier \
             = \"access.down\" }, or left.attach = { pod = \"shop/cart-0\", to = \"10.0.0.2\" }; \
             numbered from 0 in file order",
        ),
        field("switching", Kind::Table(&SWITCHING)).help("output port selection"),
        field("defaults", Kind::Table(&DEFAULTS)).help("default options of all links"),
        field("templates", Kind::TableMap(&TEMPLATE)).help("named options that links refer to"),
        field("link", Kind::Tables(&LINK)).help("one link, or many"),
        field("path", Kind::Tables(&PATH)).help("links crossed in sequence"),
        field("host", Kind::Tables(&HOST)).help("a machine that runs a part of the network"),
        field("underlay", Kind::Table(&UNDERLAY)).help("the network between the hosts"),
        AT,
    ],
};

/// `[switching]`.
pub static SWITCHING: Section = Section {
    help: "Output port selection",
    options: false,
    fields: &[
        field("mode", Kind::Choice(&["bridge", "pairs", "static"])).help(
            "bridge learns addresses (default with three or more ports), pairs connects ports in \
             pairs (default with two), static uses stations only",
        ),
        field("ageing", Kind::Text).help("ageing time of learned addresses; default: 300s"),
        field("table-size", Kind::Number(1, 1 << 24))
            .help("maximum number of learned addresses; default: 65,536"),
        field("storm-limit", Kind::Text)
            .help("maximum flooded frames/s per ingress port, such as 1kpps; default: unlimited"),
        field("storm-burst", Kind::Number(1, 1 << 20))
            .help("maximum burst of flooded frames under the storm limit; default: 100"),
        field("reserved", Kind::Choice(&["drop", "pass"])).help(
            "frames to 01-80-C2-00-00-00 … 0F (spanning tree, LLDP): drop (default), as IEEE \
             802.1D bridges do, or pass",
        ),
        field("loop-detection", Kind::Flag)
            .help("whether to detect and report loops; default: true"),
        field("pairs", Kind::Pairs).help("pairs of port names; not needed with two ports"),
        field("stations", Kind::TextMap).help(
            "stations with a fixed port: \"02:00:00:00:00:01\" = \"left\", append @VLAN to the \
             address in a VLAN",
        ),
    ],
};

/// `[ports.NAME]`.
pub static PORT: Section = Section {
    help: "A port with options, or attached to an interface in use",
    options: false,
    fields: &[
        field("opens", Kind::Text).help("the port to open, such as \"tap:lw0\""),
        field("carrier", Kind::Texts).help(
            "links toward the port, such as \"access.down\"; while all of them are off, its \
             interface has no carrier. Only for tap:NAME and hosts in exec",
        ),
        field("attach", Kind::Table(&ATTACH))
            .help("an interface in use, instead of opens, and the packets that enter the network"),
    ],
};

/// `attach` of a port: one of `netns`, `pid`, `container` and `pod`.
pub static ATTACH: Section = Section {
    help: "An interface of a running container, pod, process or namespace",
    options: false,
    fields: &[
        field("netns", Kind::Text).help("network namespace: a name from `ip netns`, or a path"),
        field("pid", Kind::Number(1, i32::MAX as u64))
            .help("PID of a process in the network namespace"),
        field("container", Kind::Text).help("container name, ID or ID prefix, such as docker:web"),
        field("pod", Kind::Text).help("Kubernetes pod, such as shop/cart-0"),
        field("interface", Kind::Text)
            .help("interface name; default: the default route's interface"),
        field("to", Kind::Texts).help(
            "addresses whose packets enter the network, such as \"10.0.0.2\" or \"10.0.3.0/24\"; \
             all other packets bypass it",
        ),
        field("filter", Kind::Text).help(
            "filter for packets to the addresses in to, such as \"udp dst port 53\"; packets that \
             do not match bypass the network",
        ),
        field("host-network", Kind::Flag)
            .help("whether the target may be the host's network; default: false"),
    ],
};

/// `[[host]]`.
pub static HOST: Section = Section {
    help: "A machine that runs a part of the network with `run --host NAME`",
    options: false,
    fields: &[
        field("name", Kind::Text).help("name, for `run --host NAME`"),
        field("address", Kind::Text).help(
            "address where other hosts reach it: IP address and optional UDP port; default port: \
             4795",
        ),
        field("listen", Kind::Text)
            .help("address to listen on, if different, such as \"0.0.0.0:4795\""),
        field("ports", Kind::Texts).help("ports that this host opens"),
    ],
};

/// `[underlay]`.
pub static UNDERLAY: Section = Section {
    help: "The network between the hosts",
    options: false,
    fields: &[
        field("key", Kind::Text).help(
            "file with the key shared by all hosts, relative to this file; `longwire key` creates \
             one",
        ),
        field("mtu", Kind::Number(UNDERLAY_MTU_MIN, UNDERLAY_MTU_MAX))
            .help("maximum UDP payload; default: 1400. Longer frames are fragmented"),
    ],
};

impl Section {
    /// Returns the field with this name.
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}
