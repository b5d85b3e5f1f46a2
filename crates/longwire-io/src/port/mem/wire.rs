//! An in-memory wire with byte-time resolution, and the receiver at its end.

use longwire_engine::{BitRate, Nanos};

use crate::port::PortError;
use crate::port::gap::{FRAME_MIN, RawLine, frame_bytes, wire_bytes};

/// The symbol on a wire during one byte time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symbol {
    /// No byte.
    Idle,
    /// A byte of a frame, its preamble or its check sequence.
    Byte(u8),
}

/// Seven bytes of preamble and the start delimiter.
const PREAMBLE: [u8; 8] = [0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0xd5];

/// Minimum idle byte times after each frame.
const GAP: u64 = 12;

/// A frame accepted by the receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireFrame {
    /// Byte time at which its preamble began.
    pub at: u64,
    /// The frame's bytes, without preamble and check sequence.
    pub bytes: Vec<u8>,
}

/// The receiver's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireCounts {
    /// Frames with a valid check sequence.
    pub good: u64,
    /// Frames discarded for an invalid check sequence.
    pub bad: u64,
    /// Frames discarded because of their length or a missing start delimiter.
    pub malformed: u64,
    /// Idle byte times beyond the minimum gaps.
    pub idle: u64,
}

/// The receiver at the end of the wire. Detects frames among symbols and discards damaged ones.
#[derive(Debug, Default)]
pub struct WireReceiver {
    /// Number of byte times so far.
    now: u64,
    /// Byte time at which the current run of bytes began.
    begun: Option<u64>,
    bytes: Vec<u8>,
    idle: u64,
    counts: WireCounts,
    frames: Vec<WireFrame>,
}

impl WireReceiver {
    /// Receives the next byte time.
    pub fn symbol(&mut self, symbol: Symbol) {
        match symbol {
            Symbol::Byte(byte) => {
                self.begun.get_or_insert(self.now);
                self.bytes.push(byte);
            }
            Symbol::Idle => {
                if let Some(at) = self.begun.take() {
                    self.end_of_frame(at);
                    self.idle = 0;
                }
                self.idle += 1;
                self.counts.idle += u64::from(self.idle > GAP);
            }
        }
        self.now += 1;
    }

    fn end_of_frame(&mut self, at: u64) {
        let burst = std::mem::take(&mut self.bytes);
        let frame = burst.strip_prefix(&PREAMBLE).unwrap_or(&[]);
        if frame.len() < FRAME_MIN as usize + 4 {
            self.counts.malformed += 1;
        } else if !is_whole(frame) {
            self.counts.bad += 1;
        } else {
            self.counts.good += 1;
            let bytes = frame[..frame.len() - 4].to_vec();
            self.frames.push(WireFrame { at, bytes });
        }
    }

    /// Returns the accepted frames, in order.
    pub fn frames(&self) -> &[WireFrame] {
        &self.frames
    }

    /// Returns the counters.
    pub fn counts(&self) -> WireCounts {
        self.counts
    }

    /// Returns the number of byte times so far.
    pub fn byte_times(&self) -> u64 {
        self.now
    }
}

/// Returns the maximum difference, over all pairs of frames, between the distance of their last
/// bits and the distance of their releases, in byte times of a wire at this rate. `releases` has
/// one entry per frame.
pub fn spacing_error(frames: &[WireFrame], releases: &[Nanos], rate: BitRate) -> f64 {
    // Time from each release to the frame's end, in billionths of a bit, as exact integers. A
    // common delay cancels out in the difference.
    let late = |(frame, release): (&WireFrame, &Nanos)| {
        let seen = i128::from(frame.at + frame_bytes(frame.bytes.len() as u32)) * 8_000_000_000;
        seen - i128::from(release.as_nanos()) * i128::from(rate.bits_per_sec())
    };
    let late = frames.iter().zip(releases).map(late);
    let (least, most) = late.fold((i128::MAX, i128::MIN), |(least, most), late| {
        (least.min(late), most.max(late))
    });
    most.saturating_sub(least).max(0) as f64 / 8e9
}

/// Returns whether a frame with its check sequence is undamaged. Computes the remainder bit by bit,
/// as the standard defines it, independently of the sender's code.
fn is_whole(frame: &[u8]) -> bool {
    const POLYNOMIAL: u32 = 0xedb8_8320;
    let divide = |state: u32, byte: &u8| {
        (0..8).fold(state ^ u32::from(*byte), |state, _| {
            let carry = state & 1 != 0;
            state >> 1 ^ if carry { POLYNOMIAL } else { 0 }
        })
    };
    let (data, check) = frame.split_at(frame.len() - 4);
    let remainder = !data.iter().fold(u32::MAX, divide);
    remainder.to_le_bytes() == check
}

/// A wire that sends frames back to back. Adding a frame advances its time.
#[derive(Debug)]
pub struct MemWire {
    receiver: WireReceiver,
    frame_max: usize,
    unsent: usize,
}

impl MemWire {
    /// Creates a wire for frames of up to `frame_max` bytes.
    pub fn new(frame_max: usize) -> MemWire {
        MemWire {
            receiver: WireReceiver::default(),
            frame_max,
            unsent: 0,
        }
    }

    /// Returns the receiver at its end.
    pub fn receiver(&self) -> &WireReceiver {
        &self.receiver
    }
}

impl RawLine for MemWire {
    fn free_slots(&self) -> usize {
        64
    }

    fn put(&mut self, frame: &[u8], check: [u8; 4], counts: bool) {
        let before = self.receiver.byte_times();
        for byte in PREAMBLE.iter().chain(frame).chain(&check) {
            self.receiver.symbol(Symbol::Byte(*byte));
        }
        for _ in 0..GAP {
            self.receiver.symbol(Symbol::Idle);
        }
        let taken = self.receiver.byte_times() - before;
        debug_assert_eq!(taken, wire_bytes(frame.len() as u32));
        self.unsent += usize::from(counts);
    }

    fn flush(&mut self) -> Result<usize, PortError> {
        Ok(std::mem::take(&mut self.unsent))
    }

    fn unsent(&self) -> usize {
        self.unsent
    }

    fn frame_max(&self) -> usize {
        self.frame_max
    }

    fn runs_by_itself(&self) -> bool {
        false
    }
}
