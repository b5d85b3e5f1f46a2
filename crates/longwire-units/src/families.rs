//! The accepted units of each family.

use super::parse::Family;
use super::{BitRate, Bytes, PacketRate, Speed};

pub(super) const TIME: Family = Family {
    units: &[
        ("ns", 1),
        ("nsec", 1),
        ("nsecs", 1),
        ("us", 1_000),
        ("usec", 1_000),
        ("usecs", 1_000),
        ("ms", 1_000_000),
        ("msec", 1_000_000),
        ("msecs", 1_000_000),
        ("s", 1_000_000_000),
        ("sec", 1_000_000_000),
        ("secs", 1_000_000_000),
        ("min", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ],
    usual: &["ms", "s"],
    example: "20ms",
    known: "times are in ns, us, ms, s, min or h",
    step: "1ns",
    most: "24h",
    most_value: 86_400_000_000_000,
};

pub(super) const RATE: Family = Family {
    units: &[
        ("bit", 1),
        ("kbit", 1_000),
        ("mbit", 1_000_000),
        ("gbit", 1_000_000_000),
        ("tbit", 1_000_000_000_000),
        ("kibit", 1 << 10),
        ("mibit", 1 << 20),
        ("gibit", 1 << 30),
        ("bps", 8),
        ("kbps", 8_000),
        ("mbps", 8_000_000),
        ("gbps", 8_000_000_000),
    ],
    usual: &["mbit", "kbit"],
    example: "10mbit",
    known: "rates are in bit, kbit, mbit, gbit or tbit per second (kbps and mbps are bytes per second, as in tc)",
    step: "1bit",
    most: "10tbit",
    most_value: BitRate::MAX.bits_per_sec(),
};

pub(super) const SIZE: Family = Family {
    units: &[
        ("b", 1),
        ("k", 1 << 10),
        ("kb", 1 << 10),
        ("m", 1 << 20),
        ("mb", 1 << 20),
        ("g", 1 << 30),
        ("gb", 1 << 30),
    ],
    usual: &["kb", "b"],
    example: "64kb",
    known: "sizes are in b, kb, mb or gb (bytes; kb is 1024, as in tc)",
    step: "1b",
    most: "1024gb",
    most_value: Bytes::SETTING_MAX.0,
};

pub(super) const PACKETS: Family = Family {
    units: &[("p", 1), ("pkt", 1), ("packets", 1)],
    usual: &["p"],
    example: "100p",
    known: "packets are written 100p",
    step: "1p",
    most: "1000000000p",
    most_value: 1_000_000_000,
};

/// Base unit: 0.001 packets/s.
pub(super) const PACKET_RATE: Family = Family {
    units: &[
        ("pps", 1_000),
        ("kpps", 1_000_000),
        ("mpps", 1_000_000_000),
        ("gpps", 1_000_000_000_000),
    ],
    usual: &["pps", "kpps"],
    example: "100kpps",
    known: "packet rates are in pps, kpps, mpps or gpps",
    step: "0.001pps",
    most: "1gpps",
    most_value: PacketRate::MAX.0,
};

/// Base unit: 10^-9.
pub(super) const SPEED: Family = Family {
    units: &[("x", 1_000_000_000), ("%", 10_000_000)],
    usual: &["x"],
    example: "2x",
    known: "speeds are written 2x, 0.5x or 50%",
    step: "0.000000001x",
    most: "1000000x",
    most_value: Speed::MAX.0,
};

/// Base unit: 10^-14.
pub(super) const PROBABILITY: Family = Family {
    units: &[("%", 1_000_000_000_000)],
    usual: &["%"],
    example: "1%",
    known: "probabilities are in %",
    step: "0.000000000001%",
    most: "100%",
    most_value: 100_000_000_000_000,
};
