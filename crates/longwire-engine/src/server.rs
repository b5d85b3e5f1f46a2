//! Service of a managed queue: dequeues frames when the link is ready, in event time.

use core::mem;

use longwire_packet::flow_hash::flow_hash;
use longwire_packet::frame::{FrameMeta, priority_code_point};
use longwire_packet::header::{Ecn, IpHeader};
use longwire_units::random::Stream;
use longwire_units::{Bytes, Nanos, Packets};

use crate::frame_context::{FrameBytes, FrameContext};
use crate::medium::Medium;
use crate::models::queue::fifo::ManagedFifo;
use crate::models::queue::{
    Discipline, HeaderFields, LinkFacts, QueueContext, QueueLimit, QueuedFrame,
};
use crate::models::rate::{Aggregate, Transmitter};
use crate::prelude::*;
use crate::sent::SentFrames;
use crate::verdict::{Delivery, DropReason, Verdict};

mod change;

/// A managed queue and its service state.
#[derive(Debug)]
pub(crate) struct Server {
    queue: ServedQueue,
    reads: HeaderFields,
    context: QueueContext,
    /// Present if frames are aggregated.
    aggregating: Option<Box<Aggregating>>,
    /// Mixed into flow hashes, so that each seed yields different collisions.
    perturbation: u64,
    next_number: u64,
    /// Time at which the queue last became non-empty.
    waiting_since: Nanos,
    /// Time of the next dequeue, once known.
    ready: Option<Nanos>,
    /// Earliest time at which an idle link would attempt the next dequeue; [`Nanos::MAX`] after an
    /// empty dequeue, until the next arrival.
    asks_at: Nanos,
    /// Whether the link is paused or off, so that no frame is dequeued.
    stopped: bool,
    /// On a changeable link, frames that the tail-drop queue counts until their departure.
    sent: SentFrames,
    /// Whether the link is changeable. Frames then cross the medium at departure instead of at
    /// dequeue, because a change may precede the departure.
    changeable: bool,
    /// Frame or aggregate in service, until it departs.
    departing: Option<Departing>,
    /// Departure of the last frame that crossed the medium before departing.
    decided_until: Nanos,
    occupancy_max: (Packets, Bytes),
}

/// Aggregation limits, and the aggregate in service.
#[derive(Debug)]
struct Aggregating {
    aggregate: Aggregate,
    /// Frames in the aggregate after the first; the memory is reused.
    rest: Vec<QueuedFrame>,
}

impl Aggregating {
    /// Returns `None` if frames are sent one by one.
    fn new(aggregate: Aggregate) -> Option<Box<Aggregating>> {
        let rest = Vec::new();
        (aggregate != Aggregate::ONE).then(|| Box::new(Aggregating { aggregate, rest }))
    }
}

/// A managed link's queue.
#[derive(Debug)]
pub(crate) enum ServedQueue {
    /// Tail-drop FIFO.
    Fifo(ManagedFifo),
    /// Any other discipline.
    Discipline(Box<dyn Discipline>),
}

impl ServedQueue {
    #[inline]
    fn discipline(&mut self) -> &mut dyn Discipline {
        match self {
            ServedQueue::Fifo(fifo) => fifo,
            ServedQueue::Discipline(discipline) => &mut **discipline,
        }
    }
}

/// The frame in service, or the first frame in the aggregate.
#[derive(Clone, Copy, Debug)]
struct Departing {
    number: u64,
    arrival: Nanos,
    len: u32,
    is_marked: bool,
    departure: Nanos,
    /// Delay after departure that is part of the rate model.
    delay: Nanos,
    /// Queue occupancy after the dequeue.
    waiting: (Packets, Bytes),
}

impl Departing {
    /// Returns the frame's context at `at`.
    #[inline]
    fn context<'a>(&self, at: Nanos, bytes: &'a [u8]) -> FrameContext<'a> {
        FrameContext {
            frame: FrameMeta::new(self.arrival, self.len),
            at,
            bytes,
            waiting: self.waiting,
        }
    }
}

impl Server {
    pub fn new(
        mut queue: ServedQueue,
        aggregate: Aggregate,
        facts: &LinkFacts,
        mut stream: Stream,
    ) -> Server {
        let perturbation = stream.next_u64();
        queue.discipline().start(facts);
        Server {
            reads: queue.discipline().reads(),
            queue,
            context: QueueContext::new(stream),
            aggregating: Aggregating::new(aggregate),
            perturbation,
            next_number: 0,
            waiting_since: facts.epoch,
            ready: None,
            asks_at: Nanos::MAX,
            stopped: false,
            sent: SentFrames::default(),
            changeable: false,
            departing: None,
            decided_until: Nanos::ZERO,
            occupancy_max: (Packets(0), Bytes(0)),
        }
    }

