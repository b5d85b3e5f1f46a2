//! Fields of ports with options.

use super::{Field, Kind, Section, field};

const TO: Field = field(
    "to",
    Kind::Texts,
    "addresses whose packets enter the network, such as \"10.0.0.2\" or \"10.0.3.0/24\"; all other packets bypass it",
);

/// `[ports.NAME]`.
pub static PORT: Section = Section {
    name: "port",
    help: "A port with options, or attached to an interface in use",
    options: false,
    fields: &[
        field("opens", Kind::Text, "the port to open, such as \"tap:lw0\""),
        field(
            "carrier",
            Kind::Texts,
            "links toward the port, such as \"access.down\"; while all are off, its interface has no carrier. For tap:NAME and hosts of exec",
        ),
        field(
            "attach",
            Kind::Table(&ATTACH),
            "an interface in use, instead of opens, and the packets that enter the network",
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
            "network namespace: a name from `ip netns`, or a path",
        ),
        field(
            "pid",
            Kind::Number(1, i32::MAX as u64),
            "a process in the network namespace",
        ),
        field(
            "container",
            Kind::Text,
            "container: a name, an ID or a prefix of one, such as docker:web",
        ),
        field("pod", Kind::Text, "Kubernetes pod, such as shop/cart-0"),
        field(
            "interface",
            Kind::Text,
            "interface name; default: that of the default route",
        ),
        TO,
        field(
            "filter",
            Kind::Text,
            "only matching packets to these addresses enter, such as \"udp dst port 53\"",
        ),
        field(
            "host-network",
            Kind::Flag,
            "whether the target may be the host's network; default: false",
        ),
    ],
};
