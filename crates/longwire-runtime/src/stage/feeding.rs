//! The feeding stage: takes frames from a feed ahead of their time, offers
//! each to its link as of its time, and puts what is delivered on the delay
//! line of its output.

use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, PoisonError};

use longwire_engine::models::mtu::Mtu;
use longwire_engine::{LinkId, Nanos};
use longwire_io::delay_line::DelayLineWriter;
use longwire_io::{Arrived, Offload, PortError};

use super::BURST;
use super::admission::{Admission, AdmissionParts};
use super::decider::Decider;
use crate::clock::monotonic_now;
use crate::counters::LinkShared;
use crate::feed::{Fed, Feed, FeedStatus};

/// Frames taken from a feed between two looks at memory and clock.
const FRAMES_AHEAD: usize = 8 * BURST;

/// Where a link holds frames back by its own delay, this much of the trace
/// beyond the present is always read.
const LEAD: Nanos = Nanos::from_millis(50);

/// How often a feed is asked how far it is.
const STATUS_EVERY: Nanos = Nanos::from_millis(100);

/// One output of a feed.
pub(crate) struct FeedingOutput {
    /// The link, if it decides at arrival.
    pub link: Option<Decider>,
    /// Its number.
    pub link_id: LinkId,
    /// Its MTU: frames that it fragments are cut before they are offered.
    pub mtu: Mtu,
    /// Where delivered frames wait.
    pub line: DelayLineWriter,
    pub shared: Arc<LinkShared>,
    /// Frames wait for nothing but their time: the link adds no delay.
    pub transparent: bool,
}

/// What a feeding stage shows to whoever reports.
#[derive(Debug, Default)]
pub(crate) struct FeedShared {
    pub status: Mutex<FeedStatus>,
    /// How long after it was due a frame was read, at the most.
    pub behind_max: Mutex<Nanos>,
}

/// What one step of a feeding stage came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FeedStep {
    /// Frames were put on delay lines.
    Fed,
    /// There is no room until about this time.
    Full(Nanos),
    /// The input has nothing for the moment.
    Later,
    /// Everything has been read.
    Ended,
}

/// The feeding stage of one feed.
pub(crate) struct Feeding {
    feed: Box<dyn Feed>,
    outputs: Vec<Output>,
    /// When the replay starts.
    start: Nanos,
    /// Bytes that frames may take before reading pauses.
    read_ahead: u64,
    /// The time of the last frame.
    latest: Nanos,
    /// How long after it was due a frame was read, at the most.
    behind_max: Nanos,
    /// The lines were full of frames that were due: the port is what is late.
    port_is_late: bool,
    shared: Arc<FeedShared>,
    status_at: Nanos,
    ended: bool,
}

struct Output {
    admission: Admission,
    transparent: bool,
    /// Reading pauses until a good part has drained; the last pause was so
    /// long.
    paused: Option<Nanos>,
}

impl Feeding {
    /// A stage whose frames count from `start`. Reading pauses while more
    /// than `read_ahead` bytes wait for an output.
    pub fn new(
        feed: Box<dyn Feed>,
        outputs: Vec<FeedingOutput>,
        start: Nanos,
        read_ahead: u64,
    ) -> Feeding {
        let outputs = outputs.into_iter().map(|output| Output {
            transparent: output.transparent,
            paused: None,
            admission: Admission::new(
                AdmissionParts {
                    link: output.link,
                    link_id: output.link_id,
                    mtu: output.mtu,
                    line: output.line,
                    keep_offload: false,
                    lend_from: None,
                },
                output.shared,
            ),
        });
        Feeding {
            feed,
            outputs: outputs.collect(),
            start,
            read_ahead,
            latest: start,
            behind_max: Nanos::ZERO,
            port_is_late: false,
            shared: Arc::new(FeedShared::default()),
            status_at: Nanos::ZERO,
            ended: false,
        }
    }

    /// What the stage shows.
    pub fn shared(&self) -> Arc<FeedShared> {
        Arc::clone(&self.shared)
    }

    /// Becomes readable when a slow input has more.
    pub fn readable(&self) -> Option<BorrowedFd<'_>> {
        self.feed.readable()
    }

    /// Reads some frames, if there is room for them.
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

    /// Takes frames from the feed. An error comes with the frames before it.
    fn take(&mut self, now: Nanos) -> (usize, bool, Option<PortError>) {
        let Feeding {
            feed,
            outputs,
            start,
            latest,
            behind_max,
            port_is_late,
            ..
        } = self;
        // Frames without times are never late, and those that wait for a slow
        // port are not read late.
        let judged = feed.is_paced() && !*port_is_late;
        let mut frames = 0;
        let received = feed.feed(FRAMES_AHEAD, &mut |fed: Fed<'_>| {
            let arrival = start.saturating_add(fed.due);
            *latest = arrival;
            frames += 1;
            if let Some(output) = outputs.get_mut(fed.output) {
                if arrival >= now {
                    *port_is_late = false;
                } else if judged {
                    output.admission.counts.behind += 1;
                    *behind_max = (*behind_max).max(now.saturating_sub(arrival));
                }
                output.admission.admit(Arrived {
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
            admission.line.publish();
            // After publishing: whoever sees this time must see the frames.
            // All outputs have seen what is due by then, also those that none
            // of these frames was for.
            let seen = if end { Nanos::MAX } else { self.latest };
            admission.shared.seen_until.set(seen);
            admission.publish_counts();
        }
        if end {
            self.ended = true;
            self.status_at = Nanos::ZERO;
        }
        self.publish_status(now);
    }

    /// Whether reading has to pause, and until about when.
    fn full_until(&mut self, now: Nanos) -> Option<Nanos> {
        let (read_ahead, ahead) = (self.read_ahead, self.latest.saturating_sub(now));
        let pauses = self
            .outputs
            .iter_mut()
            .filter_map(|output| output.pause(read_ahead, ahead));
        pauses.max().map(|pause| now.saturating_add(pause))
    }

    fn publish_status(&mut self, now: Nanos) {
        if now.saturating_sub(self.status_at) < STATUS_EVERY {
            return;
        }
        self.status_at = now;
        let status = self.feed.status();
        *self
            .shared
            .status
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = status;
        *self
            .shared
            .behind_max
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = self.behind_max;
    }

    /// Publishes the last counts.
    pub fn finish(&mut self) {
        for output in &mut self.outputs {
            output.admission.finish();
            output.admission.publish_counts();
        }
        self.status_at = Nanos::ZERO;
        self.publish_status(Nanos::MAX);
    }
}

/// What a pause of reading lasts at the least, and at the most where frames
/// are not waited for by time: then the port's speed is to be found out.
const PAUSE_MIN: Nanos = Nanos::from_micros(20);
const PAUSE_MAX: Nanos = Nanos::from_millis(2);

impl Output {
    /// How long reading has to pause, if much waits; `ahead` is how far into
    /// the future was read. What a link's own delay holds back does not
    /// count, as long as the memory's budget is not in danger.
    fn pause(&mut self, read_ahead: u64, ahead: Nanos) -> Option<Nanos> {
        let line = &self.admission.line;
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
            // A quarter of what was read ahead has left by then.
            _ if ahead > PAUSE_MAX => Nanos::from_nanos(ahead.as_nanos() / 4),
            None => PAUSE_MIN,
            Some(last) => last.saturating_mul(2).min(PAUSE_MAX),
        };
        self.paused = Some(pause);
        Some(pause)
    }
}
