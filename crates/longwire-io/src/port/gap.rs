//! Gap frames: a wire that is never idle, so that frames leave with byte precision.
//!
//! A network card sends frames back to back. If frames of the right lengths fill the gap between
//! two frames, the second leaves at the right byte time (0.8 ns at 10 Gbit/s), regardless of the
//! time of its handover. Fillers have an invalid frame check sequence, so the next device discards
//! them (Emmerich et al., "MoonGen", IMC 2015, section 8; Puakalong et al. for DEMU).
//!
//! [`GapFiller`] plans a frame's position and the fillers before it. [`GapTx`] is the sending half
//! of a port that uses a `GapFiller` over a [`RawLine`]: a driver that sends a given check
//! sequence.
//!
//! Limitation: gaps shorter than the minimum filler of 84 byte times are impossible. The frame then
//! moves to the nearer possible position, by at most 42 byte times (33.6 ns at 10 Gbit/s). Every
//! frame is placed by its own release, not by the previous frame, so errors never accumulate.

use longwire_engine::{BitRate, Nanos};
use longwire_units::count_of;

use super::{PortError, PushResult, TxFrame, TxPort};

/// Returns a frame's check sequence as its four bytes on the wire (IEEE 802.3, 3.2.9: the
/// inverted CRC-32, lowest byte first).
pub fn frame_check_sequence(frame: &[u8]) -> [u8; 4] {
    crc32fast::hash(frame).to_le_bytes()
}

/// Minimum frame length without check sequence. Shorter frames are zero-padded.
pub const FRAME_MIN: u32 = 60;

/// The gap after every frame (IEEE 802.3, 4A.4.2).
const GAP: u64 = 12;

/// Returns the byte times from a frame's preamble through its check sequence; `len` excludes
/// preamble, check sequence and padding.
pub fn frame_bytes(len: u32) -> u64 {
    8 + u64::from(len.max(FRAME_MIN)) + 4
}

/// Returns the byte times until the next frame can start.
pub fn wire_bytes(len: u32) -> u64 {
    frame_bytes(len) + GAP
}

/// Length of the longest filler, without its frame check sequence.
const FILLER_MAX: u32 = 1514;

/// Returns the first filler's length for a gap of `gap` byte times, using the fewest fillers, of
/// similar length.
fn filler_len(gap: u64) -> u32 {
    let count = gap.div_ceil(wire_bytes(FILLER_MAX)).max(1);
    (gap.div_ceil(count) - wire_bytes(0) + u64::from(FRAME_MIN)) as u32
}

/// The next item to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FillStep {
    /// A filler of this length, without check sequence.
    Filler(u32),
    /// The frame.
    Frame(Placement),
}

/// A frame's position, in byte times of the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Start of its preamble.
    pub at: u64,
    /// Ideal start: the frame's last bit leaves in the first byte time that does not end before its
    /// release.
    pub wanted: u64,
    /// Earliest start if gaps of any length were possible: `wanted`, or the end of the previous
    /// frames, whichever is later.
    pub possible: u64,
}

/// Counters of sent frames and fillers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Frames sent.
    pub frames: u64,
    /// Fillers sent.
    pub fillers: u64,
    /// Frames that waited for previous frames, because releases exceeded the wire's rate.
    pub waited: u64,
    /// Frames that did not start at `possible`, because a gap was too short for a filler.
    pub moved: u64,
    /// Maximum deviation due to short gaps, in byte times.
    pub moved_max: u64,
    /// Frames pushed after their position on the wire had passed or was filled.
    pub late: u64,
    /// Number of times the wire ran dry.
    pub ran_dry: u64,
}

/// Plans a wire that is never idle.
///
/// A frame's last bit leaves at its release, as on the emulated link, so frames released in
/// sequence by a slower link never overlap on the wire. Wire time is counted in bytes, exactly: a
/// release is the rational number (release − origin) × rate / 8, rounded up once to the end of the
/// frame's last byte time.
#[derive(Clone, Debug)]
pub struct GapFiller {
    rate: BitRate,
    /// The time at which byte time 0 starts.
    origin: Nanos,
    /// The first unplanned byte time.
    next: u64,
    /// End of the frames so far, if gaps of any length were possible.
    possible: u64,
    tally: Tally,
}

impl GapFiller {
    /// Creates a wire with this rate, whose first byte time begins at `origin`.
    pub fn new(rate: BitRate, origin: Nanos) -> GapFiller {
        GapFiller {
            rate,
            origin,
            next: 0,
            possible: 0,
            tally: Tally::default(),
        }
    }

