//! Fields of ports that are more than a text.

use super::{Field, Kind, Section, field};

const TO: Field = field(
    "to",
    Kind::Texts,
    "packets to these addresses enter the network: one or more, as in \"10.0.0.2\" or \"10.0.3.0/24\". All others pass by",
);

/// `[ports.NAME]`.
pub static PORT: Section = Section {
    name: "port",
    help: "A port with options, or at an interface that is in use",
    options: false,
    fields: &[
        field("opens", Kind::Text, "the port to open, as in \"tap:lw0\""),
        field(
            "carrier",
            Kind::Texts,
            "the links toward it, as in \"access.down\": while all of them are down, the interface at the port has no carrier. For tap:NAME, and for the hosts of exec",
        ),
        field(
            "attach",
            Kind::Table(&ATTACH),
            "an interface that is in use, in place of opens, and the packets that it exchanges with the network",
        ),
    ],
};

/// `attach` of a port: one of `netns`, `pid`, `container` and `pod`.
pub static ATTACH: Section = Section {
    name: "attach",
    help: "An interface of a running container, pod, process or namespace",
    options: false,
    fields: &[
        field(
            "netns",
            Kind::Text,
            "the network namespace: a name of `ip netns`, or a path",
        ),
        field(
            "pid",
            Kind::Number(1, i32::MAX as u64),
            "the network namespace of this process",
        ),
        field(
            "container",
            Kind::Text,
            "this container: a name, an ID or its start, as in docker:web",
        ),
        field(
            "pod",
            Kind::Text,
            "this pod of Kubernetes, as in shop/cart-0",
        ),
        field(
            "interface",
            Kind::Text,
            "its name; that of the default route when it is left out",
        ),
        TO,
        field(
            "filter",
            Kind::Text,
            "of the packets to these addresses, only those that match, as in \"udp dst port 53\"",
        ),
        field(
            "host-network",
            Kind::Flag,
            "whether the network of the machine may be meant; false by default",
        ),
    ],
};
