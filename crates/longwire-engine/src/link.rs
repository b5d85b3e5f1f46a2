//! One direction of an emulated link.

use core::ops::{Bound, RangeBounds};

use longwire_packet::edit;
use longwire_packet::frame::FrameMeta;
use longwire_packet::icmp::Refusal;
use longwire_units::random::Stream;
use longwire_units::{Bytes, Nanos, Packets};

use crate::frame_context::{FrameBytes, FrameContext};
use crate::losses::{LossOutcome, Losses};
use crate::medium::Medium;
use crate::models::Described;
use crate::models::mtu::Mtu;
use crate::models::queue::{QueueLimit, TailDrop};
use crate::models::rate::Transmitter;
use crate::models::reordering::delay_least;
use crate::models::rewrite::{self, RewriteModel};
use crate::models::router::RouterHop;
use crate::prelude::*;
use crate::server::Server;
use crate::verdict::{Delivery, DropReason, Edits, Verdict};

mod building;
mod change;
pub(crate) mod early;
mod sequential;

pub use crate::parts::{LinkChange, LinkConfig, LinkState};
use change::ChangeState;
pub use change::ReplacedParts;
pub use sequential::SequentialLink;

/// Link number within a run; determines the link's random streams, together with the seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

impl LinkConfig {
    /// Returns the queue's limit, configured or derived.
    pub fn queue_limit(&self) -> QueueLimit {
        match &self.queue {
            Some(queue) => queue.limit(),
            None => QueueLimit::derived(self.rate.bit_rate(), self.delay.mean()),
        }
    }

    /// Returns a sufficient limit if the queue is too small for one TCP flow to saturate the link
    /// ([`QueueLimit::undersized`]).
    pub fn queue_undersized(&self) -> Option<QueueLimit> {
        let limit = self.queue_limit();
        limit.undersized(self.rate.bit_rate(), self.delay.mean())
    }

    /// Returns a lower bound on the time from arrival to release, over all deliveries, including
    /// copies, fragments and displaced frames; zero if the configuration guarantees none. The rate
    /// does not contribute because frames may have any length. Releases beyond the range of
    /// [`Nanos`] saturate.
    ///
    /// This is the lookahead of a conservative parallel simulation (Chandy and Misra, 1979).
    pub fn lookahead(&self) -> Nanos {
        delay_least(&*self.delay, self.reordering.as_deref())
    }
}

/// A link and its state.
#[derive(Debug)]
pub struct Link {
    mtu: Mtu,
    /// Whether the link is on and has no parts other than a fixed or infinite rate, a queue, medium
    /// loss and delay, none of which reads frame bytes.
    plain: bool,
    /// Router at the link's ingress.
    router: Option<Box<RouterHop>>,
    rewrite: Vec<(Described<dyn RewriteModel>, Stream)>,
    entry: Losses,
    queue: LinkQueue,
    transmitter: Transmitter,
    medium: Medium,
    last_arrival: Nanos,
    /// Whether the link is off and drops all arrivals.
    is_off: bool,
    /// Present if the link is changeable.
    changing: Option<Box<ChangeState>>,
}

/// A link's queue.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "a box would cost a cache line per frame"
)]
enum LinkQueue {
    /// Tail drop, decided on arrival.
    AtArrival(TailDrop),
    /// A managed queue, which decides about accepted frames at dequeue.
    Managed(Server),
}

impl LinkQueue {
    #[inline(always)]
    fn admits(&mut self, arrival: Nanos, len: u32) -> bool {
        match self {
            LinkQueue::AtArrival(queue) => queue.admits(arrival, len),
            LinkQueue::Managed(_) => true,
        }
    }

    /// Returns the occupancy as of the last arrival, `arrival`.
    #[inline(always)]
    fn occupancy(&self, arrival: Nanos) -> (Packets, Bytes) {
        match self {
            LinkQueue::AtArrival(queue) => queue.occupancy(),
            LinkQueue::Managed(server) => server.occupancy(arrival),
        }
    }

