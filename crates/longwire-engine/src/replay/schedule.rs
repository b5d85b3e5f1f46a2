//! When each frame of a trace is due.

use super::Pace;
use crate::models::rate::Serializer;
use crate::units::{Nanos, PacketRate, Speed};

/// The distance between two rounds of a trace that has no duration of its own
/// to take one from.
const ROUND_GAP: Nanos = Nanos::from_millis(1);

/// When each frame of a trace is due, after the start of the replay.
///
/// Times never decrease: a frame whose stamp lies before an earlier frame's is
/// due together with it, and counted.
#[derive(Clone, Debug)]
pub struct Schedule {
    clock: Clock,
    /// Longer gaps of the trace are cut to this.
    gap_cap: Nanos,
    round: Round,
    /// When this round of the trace began, after the start of the replay.
    base: Nanos,
    /// When the last frame was due.
    last: Nanos,
    frames: u64,
    set_back: u64,
}

/// What tells the time.
#[derive(Clone, Debug)]
enum Clock {
    Trace(Speed),
    Wire(Serializer),
    Packets(PacketRate),
    TopSpeed,
}

/// One round of the trace.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// The stamp that the times count from.
    origin: Option<Nanos>,
    /// The latest stamp so far.
    latest: Nanos,
    /// Time that was cut out of gaps.
    cut: Nanos,
    frames: u64,
}

impl Schedule {
    /// A schedule at this pace. Gaps of the trace longer than `gap_cap` are
    /// cut to it, in the trace's time.
    pub fn new(pace: Pace, gap_cap: Option<Nanos>) -> Schedule {
        Schedule {
            clock: match pace {
                Pace::Trace(speed) => Clock::Trace(speed),
                Pace::Bits { rate, framing } => Clock::Wire(Serializer::new(Some(rate), framing)),
                Pace::Packets(rate) => Clock::Packets(rate),
                Pace::TopSpeed => Clock::TopSpeed,
            },
            gap_cap: gap_cap.unwrap_or(Nanos::MAX),
            round: Round::default(),
            base: Nanos::ZERO,
            last: Nanos::ZERO,
            frames: 0,
            set_back: 0,
        }
    }

    /// Counts the first round's times from this stamp, where several traces
    /// share one time base; else they count from the first frame's.
    pub fn count_from(&mut self, origin: Nanos) {
        self.round.origin = Some(origin);
        self.round.latest = origin;
    }

    /// When the next frame of the trace is due.
    #[inline]
    pub fn due(&mut self, stamp: Nanos, wire_len: u32) -> Nanos {
        let due = match &mut self.clock {
            Clock::Trace(speed) => {
                let speed = *speed;
                let position = self.position(stamp);
                self.base.saturating_add(speed.pass(position))
            }
            Clock::Wire(wire) => {
                // It is due when the wire is free, and keeps it busy.
                let due = self.last;
                self.last = wire.depart(Nanos::ZERO, wire_len);
                self.frames += 1;
                return due;
            }
            Clock::Packets(rate) => rate.due(self.frames),
            Clock::TopSpeed => Nanos::ZERO,
        };
        self.frames += 1;
        self.last = due;
        due
    }

    /// How far into this round of the trace a stamp lies, gaps cut.
    #[inline]
    fn position(&mut self, stamp: Nanos) -> Nanos {
        let round = &mut self.round;
        round.frames += 1;
        let origin = match round.origin {
            Some(origin) => origin,
            None => {
                round.origin = Some(stamp);
                round.latest = stamp;
                stamp
            }
        };
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

    /// The trace begins again, or another one follows it: its first frame is
    /// due `gap` after the last one, or by default the trace's mean gap.
    pub fn next_round(&mut self, gap: Option<Nanos>) {
        if let Clock::Trace(speed) = self.clock {
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
            frames => Nanos::from_nanos(duration.as_nanos() / (frames - 1).max(1)),
        }
    }

    /// Frames whose stamps lay before an earlier frame's.
    pub fn set_back(&self) -> u64 {
        self.set_back
    }

    /// Frames that were given a time.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Whether frames have no times of their own.
    pub fn is_top_speed(&self) -> bool {
        matches!(self.clock, Clock::TopSpeed)
    }
}
