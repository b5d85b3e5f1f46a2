//! Gap frames: a wire that is never idle, so that frames leave it to the
//! byte.
//!
//! A network card sends what it is given back to back. So if the gap between
//! two frames is filled with frames of just the right lengths, the second one
//! leaves when it should, to a byte time (0.8 ns at 10 Gbit/s), however late
//! the program was in handing it over. The fillers have a frame check
//! sequence that is wrong: the next device discards them (Emmerich et al.,
//! "MoonGen", IMC 2015, section 8; Puakalong et al. for DEMU).
//!
//! [`GapFiller`] plans, [`GapTx`] is the sending half of a port that does it,
//! over a [`RawLine`]: a driver that sends a check sequence of ours, or the
//! wire in memory ([`MemWire`](super::mem::MemWire)), which sees byte times.
//!
//! What cannot be done: a gap that is shorter than the smallest filler, of 84
//! byte times, cannot be had. The frame is then moved to the nearer end of
//! what can, by 42 byte times at the most (33.6 ns at 10 Gbit/s). Since every
//! frame is placed by its own release, and not by the frame before it, such a
//! move is made up for with the next frame whose gap allows it: errors never
//! add up.

mod filler;
mod tx;

pub use filler::{
    FRAME_MIN, FillerSizes, GapFiller, Placement, Step, Tally, frame_bytes, wire_bytes,
};
pub use tx::{GapTx, RawLine};

/// The frame check sequence of a frame, as its four bytes follow on the wire
/// (IEEE 802.3, 3.2.9: the CRC-32 whose remainder is sent inverted, lowest
/// byte first).
pub fn frame_check_sequence(frame: &[u8]) -> [u8; 4] {
    crc32fast::hash(frame).to_le_bytes()
}
