//! The frames of an egress stage until their release, and the link that decides there.

use longwire_engine::{Delivery, FrameAccess, FrameMeta, LinkId, Nanos, ReleaseQueue};
use longwire_io::delay_line::{DelayLineReader, Descriptor};

use super::account::Account;
use super::lane::{LaneFrames, LaneParts, RunLane};
use crate::fabric::{Frame, Frames};

/// Frames in order of release.
pub(super) enum Releases {
    /// The line, whose releases never decrease.
    OnLine(DelayLineReader),
    /// A queue of frames taken off the line.
    Sorted(Box<SortedFrames>),
}

/// Frames taken off their line.
pub(super) struct SortedFrames {
    frames: Frames,
    queue: ReleaseQueue<Frame>,
    lane: Option<EgressLane>,
}

/// A link that decides in the egress stage. Its frames arrive on the line undecided, with
/// their arrivals.
struct EgressLane {
    lane: RunLane<Frame>,
    /// Maximum decision delay.
    slack: Nanos,
}

/// The frames of an [`EgressLane`].
struct EgressFrames<'a> {
    frames: &'a mut Frames,
    released: &'a mut ReleaseQueue<Frame>,
    account: &'a mut Account,
    link: LinkId,
}

/// The only line of the stage.
const LINE: u16 = 0;

/// Maximum decision delay. Frames that the kernel holds longer count as having arrived
/// later.
const SLACK_MAX: Nanos = Nanos::from_micros(200);

impl Releases {
    /// Returns the frames of a line; `in_order`: its releases never decrease. `link`
    /// decides undecided frames.
    pub fn new(line: DelayLineReader, in_order: bool, link: Option<LaneParts>) -> Releases {
        if in_order && link.is_none() {
            return Releases::OnLine(line);
        }
        let lane = link.map(|parts| EgressLane {
            slack: parts.link.poll_slack().min(SLACK_MAX),
            lane: RunLane::new(parts),
        });
        Releases::Sorted(Box::new(SortedFrames {
            frames: Frames::new(vec![line]),
            queue: ReleaseQueue::new(),
            lane,
        }))
    }

    /// Sorts published frames, as the link decides by `now`: afterwards
    /// [`Releases::front`] is the next departure.
    #[inline]
    pub fn prepare(&mut self, now: Nanos, account: &mut Account) {
        if let Releases::Sorted(sorted) = self {
            sorted.prepare(now, account);
        }
    }

    /// Returns the frame with the first release.
    #[inline(always)]
    pub fn front(&mut self) -> Option<(Descriptor, &[u8])> {
        match self {
            Releases::OnLine(line) => {
                let next = line.front()?;
                Some((next, line.front_bytes()))
            }
            Releases::Sorted(sorted) => {
                let (release, frame) = sorted.queue.peek()?;
                let record = sorted.frames.descriptor(frame);
                let bytes = sorted.frames.bytes(frame);
                Some((Descriptor { release, ..record }, bytes))
            }
        }
    }

    /// Removes the frame that [`Releases::front`] returned.
    #[inline(always)]
    pub fn advance(&mut self) {
        match self {
            Releases::OnLine(line) => line.advance(),
            Releases::Sorted(sorted) => {
                if let Some((_, _, frame)) = sorted.queue.pop_due(Nanos::MAX) {
                    sorted.frames.free(frame);
                }
            }
        }
    }

    /// Returns the time of the next decision or release, including those of frames that
    /// are not sorted yet.
    #[inline]
    pub fn next_at(&mut self) -> Option<Nanos> {
        match self {
            Releases::OnLine(line) => Some(line.front()?.release),
            Releases::Sorted(sorted) => sorted.next_at(),
        }
    }

    /// Returns the first release after `time` among the next `look` frames, if the line
    /// is in order.
    pub fn release_beyond(&mut self, time: Nanos, look: u64) -> Option<Nanos> {
        match self {
            Releases::OnLine(line) => line.release_beyond(time, look),
            Releases::Sorted(_) => None,
        }
    }

