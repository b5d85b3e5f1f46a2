//! The replay schedule: due times for a trace's frames.
//!
//! A [`ReplaySchedule`] receives each frame's timestamp and length, in trace order, and returns its
//! due time relative to the start of the replay. Due times are computed from the start, not from
//! the previous frame, so rounding errors do not accumulate.

use longwire_units::{BitRate, Nanos, PacketRate, Speed};

use crate::models::framing::Framing;
use crate::models::rate::Serializer;

/// Replay pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// The trace's timestamps, scaled by a speed factor.
    Trace(Speed),
    /// A saturated wire: each frame is due when its predecessor's last bit has departed.
    Bits {
        /// Wire rate.
        rate: BitRate,
        /// Framing added to each frame.
        framing: Framing,
    },
    /// A fixed frame rate, evenly spaced.
    Packets(PacketRate),
    /// As fast as the port accepts frames.
    TopSpeed,
}

impl Default for Pace {
    /// Original pace.
    fn default() -> Pace {
        Pace::Trace(Speed::UNCHANGED)
    }
}

/// Gap between rounds of a zero-duration trace.
const ROUND_GAP: Nanos = Nanos::from_millis(1);

/// Computes each frame's due time, relative to the start of the replay.
///
/// Due times never decrease: a frame timestamped earlier than its predecessor is due together with
/// it, and counted.
#[derive(Clone, Debug)]
pub struct ReplaySchedule {
    pace: Pace,
    /// The wire of [`Pace::Bits`].
    wire: Serializer,
    /// Maximum gap in the trace; longer ones are clamped.
    gap_cap: Nanos,
    round: Round,
    /// Start of the current round, relative to the start of the replay.
    base: Nanos,
    /// Due time of the last frame.
    last: Nanos,
    frames: u64,
    set_back: u64,
}

/// One round of the trace.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// Timestamp at the round's origin.
    origin: Option<Nanos>,
    /// Latest timestamp.
    latest: Nanos,
    /// Total time removed by clamping gaps.
    cut: Nanos,
    frames: u64,
}

impl ReplaySchedule {
    /// Creates a schedule. Gaps above `gap_cap`, in trace time, are clamped to it.
    pub fn new(pace: Pace, gap_cap: Option<Nanos>) -> ReplaySchedule {
        ReplaySchedule {
            pace,
            wire: match pace {
                Pace::Bits { rate, framing } => Serializer::new(Some(rate), framing),
                _ => Serializer::new(None, Framing::NONE),
            },
            gap_cap: gap_cap.unwrap_or(Nanos::MAX),
            round: Round::default(),
            base: Nanos::ZERO,
            last: Nanos::ZERO,
            frames: 0,
            set_back: 0,
        }
    }

    /// Returns the next frame's due time.
    #[inline]
    pub fn due(&mut self, stamp: Nanos, wire_len: u32) -> Nanos {
        let due = match self.pace {
            Pace::Trace(speed) => {
                let position = self.position(stamp);
                self.base.saturating_add(speed.pass(position))
            }
            Pace::Bits { .. } => {
                // Due when the wire becomes free; the frame then occupies it.
                let due = self.wire.free_at();
                self.wire.depart(Nanos::ZERO, wire_len);
                due
            }
            Pace::Packets(rate) => rate.due(self.frames),
            Pace::TopSpeed => Nanos::ZERO,
        };
        self.frames += 1;
        self.last = due;
        due
    }

    /// Returns a timestamp's position in the round, with gaps clamped.
    #[inline]
    fn position(&mut self, stamp: Nanos) -> Nanos {
        let round = &mut self.round;
        round.frames += 1;
        if round.origin.is_none() {
            round.latest = stamp;
        }
        let origin = *round.origin.get_or_insert(stamp);
        if stamp < round.latest {
            self.set_back += 1;
        } else {
            let gap = stamp.saturating_sub(round.latest);
            let cut = gap.saturating_sub(self.gap_cap);
            round.cut = round.cut.saturating_add(cut);
            round.latest = stamp;
        }
        let elapsed = round.latest.saturating_sub(origin);
        elapsed.saturating_sub(round.cut)
    }

    /// Starts the next round, with the same trace or another. Its first frame is due `gap` after
    /// the last one; the default is the trace's mean gap.
    pub fn next_round(&mut self, gap: Option<Nanos>) {
        // A new round restarts only timestamps; rates continue.
        if let Pace::Trace(speed) = self.pace {
            let gap = gap.unwrap_or_else(|| speed.pass(self.mean_gap()));
            self.base = self.last.saturating_add(gap);
        }
        self.round = Round::default();
    }

    fn mean_gap(&self) -> Nanos {
        let Round {
            origin,
            latest,
            cut,
            frames,
        } = self.round;
        let duration = latest
            .saturating_sub(origin.unwrap_or(latest))
            .saturating_sub(cut);
        match frames {
            _ if duration == Nanos::ZERO => ROUND_GAP,
            frames => Nanos::from_nanos(duration.as_nanos() / frames.saturating_sub(1).max(1)),
        }
    }

    /// Returns the number of frames timestamped earlier than their predecessor.
    pub fn set_back(&self) -> u64 {
        self.set_back
    }

    /// Returns the number of scheduled frames.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Whether frames have no due times.
    pub fn is_top_speed(&self) -> bool {
        self.pace == Pace::TopSpeed
    }
}
