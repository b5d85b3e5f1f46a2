//! A feed that reads traces: capture files, plain or packed, one behind the
//! other or merged, at the pace that is asked for.

mod common;
mod config;
mod inputs;
mod moment;
mod output;
mod steps;

use std::os::fd::BorrowedFd;

use longwire_engine::Nanos;
use longwire_engine::replay::ReplaySchedule;
use longwire_io::{PortError, Received};
use longwire_packet::alter::About;

use super::{Fed, Feed, FeedStatus};
use common::Member;
pub use common::in_one_time_base;
pub use config::TraceConfig;
use inputs::{Inputs, Next};
pub use moment::{Moment, MomentError};
use output::Pieces;
use steps::{Begun, Selected, Wanted};

/// Frames without a whole Ethernet header cannot be sent.
const FRAME_MIN: usize = 14;

/// The longest frame that filling up may make of a truncated one.
const FILLED_MAX: usize = 1 << 19;

/// Records that are looked at in one call. A filter may leave all of them
/// out, and whoever asks wants to be able to stop.
const LOOKS_MAX: usize = 1 << 18;

/// Frames this much later than the end of what is wanted are the end: clocks
/// of captures go back by less.
const DISORDER_MAX: Nanos = Nanos::from_secs(1);

/// What was left out or is worth knowing.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// Frames of the trace that were sent, in all rounds.
    sent: u64,
    /// The same, of this round, and of this trace in it.
    in_round: u64,
    in_trace: u64,
    filtered: u64,
    outside: u64,
    truncated: u64,
    too_short: u64,
    /// It could not be read to its end.
    failed: bool,
}

/// Reads traces.
pub struct TraceFeed {
    config: TraceConfig,
    inputs: Inputs,
    schedule: ReplaySchedule,
    /// Its part in rounds that it begins together with other feeds.
    member: Option<Member>,
    alters: bool,
    /// Frames of one record that found no room in the call before.
    pieces: Pieces,
    /// The current record has been selected, and not been handed out.
    held: bool,
    over: bool,
    round: u64,
    /// When the first frame of this round was due.
    round_began: Option<Nanos>,
    counts: Counts,
}

impl TraceFeed {
    /// Opens the traces and begins to read ahead.
    ///
    /// # Errors
    /// When one cannot be read or does not begin as a capture; for no rounds
    /// at all, and for several of what can be read only once.
    pub fn open(config: TraceConfig) -> Result<TraceFeed, PortError> {
        if config.rounds == Some(0) {
            return Err(PortError::Unsupported {
                port: config.traces.join(", "),
                reason: "to be sent no times at all; give at least 1".into(),
            });
        }
        let repeated = config.rounds != Some(1);
        let inputs = Inputs::open(&config.traces, config.merge, repeated)?;
        Ok(TraceFeed {
            inputs,
            schedule: ReplaySchedule::new(config.pace, config.gap_cap),
            member: None,
            alters: !config.alterations.is_nothing(),
            pieces: Pieces::default(),
            held: false,
            over: config.limit == Some(0),
            round: 0,
            round_began: None,
            counts: Counts::default(),
            config,
        })
    }

    /// Times count from this stamp, where several feeds share one time base.
    pub fn count_from(&mut self, origin: Nanos) {
        self.schedule.count_from(origin);
    }

    /// Rounds begin together with other feeds'. Those of a rate just follow
    /// each other.
    fn begin_rounds_with(&mut self, member: Member) {
        let shares = self.config.rounds != Some(1) && self.schedule.is_by_stamps();
        self.member = Some(member).filter(|_| shares && !self.over);
    }

    /// The stamp of the first frame that will be handed out; `None` where
    /// there is no such frame. Waits for a slow pipe. To be asked before the
    /// first [`Feed::feed`].
    ///
    /// # Errors
    /// When the trace cannot be read as far.
    pub fn first_stamp(&mut self) -> Result<Option<Nanos>, PortError> {
        while !self.held && !self.over {
            match self.select(usize::MAX)? {
                Selected::Frame => self.held = true,
                Selected::Nothing => self.inputs.wait(),
                Selected::End => self.over = true,
            }
        }
        let record = self.inputs.record().filter(|_| self.held);
        Ok(record.map(|record| record.stamp))
    }

    /// Moves on to the next frame that is wanted, looking at up to `looks`.
    #[inline]
    fn select(&mut self, looks: usize) -> Result<Selected, PortError> {
        for _ in 0..looks {
            match self.inputs.advance()? {
                Next::Frame => match self.judge() {
                    Wanted::Yes => return Ok(Selected::Frame),
                    Wanted::No => {}
                    Wanted::NoMore => self.inputs.pass_over(),
                },
                Next::Later => return Ok(Selected::Nothing),
                Next::Another => {
                    if self.counts.in_trace > 0 {
                        self.schedule.next_round(None);
                    }
                    self.counts.in_trace = 0;
                }
                Next::End => match self.begin_round()? {
                    Begun::Yes => {}
                    Begun::Later => return Ok(Selected::Nothing),
                    Begun::Never => return Ok(Selected::End),
                },
            }
        }
        // There is more, although none of these was wanted.
        self.inputs.ring();
        Ok(Selected::Nothing)
    }

    /// Whether the record at hand is to be sent.
    #[inline]
    fn judge(&mut self) -> Wanted {
        if self.config.from.is_some() || self.config.until.is_some() {
            match self.window() {
                Wanted::Yes => {}
                other => {
                    self.counts.outside += 1;
                    return other;
                }
            }
        }
        let Some(record) = self.inputs.record() else {
            return Wanted::No;
        };
        if record.bytes.len() < FRAME_MIN {
            self.counts.too_short += 1;
            return Wanted::No;
        }
        if let Some(filter) = &self.config.filter
            && !filter.matches(record.bytes, record.wire_len)
        {
            self.counts.filtered += 1;
            return Wanted::No;
        }
        self.counts.truncated +=
            u64::from((record.bytes.len() as u64) < u64::from(record.wire_len));
        Wanted::Yes
    }

