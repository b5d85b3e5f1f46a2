//! Gap frames: a wire that is never idle, so that frames leave with byte precision.
//!
//! A network card sends frames back to back. If the gap between two frames is filled with
//! frames of the right lengths, the second leaves at the right byte time (0.8 ns at 10
//! Gbit/s), regardless of its handover. Fillers have an invalid frame check sequence, so
//! the next device discards them (Emmerich et al., "MoonGen", IMC 2015, section 8;
//! Puakalong et al. for DEMU).
//!
//! [`GapFiller`] plans. [`GapTx`] is the sending half of a port that uses it over a
//! [`RawLine`]: a driver that sends a given check sequence, or the in-memory wire
//! ([`MemWire`](super::mem::MemWire)), which records byte times.
//!
//! Limitation: gaps shorter than the minimum filler of 84 byte times are impossible. The
//! frame then moves to the nearer possible position, by at most 42 byte times (33.6 ns at
//! 10 Gbit/s). As every frame is placed by its own release, not by the previous frame,
//! errors never accumulate.

mod filler;
mod tx;

pub use filler::{
    FRAME_MIN, FillStep, FillerSizes, GapFiller, Placement, Tally, frame_bytes, wire_bytes,
};
pub use tx::{GapTx, RawLine};

/// Returns a frame's check sequence as its four bytes on the wire (IEEE 802.3, 3.2.9: the
/// inverted CRC-32, lowest byte first).
pub fn frame_check_sequence(frame: &[u8]) -> [u8; 4] {
    crc32fast::hash(frame).to_le_bytes()
}