    /// Enqueues an arriving frame; `mark` is set if a loss model marked it. All events up to and
    /// including `frame.arrival` must have been processed: frames that the link can dequeue at that
    /// instant have left the queue.
    #[inline]
    pub fn enqueue(
        &mut self,
        frame: FrameMeta,
        bytes: &[u8],
        mark: bool,
        transmitter: &Transmitter,
    ) {
        debug_assert!(
            self.stopped || self.ready.is_none_or(|at| at > frame.arrival),
            "a frame was offered before the link was polled up to its arrival"
        );
        let mut queued = QueuedFrame::new(self.next_number, frame);
        if mark {
            queued.arrive_marked();
        }
        if self.reads != HeaderFields::Nothing {
            self.read_header(&mut queued, bytes);
        }
        self.next_number += 1;
        if self.context.occupancy().0.0 == 0 {
            self.waiting_since = frame.arrival;
            self.ready = None;
            if !self.stopped && self.asks_at <= frame.arrival {
                self.ask_without_result();
            }
            if self.asks_at == Nanos::MAX {
                self.asks_at = frame.arrival;
            }
        }
        self.sent.forget(frame.arrival);
        self.admit(frame.arrival, queued, transmitter);
        if self.context.occupancy().0.0 == 0 {
            // The discipline may have dropped the head.
            self.ready = None;
        }
        let (packets, bytes) = self.occupancy(frame.arrival);
        self.raise_occupancy_max((packets.0, bytes.0));
    }

    /// Notifies the discipline of an empty dequeue.
    #[inline]
    fn ask_without_result(&mut self) {
        self.queue.discipline().idle();
        self.asks_at = Nanos::MAX;
    }

    /// Offers a frame to the queue, which may drop it.
    #[inline]
    fn admit(&mut self, now: Nanos, frame: QueuedFrame, transmitter: &Transmitter) {
        self.context.entered(&frame);
        let sending = self.counted_sending(now);
        let fifo = match &mut self.queue {
            ServedQueue::Fifo(fifo) => fifo,
            ServedQueue::Discipline(queue) => return queue.enqueue(now, frame, &mut self.context),
        };
        let gone = |fifo: &ManagedFifo| {
            if self.stopped || !self.changeable {
                (0, 0)
            } else {
                // As with tail drop on arrival, these frames have left the queue.
                transmitter.gone_at_once(now, fifo.lengths())
            }
        };
        if fifo.fits(frame.len, sending, (0, 0)) || fifo.fits(frame.len, sending, gone(fifo)) {
            fifo.push(frame);
        } else {
            self.context.dropped(&frame, DropReason::QueueFull);
        }
    }

    /// Returns the frames and bytes that a tail-drop queue counts in addition to its contents.
    #[inline]
    fn counted_sending(&self, now: Nanos) -> (u64, u64) {
        if self.counts_sent() {
            self.sent.counted(now)
        } else {
            (0, 0)
        }
    }

    #[inline]
    fn counts_sent(&self) -> bool {
        let alone = !self.aggregates();
        self.changeable && alone && matches!(self.queue, ServedQueue::Fifo(_))
    }

    #[inline]
    fn read_header(&self, queued: &mut QueuedFrame, bytes: &[u8]) {
        if self.reads == HeaderFields::Tag {
            queued.set_pcp(priority_code_point(bytes).unwrap_or(0));
            return;
        }
        if let Some(ip) = IpHeader::parse(bytes) {
            let was_marked = queued.ecn() == Ecn::Marked;
            queued.set_class(ip.dscp, if was_marked { Ecn::Marked } else { ip.ecn });
        }
        if self.reads == HeaderFields::Flow {
            queued.flow = flow_hash(bytes, self.perturbation);
        }
    }

    /// Returns the next decision from events before `limit`. Frames that depart before
    /// `steady_until`, the time of the next change, cross the medium when they are dequeued.
    #[inline]
    pub fn next_decided(
        &mut self,
        (limit, steady_until): (Nanos, Nanos),
        transmitter: &mut Transmitter,
        medium: &mut Medium,
        frames: &impl FrameBytes,
    ) -> Option<(u64, Verdict)> {
        loop {
            // Processing one service at a time bounds the list of unreported decisions, regardless
            // of how late the caller is.
            if let Some(decided) = self.context.decided.pop_front() {
                return Some(decided);
            }
            let at = self.next_event(transmitter).filter(|at| *at < limit)?;
            let decided = match self.departing.take() {
                Some(departing) => {
                    let bytes = frames.bytes(departing.number);
                    let frame_context = departing.context(departing.departure, bytes);
                    self.depart(&departing, frame_context, medium, frames)
                }
                None => {
                    self.ready = None;
                    self.serve((at, steady_until), transmitter, medium, frames)
                }
            };
            if decided.is_some() {
                return decided;
            }
        }
    }

