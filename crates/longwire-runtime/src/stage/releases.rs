//! An egress stage's frames until their release, and the link that decides in that stage, if any.

use longwire_engine::{Delivery, FrameAccess, FrameMeta, LinkId, Nanos, ReleaseQueue};
use longwire_io::delay_line::{DelayLineReader, Descriptor, HeldFrame};

use super::account::Account;
use super::lane::{LaneFrames, LaneParts, RunLane};
use crate::deciding::{Frame, Frames};

/// Frames in order of release.
pub(super) enum Releases {
    /// The line, on which releases never decrease.
    OnLine(DelayLineReader),
    /// Frames that were decided at arrival and taken off the line.
    Sorted(Box<SortedFrames<DelayLineReader>>),
    /// Frames that a link in this stage decides.
    Decided(Box<DecidedFrames>),
}

/// Frames taken off their line, by release.
pub(super) struct SortedFrames<S: FrameStorage> {
    storage: S,
    queue: ReleaseQueue<S::Handle>,
    /// The first due frame, if it was removed from the queue.
    front: Option<(LinkId, Nanos, S::Handle)>,
}

/// Frames of a link that decides in the egress stage.
pub(super) struct DecidedFrames {
    sorted: SortedFrames<Frames>,
    lane: EgressLane,
}

/// Storage for frames taken off a line.
pub(super) trait FrameStorage {
    type Handle;

    /// Returns a frame's record on the line and its bytes.
    fn record(&self, frame: &Self::Handle) -> (Descriptor, &[u8]);

    fn remove(&mut self, frame: Self::Handle);

    fn line(&mut self) -> &mut DelayLineReader;
}

/// A link that decides in the egress stage. Its frames are on the line with their arrivals until
/// they are decided.
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

/// The stage's only line.
const LINE: u16 = 0;

/// Maximum decision delay. Frames that the kernel holds for longer count as having arrived later.
pub(crate) const SLACK_MAX: Nanos = Nanos::from_micros(200);

impl Releases {
    /// Returns a line's frames. `in_order` means that releases on the line never decrease. `link`
    /// decides frames that are undecided on the line.
    pub fn new(line: DelayLineReader, in_order: bool, link: Option<LaneParts>) -> Releases {
        match link {
            Some(parts) => Releases::Decided(Box::new(DecidedFrames {
                sorted: SortedFrames::new(Frames::new(vec![line])),
                lane: EgressLane {
                    slack: parts.link.poll_slack().min(SLACK_MAX),
                    lane: RunLane::new(parts),
                },
            })),
            None if in_order => Releases::OnLine(line),
            None => Releases::Sorted(Box::new(SortedFrames::new(line))),
        }
    }

    /// Sorts published frames, according to the link's decisions by `now`. Afterwards,
    /// [`Releases::front`] is the next departure.
    #[inline]
    pub fn prepare(&mut self, now: Nanos, account: &mut Account) {
        match self {
            Releases::OnLine(_) => {}
            Releases::Sorted(sorted) => sorted.take_published(),
            Releases::Decided(decided) => {
                let SortedFrames { storage, queue, .. } = &mut decided.sorted;
                decided.lane.prepare(now, storage, queue, account);
                decided.sorted.reorder_front();
            }
        }
    }

    /// Returns the frame with the first release, if that is at most `due_by`.
    #[inline(always)]
    pub fn front(&mut self, due_by: Nanos) -> Option<(Descriptor, &[u8])> {
        match self {
            Releases::OnLine(line) => {
                let next = line.front().filter(|next| next.release() <= due_by)?;
                Some((next, line.front_bytes()))
            }
            Releases::Sorted(sorted) => sorted.front(due_by),
            Releases::Decided(decided) => decided.sorted.front(due_by),
        }
    }

    /// Returns the line if it is the release queue.
    #[inline(always)]
    pub fn line(&mut self) -> Option<&mut DelayLineReader> {
        match self {
            Releases::OnLine(line) => Some(line),
            Releases::Sorted(_) | Releases::Decided(_) => None,
        }
    }

    /// Removes the frame that [`Releases::front`] returned.
    #[inline(always)]
    pub fn advance(&mut self) {
        match self {
            Releases::OnLine(line) => line.advance(),
            Releases::Sorted(sorted) => sorted.advance(),
            Releases::Decided(decided) => decided.sorted.advance(),
        }
    }

    /// Returns the release and tag of the next departure, as of the last [`Releases::prepare`].
    pub fn next_departure(&mut self) -> Option<(Nanos, u32)> {
        match self {
            Releases::OnLine(line) => line.front().map(|next| (next.release(), next.tag())),
            Releases::Sorted(sorted) => sorted.next_departure(),
            Releases::Decided(decided) => decided.sorted.next_departure(),
        }
    }

    /// Returns the time of the next decision or release, including frames that are not sorted yet.
    #[inline]
    pub fn next_at(&mut self) -> Option<Nanos> {
        match self {
            Releases::OnLine(line) => Some(line.front()?.release()),
            Releases::Sorted(sorted) => sorted.next_at(),
            Releases::Decided(decided) => {
                let release = decided.sorted.next_at();
                release.into_iter().chain(decided.lane.next_at()).min()
            }
        }
    }

    /// Returns the first release after `time` among the next `look` frames, if the line
    /// is in order.
    pub fn release_beyond(&mut self, time: Nanos, look: u64) -> Option<Nanos> {
        match self {
            Releases::OnLine(line) => line.release_beyond(time, look),
            Releases::Sorted(_) | Releases::Decided(_) => None,
        }
    }