    /// Returns freed memory to the writer.
    #[inline]
    pub fn settle(&mut self) {
        match self {
            Releases::OnLine(line) => line.settle(),
            Releases::Sorted(sorted) => sorted.frames.settle(),
        }
    }

    /// Publishes the accounts of a link that decides here, and frees what it dropped.
    #[inline]
    pub fn publish(&mut self) {
        if let Releases::Sorted(sorted) = self
            && let Some(lane) = &mut sorted.lane
        {
            lane.lane.publish();
            sorted.frames.settle();
        }
    }

    /// Ends the recording.
    pub fn finish(&mut self) {
        if let Releases::Sorted(sorted) = self
            && let Some(lane) = &mut sorted.lane
        {
            lane.lane.finish();
        }
    }
}

impl SortedFrames {
    fn prepare(&mut self, now: Nanos, account: &mut Account) {
        let SortedFrames {
            frames,
            queue,
            lane,
        } = self;
        if let Some(lane) = lane {
            return lane.prepare(now, frames, queue, account);
        }
        while let Some(frame) = frames.take_released(LINE) {
            let release = frames.descriptor(&frame).release;
            queue.push(LinkId(0), release, frame);
        }
    }

    fn next_at(&mut self) -> Option<Nanos> {
        let published = self.frames.line(LINE.into()).front();
        let published = published.map(|next| next.release);
        let decision = self.lane.as_mut().and_then(EgressLane::next_at);
        let times = [published, self.queue.next_at(), decision];
        times.into_iter().flatten().min()
    }
}

impl EgressLane {
    /// Takes in all frames on the line and makes the decisions due by `now`.
    ///
    /// If the queue has already decided beyond a frame's arrival, the link moves the
    /// arrival, and the frame is late by the difference.
    fn prepare(
        &mut self,
        now: Nanos,
        frames: &mut Frames,
        released: &mut ReleaseQueue<Frame>,
        account: &mut Account,
    ) {
        // Read before the line is drained: frames that arrived by then are on it.
        let now = now.min(account.shared.seen_until.get());
        let link = self.lane.id();
        let mut host = EgressFrames {
            frames,
            released,
            account,
            link,
        };
        while let Some(frame) = host.frames.take(LINE) {
            let meta = host.meta(&frame);
            self.lane.offer(meta, frame, &mut host);
            let last = self.lane.link().last_arrival();
            let moved = last.saturating_sub(meta.arrival);
            let account = &mut host.account;
            if moved > account.judge.tolerance {
                let (cause, _) = account.judge.cause(meta.arrival, moved);
                if let Some(artifact) = cause.artifact() {
                    account.cells().artifacts[artifact].add(1);
                }
            }
        }
        let until = match now {
            Nanos::MAX => Nanos::MAX,
            now => now.saturating_sub(self.slack),
        };
        self.lane.decide(until, &mut host);
    }

    fn next_at(&mut self) -> Option<Nanos> {
        let decision = self.lane.next_at()?;
        Some(decision.saturating_add(self.slack))
    }
}

impl FrameAccess<Frame> for EgressFrames<'_> {
    fn bytes<'a>(&'a self, frame: &'a Frame) -> &'a [u8] {
        self.frames.bytes(frame)
    }

    fn edit(&mut self, frame: &mut Frame, edit: &mut dyn FnMut(&mut [u8])) {
        self.frames.edit(frame, edit);
    }

    fn copy(&mut self, frame: &mut Frame) -> Frame {
        self.frames.copy(frame)
    }
}

impl LaneFrames<Frame> for EgressFrames<'_> {
    fn meta(&self, frame: &Frame) -> FrameMeta {
        let record = self.frames.descriptor(frame);
        FrameMeta::new(record.release, record.wire_len)
    }

    fn deliver(&mut self, frame: Frame, delivery: &Delivery, is_duplicate: bool) {
        if is_duplicate {
            self.account.shared.link.stage.crossed.add(1);
        }
        self.released.push(self.link, delivery.release, frame);
    }

    fn discard(&mut self, frame: Frame) {
        self.account.taken_off(&self.frames.descriptor(&frame));
        self.frames.free(frame);
    }
}
