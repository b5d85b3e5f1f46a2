//! Framing: a frame's length on the emulated wire.
//!
//! Input frames are as delivered by ports: the 14-byte Ethernet header and the payload, without
//! FCS.

use longwire_packet::frame::ETHERNET_HEADER_LEN;
use longwire_units::{parse_count, parse_signed};

use crate::models::prelude::*;

/// Preamble and start delimiter (8), FCS (4) and interpacket gap (12), IEEE 802.3 clause 4.
const ETHERNET_OVERHEAD: i32 = 24;

/// Minimum Ethernet frame: 64 bytes with FCS, plus preamble and gap.
const ETHERNET_MINIMUM: u16 = 84;

/// Link-layer overhead of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    /// Bytes added to each frame before padding; may be negative.
    overhead: i32,
    /// Minimum length in bytes, to which shorter frames are padded.
    minimum: u16,
    /// Payload bytes per cell; 0 without cells.
    cell: u16,
    cell_header: u16,
    /// Length up to which a frame is padded to whole cells. Longer frames are split into parts of
    /// this length, and only the remainder is padded. 0 means unlimited.
    filled_max: u16,
    /// Bytes added to each frame after padding to cells.
    trailer: u8,
    profile: Profile,
}

// Stored in each link's `EarlyLink`.
const _: () = assert!(size_of::<Framing>() == 16);

/// A framing profile, as specified. Numbers are indices into [`ENCAPSULATIONS`] and [`OUTER`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Profile {
    None,
    Ethernet,
    Atm(u8),
    Docsis,
    WireGuard(u8),
    Wifi,
    Bytes,
}

impl Default for Framing {
    fn default() -> Framing {
        Framing::NONE
    }
}

impl Framing {
    /// No framing: counts only the frame itself.
    pub const NONE: Framing = Framing {
        overhead: 0,
        minimum: 0,
        cell: 0,
        cell_header: 0,
        filled_max: 0,
        trailer: 0,
        profile: Profile::None,
    };

    /// Ethernet: 24 bytes per frame, at least 84 in total.
    pub const ETHERNET: Framing = Framing {
        overhead: ETHERNET_OVERHEAD,
        minimum: ETHERNET_MINIMUM,
        profile: Profile::Ethernet,
        ..Framing::NONE
    };

    /// Returns the bits on the wire for a frame of `len` bytes.
    #[inline]
    pub fn wire_bits(&self, len: u32) -> u64 {
        let bytes = i64::from(len) + i64::from(self.overhead);
        let bytes = bytes.max(i64::from(self.minimum)) as u64;
        if self.cell == 0 {
            return bytes * 8;
        }
        self.cell_bits(bytes)
    }

    /// Returns the bits of the cells for `bytes`.
    #[cold]
    fn cell_bits(&self, bytes: u64) -> u64 {
        let cells = bytes.div_ceil(u64::from(self.cell));
        let filled = match self.filled_max {
            0 => cells * (u64::from(self.cell) + u64::from(self.cell_header)),
            most => self.filled(bytes, u64::from(most)),
        };
        (filled + u64::from(self.trailer)) * 8
    }

    /// Returns `bytes` with the last part, of up to `most` bytes, padded to whole cells but at most
    /// to `most`; without cell headers.
    fn filled(&self, bytes: u64, most: u64) -> u64 {
        let rest = if bytes > most { bytes % most } else { bytes };
        let filled = rest.next_multiple_of(u64::from(self.cell)).min(most);
        bytes - rest + filled
    }
}

