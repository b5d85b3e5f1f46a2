//! Fields of the machines that run a network together.

use super::{Field, Kind, Section, field};

/// The shortest datagrams that an underlay may be limited to, in bytes of UDP payload:
/// those that every IPv4 host accepts.
pub const UNDERLAY_MTU_MIN: u64 = 548;

/// The longest.
pub const UNDERLAY_MTU_MAX: u64 = 65_000;

const NAME: Field = field("name", Kind::Text, "its name, for `run --host NAME`");

/// `[[host]]`.
pub static HOST: Section = Section {
    name: "host",
    help: "A machine that runs a part of the network, with `run --host NAME`",
    options: false,
    fields: &[
        NAME,
        field(
            "address",
            Kind::Text,
            "where the other hosts reach it: an IP address, and a UDP port, which is 4795 by default",
        ),
        field(
            "listen",
            Kind::Text,
            "where it receives, if that is another address, as in \"0.0.0.0:4795\"",
        ),
        field("ports", Kind::Texts, "the ports that it opens"),
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
            "the file with the key that all hosts share, next to this file; `longwire key` makes one",
        ),
        field(
            "mtu",
            Kind::Number(UNDERLAY_MTU_MIN, UNDERLAY_MTU_MAX),
            "the longest UDP payload that it carries in one piece; 1400 by default. Longer frames are split and joined again",
        ),
    ],
};
