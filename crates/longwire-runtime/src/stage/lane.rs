//! A run's lanes: links that count and record their decisions.
//!
//! A link without a managed queue decides in the ingress stage, before its frames are on the delay
//! line. A managed queue decides in the egress stage, which keeps its frames.

use std::ops::RangeBounds;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};

use longwire_engine::{
    Delivery, DropReason, FrameAccess, FrameMeta, Lane, LaneHost, Link, LinkId, Nanos, Verdict,
};
use longwire_io::Bell;
use longwire_packet::bridge::PortIndex;

use crate::counters::Artifact;
use crate::counters::LinkShared;
use crate::deciding::{EventRecorder, LinkAccount};
use crate::replay::OfferLogger;

/// A link and its accounts, before a stage drives it.
pub struct LaneParts {
    pub(super) link: Link,
    pub(crate) accounts: LaneAccounts,
}

/// A link with its queued frames, counters and records. `T` is a frame handle.
pub(super) struct RunLane<T> {
    lane: Lane<NumberedFrame<T>>,
    accounts: LaneAccounts,
}

/// A frame with its truncated number in the recording.
struct NumberedFrame<T> {
    item: T,
    number: u32,
}

/// Access to a lane's frames.
pub(super) trait LaneFrames<T>: FrameAccess<T> {
    /// Returns a frame's arrival and wire length.
    fn meta(&self, item: &T) -> FrameMeta;

    /// Passes a frame on, to leave at its release.
    fn deliver(&mut self, item: T, delivery: &Delivery, is_duplicate: bool);

    /// Frees a dropped frame.
    fn discard(&mut self, item: T);
}

/// Counters and records of a link's verdicts.
pub(crate) struct LaneAccounts {
    id: LinkId,
    shared: Arc<LinkShared>,
    recorder: Option<Box<EventRecorder>>,
    /// Logs decisions made ahead of time, for a replay's clients.
    pub log: Option<Box<OfferLogger>>,
    /// Returns ICMP errors to the port of arrival.
    pub icmp: Option<Box<IcmpSender>>,
}

/// A lane's host: its accounts and its frames.
struct RunHost<'a, F> {
    accounts: &'a mut LaneAccounts,
    frames: &'a mut F,
}

impl LaneParts {
    pub(crate) fn new(
        link: Link,
        id: LinkId,
        shared: Arc<LinkShared>,
        recorder: Option<EventRecorder>,
    ) -> LaneParts {
        LaneParts {
            link,
            accounts: LaneAccounts {
                id,
                shared,
                recorder: recorder.map(Box::new),
                log: None,
                icmp: None,
            },
        }
    }

    /// Returns the lane for the ingress or the egress stage, as (ingress, egress). A managed queue
    /// decides at egress.
    pub(crate) fn place(self) -> (Option<LaneParts>, Option<LaneParts>) {
        if self.link.is_managed() {
            (None, Some(self))
        } else {
            (Some(self), None)
        }
    }
}

impl<T> RunLane<T> {
    pub fn new(parts: LaneParts) -> RunLane<T> {
        RunLane {
            lane: Lane::new(parts.link),
            accounts: parts.accounts,
        }
    }

    #[inline]
    pub fn link(&self) -> &Link {
        self.lane.link()
    }

    /// Returns the link's number.
    pub fn id(&self) -> LinkId {
        self.accounts.id
    }

    /// Returns whether offers and verdicts are recorded.
    #[inline]
    pub fn records(&self) -> bool {
        self.accounts.recorder.is_some()
    }

    /// Returns whether offered frames are recorded.
    pub fn records_frames(&self) -> bool {
        let recorder = self.accounts.recorder.as_ref();
        recorder.is_some_and(|recorder| recorder.with_frames())
    }

    /// Returns whether the link is plain, and its verdicts are neither recorded nor logged.
    pub fn is_plain(&self) -> bool {
        let records = self.accounts.recorder.is_some() || self.accounts.log.is_some();
        self.lane.link().is_plain() && !records
    }

