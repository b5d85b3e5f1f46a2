//! Framing: how many bytes a frame takes on the emulated wire.

use alloc::format;
use core::fmt;

use crate::models::{Entry, Kind};
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};
use crate::units::parse_count;

/// Preamble and start delimiter (8), frame check sequence (4) and gap (12),
/// IEEE 802.3 clause 4.
const ETHERNET_OVERHEAD: u32 = 24;

/// What the wire adds to a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    overhead: u32,
    /// Payload bytes of a cell; 1 for a wire without cells.
    cell: u32,
    cell_header: u32,
    name: &'static str,
}

impl Framing {
    /// Nothing: a frame takes its own length.
    pub const NONE: Framing = Framing {
        overhead: 0,
        cell: 1,
        cell_header: 0,
        name: "none",
    };

    /// Ethernet: 24 bytes a frame.
    pub const ETHERNET: Framing = Framing {
        overhead: ETHERNET_OVERHEAD,
        name: "ethernet",
        ..Framing::NONE
    };

    /// Bits on the wire for a frame of `len` bytes.
    #[inline]
    pub fn wire_bits(&self, len: u32) -> u64 {
        let bytes = u64::from(len) + u64::from(self.overhead);
        if self.cell == 1 && self.cell_header == 0 {
            return bytes * 8;
        }
        bytes.div_ceil(u64::from(self.cell)) * u64::from(self.cell + self.cell_header) * 8
    }
}

impl fmt::Display for Framing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name != "bytes" {
            return f.write_str(self.name);
        }
        write!(
            f,
            "bytes:overhead={},cell={},cell-header={}",
            self.overhead, self.cell, self.cell_header
        )
    }
}

/// The registry line of `none`.
pub const NONE_ENTRY: Entry<Framing> = Entry {
    info: &ModelInfo {
        name: "none",
        summary: "a frame takes its own length: 14 bytes of Ethernet header and its payload",
        params: &[],
    },
    build: |_| Ok(Framing::NONE),
};

/// The registry line of `ethernet`.
pub const ETHERNET_ENTRY: Entry<Framing> = Entry {
    info: &ModelInfo {
        name: "ethernet",
        summary: "24 bytes more a frame: preamble, frame check sequence and gap (IEEE 802.3)",
        params: &[],
    },
    build: |_| Ok(Framing::ETHERNET),
};

/// The registry line of `bytes`.
pub const BYTES_ENTRY: Entry<Framing> = Entry {
    info: &BYTES_INFO,
    build: build_bytes,
};

static BYTES_INFO: ModelInfo = ModelInfo {
    name: "bytes",
    summary: "so many bytes more a frame, then filled up to whole cells",
    params: &[
        Param {
            name: "overhead",
            unit: Unit::Count,
            default: Some("0"),
            help: "bytes added to each frame",
        },
        Param {
            name: "cell",
            unit: Unit::Count,
            default: Some("1"),
            help: "payload bytes of a cell (48 for ATM); the last one is filled up",
        },
        Param {
            name: "cell-header",
            unit: Unit::Count,
            default: Some("0"),
            help: "bytes added to each cell (5 for ATM)",
        },
    ],
};

/// No wire adds more than this; a larger number is a slip of the pen.
const BYTES_MAX: u64 = 65_535;

fn build_bytes(arguments: &Arguments) -> Result<Framing, SpecError> {
    let bounded = |key: &'static str, least: u64| {
        let value = arguments.read(key, parse_count)?;
        if value < least || value > BYTES_MAX {
            let message = format!("{key}={value} is outside {least}..{BYTES_MAX}");
            return Err(arguments.unfit(message));
        }
        Ok(value as u32)
    };
    Ok(Framing {
        overhead: bounded("overhead", 0)?,
        cell: bounded("cell", 1)?,
        cell_header: bounded("cell-header", 0)?,
        name: "bytes",
    })
}

/// Framing profiles.
pub static KIND: Kind<Framing> = Kind {
    name: "framing",
    example: "ethernet",
    entries: &[NONE_ENTRY, ETHERNET_ENTRY, BYTES_ENTRY],
};
