//! Signs of a loop: frames that this bridge flooded return to it.
//!
//! Two signs are watched, each in a small table that never grows.
//!
//! * **Stations that move repeatedly.** In a loop a station's frames arrive at its
//!   own port and at the loop's, in turn. A station that moves four times within a
//!   second is a sign; a laptop that roams, a virtual machine that migrates or an
//!   address that fails over moves once or twice.
//! * **Identical flooded frames.** Within 100 ms, the same bytes four more times by
//!   another port than at first, or 64 more times by the same port, which is a loop at
//!   that port. Frames of the same source by two ports have no other cause. Repetition
//!   by one port has: generators that repeat one broadcast frame 640 times a second and
//!   more are reported as a loop too, which is the one known false alarm. A hash of 64
//!   bits of the first 128 bytes, and the length, are compared.
//!
//! Both tables keep the oldest entries until their time is over, so that even thousands
//! of stations in a loop do not displace one another before any is counted completely.
//! Notices are given at most once a second; the signs themselves are all counted.
//!
//! Loops of frames that are not flooded do not exist, and two bridges that each assign
//! a station to the other's port are not detected. A loop in which another device
//! changes frames is detected by moving stations only.

use longwire_units::Nanos;
use longwire_units::random::absorb;

use super::PortIndex;
use super::table::StationKey;

/// Number of stations, and of flooded frames, watched at one time.
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

/// The sign of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopSign {
    /// A station moved repeatedly between two ports.
    StationMoves,
    /// A flooded frame returned by another port.
    FrameReturns,
    /// A flooded frame returned repeatedly by one port, at which the loop is.
    FrameRepeats,
}

/// A probable loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopNotice {
    /// When it was noticed.
    pub at: Nanos,
    /// The sign.
    pub sign: LoopSign,
    /// The two ports that the loop connects; the same twice if it is at one port.
    pub ports: (PortIndex, PortIndex),
    /// The VLAN of the frame that was the sign, 0 for none.
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

    /// Returns the number of signs.
    pub fn signs(&self) -> u64 {
        self.signs
    }

    /// Takes the last notice.
    pub fn take(&mut self) -> Option<LoopNotice> {
        self.notice.take()
    }

    /// Notes that a station was seen at another port.
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

    /// Notes that a frame is about to be flooded.
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

/// Returns a hash of a frame's beginning and length, never zero.
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