impl fmt::Display for Framing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.profile {
            Profile::None => f.write_str("none"),
            Profile::Ethernet => f.write_str("ethernet"),
            Profile::Atm(over) => {
                let (name, _) = ENCAPSULATIONS[usize::from(over)];
                write!(f, "atm:over={name}")
            }
            Profile::Docsis => f.write_str("docsis"),
            Profile::WireGuard(over) => {
                let (name, _) = OUTER[usize::from(over)];
                write!(f, "wireguard:over={name},mtu={}", self.filled_max)
            }
            Profile::Wifi => f.write_str("wifi"),
            Profile::Bytes => {
                write!(
                    f,
                    "bytes:overhead={},cell={},cell-header={}",
                    self.overhead,
                    self.cell.max(1),
                    self.cell_header
                )?;
                if self.minimum == least(self.overhead) {
                    Ok(())
                } else {
                    write!(f, ",minimum={}", self.minimum)
                }
            }
        }
    }
}

const NONE_ENTRY: Entry<Framing> = Entry::new(
    "none",
    "no overhead: 14-byte Ethernet header and payload only",
    &[],
    |_| Ok(Framing::NONE),
);

const ETHERNET_ENTRY: Entry<Framing> = Entry::new(
    "ethernet",
    "24 bytes per frame: preamble, frame check sequence and gap (IEEE 802.3); at least 84 bytes in \
     total",
    &[],
    |_| Ok(Framing::ETHERNET),
);

const ATM_ENTRY: Entry<Framing> = Entry::new(
    "atm",
    "ATM cells of 53 bytes with 48 of payload, padded, with AAL5 trailer (ITU-T I.363.5) and \
     encapsulation (RFC 2684, 2364, 2516)",
    &[Param::with_default(
        "over",
        Unit::Choice(&[
            "pppoe-llc",
            "pppoe-vcmux",
            "pppoa-llc",
            "pppoa-vcmux",
            "bridged-llc",
            "bridged-vcmux",
            "ipoa-llc",
            "ipoa-vcmux",
        ]),
        "pppoe-llc",
    )
    .help("AAL5 encapsulation, as shown by the DSL modem")],
    build_atm,
);

/// Encapsulations and the bytes that they add to an IP packet: AAL5 trailer 8; LLC/SNAP 8, or 10
/// with bridging; padding for VC-multiplexed bridging 2 (RFC 2684); Ethernet without FCS 14; PPPoE
/// 6 (RFC 2516); PPP 2; LLC with PPPoA 4 (RFC 2364).
static ENCAPSULATIONS: [(&str, i32); 8] = [
    ("pppoe-llc", 8 + 10 + 14 + 6 + 2),
    ("pppoe-vcmux", 8 + 2 + 14 + 6 + 2),
    ("pppoa-llc", 8 + 4 + 2),
    ("pppoa-vcmux", 8 + 2),
    ("bridged-llc", 8 + 10 + 14),
    ("bridged-vcmux", 8 + 2 + 14),
    ("ipoa-llc", 8 + 8),
    ("ipoa-vcmux", 8),
];

fn build_atm(arguments: &Arguments<'_>) -> Result<Framing, SpecError> {
    let over = arguments.choice("over")?;
    Ok(Framing {
        // The Ethernet header is not sent.
        overhead: ENCAPSULATIONS[over].1 - ETHERNET_HEADER_LEN as i32,
        minimum: 1,
        cell: 48,
        cell_header: 5,
        profile: Profile::Atm(over as u8),
        ..Framing::NONE
    })
}

const DOCSIS_ENTRY: Entry<Framing> = Entry::new(
    "docsis",
    "DOCSIS service rate: Ethernet frame including frame check sequence, at least 64 bytes (DOCSIS \
     MULPI, annex C, maximum sustained traffic rate)",
    &[],
    |_| {
        Ok(Framing {
            overhead: 4,
            minimum: 64,
            profile: Profile::Docsis,
            ..Framing::NONE
        })
    },
);

const WIREGUARD_ENTRY: Entry<Framing> = Entry::new(
    "wireguard",
    "WireGuard tunnel over Ethernet: the packet, padded to a multiple of 16 bytes but at most to \
     the tunnel's MTU; 32 bytes of WireGuard (Donenfeld, NDSS 2017); outer UDP, IP and Ethernet \
     headers",
    &[
        Param::with_default("over", Unit::Choice(&["ipv4", "ipv6"]), "ipv4")
            .help("outer IP protocol"),
        // At least the minimum MTU of an IPv4 link (RFC 791, section 3.2).
        Param::with_default("mtu", Unit::Count, "1420")
            .within("68", "65535", "68..65535")
            .help("MTU of the tunnel interface, 68 to 65535 bytes (`ip link show wg0`)"),
    ],
    build_wireguard,
);

