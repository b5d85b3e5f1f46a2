//! Fields of hosts that run a network together.

use super::{Field, Kind, Section, field};

/// Minimum underlay MTU in bytes of UDP payload: what every IPv4 host accepts.
pub const UNDERLAY_MTU_MIN: u64 = 548;

/// Maximum underlay MTU in bytes of UDP payload.
pub const UNDERLAY_MTU_MAX: u64 = 65_000;

const NAME: Field = field("name", Kind::Text, "its name, for `run --host NAME`");

/// `[[host]]`.
pub static HOST: Section = Section {
    name: "host",
    help: "A machine that runs a part of the network with `run --host NAME`",
    options: false,
    fields: &[
        NAME,
        field(
            "address",
            Kind::Text,
            "address at which the other hosts reach it: IP address and optional UDP port; default port: 4795",
        ),
        field(
            "listen",
            Kind::Text,
            "address to listen on, if different, such as \"0.0.0.0:4795\"",
        ),
        field("ports", Kind::Texts, "ports that it opens"),
    ],
};

/// `[underlay]`.
pub static UNDERLAY: Section = Section {
    name: "underlay",
    help: "The network between the hosts",
    options: false,
    fields: &[
        field(
            "key",
            Kind::Text,
            "file with the key shared by all hosts, relative to this file; `longwire key` creates one",
        ),
        field(
            "mtu",
            Kind::Number(UNDERLAY_MTU_MIN, UNDERLAY_MTU_MAX),
            "maximum UDP payload; default: 1400. Longer frames are fragmented",
        ),
    ],
};
