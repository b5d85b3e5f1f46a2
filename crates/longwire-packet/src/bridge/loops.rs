//! Signs of a loop: frames that this bridge flooded come back to it.
//!
//! Two things are watched, each in a small table that never grows.
//!
//! * **Stations that move to and fro.** In a loop a station's frames arrive
//!   at its own port and at the loop's, in turn. A station that moves four
//!   times within a second is a sign; a laptop that roams, a virtual machine
//!   that migrates or an address that fails over moves once or twice.
//! * **Flooded frames that are the same.** Within 100 ms, the same bytes four
//!   more times by another port than at first, or 64 more times by the same
//!   port, which is a loop behind that port. Frames of the same source by two
//!   ports do not come about otherwise. The same frame from one port does,
//!   from generators that repeat one broadcast frame 640 times a second and
//!   more: that is told as a loop too, and is the one false alarm known.
//!   Compared are a hash of 64 bits of the first 128 bytes, and the length.
//!
//! Both tables keep who came first until its time is over, so that even
//! thousands of stations in a loop do not push one another out before any is
//! counted to the end. Notices come at most once a second; the signs
//! themselves are all counted.
//!
//! Loops of frames that are not flooded do not exist, and two bridges that
//! each think the other's port the way to a station are not seen. A loop
//! whose frames another device changes on their way is seen by the stations
//! that move only.

use longwire_units::Nanos;
use longwire_units::random::absorb;

use super::PortIndex;
use super::table::StationKey;

/// Stations, and flooded frames, that are watched at one time.
const STATIONS: usize = 64;
const FRAMES: usize = 256;

/// Moves of one station within this time that are a sign.
const MOVES: u32 = 4;
const MOVES_WITHIN: Nanos = Nanos::from_secs(1);

/// Repetitions of one frame within this time that are a sign: by another
/// port, and by the same.
const RETURNS: u32 = 4;
const REPEATS: u32 = 64;
const FRAMES_WITHIN: Nanos = Nanos::from_millis(100);

/// The least time between two notices.
const NOTICE_EVERY: Nanos = Nanos::from_secs(1);

/// How much of a frame is compared.
const COMPARED: usize = 128;

/// What looked like a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopSign {
    /// A station moved to and fro between two ports.
    StationMoves,
    /// A flooded frame came back by another port.
    FrameReturns,
    /// A flooded frame came again and again by one port: the loop is behind
    /// it.
    FrameRepeats,
}

/// A loop, as far as a bridge can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopNotice {
    /// When it was noticed.
    pub at: Nanos,
    /// By what.
    pub sign: LoopSign,
    /// The two ports that the loop connects; the same twice if it is behind
    /// one port.
    pub ports: (PortIndex, PortIndex),
    /// The VLAN of the frame that told, 0 for none.
    pub vlan: u16,
    /// The frame's source address.
    pub station: [u8; 6],
}

/// A station that moves.
#[derive(Clone, Copy, Debug, Default)]
struct Mover {
    station: StationKey,
    since: Nanos,
    moves: u32,
}

/// A frame that was flooded.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    digest: u64,
    since: Nanos,
    port: u16,
    repeats: u32,
    returns: u32,
}

/// Watches for loops.
#[derive(Clone, Debug)]
pub(super) struct LoopWatch {
    movers: [Mover; STATIONS],
    seen: [Seen; FRAMES],
    signs: u64,
    notice: Option<LoopNotice>,
    last_notice: Option<Nanos>,
}

impl LoopWatch {
    pub fn new() -> LoopWatch {
        LoopWatch {
            movers: [Mover::default(); STATIONS],
            seen: [Seen::default(); FRAMES],
            signs: 0,
            notice: None,
            last_notice: None,
        }
    }

    /// How often there was a sign.
    pub fn signs(&self) -> u64 {
        self.signs
    }

    /// The last notice that was not yet taken.
    pub fn take(&mut self) -> Option<LoopNotice> {
        self.notice.take()
    }

    /// A station was heard of at another port.
    #[cold]
    pub fn note_move(&mut self, now: Nanos, station: StationKey, ports: (u16, u16)) {
        let place = absorb(0, station) as usize % STATIONS;
        let mover = &mut self.movers[place];
        let over = now.saturating_sub(mover.since) > MOVES_WITHIN;
        if mover.station == 0 || over {
            *mover = Mover {
                station,
                since: now,
                moves: 0,
            };
        }
        if mover.station != station {
            return;
        }
        mover.moves += 1;
        if mover.moves >= MOVES {
            *mover = Mover::default();
            self.note(now, LoopSign::StationMoves, ports, station);
        }
    }

    /// A frame is about to be flooded.
    pub fn note_flooded(&mut self, now: Nanos, port: u16, station: StationKey, frame: &[u8]) {
        let digest = fingerprint(frame);
        let seen = &mut self.seen[(digest >> 32) as usize % FRAMES];
        let over = now.saturating_sub(seen.since) > FRAMES_WITHIN;
        if seen.digest == 0 || over {
            *seen = Seen {
                digest,
                since: now,
                port,
                repeats: 0,
                returns: 0,
            };
            return;
        }
        if seen.digest != digest {
            return;
        }
        let first = seen.port;
        let sign = if port == first {
            seen.repeats += 1;
            (seen.repeats >= REPEATS).then_some(LoopSign::FrameRepeats)
        } else {
            seen.returns += 1;
            (seen.returns >= RETURNS).then_some(LoopSign::FrameReturns)
        };
        if let Some(sign) = sign {
            *seen = Seen::default();
            self.note(now, sign, (first, port), station);
        }
    }

    fn note(&mut self, at: Nanos, sign: LoopSign, ports: (u16, u16), station: StationKey) {
        self.signs += 1;
        let soon = |last: Nanos| at.saturating_sub(last) < NOTICE_EVERY;
        if self.last_notice.is_some_and(soon) {
            return;
        }
        self.last_notice = Some(at);
        let [_, _, mac @ ..] = station.to_be_bytes();
        self.notice = Some(LoopNotice {
            at,
            sign,
            ports: (PortIndex(ports.0), PortIndex(ports.1)),
            vlan: (station >> 48) as u16,
            station: mac,
        });
    }
}

/// A hash of a frame's beginning and length, never zero.
fn fingerprint(frame: &[u8]) -> u64 {
    let compared = &frame[..frame.len().min(COMPARED)];
    let word = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    };
    let words = compared.chunks(8).map(word);
    words.fold(frame.len() as u64, absorb).max(1)
}
