//! The head of a managed queue: dequeues frames when the link is ready for them, in
//! event time.

use alloc::boxed::Box;
use alloc::vec::Vec;

use longwire_packet::frame::FrameMeta;
use longwire_packet::flow_hash::flow_hash;
use longwire_packet::header::IpHeader;
use longwire_units::random::Stream;
use longwire_units::{Bytes, Nanos, Packets};

use crate::frame_context::{FrameBytes, FrameContext};
use crate::medium::Medium;
use crate::models::queue::fifo::ManagedFifo;
use crate::models::queue::{Discipline, HeaderFields, LinkFacts, QueueContext, QueuedFrame};
use crate::models::rate::{Aggregate, Transmitter};
use crate::verdict::{Delivery, DropReason, Verdict};

mod change;

/// A managed queue and the state of its service.
#[derive(Debug)]
pub(crate) struct Server {
    queue: ServedQueue,
    reads: HeaderFields,
    context: QueueContext,
    /// Present if several frames are sent as one.
    aggregating: Option<Box<Aggregating>>,
    /// Mixed into flow hashes, so that flows collide differently with another seed.
    perturbation: u64,
    next_number: u64,
    /// Since when the queue has held a frame.
    waiting_since: Nanos,
    /// When the head is dequeued, once that is known.
    ready: Option<Nanos>,
    /// When the free link next asks for a frame; after an empty dequeue, at the next
    /// arrival.
    asks_at: Option<Nanos>,
    /// The link is paused or down: no frame is dequeued.
    stopped: bool,
    /// In a changeable link: the frame in service, which a tail-drop queue of such a
    /// link counts until it has departed.
    sending: Option<FrameInService>,
    counts_sending: bool,
    occupancy_max: (Packets, Bytes),
}

/// How frames are sent together.
#[derive(Debug)]
struct Aggregating {
    aggregate: Aggregate,
    /// The frames of one aggregate; reused memory.
    taken: Vec<QueuedFrame>,
}

impl Aggregating {
    /// Returns the state for this aggregate; `None` if frames are sent one by one.
    fn new(aggregate: Aggregate) -> Option<Box<Aggregating>> {
        let taken = Vec::new();
        (aggregate != Aggregate::ONE).then(|| Box::new(Aggregating { aggregate, taken }))
    }
}