    #[inline(always)]
    fn server(&self) -> Option<&Server> {
        match self {
            LinkQueue::AtArrival(_) => None,
            LinkQueue::Managed(server) => Some(server),
        }
    }

    #[inline(always)]
    fn server_mut(&mut self) -> Option<&mut Server> {
        match self {
            LinkQueue::AtArrival(_) => None,
            LinkQueue::Managed(server) => Some(server),
        }
    }
}

impl Link {
    /// Decides about one frame, applying all impairments in order. `bytes` is the frame or a prefix
    /// of it.
    ///
    /// A link with a managed queue ([`Link::is_managed`]) returns [`Verdict::Queued`] for frames
    /// that its queue accepts, numbered from 0; [`Link::poll`] later returns their verdicts. Before
    /// every offer, even of simultaneous frames, poll the link up to the frame's arrival until it
    /// returns `None`: at any instant, dequeues precede enqueues.
    ///
    /// If [`Delivery::more`] is set, [`Link::next_copy`] returns a further delivery of the same
    /// frame.
    ///
    /// An arrival before the latest one counts as simultaneous with it.
    // Always inlined: a call would take a seventh of the time of a per-frame loop.
    #[inline(always)]
    pub fn offer(&mut self, frame: FrameMeta, bytes: &[u8]) -> Verdict {
        match self.offer_plain(&frame, bytes) {
            Some(verdict) => verdict,
            None => self.decide_with_all(frame, bytes),
        }
    }

    /// [`Link::offer`] for a link that decides on arrival and neither edits nor copies frames;
    /// `None` for other links, which [decide with all models](Link::decide_with_all).
    #[inline(always)]
    pub(crate) fn offer_plain(&mut self, frame: &FrameMeta, bytes: &[u8]) -> Option<Verdict> {
        let LinkQueue::AtArrival(queue) = &mut self.queue else {
            return None;
        };
        if !self.plain {
            return None;
        }
        let arrival = frame.arrival.max(self.last_arrival);
        self.last_arrival = arrival;
        if !queue.admits(arrival, frame.len) {
            return Some(Verdict::Drop(DropReason::QueueFull));
        }
        let departure = self.transmitter.depart_exactly(arrival, frame.len);
        // A frame that departs on arrival is never queued.
        if departure > arrival {
            queue.hold(departure, frame.len);
        }
        let (frame, queue) = (FrameMeta { arrival, ..*frame }, &*queue);
        let frame_context = move || FrameContext {
            frame,
            at: departure,
            bytes,
            waiting: queue.occupancy(),
        };
        Some(self.medium.pass::<true>(departure, false, frame_context))
    }

    /// Applies all impairments in order. Cold, so that the code for plain links stays
    /// straight-line.
    #[cold]
    #[inline(never)]
    pub(crate) fn decide_with_all(&mut self, frame: FrameMeta, bytes: &[u8]) -> Verdict {
        let len = frame.len;
        let arrival = frame.arrival.max(self.last_arrival);
        let frame = FrameMeta { arrival, len };
        self.last_arrival = arrival;
        if self.plain
            && let LinkQueue::Managed(server) = &mut self.queue
        {
            server.enqueue(frame, bytes, false, &self.transmitter);
            return Verdict::Queued;
        }
        if self.is_off {
            return Verdict::Drop(DropReason::Outage);
        }
        if let Some(refusal) = self.refuse(frame, bytes) {
            return Verdict::Drop(refusal);
        }
        // Managed queues decide at dequeue.
        let admitted = self.queue.admits(arrival, len);
        let frame_context = |at, queue: &LinkQueue| FrameContext {
            frame,
            at,
            bytes,
            waiting: queue.occupancy(arrival),
        };
        let queue = &self.queue;
        let mark = match self.entry.judge(|| frame_context(arrival, queue)) {
            LossOutcome::Drop(_) => return Verdict::Drop(DropReason::EntryLoss),
            LossOutcome::Mark => true,
            LossOutcome::Pass => false,
        };
        if let LinkQueue::Managed(server) = &mut self.queue {
            server.enqueue(frame, bytes, mark, &self.transmitter);
            return Verdict::Queued;
        }
        if !admitted {
            return Verdict::Drop(DropReason::QueueFull);
        }
        let departure = self
            .transmitter
            .depart(&frame_context(arrival, &self.queue));
        if departure > arrival
            && let LinkQueue::AtArrival(queue) = &mut self.queue
        {
            queue.hold(departure, len);
        }
        self.medium.set_rate_delay(self.transmitter.delay());
        let queue = &self.queue;
        let frame_context = || frame_context(departure, queue);
        self.medium.pass::<false>(departure, mark, frame_context)
    }

