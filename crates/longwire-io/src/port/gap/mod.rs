//! Gap frames: a wire that is never idle, so that frames leave it with the precision of
//! a byte.
//!
//! A network card sends its frames back to back. So if the gap between two frames is
//! filled with frames of exactly the right lengths, the second one leaves at the right
//! byte time (0.8 ns at 10 Gbit/s), however late the program handed it over. The
//! fillers have a wrong frame check sequence: the next device discards them (Emmerich
//! et al., "MoonGen", IMC 2015, section 8; Puakalong et al. for DEMU).
//!
//! [`GapFiller`] plans, [`GapTx`] is the sending half of a port that uses it, over a
//! [`RawLine`]: a driver that sends the given check sequence, or the wire in memory
//! ([`MemWire`](super::mem::MemWire)), which records byte times.
//!
//! Limitation: a gap that is shorter than the smallest filler, of 84 byte times, is
//! impossible. The frame is then moved to the nearer possible position, by at most 42
//! byte times (33.6 ns at 10 Gbit/s). Since every frame is placed by its own release,
//! and not by the previous frame, the next frame whose gap allows it corrects the
//! error: errors never add up.

mod filler;
mod tx;

pub use filler::{
    FRAME_MIN, FillStep, FillerSizes, GapFiller, Placement, Tally, frame_bytes, wire_bytes,
};
pub use tx::{GapTx, RawLine};

/// Returns the frame check sequence of a frame, as its four bytes follow on the wire
/// (IEEE 802.3, 3.2.9: the CRC-32 whose remainder is sent inverted, lowest byte first).
pub fn frame_check_sequence(frame: &[u8]) -> [u8; 4] {
    crc32fast::hash(frame).to_le_bytes()
}
