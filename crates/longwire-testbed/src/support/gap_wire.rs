//! A simulated wire with a resolution of one byte time, with a sending network card and a receiver.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use longwire_engine::{BitRate, Nanos};
use longwire_io::PortError;
use longwire_io::port::gap::{FRAME_MIN, RawLine, frame_bytes};

/// Seven bytes of preamble and the start delimiter.
pub const PREAMBLE: [u8; 8] = [0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0xd5];

/// Minimum idle byte times after each frame.
const GAP: u64 = 12;

/// Number of frames that a driver's ring holds.
const RING: usize = 96;

/// Maximum number of frames queued for a flush.
const BATCH: usize = 32;

/// A frame accepted by the receiver.
#[derive(Debug)]
pub struct WireFrame {
    /// Byte time at which its preamble began.
    pub at: u64,
    /// The frame's bytes, without preamble and check sequence.
    pub bytes: Vec<u8>,
}

impl WireFrame {
    /// Returns the byte time after the frame's last bit.
    pub fn end(&self) -> u64 {
        self.at + frame_bytes(self.bytes.len() as u32)
    }
}

/// The receiver at the end of the wire. Detects frames among symbols and discards damaged ones.
#[derive(Debug, Default)]
pub struct WireReceiver {
    /// Number of byte times so far.
    pub now: u64,
    /// Byte time at which the current run of bytes began.
    begun: Option<u64>,
    bytes: Vec<u8>,
    gap: u64,
    /// The accepted frames, in order.
    pub frames: Vec<WireFrame>,
    /// Frames discarded for an invalid check sequence.
    pub bad: u64,
    /// Frames discarded because of their length or a missing start delimiter.
    pub malformed: u64,
    /// Idle byte times beyond the minimum gaps.
    pub idle: u64,
}

impl WireReceiver {
    /// Receives bytes and the idle byte times after them.
    pub fn receive(&mut self, preamble: &[u8], frame: &[u8], gap: usize) {
        self.begun = Some(self.now);
        self.bytes.extend(preamble.iter().chain(frame));
        self.now += self.bytes.len() as u64;
        (0..gap).for_each(|_| self.idle());
    }

    /// Receives an idle byte time, which ends a frame.
    fn idle(&mut self) {
        if let Some(at) = self.begun.take() {
            self.end_of_frame(at);
            self.gap = 0;
        }
        self.gap += 1;
        self.idle += u64::from(self.gap > GAP);
        self.now += 1;
    }

    fn end_of_frame(&mut self, at: u64) {
        let burst = std::mem::take(&mut self.bytes);
        let frame = burst.strip_prefix(&PREAMBLE).unwrap_or(&[]);
        if frame.len() < FRAME_MIN as usize + 4 {
            self.malformed += 1;
        } else if !is_whole(frame) {
            self.bad += 1;
        } else {
            let bytes = frame[..frame.len() - 4].to_vec();
            self.frames.push(WireFrame { at, bytes });
        }
    }
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

/// Returns the maximum difference, over all pairs of frames, between the distance of their last
/// bits and the distance of their releases, in byte times of a wire at this rate. `releases` has
/// one entry per frame.
pub fn spacing_error(frames: &[WireFrame], releases: &[Nanos], rate: BitRate) -> f64 {
    // Time from each release to the frame's end, in billionths of a bit, as exact integers. A
    // common delay cancels out in the difference.
    let late = frames.iter().zip(releases).map(|(frame, release)| {
        i128::from(frame.end()) * 8_000_000_000
            - i128::from(release.as_nanos()) * i128::from(rate.bits_per_sec())
    });
    let (least, most) = late.fold((i128::MAX, i128::MIN), |(least, most), late| {
        (least.min(late), most.max(late))
    });
    most.saturating_sub(least).max(0) as f64 / 8e9
}

/// A network card. Without a clock, each frame is sent immediately and advances the wire's time.
/// With a clock, the wire runs continuously in virtual time: frames that reach the ring late are
/// sent late, and the ring has a limited size.
#[derive(Debug, Default)]
pub struct Card {
    /// Machine time, in nanoseconds since the card's wire started.
    clock: Option<Arc<AtomicU64>>,
    waiting: VecDeque<(Vec<u8>, bool)>,
    ring: VecDeque<Vec<u8>>,
    /// The wire behind the card.
    pub wire: WireReceiver,
    unsent: usize,
}

impl Card {
    /// Creates a card, with or without a clock.
    pub fn new(clock: Option<Arc<AtomicU64>>) -> Card {
        Card {
            clock,
            ..Card::default()
        }
    }
}

impl RawLine for Card {
    fn free_slots(&self) -> usize {
        BATCH - self.waiting.len()
    }

    fn put(&mut self, frame: &[u8], check: [u8; 4], counts: bool) {
        let whole = [frame, &check].concat();
        match self.clock {
            None => self.wire.receive(&PREAMBLE, &whole, 12),
            Some(_) => self.waiting.push_back((whole, counts)),
        }
        self.unsent += usize::from(counts);
    }

    /// Lets the wire carry the ring's contents up to now, and refills the ring. With an empty ring,
    /// the wire idles.
    fn flush(&mut self) -> Result<usize, PortError> {
        let Some(clock) = &self.clock else {
            return Ok(std::mem::take(&mut self.unsent));
        };
        while self.wire.now < clock.load(Ordering::Relaxed) * 10 / 8 {
            match self.ring.pop_front() {
                Some(frame) => self.wire.receive(&PREAMBLE, &frame, 12),
                None => self.wire.idle(),
            }
        }
        let mut left = 0;
        while self.ring.len() < RING
            && let Some((frame, counts)) = self.waiting.pop_front()
        {
            self.ring.push_back(frame);
            left += usize::from(counts);
        }
        self.unsent -= left;
        Ok(left)
    }

    fn unsent(&self) -> usize {
        self.unsent
    }

    fn frame_max(&self) -> usize {
        1514
    }

    fn runs_by_itself(&self) -> bool {
        self.clock.is_some()
    }
}
