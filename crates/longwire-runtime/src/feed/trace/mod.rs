//! A feed of capture files, uncompressed or compressed, concatenated or merged, at a configurable
//! pace.

mod config;
mod inputs;
mod output;

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use longwire_capture::Step;
use longwire_engine::Nanos;
use longwire_engine::replay::ReplaySchedule;
use longwire_io::port::offload::cut_tcp;
use longwire_io::{PortError, ReceiveResult};
use longwire_packet::alter::About;

use super::{Feed, FeedFrame, FeedStatus};
pub use config::{Moment, MomentError, TraceConfig};
use inputs::{Inputs, Next};
use output::Pieces;

/// Minimum frame length: an Ethernet header.
const FRAME_MIN: usize = 14;

/// Maximum length to which truncated frames are padded.
const FILLED_MAX: usize = 1 << 19;

/// Maximum number of records examined per call. A filter may reject all of them, and the caller
/// must be able to stop.
const LOOKS_MAX: usize = 1 << 18;

/// A timestamp this far past the end of the window ends the trace. Captures are out of order by
/// less.
const DISORDER_MAX: Nanos = Nanos::from_secs(1);

/// Counts for the status and the limits.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// Frames sent in all rounds.
    sent: u64,
    /// Frames sent in this round: in total, and from the current trace.
    in_round: u64,
    in_trace: u64,
    filtered: u64,
    outside: u64,
    truncated: u64,
    too_short: u64,
    /// Whether reading a trace failed.
    failed: bool,
}

/// Whether to send a record.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RecordChoice {
    Yes,
    No,
    /// Skip this record and all later ones.
    NoMore,
}

/// A feed that reads traces.
pub struct TraceFeed {
    config: TraceConfig,
    inputs: Inputs,
    schedule: ReplaySchedule,
    alters: bool,
    /// Frames from one record that exceeded the previous call's limit.
    pieces: Pieces,
    /// Whether the current record is selected but not yet returned.
    held: bool,
    over: bool,
    round: u64,
    /// Due time of this round's first frame.
    round_began: Option<Nanos>,
    counts: Counts,
}

