//! Loop detection: frames flooded by this bridge that return to it.
//!
//! The bridge tracks two kinds of evidence, each in a small fixed-size table:
//!
//! * **Stations that move repeatedly.** In a loop, a station's frames arrive alternately at its own
//!   port and at the loop's port. Four moves within a second count as evidence; roaming, migration
//!   or failover cause only one or two.
//! * **Repeated flooded frames.** A frame that arrives four more times at other ports within 100 ms
//!   counts as evidence: only a loop causes this. A frame that arrives 64 more times at the same
//!   port means a loop at that port, with one known false positive: a generator that repeats one
//!   broadcast frame at 640 frames/s or more. Frames are compared by length and a 64-bit hash of
//!   their first 128 bytes.
//!
//! Both tables keep their oldest entries until they expire; otherwise, thousands of stations in a
//! loop would evict each other before any is fully counted.
//!
//! Only flooded frames loop. Two bridges that each locate a station at the other's port are not
//! detected. If another device in the loop modifies frames, only moving stations reveal it.

use longwire_units::Nanos;
use longwire_units::random::absorb;

use super::table::StationKey;

/// Maximum number of stations and of flooded frames tracked.
const STATIONS: usize = 64;
const FRAMES: usize = 256;

/// Moves of a station, within the interval, that count as evidence of a loop.
const MOVES: u32 = 4;
const MOVES_WITHIN: Nanos = Nanos::from_secs(1);

/// Repetitions of a frame, within the interval, that count as evidence of a loop: at other ports,
/// and at the same port.
const RETURNS: u32 = 4;
const REPEATS: u32 = 64;
const FRAMES_WITHIN: Nanos = Nanos::from_millis(100);

/// Number of bytes hashed.
const COMPARED: usize = 128;

#[derive(Clone, Copy, Debug, Default)]
struct MovingStation {
    station: StationKey,
    since: Nanos,
    moves: u32,
}

/// A flooded frame.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    digest: u64,
    since: Nanos,
    port: u16,
    repeats: u32,
    returns: u32,
}

#[derive(Clone, Debug)]
pub(super) struct LoopWatch {
    moving: [MovingStation; STATIONS],
    seen: [Seen; FRAMES],
    /// Number of times that evidence of a loop was found.
    pub signs: u64,
}

impl LoopWatch {
    pub fn new() -> LoopWatch {
        LoopWatch {
            moving: [MovingStation::default(); STATIONS],
            seen: [Seen::default(); FRAMES],
            signs: 0,
        }
    }

    /// Records that a station has moved to another port.
    #[cold]
    pub fn note_move(&mut self, now: Nanos, station: StationKey) {
        let moving = &mut self.moving[absorb(0, station) as usize % STATIONS];
        if moving.station == 0 || now.saturating_sub(moving.since) > MOVES_WITHIN {
            *moving = MovingStation {
                station,
                since: now,
                moves: 0,
            };
        }
        if moving.station != station {
            return;
        }
        moving.moves += 1;
        if moving.moves >= MOVES {
            *moving = MovingStation::default();
            self.signs += 1;
        }
    }

    /// Records a frame that is about to be flooded.
    pub fn note_flooded(&mut self, now: Nanos, port: u16, frame: &[u8]) {
        let digest = fingerprint(frame);
        let seen = &mut self.seen[(digest >> 32) as usize % FRAMES];
        if seen.digest == 0 || now.saturating_sub(seen.since) > FRAMES_WITHIN {
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
        let is_sign = if port == seen.port {
            seen.repeats += 1;
            seen.repeats >= REPEATS
        } else {
            seen.returns += 1;
            seen.returns >= RETURNS
        };
        if is_sign {
            *seen = Seen::default();
            self.signs += 1;
        }
    }
}

/// Returns a nonzero hash of a frame's length and leading bytes.
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