    /// Returns the next item to send for a frame of `len` bytes whose last bit must leave at
    /// `release`. The caller sends the item and repeats the call until the item is the frame.
    pub fn step(&mut self, release: Nanos, len: u32) -> FillStep {
        let wanted = self.byte_time(release).saturating_sub(frame_bytes(len));
        let least = wire_bytes(FRAME_MIN);
        let gap = wanted.saturating_sub(self.next);
        // If no filler fits, take the nearer end of the gap.
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

    /// Returns the length of the longest filler, to fill wire time without known frames. Returns
    /// `None` once that filler would end too late: every fillable gap must remain possible before a
    /// frame of up to `frame_max` bytes released at `until` or later.
    pub fn idle(&mut self, until: Nanos, frame_max: u32) -> Option<u32> {
        let longest = wire_bytes(FILLER_MAX);
        let begins = self.byte_time(until).saturating_sub(frame_bytes(frame_max));
        let fits = begins.saturating_sub(self.next) >= longest + wire_bytes(FRAME_MIN);
        fits.then(|| self.filler(longest))
    }

    /// Advances the wire to `now`. If that byte time is unplanned, the wire has run dry and
    /// continues from there.
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

    /// Returns the first byte time at or after `time`.
    fn byte_time(&self, time: Nanos) -> u64 {
        let since = u128::from(time.saturating_sub(self.origin).as_nanos());
        let bytes = (since * u128::from(self.rate.bits_per_sec())).div_ceil(8_000_000_000);
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    fn filler(&mut self, gap: u64) -> u32 {
        let len = filler_len(gap);
        self.next += wire_bytes(len);
        self.tally.fillers += 1;
        len
    }

    fn count(&mut self, placement: Placement) {
        let tally = &mut self.tally;
        tally.frames += 1;
        tally.waited += u64::from(placement.possible > placement.wanted);
        let moved = placement.at.abs_diff(placement.possible);
        if moved > wire_bytes(FRAME_MIN) / 2 {
            tally.late += 1;
        } else if moved > 0 {
            tally.moved += 1;
            tally.moved_max = tally.moved_max.max(moved);
        }
    }
}

/// A driver or wire that sends frames back to back, each with a given check sequence.
pub trait RawLine {
    /// Returns the number of frames that can be added before a flush.
    fn free_slots(&self) -> usize;

    /// Adds a frame; requires a free slot. `counts` is false for fillers.
    fn put(&mut self, frame: &[u8], check: [u8; 4], counts: bool);

    /// Sends as many added frames as the line accepts. Returns the number of departed frames,
    /// without fillers.
    ///
    /// # Errors
    /// The line is gone.
    fn flush(&mut self) -> Result<usize, PortError>;

    /// Returns the number of unsent frames, without fillers.
    fn unsent(&self) -> usize;

    /// Returns the maximum frame length in bytes.
    fn frame_max(&self) -> usize;

    /// Returns whether time passes on the wire even while no frames are added.
    fn runs_by_itself(&self) -> bool;
}

/// How far ahead the wire is filled, to bridge pauses of the program.
const AHEAD: Nanos = Nanos::from_micros(100);

/// Maximum lateness at which a pushed frame still departs on time.
const TIMEOUT: Nanos = Nanos::from_micros(100);

/// Sends frames a constant time after their releases, exact to the byte time, with fillers in
/// between.
pub struct GapTx<L> {
    line: L,
    port: String,
    rate: BitRate,
    /// Constant time from a frame's release to its departure.
    lead: Nanos,
    /// Created by the first call, at which the wire's time starts.
    filler: Option<GapFiller>,
    fillers: Fillers,
    /// Frames departed since the last flush.
    left: usize,
    /// Buffer for a padded short frame.
    padded: [u8; FRAME_MIN as usize],
}

impl<L: RawLine> GapTx<L> {
    /// Creates a wire with this rate. Remarks use `port` as its name.
    ///
    /// All frames leave a constant time after their release: 200 us plus twice the wire time of the
    /// longest frame or filler.
    pub fn new(line: L, port: String, rate: BitRate) -> GapTx<L> {
        let longest = (line.frame_max() as u32).max(FILLER_MAX);
        let lead = Nanos::from_nanos(2 * wire_bytes(longest) * 8_000_000_000 / rate.bits_per_sec());
        GapTx {
            lead: lead.saturating_add(AHEAD).saturating_add(TIMEOUT),
            line,
            port,
            rate,
            filler: None,
            fillers: Fillers::new(),
            left: 0,
            padded: [0; FRAME_MIN as usize],
        }
    }

    /// Returns the current counters.
    pub fn tally(&self) -> Tally {
        self.filler
            .as_ref()
            .map(GapFiller::tally)
            .unwrap_or_default()
    }

    /// Discards the planner and returns the line.
    pub fn into_line(self) -> L {
        self.line
    }

    /// Returns whether a slot is free, after a flush if necessary.
    fn ensure_free_slot(&mut self) -> bool {
        if self.line.free_slots() == 0 {
            // The next flush returns the error again.
            self.left += self.line.flush().unwrap_or(0);
        }
        self.line.free_slots() > 0
    }
}

impl<L: RawLine> TxPort for GapTx<L> {
    fn push(&mut self, frame: TxFrame<'_>) -> PushResult {
        if frame.bytes.len() < ETHERNET || frame.bytes.len() > self.line.frame_max() {
            return PushResult::Refused;
        }
        let len = frame.bytes.len() as u32;
        let due = frame.release.saturating_add(self.lead);
        loop {
            if !self.ensure_free_slot() {
                return PushResult::Full;
            }
            let start = || GapFiller::new(self.rate, frame.release);
            match self.filler.get_or_insert_with(start).step(due, len) {
                FillStep::Filler(len) => {
                    let (filler, check) = self.fillers.get(len);
                    self.line.put(filler, check, false);
                }
                FillStep::Frame(_) => break,
            }
        }
        let bytes = if frame.bytes.len() < self.padded.len() {
            self.padded.fill(0);
            self.padded[..frame.bytes.len()].copy_from_slice(frame.bytes);
            &self.padded
        } else {
            frame.bytes
        };
        self.line.put(bytes, frame_check_sequence(bytes), true);
        PushResult::Taken
    }

    fn flush(&mut self) -> Result<usize, PortError> {
        self.left += self.line.flush()?;
        Ok(std::mem::take(&mut self.left))
    }

    fn free_slots(&self) -> usize {
        self.line.free_slots()
    }

    fn unsent(&self) -> usize {
        self.line.unsent()
    }

    fn needs_idle_fill(&self) -> bool {
        self.line.runs_by_itself()
    }

    fn sync_clock(&mut self, now: Nanos) {
        if let Some(filler) = &mut self.filler {
            filler.sync_clock(now);
        }
    }

    fn fill(&mut self, now: Nanos) {
        let start = || GapFiller::new(self.rate, now);
        let filler = self.filler.get_or_insert_with(start);
        // Frames not yet pushed leave at or after this time, because a handover is at most
        // `TIMEOUT` late.
        let until = now.saturating_add(self.lead).saturating_sub(TIMEOUT);
        let frame_max = self.line.frame_max() as u32;
        while self.line.free_slots() > 0
            && let Some(len) = filler.idle(until, frame_max)
        {
            let (bytes, check) = self.fillers.get(len);
            self.line.put(bytes, check, false);
        }
    }

    fn remarks(&self) -> Vec<String> {
        let tally = self.tally();
        let byte_time = 8e9 / self.rate.bits_per_sec() as f64;
        vec![format!(
            "{}: gap frames at {}: {} and {}, each frame {} after its release; {} shifted by \
             up to {:.1} ns because the gap was shorter than a filler, {} delayed by their \
             predecessors, {} late; the wire ran dry {}",
            self.port,
            self.rate,
            count_of(tally.frames, "frame"),
            count_of(tally.fillers, "filler"),
            self.lead,
            tally.moved,
            tally.moved_max as f64 * byte_time,
            tally.waited,
            tally.late,
            count_of(tally.ran_dry, "time"),
        )]
    }
}

/// Length of an Ethernet header, the minimum frame length.
const ETHERNET: usize = 14;

/// Fillers of all lengths. Each is a prefix of one frame, with an invalid check sequence.
struct Fillers {
    frame: Vec<u8>,
    /// Check sequences, indexed by the length above the minimum.
    checks: Vec<[u8; 4]>,
}

impl Fillers {
    /// The header of fillers, addressed to a group that bridges do not forward (IEEE 802.1Q,
    /// 8.6.3), with the first experimental EtherType. A device that accepts a filler therefore does
    /// not forward it.
    const HEADER: [u8; ETHERNET] = [
        0x01, 0x80, 0xc2, 0x00, 0x00, 0x0f, 0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 0x88, 0xb5,
    ];

    fn new() -> Fillers {
        let mut frame = vec![0; FILLER_MAX as usize];
        frame[..ETHERNET].copy_from_slice(&Fillers::HEADER);
        let mut digest = crc32fast::Hasher::new();
        digest.update(&frame[..FRAME_MIN as usize]);
        let mut checks = vec![wrong(&digest)];
        for byte in &frame[FRAME_MIN as usize..] {
            digest.update(std::slice::from_ref(byte));
            checks.push(wrong(&digest));
        }
        Fillers { frame, checks }
    }

    fn get(&self, len: u32) -> (&[u8], [u8; 4]) {
        let check = self.checks[(len - FRAME_MIN) as usize];
        (&self.frame[..len as usize], check)
    }
}

/// Returns the check sequence with all bits inverted.
fn wrong(digest: &crc32fast::Hasher) -> [u8; 4] {
    (!digest.clone().finalize()).to_le_bytes()
}