    /// Returns the reason if the frame is rejected at ingress; a router also prepares an ICMP
    /// error. Routers check the TTL before the length (RFC 1812, section 5.2.1).
    #[inline]
    fn refuse(&mut self, frame: FrameMeta, bytes: &[u8]) -> Option<DropReason> {
        let models = self
            .rewrite
            .iter()
            .map(|(model, _)| u32::from(model.hops()));
        let hops = models.sum::<u32>() + u32::from(self.is_router());
        let expired = rewrite::expires(bytes, hops);
        let too_long = self
            .mtu
            .bytes()
            .filter(|_| self.mtu.is_exceeded(frame.len, bytes));
        let too_long = too_long.map(|mtu| (DropReason::Mtu, Refusal::TooBig(mtu)));
        let expired = expired.then_some((DropReason::Ttl, Refusal::Expired));
        let Some(router) = &mut self.router else {
            return Some(too_long.or(expired)?.0);
        };
        router.begin();
        let (reason, refusal) = expired.or(too_long)?;
        router.refuse(frame.arrival, refusal, bytes);
        Some(reason)
    }

    /// Whether a router is at the link's ingress.
    pub fn is_router(&self) -> bool {
        self.router.is_some()
    }

    /// Returns the router's ICMP error about the last offered frame, after [`DropReason::Mtu`] or
    /// [`DropReason::Ttl`]. Send it from the frame's ingress port at the frame's arrival time; it
    /// crosses no link.
    pub fn icmp_error(&self) -> Option<&[u8]> {
        self.router.as_ref()?.error()
    }

    /// Processes events up to a time and returns the next decision of a managed queue: frame number
    /// and verdict. A frame with several deliveries is returned once per delivery. `..=now`
    /// includes events at `now`; `..at` excludes events at `at`, so that a [change](Link::change)
    /// at `at` precedes them. Polling late changes no decision, but later offers must not precede
    /// the polled time.
    #[inline]
    pub fn poll(
        &mut self,
        until: impl RangeBounds<Nanos>,
        frames: &impl FrameBytes,
    ) -> Option<(u64, Verdict)> {
        self.poll_steady(until, Nanos::ZERO, frames)
    }

    /// Like [`Link::poll`] for a link that does not change before `steady_until`: frames that
    /// depart before then are decided when they are dequeued, which saves an event per frame. A
    /// change must not precede [`Link::changeable_from`].
    #[inline]
    pub(crate) fn poll_steady(
        &mut self,
        until: impl RangeBounds<Nanos>,
        steady_until: Nanos,
        frames: &impl FrameBytes,
    ) -> Option<(u64, Verdict)> {
        let server = self.queue.server_mut()?;
        let limits = (limit_of(until, &mut self.last_arrival), steady_until);
        let (transmitter, medium) = (&mut self.transmitter, &mut self.medium);
        if self.plain {
            // No model reads bytes, so they are not looked up.
            return server.next_decided(limits, transmitter, medium, &());
        }
        server.next_decided(limits, transmitter, medium, frames)
    }

    /// Returns the time at which [`Link::poll`] will next return a verdict if no frame arrives
    /// first.
    #[inline]
    pub fn next_at(&mut self) -> Option<Nanos> {
        let server = self.queue.server_mut()?;
        if server.has_decided() {
            return Some(Nanos::ZERO);
        }
        let at = server.next_event(&mut self.transmitter)?;
        (at < Nanos::MAX).then_some(at)
    }