    /// Returns the release of a wire frame (`None` if dropped), if the link decides at arrival and
    /// leaves frames unchanged. Only if [`RunLane::is_plain`].
    #[inline(always)]
    pub fn release_of(&mut self, meta: &FrameMeta, bytes: &[u8]) -> Option<Option<Nanos>> {
        let verdict = self.lane.offer_plain(meta, bytes)?;
        let cells = &self.accounts.shared.link.link;
        match verdict {
            Verdict::Deliver(delivery) => {
                cells.delivered(&delivery, false);
                Some(Some(delivery.release))
            }
            Verdict::Drop(reason) => {
                cells.dropped(reason);
                Some(None)
            }
            Verdict::Queued => None,
        }
    }

    /// Offers a wire frame, after making the decisions due by its arrival.
    #[inline(always)]
    pub fn offer(&mut self, meta: FrameMeta, item: T, frames: &mut impl LaneFrames<T>) {
        if let Some(log) = &mut self.accounts.log {
            log.offered(meta);
        }
        if self.lane.link().is_managed() {
            self.poll(..=meta.arrival, frames);
        }
        let accounts = &mut self.accounts;
        let frame = NumberedFrame { item, number: 0 };
        let mut host = RunHost { accounts, frames };
        self.lane.offer(meta, frame, &mut host);
    }

    /// Makes the decisions due until a time.
    #[inline(never)]
    pub fn poll(
        &mut self,
        until: impl RangeBounds<Nanos> + Clone,
        frames: &mut impl LaneFrames<T>,
    ) {
        let accounts = &mut self.accounts;
        self.lane.poll(until, &mut RunHost { accounts, frames });
    }

    /// Makes the decisions due by `now`, if any, and logs the progress.
    pub fn decide(&mut self, now: Nanos, frames: &mut impl LaneFrames<T>) {
        if self.next_at().is_some_and(|next| next <= now) {
            if let Some(log) = &mut self.accounts.log {
                log.reached(now);
            }
            self.poll(..=now, frames);
        }
    }

    /// Returns when the next decision is due.
    #[inline]
    pub fn next_at(&mut self) -> Option<Nanos> {
        self.lane.next_at()
    }

    /// Ends the recording after the last arrival.
    pub fn finish(&mut self) {
        if let Some(recorder) = &mut self.accounts.recorder {
            recorder.finish();
        }
        self.publish();
    }

    /// Publishes queue lengths, recorder losses and the log.
    pub fn publish(&mut self) {
        let accounts = &mut self.accounts;
        if let Some(log) = &mut accounts.log {
            log.enter();
        }
        let (packets, bytes) = self.lane.link().occupancy_max();
        let cells = &accounts.shared.link.stage;
        cells.queue.queue_packets_max.set(packets.0);
        cells.queue.queue_bytes_max.set(bytes.0);
        if let Some(recorder) = &mut accounts.recorder {
            recorder.flush();
            cells.artifacts[Artifact::Unrecorded].set(recorder.lost());
        }
    }
}

impl LaneAccounts {
    /// Records an offer and returns the frame's number.
    #[cold]
    fn record_offer(&mut self, link: &Link, len: u32, bytes: &[u8]) -> u32 {
        let Some(recorder) = &mut self.recorder else {
            return 0;
        };
        // In pairs and replays, a port has the number of its link.
        let port = PortIndex(self.id.0 as u16);
        let meta = FrameMeta::new(link.last_arrival(), len);
        recorder.entered(port, meta, bytes);
        recorder.offered(self.id, meta, link.occupancy())
    }

    #[inline]
    fn link(&mut self) -> LinkAccount<'_> {
        LinkAccount {
            link: self.id,
            cells: Some(&self.shared.link.link),
            recorder: self.recorder.as_deref_mut(),
        }
    }
}

