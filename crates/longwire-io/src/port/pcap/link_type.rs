//! What kind of frames a capture holds.

/// The link type of Ethernet, the only one that can be played over a link.
pub(super) const ETHERNET: u32 = 1;

/// Why frames of this link type are refused.
pub(super) fn refusal(link_type: u32) -> String {
    let name = match link_type {
        0 => "BSD loopback",
        6 => "token ring",
        9 => "PPP",
        10 => "FDDI",
        12 | 14 | 101 => "raw IP",
        50 => "PPP in HDLC framing",
        104 => "Cisco HDLC",
        105 => "IEEE 802.11",
        107 => "frame relay",
        108 => "OpenBSD loopback",
        113 => "Linux cooked capture",
        119 => "IEEE 802.11 with Prism header",
        127 => "IEEE 802.11 with radiotap header",
        147..=162 => "for private use",
        187 | 201 => "Bluetooth",
        189 | 220 | 249 => "USB",
        192 => "per-packet information",
        195 | 230 | 283 => "IEEE 802.15.4",
        227 => "CAN",
        228 => "raw IPv4",
        229 => "raw IPv6",
        239 => "Linux netfilter log",
        253 => "netlink",
        276 => "Linux cooked capture 2",
        _ => "unknown here",
    };
    format!(
        "holds frames of link type {link_type} ({name}); only Ethernet ({ETHERNET}) can be \
         carried: capture on one interface instead of 'any', or convert the file"
    )
}