    /// Whether a verdict is ready regardless of time.
    #[inline]
    pub(crate) fn has_decided(&self) -> bool {
        let server = self.queue.server();
        server.is_some_and(|server| server.has_decided())
    }

    /// Returns the next delivery of the last offered frame, if [`Delivery::more`] was set.
    pub fn next_copy(&mut self) -> Option<Delivery> {
        self.medium.next_copy()
    }

    /// Applies a delivery's edits to the frame. Call it once per delivered frame, in verdict order,
    /// regardless of the number of copies.
    pub fn edit(&mut self, delivery: &Delivery, bytes: &mut [u8]) {
        let Edits {
            mark,
            corrupt,
            rewrite,
        } = delivery.edits;
        if mark {
            edit::mark(bytes);
        }
        if rewrite {
            if let Some(router) = &self.router {
                router.forward(bytes);
            }
            for (model, stream) in &mut self.rewrite {
                model.rewrite(delivery.departure, bytes, stream);
            }
        }
        if corrupt && let Some(corruption) = self.medium.next_corruption() {
            edit::corrupt(bytes, &corruption);
        }
    }

    /// Returns the MTU and its policy. Where frames must be fragmented before they are offered, use
    /// [`Fragments`].
    ///
    /// [`Fragments`]: crate::Fragments
    #[inline]
    pub fn mtu(&self) -> Mtu {
        self.mtu
    }

    /// Whether the queue decides after arrival, so that [`Link::poll`] returns verdicts.
    pub fn is_managed(&self) -> bool {
        self.queue.server().is_some()
    }

    /// Whether every frame is decided on arrival and left unchanged, without reading its bytes.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.plain && !self.is_managed()
    }

    /// Whether any model reads, edits or duplicates frames, which requires super-packets to be
    /// segmented first.
    pub fn changes_frames(&self) -> bool {
        let reads = self.entry.reads_bytes() || self.transmitter.reads_bytes();
        reads || self.fragments() || self.rewrites() || self.medium.changes_frames()
    }

    fn rewrites(&self) -> bool {
        self.is_router() || !self.rewrite.is_empty()
    }

    /// Whether the link may fragment frames.
    pub fn fragments(&self) -> bool {
        matches!(self.mtu, Mtu::Fragment(_))
    }

    /// Returns the arrival time assigned to the last offered frame.
    pub fn last_arrival(&self) -> Nanos {
        self.last_arrival
    }

    /// Returns how late [`Link::poll`] may be called without missing a release: the
    /// [`LinkConfig::lookahead`] in the current state.
    pub fn poll_slack(&self) -> Nanos {
        self.medium.delay_least()
    }

    /// Returns the frames and bytes in the queue as of the last arrival.
    pub fn occupancy(&self) -> (Packets, Bytes) {
        self.queue.occupancy(self.last_arrival)
    }

    /// Returns the frames and bytes in a managed queue at `now`, up to which the link must have been
    /// polled.
    pub fn occupancy_at(&self, now: Nanos) -> (Packets, Bytes) {
        self.queue.occupancy(now.max(self.last_arrival))
    }

    /// Returns the peak queue occupancy in frames and bytes.
    pub fn occupancy_max(&self) -> (Packets, Bytes) {
        match &self.queue {
            LinkQueue::AtArrival(queue) => queue.occupancy_max(),
            LinkQueue::Managed(server) => server.occupancy_max(),
        }
    }

    /// Whether releases never decrease.
    pub fn in_order(&self) -> bool {
        self.medium.in_order()
    }
}

/// Returns the exclusive upper bound of a poll and advances `last_arrival` to the end of the poll.
#[inline]
fn limit_of(until: impl RangeBounds<Nanos>, last_arrival: &mut Nanos) -> Nanos {
    let (now, is_included) = match until.end_bound() {
        Bound::Included(now) => (*now, true),
        Bound::Excluded(now) => (*now, false),
        Bound::Unbounded => (Nanos::MAX, true),
    };
    *last_arrival = now.max(*last_arrival);
    if is_included {
        // No event is scheduled at the last representable time.
        last_arrival.saturating_add(Nanos::from_nanos(1))
    } else {
        now
    }
}
