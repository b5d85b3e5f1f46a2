//! The feeding stage: reads frames from a feed ahead of time, offers each to its link at its send
//! time, and puts delivered frames on their output's delay line.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};

use longwire_engine::Nanos;
use longwire_io::{Offload, PortError, RxFrame};

use super::BURST;
use super::admission::{Admission, AdmissionParts};
use super::output::FeedNumbers;
use crate::clock::monotonic_now;
use crate::counters::Artifact;
use crate::feed::{Feed, FeedFrame};
use crate::report::InputReport;
use crate::sync::locked;

/// Number of frames taken from a feed between readings of memory and clock.
const FRAMES_AHEAD: usize = 8 * BURST;

/// Minimum read-ahead if a link delays frames.
const LEAD: Nanos = Nanos::from_millis(50);

/// Polling interval for the feed's status.
const STATUS_EVERY: Nanos = Nanos::from_millis(100);

/// One of a feed's outputs.
pub(crate) struct FeedingOutput {
    admission: Admission,
    /// Whether the link adds no delay.
    transparent: bool,
    /// Length of the current pause in reading, if any. It ends once a quarter of the read-ahead has
    /// drained.
    paused: Option<Nanos>,
}

/// A feeding stage's published state.
#[derive(Debug, Default)]
pub(crate) struct FeedShared {
    pub report: Mutex<InputReport>,
    /// Start and end of long gaps that have been read but not yet passed.
    gaps: Mutex<VecDeque<(Nanos, Nanos)>>,
}

impl FeedShared {
    /// Returns the time until the next frame if `now` lies in a long gap.
    pub fn gap_left(&self, now: Nanos) -> Option<Nanos> {
        let mut gaps = locked(&self.gaps);
        while gaps.front().is_some_and(|(_, end)| *end <= now) {
            gaps.pop_front();
        }
        let (begin, end) = gaps.front()?;
        (*begin <= now).then(|| end.saturating_sub(now))
    }

    fn add_gap(&self, begin: Nanos, end: Nanos) {
        let mut gaps = locked(&self.gaps);
        if gaps.len() < GAPS_MAX {
            gaps.push_back((begin, end));
        }
    }
}

/// Minimum length of a gap that is announced.
const GAP_LONG: Nanos = Nanos::from_secs(10);

/// Maximum number of pending gaps. Further gaps are not announced.
const GAPS_MAX: usize = 1_024;

/// Result of a feeding stage's step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FeedStep {
    /// Frames were put on delay lines.
    Fed,
    /// No room until about this time.
    Full(Nanos),
    /// The input has no frame yet.
    Later,
    /// The input has ended.
    Ended,
}

/// A feed's stage.
pub(crate) struct FeedStage {
    feed: Box<dyn Feed>,
    outputs: Vec<FeedingOutput>,
    /// Number of the next frame, modulo 2^32.
    number: u32,
    /// The published value of `number`.
    pub numbers: Arc<FeedNumbers>,
    /// The replay's start.
    start: Nanos,
    /// Bytes of queued frames above which reading pauses.
    read_ahead: u64,
    /// Time of the last frame.
    latest: Nanos,
    /// Maximum lateness with which a frame was read.
    behind_max: Nanos,
    /// Whether the lines were full of due frames, in which case the port causes any lateness.
    port_is_late: bool,
    /// The published state.
    pub shared: Arc<FeedShared>,
    status_at: Nanos,
    ended: bool,
}

impl FeedStage {
    /// Returns a stage whose frame times count from `start`. Reading pauses while more than
    /// `read_ahead` bytes are queued for an output.
    pub fn new(
        feed: Box<dyn Feed>,
        outputs: Vec<FeedingOutput>,
        start: Nanos,
        read_ahead: u64,
    ) -> FeedStage {
        FeedStage {
            feed,
            outputs,
            number: 0,
            numbers: Arc::default(),
            start,
            read_ahead,
            latest: start,
            behind_max: Nanos::ZERO,
            port_is_late: false,
            shared: Arc::default(),
            status_at: Nanos::ZERO,
            ended: false,
        }
    }

