//! The sending half of a port whose wire is never idle.

use longwire_engine::{BitRate, Nanos};
use longwire_units::count_of;

use super::filler::{FRAME_MIN, FillStep, FillerSizes, GapFiller, Tally, wire_bytes};
use super::frame_check_sequence;
use crate::port::{PortError, PushResult, TxFrame, TxPort};

/// A driver or wire that sends frames back to back with a given check sequence.
pub trait RawLine {
    /// Returns the number of frames that can be added before a flush.
    fn free_slots(&self) -> usize;

    /// Adds a frame; requires a free slot. `counts` is false for a filler.
    fn put(&mut self, frame: &[u8], check: [u8; 4], counts: bool);

    /// Sends the added frames as far as the line accepts them; returns the number of
    /// departed frames that count.
    ///
    /// # Errors
    /// If the line is gone.
    fn flush(&mut self) -> Result<usize, PortError>;

    /// Returns the number of unsent frames that count.
    fn unsent(&self) -> usize;

    /// Returns the maximum frame length in bytes.
    fn frame_max(&self) -> usize;

    /// Whether the wire runs dry while no frame is added.
    fn runs_by_itself(&self) -> bool;
}

/// Time that the wire is filled ahead, which bridges pauses of the program.
const AHEAD: Nanos = Nanos::from_micros(100);

/// Maximum lateness of a handover that is still in time.
const TIMEOUT: Nanos = Nanos::from_micros(100);

/// Sends frames at their releases, to the byte time, with fillers between them.
pub struct GapTx<L> {
    line: L,
    port: String,
    rate: BitRate,
    /// Constant time from a frame's release to its departure.
    lead: Nanos,
    /// Created by the first call, which starts the wire's time.
    filler: Option<GapFiller>,
    fillers: Fillers,
    /// Departed frames since the last flush.
    left: usize,
    /// A padded short frame.
    padded: [u8; FRAME_MIN as usize],
}

impl<L: RawLine> GapTx<L> {
    /// Creates a wire of this rate. `port` is its name in remarks.
    ///
    /// All frames leave a constant time after their release: 200 us, plus the times of
    /// the longest frame and filler.
    pub fn new(line: L, port: String, rate: BitRate) -> GapTx<L> {
        let longest = (line.frame_max() as u32).max(FillerSizes::ETHERNET.most());
        let longest = 2 * wire_bytes(longest) * 8_000_000_000 / rate.bits_per_sec();
        let lead = Nanos::from_nanos(longest);
        GapTx {
            lead: lead.saturating_add(AHEAD).saturating_add(TIMEOUT),
            line,
            port,
            rate,
            filler: None,
            fillers: Fillers::new(FillerSizes::ETHERNET),
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

    /// Returns the line.
    pub fn line(&self) -> &L {
        &self.line
    }

    /// Returns the line.
    pub fn into_line(self) -> L {
        self.line
    }

    /// Whether a slot is free, after a flush if necessary.
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
            let start = || GapFiller::new(self.rate, FillerSizes::ETHERNET, frame.release);
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
        let start = || GapFiller::new(self.rate, FillerSizes::ETHERNET, now);
        let filler = self.filler.get_or_insert_with(start);
        // Frames not pushed yet are released later, within `TIMEOUT`.
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
        let Tally {
            frames,
            fillers,
            waited,
            moved,
            moved_max,
            late,
            ran_dry,
        } = self.tally();
        let byte_time = 8e9 / self.rate.bits_per_sec() as f64;
        vec![format!(
            "{}: gap frames at {}: {} and {}, each frame {} after its release; {moved} moved by \
             up to {:.1} ns because a gap was shorter than a filler, {waited} waited for their \
             predecessors, {late} were late, and the wire ran dry {}",
            self.port,
            self.rate,
            count_of(frames, "frame"),
            count_of(fillers, "filler"),
            self.lead,
            moved_max as f64 * byte_time,
            count_of(ran_dry, "time"),
        )]
    }
}

/// Length of an Ethernet header, the minimum of a frame.
const ETHERNET: usize = 14;

/// Fillers of all lengths: prefixes of one frame, each with an invalid check sequence.
struct Fillers {
    frame: Vec<u8>,
    /// Indexed by the length above the least.
    checks: Vec<[u8; 4]>,
}

impl Fillers {
    /// Addressed to a group that bridges do not forward (IEEE 802.1Q, 8.6.3), with the
    /// first experimental EtherType: a device that accepts a filler does not forward it.
    const HEADER: [u8; ETHERNET] = [
        0x01, 0x80, 0xc2, 0x00, 0x00, 0x0f, 0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 0x88, 0xb5,
    ];

    fn new(sizes: FillerSizes) -> Fillers {
        let mut frame = vec![0; sizes.most() as usize];
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