/// The queue of a managed link.
#[derive(Debug)]
pub(crate) enum ServedQueue {
    /// First in, first out, with tail drop.
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

/// The frame in service.
#[derive(Clone, Copy, Debug)]
struct FrameInService {
    departure: Nanos,
    len: u32,
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
            asks_at: None,
            stopped: false,
            sending: None,
            counts_sending: false,
            occupancy_max: (Packets(0), Bytes(0)),
        }
    }

    /// Adds an arriving frame. All events up to and including `frame.arrival` must have
    /// been decided: frames that the link can dequeue at that instant are no longer in
    /// the queue.
    #[inline]
    pub fn enqueue(&mut self, frame: FrameMeta, bytes: &[u8], transmitter: &Transmitter) {
        debug_assert!(
            self.stopped || self.ready.is_none_or(|at| at > frame.arrival),
            "a frame was offered before the link was polled up to its arrival"
        );
        let mut queued = QueuedFrame::new(self.next_number, frame);
        if self.reads != HeaderFields::Nothing {
            self.read_header(&mut queued, bytes);
        }
        self.next_number += 1;
        if self.context.occupancy().0.0 == 0 {
            self.waiting_since = frame.arrival;
            self.ready = None;
            if !self.stopped && self.asks_at.is_some_and(|at| at <= frame.arrival) {
                self.ask_without_result();
            }
            self.asks_at = self.asks_at.or(Some(frame.arrival));
        }
        self.admit(frame.arrival, queued, transmitter);
        if self.context.occupancy().0.0 == 0 {
            // The head may just have been dropped.
            self.ready = None;
        }
        let (packets, bytes) = self.occupancy(frame.arrival);
        self.occupancy_max.0 = self.occupancy_max.0.max(packets);
        self.occupancy_max.1 = self.occupancy_max.1.max(bytes);
    }

    /// Notifies the discipline that the link has asked an empty queue for a frame.
    #[inline]
    fn ask_without_result(&mut self) {
        self.queue.discipline().idle();
        self.asks_at = None;
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
            if self.stopped || !self.counts_sending {
                (0, 0)
            } else {
                // As with tail drop decided at arrival, these are no longer in the queue.
                transmitter.gone_at_once(now, fifo.lengths())
            }
        };
        if fifo.fits(frame.len, sending, (0, 0)) || fifo.fits(frame.len, sending, gone(fifo)) {
            fifo.push(frame);
        } else {
            self.context.dropped(&frame, DropReason::QueueFull);
        }
    }

    /// Returns the frames and bytes that a tail-drop queue counts in addition to those
    /// it holds.
    #[inline]
    fn counted_sending(&self, now: Nanos) -> (u64, u64) {
        match &self.sending {
            Some(sending) if sending.departure > now && self.counts_frame_sent() => {
                (1, u64::from(sending.len))
            }
            _ => (0, 0),
        }
    }

    #[inline]
    fn counts_frame_sent(&self) -> bool {
        let alone = self.aggregating.is_none();
        self.counts_sending && alone && matches!(self.queue, ServedQueue::Fifo(_))
    }

    #[inline]
    fn read_header(&self, queued: &mut QueuedFrame, bytes: &[u8]) {
        if let Some(ip) = IpHeader::parse(bytes) {
            queued.set_class(ip.dscp, ip.ecn);
        }
        if self.reads == HeaderFields::Flow {
            queued.flow = flow_hash(bytes, self.perturbation);
        }
    }

    /// Returns the next decision by events at which `happens` is true: all up to one
    /// instant.
    #[inline]
    pub fn next_decided(
        &mut self,
        happens: impl Fn(Nanos) -> bool,
        transmitter: &mut Transmitter,
        medium: &mut Medium,
        frames: &impl FrameBytes,
    ) -> Option<(u64, Verdict)> {
        loop {
            // One service at a time: the list of unreported decisions stays short,
            // however late the call.
            if let Some(decided) = self.context.decided.pop_front() {
                return Some(decided);
            }
            let at = self.service_at(transmitter).filter(|at| happens(*at))?;
            self.ready = None;
            let decided = self.serve(at, transmitter, medium, frames);
            if decided.is_some() {
                return decided;
            }
        }
    }

    /// Returns when the next frame is dequeued, if one waits; [`Nanos::MAX`] is never.
    #[inline]
    pub fn service_at(&mut self, transmitter: &mut Transmitter) -> Option<Nanos> {
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

    pub fn has_decided(&self) -> bool {
        !self.context.decided.is_empty()
    }

    /// Whether frames are dequeued one by one in the order of their arrival, and
    /// all decisions so far have been returned.
    pub fn is_sequential(&self) -> bool {
        self.is_one_by_one() && !self.stopped && !self.has_decided()
    }

    /// Whether frames are dequeued one by one, in the order of their arrival.
    #[inline]
    pub fn is_one_by_one(&self) -> bool {
        self.aggregating.is_none() && matches!(self.queue, ServedQueue::Fifo(_))
    }

    /// Returns the reason for which the queue has dropped the frame that it was offered
    /// last, if it did. To be called after each offer to a sequential server.
    #[inline]
    pub fn take_rejected(&mut self) -> Option<DropReason> {
        match self.context.decided.pop_front()? {
            (_, Verdict::Drop(reason)) => Some(reason),
            _ => None,
        }
    }

    /// Whether the queue holds a frame.
    #[inline]
    pub fn has_queued(&self) -> bool {
        self.context.occupancy().0.0 > 0
    }

    /// Serves an arriving frame at once if the link is idle, under the conditions of
    /// [`Server::next_in_turn`]. It does what enqueuing and serving it would do.
    #[inline]
    pub fn pass_idle(
        &mut self,
        frame: FrameMeta,
        transmitter: &mut Transmitter,
        medium: &mut Medium,
    ) -> Option<Verdict> {
        let FrameMeta { arrival, len } = frame;
        let ServedQueue::Fifo(fifo) = &self.queue else {
            return None;
        };
        let is_idle = !self.has_queued() && !self.stopped && transmitter.free_at() <= arrival;
        if !is_idle || !fifo.fits(len, (0, 0), (0, 0)) {
            return None;
        }
        self.next_number += 1;
        self.waiting_since = arrival;
        self.ready = None;
        self.occupancy_max.0 = self.occupancy_max.0.max(Packets(1));
        self.occupancy_max.1 = self.occupancy_max.1.max(Bytes(len.into()));
        let departure = transmitter.depart_exactly(arrival, len);
        self.begin_service(departure, len);
        let frame_context = || FrameContext {
            frame,
            at: departure,
            bytes: &[],
            waiting: (Packets(0), Bytes(0)),
        };
        Some(medium.pass::<true>(departure, false, frame_context))
    }

    /// Notes that the frame of `len` bytes that was dequeued departs at `departure`.
    #[inline]
    fn begin_service(&mut self, departure: Nanos, len: u32) {
        if self.counts_sending {
            self.sending = Some(FrameInService { departure, len });
        }
        self.asks_at = Some(departure);
    }

    /// Returns the numbers of the queued frames of a sequential server, the head first,
    /// and the number of the next frame.
    pub fn queued_numbers(&self) -> (impl Iterator<Item = u64>, u64) {
        let fifo = match &self.queue {
            ServedQueue::Fifo(fifo) => Some(fifo),
            ServedQueue::Discipline(_) => None,
        };
        let numbers = fifo.into_iter().flat_map(ManagedFifo::numbers);
        (numbers, self.next_number)
    }

    /// Returns the frames and bytes held as of `now`, an arrival's time.
    pub fn occupancy(&self, now: Nanos) -> (Packets, Bytes) {
        let (packets, bytes) = self.context.occupancy();
        let sending = self.counted_sending(now);
        (Packets(packets.0 + sending.0), Bytes(bytes.0 + sending.1))
    }

    pub fn occupancy_max(&self) -> (Packets, Bytes) {
        self.occupancy_max
    }

    /// As [`Server::next_decided`], for a sequential server with a transmitter without a
    /// model and a plain medium. It does what `serve` does, without what cannot be.
    #[inline]
    pub fn next_in_turn(
        &mut self,
        happens: impl Fn(Nanos) -> bool,
        transmitter: &mut Transmitter,
        medium: &mut Medium,
    ) -> Option<Verdict> {
        let at = self.service_at(transmitter).filter(|at| happens(*at))?;
        let ServedQueue::Fifo(fifo) = &mut self.queue else {
            return None;
        };
        self.ready = None;
        let first = fifo.pop()?;
        self.context.left(&first);
        let departure = transmitter.depart_exactly(at, first.len);
        self.begin_service(departure, first.len);
        let waiting = self.context.occupancy();
        let frame_context = || FrameContext {
            frame: FrameMeta {
                arrival: first.arrival,
                len: first.len,
            },
            at: departure,
            bytes: &[],
            waiting,
        };
        Some(medium.pass::<true>(departure, false, frame_context))
    }

    /// Dequeues the next frame. Returns its verdict if that is the only decision, which
    /// saves the detour over the list.
    //
    // Only fields of the dequeued frame are used: a copy of it as a whole would wait for
    // its fields, which the discipline has just written.
    fn serve(
        &mut self,
        at: Nanos,
        transmitter: &mut Transmitter,
        medium: &mut Medium,
        frames: &impl FrameBytes,
    ) -> Option<(u64, Verdict)> {
        if self.aggregating.is_some() {
            self.serve_aggregate(at, transmitter, medium, frames);
            return None;
        }
        let Some(first) = self.queue.discipline().dequeue(at, &mut self.context) else {
            self.note_nothing_dequeued();
            return None;
        };
        self.context.left(&first);
        let (number, len, mark) = (first.number, first.len, first.is_marked());
        let frame_context = FrameContext {
            frame: FrameMeta::new(first.arrival, len),
            at,
            bytes: frames.bytes(number),
            waiting: self.context.occupancy(),
        };
        let departure = transmitter.serve(&frame_context, len);
        self.begin_service(departure, len);
        let frame_context = FrameContext {
            at: departure,
            ..frame_context
        };
        medium.set_rate_delay(transmitter.delay());
        let verdict = medium.pass::<false>(departure, mark, || frame_context);
        if self.context.decided.is_empty() && !has_copies(&verdict) {
            return Some((number, verdict));
        }
        self.decide(number, verdict, medium);
        None
    }

    #[cold]
    fn note_nothing_dequeued(&mut self) {
        if self.context.decided.is_empty() {
            // Against its contract; the link stalls rather than spins.
            debug_assert!(false, "{:?} holds frames and gives none", self.queue);
            self.ready = Some(Nanos::MAX);
        }
        self.asks_at = None;
    }

    /// Sends the queued frames that fit as one aggregate; they depart together.
    fn serve_aggregate(
        &mut self,
        at: Nanos,
        transmitter: &mut Transmitter,
        medium: &mut Medium,
        frames: &impl FrameBytes,
    ) {
        let Some(first) = self.queue.discipline().dequeue(at, &mut self.context) else {
            return self.note_nothing_dequeued();
        };
        let Some(mut aggregating) = self.aggregating.take() else {
            return;
        };
        let Aggregating { aggregate, taken } = &mut *aggregating;
        self.context.left(&first);
        let frame_context = FrameContext {
            frame: FrameMeta::new(first.arrival, first.len),
            at,
            bytes: frames.bytes(first.number),
            waiting: self.context.occupancy(),
        };
        taken.push(first);
        let mut bytes = u64::from(first.len);
        let mut wire_bits = transmitter.wire_bits(first.len);
        while (taken.len() as u32) < aggregate.frames && bytes < aggregate.bytes {
            let queue = self.queue.discipline();
            let Some(next) = queue.dequeue(at, &mut self.context) else {
                break;
            };
            self.context.left(&next);
            bytes += u64::from(next.len);
            wire_bits += transmitter.wire_bits(next.len);
            taken.push(next);
        }
        let departure = transmitter.serve_bits(&frame_context, wire_bits);
        medium.set_rate_delay(transmitter.delay());
        self.asks_at = Some(departure);
        for frame in taken.drain(..) {
            let frame_context = FrameContext {
                frame: FrameMeta::new(frame.arrival, frame.len),
                at: departure,
                bytes: frames.bytes(frame.number),
                waiting: self.context.occupancy(),
            };
            let verdict = medium.pass::<false>(departure, frame.is_marked(), || frame_context);
            self.decide(frame.number, verdict, medium);
        }
        self.aggregating = Some(aggregating);
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

fn has_copies(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Deliver(Delivery { more: true, .. }))
}