/// Outer protocols of tunnels, with header lengths.
static OUTER: [(&str, u8); 2] = [("ipv4", 20), ("ipv6", 40)];

fn build_wireguard(arguments: &Arguments<'_>) -> Result<Framing, SpecError> {
    let over = arguments.choice("over")?;
    let mtu = arguments.read("mtu", parse_count)?;
    Ok(Framing {
        overhead: -(ETHERNET_HEADER_LEN as i32),
        minimum: 1,
        cell: 16,
        filled_max: mtu as u16,
        trailer: 32 + 8 + OUTER[over].1 + ETHERNET_HEADER_LEN as u8,
        profile: Profile::WireGuard(over as u8),
        ..Framing::NONE
    })
}

const WIFI_ENTRY: Entry<Framing> = Entry::new(
    "wifi",
    "subframe of an A-MPDU (IEEE 802.11-2020, 9.7.1): delimiter, QoS data header, LLC and SNAP, \
     and frame check sequence in place of the Ethernet header, padded to a multiple of 4 bytes",
    &[],
    |_| {
        Ok(Framing {
            overhead: 4 + 26 + 8 + 4 - ETHERNET_HEADER_LEN as i32,
            cell: 4,
            profile: Profile::Wifi,
            ..Framing::NONE
        })
    },
);

const BYTES_ENTRY: Entry<Framing> = Entry::new(
    "bytes",
    "fixed overhead per frame, then padding to whole cells",
    &[
        // The lower bound matches that of tc.
        Param::with_default("overhead", Unit::Signed, "0")
            .within("-64", "65535", "-64..65535; -14 counts IP packets")
            .help(
                "bytes added per frame, -64 to 65535; as in tc, negative values subtract: -14 \
                 counts IP packets only",
            ),
        Param::with_default("cell", Unit::Count, "1")
            .within("1", "65535", "1..65535")
            .help("payload bytes per cell (48 for ATM); the last cell is padded"),
        Param::with_default("cell-header", Unit::Count, "0")
            .within("0", "65535", "0..65535")
            .help("overhead bytes per cell (5 for ATM)"),
        Param::with_default("minimum", Unit::Count, "0")
            .within("0", "65535", "0..65535")
            .help(
                "minimum frame length in bytes, including overhead; at least 1 if the overhead \
                 is negative",
            ),
    ],
    build_bytes,
);

/// Returns the minimum length on the wire: 1 byte if `overhead` is negative, so that every frame
/// takes time.
fn least(overhead: i32) -> u16 {
    u16::from(overhead < 0)
}

fn build_bytes(arguments: &Arguments<'_>) -> Result<Framing, SpecError> {
    let overhead = arguments.read("overhead", parse_signed)? as i32;
    let count = |key| arguments.read(key, parse_count).map(|count| count as u16);
    let (cell, cell_header) = (count("cell")?, count("cell-header")?);
    let has_cells = (cell, cell_header) != (1, 0);
    Ok(Framing {
        overhead,
        minimum: count("minimum")?.max(least(overhead)),
        cell: if has_cells { cell } else { 0 },
        cell_header,
        profile: Profile::Bytes,
        ..Framing::NONE
    })
}

/// Framing profiles.
pub static KIND: Kind<Framing> = Kind {
    name: "framing",
    example: "ethernet",
    entries: &[
        NONE_ENTRY,
        ETHERNET_ENTRY,
        ATM_ENTRY,
        DOCSIS_ENTRY,
        WIREGUARD_ENTRY,
        WIFI_ENTRY,
        BYTES_ENTRY,
    ],
};