    /// Returns the departure of the frame in service or, if the link is idle, the next dequeue;
    /// [`Nanos::MAX`] means never.
    #[inline]
    pub fn next_event(&mut self, transmitter: &mut Transmitter) -> Option<Nanos> {
        if let Some(departing) = &self.departing {
            return Some(departing.departure);
        }
        if self.stopped {
            return None;
        }
        if self.ready.is_none() {
            if self.context.occupancy().0.0 == 0 {
                return None;
            }
            self.ready = Some(transmitter.ready(self.waiting_since));
        }
        self.ready
    }

    /// Whether no frame has been enqueued.
    pub fn is_new(&self) -> bool {
        self.next_number == 0
    }

    /// Whether frames are aggregated.
    #[inline]
    fn aggregates(&self) -> bool {
        let aggregating = self.aggregating.as_ref();
        aggregating.is_some_and(|aggregating| aggregating.aggregate != Aggregate::ONE)
    }

    pub fn has_decided(&self) -> bool {
        !self.context.decided.is_empty()
    }

    /// Whether frames are dequeued individually in arrival order and every decision has been
    /// reported.
    pub fn is_sequential(&self) -> bool {
        self.is_one_by_one() && !self.stopped && !self.has_decided()
    }

    /// Whether frames are dequeued individually in arrival order.
    #[inline]
    pub fn is_one_by_one(&self) -> bool {
        !self.aggregates() && matches!(self.queue, ServedQueue::Fifo(_))
    }

    /// Returns the reason if the queue dropped the last offered frame. Call this after each offer
    /// to a sequential server.
    #[inline]
    pub fn take_rejected(&mut self) -> Option<DropReason> {
        match self.context.decided.pop_front()? {
            (_, Verdict::Drop(reason)) => Some(reason),
            _ => None,
        }
    }

    /// Whether a frame is queued or in service.
    #[inline]
    pub fn holds_frames(&self) -> bool {
        self.departing.is_some() || self.context.occupancy().0.0 > 0
    }

    /// Starts serving an arriving frame if no undecided frame is ahead of it, under the conditions
    /// of [`Server::next_in_turn`]; equivalent to enqueuing and then serving it. If the frame departs
    /// before `steady_until`, the time of the next change, it also crosses the medium. A frame that
    /// finds the link busy must enter service before that time, and the medium must not depend on the
    /// queue, which is unknown then.
    #[inline(always)]
    pub fn pass_early(
        &mut self,
        frame: FrameMeta,
        steady_until: Nanos,
        transmitter: &mut Transmitter,
        medium: &mut Medium,
    ) -> Option<Verdict> {
        let FrameMeta { arrival, len } = frame;
        let ServedQueue::Fifo(fifo) = &self.queue else {
            return None;
        };
        if self.holds_frames() || self.stopped {
            return None;
        }
        let mut ahead = (0, 0);
        let free_at = transmitter.free_at();
        if free_at > arrival {
            let is_known = free_at < steady_until && medium.ignores_queue() && self.counts_sent();
            if !is_known {
                return None;
            }
            ahead = self.sent.counted(arrival);
        }
        if !fifo.fits(len, ahead, (0, 0)) {
            return None;
        }
        let number = self.next_number;
        self.next_number += 1;
        self.waiting_since = arrival;
        self.ready = None;
        self.raise_occupancy_max((ahead.0 + 1, ahead.1 + u64::from(len)));
        let departing = Departing {
            number,
            arrival,
            len,
            is_marked: false,
            departure: transmitter.depart_exactly(arrival, len),
            delay: Nanos::ZERO,
            waiting: (Packets(0), Bytes(0)),
        };
        self.begin_service(arrival, &departing);
        if departing.departure >= steady_until {
            self.departing = Some(departing);
            return Some(Verdict::Queued);
        }
        self.decided_until = departing.departure;
        Some(pass_plain(&departing, medium))
    }