impl TraceFeed {
    /// Opens the traces and starts reading ahead.
    ///
    /// # Errors
    /// A trace cannot be read or is not a capture; the number of rounds is zero; or it is more than
    /// one for an input that cannot be rewound.
    pub fn open(mut config: TraceConfig) -> Result<TraceFeed, PortError> {
        config.alterations.segment_with(cut_tcp);
        if config.rounds == Some(0) {
            return Err(PortError::Unsupported {
                port: config.traces.join(", "),
                reason: "cannot be sent 0 times; give at least 1".into(),
            });
        }
        let repeated = config.rounds != Some(1);
        let inputs = Inputs::open(&config, repeated)?;
        Ok(TraceFeed {
            inputs,
            schedule: ReplaySchedule::new(config.pace, config.gap_cap),
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

    /// Returns the timestamp of the first frame to be returned; `None` without a frame, or if
    /// `stop` is set first. Blocks on a slow pipe. Call before the first [`Feed::feed`].
    ///
    /// # Errors
    /// The trace cannot be read up to that frame.
    pub fn first_stamp(&mut self, stop: &AtomicBool) -> Result<Option<Nanos>, PortError> {
        while !self.held && !self.over && !stop.load(Ordering::Relaxed) {
            match self.select(LOOKS_MAX)? {
                Step::Frame => self.held = true,
                Step::Later => self.inputs.wait(),
                Step::End => self.over = true,
            }
        }
        let record = self.inputs.record().filter(|_| self.held);
        Ok(record.map(|record| record.stamp))
    }

    /// Advances to the next selected frame. Examines at most `looks` records.
    #[inline]
    fn select(&mut self, looks: usize) -> Result<Step, PortError> {
        for _ in 0..looks {
            match self.inputs.advance()? {
                Next::Frame => match self.judge() {
                    RecordChoice::Yes => return Ok(Step::Frame),
                    RecordChoice::No => {}
                    RecordChoice::NoMore => self.inputs.pass_over(),
                },
                Next::Later => return Ok(Step::Later),
                Next::Another => {
                    if self.counts.in_trace > 0 {
                        self.schedule.next_round(None);
                    }
                    self.counts.in_trace = 0;
                }
                Next::End => {
                    if !self.begin_round()? {
                        return Ok(Step::End);
                    }
                }
            }
        }
        // None of these records was selected, but more follow.
        self.inputs.ring();
        Ok(Step::Later)
    }

    /// Decides whether to send the current record.
    #[inline]
    fn judge(&mut self) -> RecordChoice {
        if self.config.from.is_some() || self.config.until.is_some() {
            let choice = self.window();
            if choice != RecordChoice::Yes {
                self.counts.outside += 1;
                return choice;
            }
        }
        let Some(record) = self.inputs.record() else {
            return RecordChoice::No;
        };
        if record.bytes.len() < FRAME_MIN {
            self.counts.too_short += 1;
            return RecordChoice::No;
        }
        if let Some(filter) = &self.config.filter
            && !filter.matches(record.bytes, record.wire_len)
        {
            self.counts.filtered += 1;
            return RecordChoice::No;
        }
        self.counts.truncated +=
            u64::from((record.bytes.len() as u64) < u64::from(record.wire_len));
        RecordChoice::Yes
    }

    /// Decides whether the current record is between `from` and `until`.
    fn window(&mut self) -> RecordChoice {
        let first = self.inputs.first();
        let stamp = self.inputs.record().map_or(first, |record| record.stamp);
        let from = self.config.from.map(|from| from.stamp(first));
        match self.config.until.map(|until| until.stamp(first)) {
            _ if from.is_some_and(|from| stamp < from) => RecordChoice::No,
            Some(until) if stamp >= until.saturating_add(DISORDER_MAX) => RecordChoice::NoMore,
            Some(until) if stamp >= until => RecordChoice::No,
            _ => RecordChoice::Yes,
        }
    }

    /// Rewinds the traces. Returns `false` after the last round.
    fn begin_round(&mut self) -> Result<bool, PortError> {
        let next = self.round + 1;
        // A trace without matching frames would repeat forever.
        let wanted = self.config.rounds.is_none_or(|rounds| next < rounds);
        self.round = next;
        if !wanted || self.counts.in_round == 0 {
            return Ok(false);
        }
        self.schedule.next_round(self.config.round_gap);
        self.inputs.rewind()?;
        self.config.alterations.next_round();
        self.round_began = None;
        (self.counts.in_round, self.counts.in_trace) = (0, 0);
        Ok(true)
    }

    /// Passes the current record's frames to `take` and returns their number.
    #[inline]
    fn hand_out(&mut self, room: usize, take: &mut dyn FnMut(FeedFrame<'_>)) -> usize {
        let Some(record) = self.inputs.record() else {
            return 0;
        };
        let output = match &mut self.config.splitter {
            None if self.config.apart => self.inputs.current(),
            None => 0,
            Some(splitter) => splitter.side(record.bytes),
        };
        let number = self.counts.in_round;
        self.counts.sent += 1;
        self.counts.in_round += 1;
        self.counts.in_trace += 1;
        if !self.alters {
            take(FeedFrame {
                bytes: record.bytes,
                wire_len: record.wire_len,
                due: self.schedule.due(record.stamp, record.wire_len),
                output,
            });
            return 1;
        }
        // A frame's due time depends only on earlier frames.
        let due = self.schedule.clone().due(record.stamp, record.wire_len);
        let began = *self.round_began.get_or_insert(due);
        let about = About {
            round: self.round,
            into_round: due.saturating_sub(began),
            number,
        };
        let (schedule, pieces) = (&mut self.schedule, &mut self.pieces);
        let mut handed_out = 0;
        let mut hand_out = |bytes: &[u8], wire_len: u32| {
            let fed = FeedFrame {
                bytes,
                wire_len,
                due: schedule.due(record.stamp, wire_len),
                output,
            };
            if handed_out < room {
                handed_out += 1;
                take(fed);
            } else {
                pieces.keep(fed);
            }
        };
        let alterations = &mut self.config.alterations;
        alterations.apply(record.bytes, record.wire_len, about, &mut hand_out);
        handed_out
    }

    fn read(
        &mut self,
        max: usize,
        take: &mut dyn FnMut(FeedFrame<'_>),
    ) -> Result<ReceiveResult, PortError> {
        let mut received = ReceiveResult {
            frames: self.pieces.hand_out(max, take),
            end: false,
        };
        while received.frames < max {
            let sent = self.counts.sent;
            self.over |= self.config.limit.is_some_and(|limit| sent >= limit);
            if self.over {
                self.held = false;
                received.end = true;
                break;
            }
            if !self.held {
                match self.select(LOOKS_MAX)? {
                    Step::Frame => {}
                    Step::Later => break,
                    Step::End => {
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
    fn feed(
        &mut self,
        max: usize,
        take: &mut dyn FnMut(FeedFrame<'_>),
    ) -> Result<ReceiveResult, PortError> {
        let result = self.read(max, take);
        if result.is_err() {
            // The first error ends the feed.
            (self.over, self.held) = (true, false);
            self.counts.failed = true;
        }
        result
    }

    fn outputs(&self) -> usize {
        match self.config.splitter {
            None if self.config.apart => self.config.traces.len(),
            None => 1,
            Some(_) => 2,
        }
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        self.inputs.readable()
    }

    fn is_paced(&self) -> bool {
        !self.schedule.is_top_speed()
    }

    fn frame_max(&self) -> usize {
        let captured = self.inputs.frame_max();
        if self.alters {
            captured.max(FILLED_MAX) + self.config.alterations.growth()
        } else {
            captured
        }
    }

    fn status(&self) -> FeedStatus {
        output::status(self)
    }
}