impl<T, F: LaneFrames<T>> FrameAccess<NumberedFrame<T>> for RunHost<'_, F> {
    #[inline]
    fn bytes<'a>(&'a self, frame: &'a NumberedFrame<T>) -> &'a [u8] {
        self.frames.bytes(&frame.item)
    }

    fn edit(&mut self, frame: &mut NumberedFrame<T>, edit: &mut dyn FnMut(&mut [u8])) {
        self.frames.edit(&mut frame.item, edit);
    }

    fn copy(&mut self, frame: &mut NumberedFrame<T>) -> NumberedFrame<T> {
        NumberedFrame {
            item: self.frames.copy(&mut frame.item),
            number: frame.number,
        }
    }
}

impl<T, F: LaneFrames<T>> LaneHost<NumberedFrame<T>> for RunHost<'_, F> {
    #[inline]
    fn offered(&mut self, frame: &mut NumberedFrame<T>, meta: FrameMeta, link: &Link) {
        if self.accounts.recorder.is_some() {
            let bytes = self.frames.bytes(&frame.item);
            frame.number = self.accounts.record_offer(link, meta.len, bytes);
        }
    }

    /// Counts the error even without a reverse path.
    #[cold]
    fn icmp_error(&mut self, _frame: &NumberedFrame<T>, at: Nanos, error: &[u8]) {
        let icmp = self.accounts.icmp.as_ref();
        if icmp.is_none_or(|icmp| icmp.send(at, error)) {
            self.accounts.shared.link.link.icmp_sent();
        }
    }

    #[inline]
    fn delivered(&mut self, frame: NumberedFrame<T>, delivery: &Delivery, is_duplicate: bool) {
        let NumberedFrame { item, number } = frame;
        let accounts = &mut self.accounts;
        let mut account = accounts.link();
        account.delivered(number, None, delivery, is_duplicate);
        if let Some(log) = &mut accounts.log
            && !is_duplicate
        {
            log.delivered(self.frames.meta(&item), delivery);
        }
        self.frames.deliver(item, delivery, is_duplicate);
    }

    fn dropped(&mut self, frame: NumberedFrame<T>, reason: DropReason) {
        self.accounts.link().dropped(frame.number, reason);
        self.frames.discard(frame.item);
    }
}

/// Maximum number of queued errors. Further errors are dropped, as ICMP permits.
const WAITING_MAX: usize = 1_024;

/// The bells of a run's threads, set once the threads exist.
pub(crate) type Bells = Arc<OnceLock<Vec<Arc<Bell>>>>;

/// An ICMP error, with the offending packet's arrival.
pub(super) struct IcmpError {
    pub at: Nanos,
    pub bytes: Vec<u8>,
}

/// The link's end of an error queue.
pub(crate) struct IcmpSender {
    errors: SyncSender<IcmpError>,
    bells: Bells,
}

/// The port's end of an error queue.
pub(crate) struct IcmpReceiver {
    errors: Receiver<IcmpError>,
    next: Option<IcmpError>,
}

/// Returns both ends of an error queue.
pub(crate) fn icmp_line(bells: &Bells) -> (IcmpSender, IcmpReceiver) {
    let (sender, errors) = sync_channel(WAITING_MAX);
    let bells = Arc::clone(bells);
    let sender = IcmpSender {
        errors: sender,
        bells,
    };
    (sender, IcmpReceiver { errors, next: None })
}

impl IcmpSender {
    /// Sends an error. Returns `false` if the queue is full.
    pub(super) fn send(&self, at: Nanos, bytes: &[u8]) -> bool {
        let bytes = bytes.to_vec();
        let sent = self.errors.try_send(IcmpError { at, bytes }).is_ok();
        let bells = self.bells.get().into_iter().flatten();
        bells.for_each(|bell| bell.ring_if_asleep());
        sent
    }
}

impl IcmpReceiver {
    /// Returns the next error.
    pub(super) fn front(&mut self) -> Option<&IcmpError> {
        if self.next.is_none() {
            self.next = self.errors.try_recv().ok();
        }
        self.next.as_ref()
    }

    /// Removes the next error.
    pub(super) fn advance(&mut self) {
        self.next = None;
    }
}