    /// Returns a descriptor that becomes readable when a slow input has data.
    pub fn readable(&self) -> Option<BorrowedFd<'_>> {
        self.feed.readable()
    }

    /// Reads some frames if there is room.
    pub fn step(&mut self) -> Result<FeedStep, PortError> {
        if self.ended {
            return Ok(FeedStep::Ended);
        }
        let now = monotonic_now();
        if let Some(until) = self.full_until(now) {
            self.port_is_late |= self.latest < now;
            self.publish_status(now);
            return Ok(FeedStep::Full(until));
        }
        let (frames, end, error) = self.take(now);
        self.after_burst(now, end || error.is_some());
        match error {
            Some(error) => Err(error),
            None if end => Ok(FeedStep::Ended),
            None if frames < FRAMES_AHEAD => Ok(FeedStep::Later),
            None => Ok(FeedStep::Fed),
        }
    }

    /// Takes frames from the feed. Returns any error along with the frames before it.
    fn take(&mut self, now: Nanos) -> (usize, bool, Option<PortError>) {
        // Frames without times are never late, and neither are frames that were read late because
        // of a slow port.
        let judged = self.feed.is_paced() && !self.port_is_late;
        let mut frames = 0;
        let received = self.feed.feed(FRAMES_AHEAD, &mut |fed: FeedFrame<'_>| {
            let arrival = self.start.saturating_add(fed.due);
            if arrival.saturating_sub(self.latest) >= GAP_LONG {
                self.shared.add_gap(self.latest, arrival);
            }
            self.latest = arrival;
            frames += 1;
            if let Some(output) = self.outputs.get_mut(fed.output) {
                if arrival >= now {
                    self.port_is_late = false;
                } else if judged {
                    output.admission.shared.ingress.artifacts[Artifact::Behind].add(1);
                    self.behind_max = self.behind_max.max(now.saturating_sub(arrival));
                }
                output.admission.entry.tag = self.number;
                self.number = self.number.wrapping_add(1);
                output.admission.admit(RxFrame {
                    bytes: fed.bytes,
                    arrival,
                    offload: Offload::NONE,
                    wire_len: fed.wire_len,
                    lent: None,
                });
            }
        });
        match received {
            Ok(received) => (frames, received.end, None),
            Err(error) => (frames, true, Some(error)),
        }
    }

    fn after_burst(&mut self, now: Nanos, end: bool) {
        for output in &mut self.outputs {
            let admission = &mut output.admission;
            admission.publish();
            // Set this after publishing, because a thread that sees this time must see the frames.
            // Set it for all outputs, including those without new frames.
            let seen = if end { Nanos::MAX } else { self.latest };
            admission.shared.seen_until.set(seen);
            admission.publish_counts();
        }
        self.numbers.publish(self.number);
        if end {
            self.ended = true;
            self.status_at = Nanos::ZERO;
        }
        self.publish_status(now);
    }

    /// Returns the time at which reading may resume; `None` if it need not pause.
    fn full_until(&mut self, now: Nanos) -> Option<Nanos> {
        let ahead = self.latest.saturating_sub(now);
        let outputs = self.outputs.iter_mut();
        let pauses = outputs.filter_map(|output| output.pause(self.read_ahead, ahead));
        pauses.max().map(|pause| now.saturating_add(pause))
    }

    fn publish_status(&mut self, now: Nanos) {
        if now.saturating_sub(self.status_at) < STATUS_EVERY {
            return;
        }
        self.status_at = now;
        let status = self.feed.status();
        let mut report = InputReport {
            name: status.name,
            fraction: status.fraction,
            counts: BTreeMap::new(),
            behind_max_us: self.behind_max.as_micros_f64(),
            notes: status.notes,
        };
        for (name, count) in status.counts {
            *report.counts.entry(name).or_default() += count;
        }
        *locked(&self.shared.report) = report;
    }

    /// Publishes the last counts.
    pub fn finish(&mut self) {
        for output in &mut self.outputs {
            output.admission.finish();
        }
        self.status_at = Nanos::ZERO;
        self.publish_status(Nanos::MAX);
    }
}

/// Minimum pause in reading. Also the maximum for unpaced frames, because the port's speed is
/// unknown.
const PAUSE_MIN: Nanos = Nanos::from_micros(20);
const PAUSE_MAX: Nanos = Nanos::from_millis(2);

impl FeedingOutput {
    /// Returns an output. `transparent` states that the link adds no delay.
    pub fn new(parts: AdmissionParts, transparent: bool) -> FeedingOutput {
        FeedingOutput {
            admission: Admission::new(parts),
            transparent,
            paused: None,
        }
    }

    /// Returns how long reading must pause, if too many frames are queued. `ahead` is the current
    /// read-ahead. Frames delayed by a link do not count unless the memory budget is at risk.
    fn pause(&mut self, read_ahead: u64, ahead: Nanos) -> Option<Nanos> {
        let line = &self.admission.entry.line;
        let in_use = line.memory_in_use();
        let limit = match self.paused {
            None => read_ahead,
            Some(_) => read_ahead / 4 * 3,
        };
        let in_danger = in_use > line.memory_max() / 8 * 7;
        let enough = self.transparent || ahead > LEAD || in_danger;
        if in_use <= limit || !enough {
            self.paused = None;
            return None;
        }
        let pause = match self.paused {
            // A quarter of the read-ahead will have left by then.
            _ if ahead > PAUSE_MAX => Nanos::from_nanos(ahead.as_nanos() / 4),
            None => PAUSE_MIN,
            Some(last) => last.saturating_mul(2).min(PAUSE_MAX),
        };
        self.paused = Some(pause);
        Some(pause)
    }
}
