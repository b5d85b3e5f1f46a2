//! Reasons for leaving records out.

use std::fmt;

/// Reason why a record yields no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeftOut {
    /// No conversion of its link type to Ethernet.
    LinkType(u32),
    /// Captured on an interface that was not chosen.
    OtherInterface,
    /// More than [`CAPTURED_MAX`](super::CAPTURED_MAX) captured bytes.
    TooLong,
    /// Truncated before its payload.
    CutHeader,
    /// No EtherType for its protocol.
    Protocol,
    /// An IEEE 802.11 management or control frame.
    WirelessControl,
    /// An IEEE 802.11 data frame without payload.
    WirelessEmpty,
    /// An encrypted IEEE 802.11 frame.
    WirelessEncrypted,
    /// An IEEE 802.11 fragment or aggregate.
    WirelessPart,
    /// An IEEE 802.11 frame received with a wrong check sequence.
    WirelessDamaged,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LeftOut::LinkType(number) => {
                let name = link_type_name(*number);
                return write!(
                    f,
                    "link type {number} ({name}) has no conversion to Ethernet"
                );
            }
            LeftOut::OtherInterface => "captured at another interface",
            LeftOut::TooLong => "longer than 256 KiB",
            LeftOut::CutHeader => "truncated within the headers",
            LeftOut::Protocol => "Ethernet has no type for the protocol",
            LeftOut::WirelessControl => "IEEE 802.11 management or control",
            LeftOut::WirelessEmpty => "IEEE 802.11 data without payload",
            LeftOut::WirelessEncrypted => "IEEE 802.11, encrypted",
            LeftOut::WirelessPart => "IEEE 802.11 fragment or aggregate",
            LeftOut::WirelessDamaged => "IEEE 802.11 with a wrong check sequence",
        })
    }
}

/// Returns the name of a link type without a conversion.
pub(super) fn link_type_name(link_type: u32) -> &'static str {
    match link_type {
        6 => "token ring",
        10 => "FDDI",
        107 => "frame relay",
        147..=162 => "private use",
        187 | 201 => "Bluetooth",
        189 | 220 | 249 => "USB",
        195 | 230 | 283 => "IEEE 802.15.4",
        227 => "CAN",
        239 => "Linux netfilter log",
        253 => "netlink",
        _ => "unknown",
    }
}