    /// Whether the record at hand lies between `from` and `until`.
    fn window(&mut self) -> Wanted {
        let first = self.inputs.first();
        let stamp = self.inputs.record().map_or(first, |record| record.stamp);
        if self
            .config
            .from
            .is_some_and(|from| stamp < from.stamp(first))
        {
            return Wanted::No;
        }
        match self.config.until.map(|until| until.stamp(first)) {
            Some(until) if stamp >= until.saturating_add(DISORDER_MAX) => Wanted::NoMore,
            Some(until) if stamp >= until => Wanted::No,
            _ => Wanted::Yes,
        }
    }

    /// Begins the traces again, if they are to be sent again.
    fn begin_round(&mut self) -> Result<Begun, PortError> {
        let next = self.round + 1;
        // What gave nothing once gives nothing for ever.
        let wanted = self.config.rounds.is_none_or(|rounds| next < rounds);
        if !wanted || self.counts.in_round == 0 {
            self.round = next;
            return Ok(Begun::Never);
        }
        let gap = self.config.round_gap;
        match &mut self.member {
            None => self.schedule.next_round(gap),
            Some(member) => match member.end_round(self.schedule.round_end(gap)) {
                Some(begins) => self.schedule.begin_round(begins),
                None => return Ok(Begun::Later),
            },
        }
        self.inputs.again()?;
        self.round = next;
        self.config.alterations.next_round();
        self.round_began = None;
        (self.counts.in_round, self.counts.in_trace) = (0, 0);
        Ok(Begun::Yes)
    }

    /// Nothing comes any more.
    fn end(&mut self) {
        (self.over, self.held) = (true, false);
        if let Some(member) = self.member.take() {
            member.leave(self.schedule.round_end(self.config.round_gap));
        }
    }

    /// Hands out the record at hand; returns how many frames it became.
    #[inline]
    fn hand_out(&mut self, room: usize, take: &mut dyn FnMut(Fed<'_>)) -> usize {
        let Some(record) = self.inputs.record() else {
            return 0;
        };
        let output = match &mut self.config.splitter {
            None => 0,
            Some(splitter) => splitter.side(record.bytes),
        };
        let number = self.counts.in_round;
        self.counts.sent += 1;
        self.counts.in_round += 1;
        self.counts.in_trace += 1;
        if !self.alters {
            let due = self.schedule.due(record.stamp, record.wire_len);
            take(Fed {
                bytes: record.bytes,
                wire_len: record.wire_len,
                due,
                output,
            });
            return 1;
        }
        // When a frame is due depends on those before it, not on itself.
        let due = self.schedule.clone().due(record.stamp, record.wire_len);
        let began = *self.round_began.get_or_insert(due);
        let about = About {
            round: self.round,
            into_round: due.saturating_sub(began),
            number,
        };
        let (schedule, pieces) = (&mut self.schedule, &mut self.pieces);
        let mut handed_out = 0;
        let alterations = &mut self.config.alterations;
        alterations.apply(
            record.bytes,
            record.wire_len,
            about,
            &mut |bytes, wire_len| {
                let due = schedule.due(record.stamp, wire_len);
                let fed = Fed {
                    bytes,
                    wire_len,
                    due,
                    output,
                };
                if handed_out < room {
                    handed_out += 1;
                    take(fed);
                } else {
                    pieces.keep(fed);
                }
            },
        );
        handed_out
    }

    fn read(&mut self, max: usize, take: &mut dyn FnMut(Fed<'_>)) -> Result<Received, PortError> {
        let mut received = Received {
            frames: self.pieces.hand_out(max, take),
            end: false,
        };
        while received.frames < max {
            let sent = self.counts.sent;
            self.over |= self.config.limit.is_some_and(|limit| sent >= limit);
            if self.over {
                self.end();
                received.end = true;
                break;
            }
            if !self.held {
                match self.select(LOOKS_MAX)? {
                    Selected::Frame => {}
                    Selected::Nothing => break,
                    Selected::End => {
                        self.over = true;
                        continue;
                    }
                }
            }
            self.held = false;
            received.frames += self.hand_out(max - received.frames, take);
        }
        Ok(received)
    }
}

impl Feed for TraceFeed {
    fn feed(&mut self, max: usize, take: &mut dyn FnMut(Fed<'_>)) -> Result<Received, PortError> {
        let result = self.read(max, take);
        if result.is_err() {
            // One error is enough, and nothing comes after it.
            self.end();
            self.counts.failed = true;
        }
        result
    }

    fn outputs(&self) -> usize {
        match self.config.splitter {
            None => 1,
            Some(_) => 2,
        }
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        if let Some(member) = &self.member {
            // What was read of the next round meanwhile is no reason to wake.
            if member.must_wait() {
                return None;
            }
            if member.may_go_on() {
                self.inputs.ring();
            }
        }
        self.inputs.readable()
    }

    fn is_paced(&self) -> bool {
        !self.schedule.is_top_speed()
    }

    fn frame_max(&self) -> usize {
        let captured = self.inputs.frame_max();
        match self.alters {
            false => captured,
            true => captured.max(FILLED_MAX) + self.config.alterations.growth(),
        }
    }

    fn status(&self) -> FeedStatus {
        output::status(self)
    }
}