    /// Takes the queue limit and the counted frames if the server is idle and [`EarlyLink`] supports it.
    ///
    /// [`EarlyLink`]: crate::link::early::EarlyLink
    pub fn load_early(&mut self) -> Option<(QueueLimit, SentFrames)> {
        let ServedQueue::Fifo(fifo) = &self.queue else {
            return None;
        };
        let idle = !self.stopped && !self.has_decided() && !self.holds_frames();
        (self.counts_sent() && idle).then(|| (fifo.limit(), mem::take(&mut self.sent)))
    }

    /// Reverses [`Server::load_early`], after `frames` frames, the last of which arrived at `arrival`.
    pub fn store_early(
        &mut self,
        sent: SentFrames,
        frames: u32,
        arrival: Nanos,
        occupancy_max: (u64, u64),
    ) {
        if frames > 0 {
            let departure = sent.last_departure();
            self.next_number += u64::from(frames);
            self.waiting_since = arrival;
            self.ready = None;
            self.asks_at = departure;
            self.decided_until = departure;
        }
        self.sent = sent;
        self.raise_occupancy_max(occupancy_max);
    }

    #[inline]
    fn raise_occupancy_max(&mut self, (packets, bytes): (u64, u64)) {
        self.occupancy_max.0 = self.occupancy_max.0.max(Packets(packets));
        self.occupancy_max.1 = self.occupancy_max.1.max(Bytes(bytes));
    }

    /// Returns the departure of the last frame that crossed the medium before departing.
    #[inline]
    pub fn decided_until(&self) -> Nanos {
        self.decided_until
    }

    /// Records a frame that enters service at `now` or later.
    #[inline]
    fn begin_service(&mut self, now: Nanos, departing: &Departing) {
        let Departing { departure, len, .. } = *departing;
        if self.changeable {
            self.sent.add(now, departure, len);
        }
        self.asks_at = departure;
    }

    /// Returns the numbers of a sequential server's undecided frames, starting with the frame in
    /// service, and the next frame's number.
    pub fn queued_numbers(&self) -> (impl Iterator<Item = u64>, u64) {
        let fifo = match &self.queue {
            ServedQueue::Fifo(fifo) => Some(fifo),
            ServedQueue::Discipline(_) => None,
        };
        let departing = self.departing.iter().map(|departing| departing.number);
        let numbers = fifo.into_iter().flat_map(ManagedFifo::numbers);
        (departing.chain(numbers), self.next_number)
    }

    /// Returns the queue length in frames and bytes at `now`, an arrival time.
    pub fn occupancy(&self, now: Nanos) -> (Packets, Bytes) {
        let (packets, bytes) = self.context.occupancy();
        let sending = self.counted_sending(now);
        (Packets(packets.0 + sending.0), Bytes(bytes.0 + sending.1))
    }

    pub fn occupancy_max(&self) -> (Packets, Bytes) {
        self.occupancy_max
    }

    /// [`Server::next_decided`] for a sequential server with a plain medium and no rate model.
    /// Omits the cases of `serve` that cannot occur.
    #[inline]
    pub fn next_in_turn(
        &mut self,
        limit: Nanos,
        transmitter: &mut Transmitter,
        medium: &mut Medium,
    ) -> Option<Verdict> {
        loop {
            let at = self.next_event(transmitter).filter(|at| *at < limit)?;
            if let Some(departing) = self.departing.take() {
                return Some(pass_plain(&departing, medium));
            }
            let ServedQueue::Fifo(fifo) = &mut self.queue else {
                return None;
            };
            self.ready = None;
            let first = fifo.pop()?;
            self.context.left(&first);
            let departing = Departing {
                number: first.number,
                arrival: first.arrival,
                len: first.len,
                is_marked: false,
                departure: transmitter.depart_exactly(at, first.len),
                delay: Nanos::ZERO,
                waiting: self.context.occupancy(),
            };
            self.begin_service(at, &departing);
            self.departing = Some(departing);
        }
    }