    /// Returns freed memory to the writer.
    #[inline]
    pub fn settle(&mut self) {
        match self {
            Releases::OnLine(line) => line.settle(),
            Releases::Sorted(sorted) => sorted.storage.settle(),
            Releases::Decided(decided) => decided.sorted.storage.settle(),
        }
    }

    /// Publishes the accounts of a link that decides in this stage, and frees the frames that it
    /// dropped.
    #[inline]
    pub fn publish(&mut self) {
        if let Releases::Decided(decided) = self {
            decided.lane.lane.publish();
            decided.sorted.storage.settle();
        }
    }

    /// Ends the recording.
    pub fn finish(&mut self) {
        if let Releases::Decided(decided) = self {
            decided.lane.lane.finish();
        }
    }
}

impl SortedFrames<DelayLineReader> {
    fn take_published(&mut self) {
        while let Some(frame) = self.storage.take() {
            let release = self.storage.descriptor(&frame).release();
            self.queue.push(LinkId(0), release, frame);
        }
        self.reorder_front();
    }
}

impl<S: FrameStorage> SortedFrames<S> {
    fn new(storage: S) -> SortedFrames<S> {
        SortedFrames {
            storage,
            queue: ReleaseQueue::new(),
            front: None,
        }
    }

    /// Returns the front to the queue if an earlier frame has arrived. The front loses its place
    /// among equal releases, which is acceptable, because this only happens while the port is full.
    #[inline]
    fn reorder_front(&mut self) {
        if let Some((link, release, frame)) = self.front.take_if(|(_, release, _)| {
            let next = self.queue.next_at();
            next.is_some_and(|next| next < *release)
        }) {
            self.queue.push(link, release, frame);
        }
    }

    #[inline(always)]
    fn front(&mut self, due_by: Nanos) -> Option<(Descriptor, &[u8])> {
        if self.front.is_none() {
            self.front = self.queue.pop_due(due_by);
        }
        let (_, release, frame) = self.front.as_ref()?;
        let (record, bytes) = self.storage.record(frame);
        Some((record.released_at(*release), bytes))
    }

    #[inline(always)]
    fn advance(&mut self) {
        if let Some((_, _, frame)) = self.front.take() {
            self.storage.remove(frame);
        }
    }

    fn next_departure(&mut self) -> Option<(Nanos, u32)> {
        let (release, frame) = match &self.front {
            Some((_, release, frame)) => (*release, frame),
            None => self.queue.peek()?,
        };
        Some((release, self.storage.record(frame).0.tag()))
    }

    fn next_at(&mut self) -> Option<Nanos> {
        let published = self.storage.line().front().map(|next| next.release());
        let front = self.front.as_ref().map(|(_, release, _)| *release);
        let times = [published, front, self.queue.next_at()];
        times.into_iter().flatten().min()
    }
}

impl FrameStorage for DelayLineReader {
    type Handle = HeldFrame;

    #[inline(always)]
    fn record(&self, frame: &HeldFrame) -> (Descriptor, &[u8]) {
        self.record(frame)
    }

    #[inline(always)]
    fn remove(&mut self, frame: HeldFrame) {
        self.free(frame);
    }

    #[inline(always)]
    fn line(&mut self) -> &mut DelayLineReader {
        self
    }
}

impl FrameStorage for Frames {
    type Handle = Frame;

    #[inline]
    fn record(&self, frame: &Frame) -> (Descriptor, &[u8]) {
        self.record(frame)
    }

    #[inline]
    fn remove(&mut self, frame: Frame) {
        self.free(frame);
    }

    #[inline]
    fn line(&mut self) -> &mut DelayLineReader {
        Frames::line(self, LINE.into())
    }
}

impl EgressLane {
    /// Admits all frames on the line and makes the decisions due by `now`.
    ///
    /// If the queue has already decided beyond a frame's arrival, the link moves the arrival, and
    /// the frame is late by the difference.
    fn prepare(
        &mut self,
        now: Nanos,
        frames: &mut Frames,
        released: &mut ReleaseQueue<Frame>,
        account: &mut Account,
    ) {
        // Read this before draining the line: frames that arrived by then are on the line.
        let now = now.min(account.shared.seen_until.get());
        let link = self.lane.id();
        let mut host = EgressFrames {
            frames,
            released,
            account,
            link,
        };
        while let Some((meta, frame)) = host.frames.take(LINE, Nanos::MAX) {
            self.lane.offer(meta, frame, &mut host);
            let last = self.lane.link().last_arrival();
            let moved = last.saturating_sub(meta.arrival);
            let account = &mut host.account;
            if moved > account.judge.tolerance
                && let (Some(artifact), _) = account.judge.cause(meta.arrival, moved)
            {
                account.cells().artifacts[artifact].add(1);
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
        let (record, _) = self.frames.record(frame);
        FrameMeta::new(record.release(), record.wire_len())
    }

    fn deliver(&mut self, frame: Frame, delivery: &Delivery, is_duplicate: bool) {
        if is_duplicate {
            self.account.shared.link.stage.crossed.add(1);
        }
        self.released.push(self.link, delivery.release, frame);
    }

    fn discard(&mut self, frame: Frame) {
        self.account.taken_off(&self.frames.record(&frame).0);
        self.frames.free(frame);
    }
}
