//! Plans the fillers before a frame, and the frame's position.

use longwire_engine::{BitRate, Nanos};

/// Minimum frame length without check sequence; shorter frames are zero-padded.
pub const FRAME_MIN: u32 = 60;

/// The gap after every frame (IEEE 802.3, 4A.4.2).
const GAP: u64 = 12;

/// Returns the byte times from a frame's preamble through its check sequence; `len`
/// excludes both, and the padding.
pub fn frame_bytes(len: u32) -> u64 {
    8 + u64::from(len.max(FRAME_MIN)) + 4
}

/// Returns the byte times until the next frame can start.
pub fn wire_bytes(len: u32) -> u64 {
    frame_bytes(len) + GAP
}

/// The permitted lengths of fillers, without check sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FillerSizes {
    least: u32,
    most: u32,
}

impl FillerSizes {
    /// The lengths of ordinary Ethernet: 60 to 1514 bytes.
    pub const ETHERNET: FillerSizes = FillerSizes {
        least: FRAME_MIN,
        most: 1514,
    };

    /// Creates lengths from `least` to `most`; `None` unless every gap longer than one
    /// filler can be divided among several.
    pub fn new(least: u32, most: u32) -> Option<FillerSizes> {
        let sizes = FillerSizes { least, most };
        (least >= FRAME_MIN && wire_bytes(most) >= 2 * wire_bytes(least)).then_some(sizes)
    }

    /// Returns the maximum length.
    pub fn most(self) -> u32 {
        self.most
    }

    /// Returns the length of the first filler of a gap of `gap` byte times, for the
    /// minimum number of fillers of similar length.
    fn first(self, gap: u64) -> u32 {
        let count = gap.div_ceil(wire_bytes(self.most)).max(1);
        (gap.div_ceil(count) - wire_bytes(0) + u64::from(FRAME_MIN)) as u32
    }
}

/// The next item to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FillStep {
    /// A filler of this length, without check sequence.
    Filler(u32),
    /// The frame.
    Frame(Placement),
}

/// A frame's position in byte times of the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Start of its preamble.
    pub at: u64,
    /// Ideal start: its last bit leaves in the first byte time that does not end before
    /// its release.
    pub wanted: u64,
    /// Earliest start if gaps of any length were possible: `wanted`, or the end of the
    /// previous frames.
    pub possible: u64,
}

/// Counters of sent frames and fillers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Frames.
    pub frames: u64,
    /// Fillers.
    pub fillers: u64,
    /// Frames that waited for previous frames, because they were released faster than the
    /// wire's rate.
    pub waited: u64,
    /// Frames that did not start at `possible`, because a gap was too short for a filler.
    pub moved: u64,
    /// Maximum deviation by gap frames, in byte times.
    pub moved_max: u64,
    /// Frames pushed after their position on the wire had passed or was taken by fillers.
    pub late: u64,
    /// Number of times that the wire ran dry.
    pub ran_dry: u64,
}

/// Plans a wire that is never idle.
///
/// A frame's last bit leaves at its release, like on the emulated link, so frames
/// released in sequence by a slower link never overlap here. Wire time is counted in
/// bytes, exactly: a release is the rational number (release − origin) × rate / 8,
/// rounded up once to the end of the frame's last byte time.
#[derive(Clone, Debug)]
pub struct GapFiller {
    rate: BitRate,
    sizes: FillerSizes,
    /// Time of byte time 0.
    origin: Nanos,
    /// The first unplanned byte time.
    next: u64,
    /// When the frames so far would have left if gaps of any length were possible.
    possible: u64,
    tally: Tally,
}

impl GapFiller {
    /// Creates a wire of this rate; its first byte time begins at `origin`.
    pub fn new(rate: BitRate, sizes: FillerSizes, origin: Nanos) -> GapFiller {
        GapFiller {
            rate,
            sizes,
            origin,
            next: 0,
            possible: 0,
            tally: Tally::default(),
        }
    }

    /// Returns the next item for a frame of `len` bytes whose last bit must leave at
    /// `release`. The caller sends it, and repeats until the item is the frame.
    pub fn step(&mut self, release: Nanos, len: u32) -> FillStep {
        let wanted = self.byte_time(release).saturating_sub(frame_bytes(len));
        let least = wire_bytes(self.sizes.least);
        let gap = wanted.saturating_sub(self.next);
        // Without a fitting filler, take the nearer end of the gap.
        if gap >= least || gap > least / 2 {
            return FillStep::Filler(self.filler(gap.max(least)));
        }
        let placement = Placement {
            at: self.next,
            wanted,
            possible: wanted.max(self.possible),
        };
        self.next += wire_bytes(len);
        self.possible = placement.possible + wire_bytes(len);
        self.count(placement);
        FillStep::Frame(placement)
    }

    /// Returns a filler for the time without a known frame before `until`: the longest
    /// one, or `None` once that would reach so far that a frame of up to `frame_max`
    /// bytes, released then or later, could not be given every gap that can be filled.
    pub fn idle(&mut self, until: Nanos, frame_max: u32) -> Option<u32> {
        let longest = wire_bytes(self.sizes.most);
        let begins = self.byte_time(until).saturating_sub(frame_bytes(frame_max));
        let gap = begins.saturating_sub(self.next);
        let fits = gap >= longest + wire_bytes(self.sizes.least);
        fits.then(|| self.filler(longest))
    }

    /// Advances the wire to `now`. If its byte time is unplanned, the wire has run dry
    /// and continues from there.
    pub fn sync_clock(&mut self, now: Nanos) {
        let reached = self.byte_time(now);
        if reached > self.next {
            self.next = reached;
            self.tally.ran_dry += 1;
        }
    }

    /// Returns the current counters.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Returns the start of a byte time, rounded down.
    pub fn time_of(&self, byte_time: u64) -> Nanos {
        let nanos = u128::from(byte_time) * 8_000_000_000 / u128::from(self.rate.bits_per_sec());
        let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
        self.origin.saturating_add(Nanos::from_nanos(nanos))
    }

    /// Returns the first byte time at or after `time`.
    fn byte_time(&self, time: Nanos) -> u64 {
        let since = u128::from(time.saturating_sub(self.origin).as_nanos());
        let bytes = (since * u128::from(self.rate.bits_per_sec())).div_ceil(8_000_000_000);
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    fn filler(&mut self, gap: u64) -> u32 {
        let len = self.sizes.first(gap);
        self.next += wire_bytes(len);
        self.tally.fillers += 1;
        len
    }

    fn count(&mut self, placement: Placement) {
        let Placement {
            at,
            wanted,
            possible,
        } = placement;
        let tally = &mut self.tally;
        tally.frames += 1;
        tally.waited += u64::from(possible > wanted);
        let moved = at.abs_diff(possible);
        if moved > wire_bytes(self.sizes.least) / 2 {
            tally.late += 1;
        } else if moved > 0 {
            tally.moved += 1;
            tally.moved_max = tally.moved_max.max(moved);
        }
    }
}