    /// Dequeues the next frame or aggregate, which also crosses the medium if it departs before the
    /// next change. Returns the verdict directly if it is the only decision, bypassing the list.
    // Reads individual fields of the dequeued frame: copying all of it would stall on recent stores
    // by the discipline.
    fn serve(
        &mut self,
        (at, steady_until): (Nanos, Nanos),
        transmitter: &mut Transmitter,
        medium: &mut Medium,
        frames: &impl FrameBytes,
    ) -> Option<(u64, Verdict)> {
        let Some(first) = self.queue.discipline().dequeue(at, &mut self.context) else {
            self.note_nothing_dequeued();
            return None;
        };
        self.context.left(&first);
        let mut departing = Departing {
            number: first.number,
            arrival: first.arrival,
            len: first.len,
            is_marked: first.is_marked(),
            departure: at,
            delay: Nanos::ZERO,
            waiting: self.context.occupancy(),
        };
        let mut frame_context = departing.context(at, frames.bytes(departing.number));
        departing.departure = if self.aggregates() {
            let wire_bits = self.gather(at, first.len, transmitter);
            let departure = transmitter.serve_bits(&frame_context, wire_bits);
            departing.waiting = self.context.occupancy();
            departure
        } else {
            transmitter.serve(&frame_context, first.len)
        };
        departing.delay = transmitter.delay();
        self.begin_service(at, &departing);
        if self.changeable {
            if departing.departure >= steady_until {
                self.departing = Some(departing);
                return None;
            }
            self.decided_until = departing.departure;
        }
        frame_context.at = departing.departure;
        frame_context.waiting = departing.waiting;
        self.depart(&departing, frame_context, medium, frames)
    }

    /// Passes departing frames, the first with this context, through the medium. Returns the
    /// verdict directly if it is the only decision.
    #[inline(always)]
    fn depart(
        &mut self,
        departing: &Departing,
        frame_context: FrameContext<'_>,
        medium: &mut Medium,
        frames: &impl FrameBytes,
    ) -> Option<(u64, Verdict)> {
        let (number, departure) = (departing.number, departing.departure);
        medium.set_rate_delay(departing.delay);
        let verdict = medium.pass::<false>(departure, departing.is_marked, || frame_context);
        let aggregating = self.aggregating.as_ref();
        let alone = aggregating.is_none_or(|aggregating| aggregating.rest.is_empty());
        if alone && self.context.decided.is_empty() && !has_copies(&verdict) {
            return Some((number, verdict));
        }
        self.decide(number, verdict, medium);
        if !alone {
            self.depart_rest(frame_context, medium, frames);
        }
        None
    }

    /// Passes the remaining frames of an aggregate through the medium.
    #[inline(never)]
    fn depart_rest(
        &mut self,
        first: FrameContext<'_>,
        medium: &mut Medium,
        frames: &impl FrameBytes,
    ) {
        let Some(mut aggregating) = self.aggregating.take() else {
            return;
        };
        for frame in aggregating.rest.drain(..) {
            let frame_context = FrameContext {
                frame: FrameMeta::new(frame.arrival, frame.len),
                bytes: frames.bytes(frame.number),
                ..first
            };
            let verdict = medium.pass::<false>(first.at, frame.is_marked(), || frame_context);
            self.decide(frame.number, verdict, medium);
        }
        self.aggregating = Some(aggregating);
    }

    #[cold]
    fn note_nothing_dequeued(&mut self) {
        if self.context.decided.is_empty() {
            // The discipline broke its contract: stall rather than spin.
            debug_assert!(false, "{:?} holds frames but returns none", self.queue);
            self.ready = Some(Nanos::MAX);
        }
        self.asks_at = Nanos::MAX;
    }

    /// Dequeues the frames of an aggregate after a first one of `len` bytes. Returns the
    /// aggregate's bits on the wire.
    fn gather(&mut self, at: Nanos, len: u32, transmitter: &Transmitter) -> u64 {
        let mut bytes = u64::from(len);
        let mut wire_bits = transmitter.wire_bits(len);
        let Some(aggregating) = &mut self.aggregating else {
            return wire_bits;
        };
        let Aggregating { aggregate, rest } = &mut **aggregating;
        while (rest.len() as u32) + 1 < aggregate.frames && bytes < aggregate.bytes {
            let queue = self.queue.discipline();
            let Some(next) = queue.dequeue(at, &mut self.context) else {
                break;
            };
            self.context.left(&next);
            bytes += u64::from(next.len);
            wire_bits += transmitter.wire_bits(next.len);
            rest.push(next);
        }
        wire_bits
    }

    #[inline(never)]
    fn decide(&mut self, number: u64, verdict: Verdict, medium: &mut Medium) {
        self.context.decided.push_back((number, verdict));
        while let Some(copy) = medium.next_copy() {
            let copy = Verdict::Deliver(copy);
            self.context.decided.push_back((number, copy));
        }
    }
}

/// Passes a frame through a plain medium.
#[inline]
fn pass_plain(departing: &Departing, medium: &mut Medium) -> Verdict {
    let departure = departing.departure;
    medium.pass::<true>(departure, false, || departing.context(departure, &[]))
}

fn has_copies(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Deliver(Delivery { more: true, .. }))
}
