//! The head of a managed queue: takes frames out when the link is ready for
//! them, in event time.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use crate::frame::FrameMeta;
use crate::header::{IpHeader, flow_hash};
use crate::medium::Medium;
use crate::models::queue::{Discipline, LinkFacts, QueueContext, QueuedFrame};
use crate::models::rate::{Aggregate, Transmitter};
use crate::passing::{FrameBytes, Passing};
use crate::random::Stream;
use crate::units::{Bytes, Nanos, Packets};
use crate::verdict::Verdict;

/// A managed queue and what it waits for.
#[derive(Debug)]
pub(crate) struct Server {
    queue: Box<dyn Discipline>,
    context: QueueContext,
    aggregate: Aggregate,
    /// Stirred into flow hashes, so that flows collide differently with
    /// another seed.
    perturbation: u64,
    next_number: u64,
    /// Since when the queue has held a frame.
    waiting_since: Nanos,
    /// When the head is taken out, once that is known.
    ready: Option<Nanos>,
    /// What was decided and not yet told.
    decided: VecDeque<(u64, Verdict)>,
    occupancy_max: (Packets, Bytes),
}

impl Server {
    pub fn new(
        mut queue: Box<dyn Discipline>,
        aggregate: Aggregate,
        facts: &LinkFacts,
        mut stream: Stream,
    ) -> Server {
        let perturbation = stream.next_u64();
        queue.start(facts);
        Server {
            queue,
            context: QueueContext::new(stream),
            aggregate,
            perturbation,
            next_number: 0,
            waiting_since: facts.epoch,
            ready: None,
            decided: VecDeque::new(),
            occupancy_max: (Packets(0), Bytes(0)),
        }
    }

    /// A frame arrives. All events before `frame.arrival` must have been
    /// decided.
    pub fn enqueue(&mut self, frame: FrameMeta, bytes: &[u8]) {
        let ip = IpHeader::parse(bytes);
        let queued = QueuedFrame {
            number: self.next_number,
            arrival: frame.arrival,
            len: frame.len,
            dscp: ip.map_or(0, |ip| ip.dscp),
            ecn: ip.map_or_else(Default::default, |ip| ip.ecn),
            flow: match self.queue.tells_flows_apart() {
                true => flow_hash(bytes, ip.as_ref(), self.perturbation),
                false => 0,
            },
            mark: false,
        };
        self.next_number += 1;
        if self.queue.occupancy().0.0 == 0 {
            self.waiting_since = frame.arrival;
            self.ready = None;
        }
        self.queue.enqueue(frame.arrival, queued, &mut self.context);
        self.note_drops();
        let (packets, bytes) = self.queue.occupancy();
        self.occupancy_max.0 = self.occupancy_max.0.max(packets);
        self.occupancy_max.1 = self.occupancy_max.1.max(bytes);
    }

    /// Decides every event before `now`.
    pub fn advance(
        &mut self,
        now: Nanos,
        transmitter: &mut Transmitter,
        medium: &mut Medium,
        frames: &impl FrameBytes,
    ) {
        while let Some(at) = self.service_at(transmitter).filter(|at| *at < now) {
            self.ready = None;
            self.serve(at, transmitter, medium, frames);
            self.note_drops();
        }
    }

    /// When the next frame is taken out, if one waits.
    #[inline]
    pub fn service_at(&mut self, transmitter: &mut Transmitter) -> Option<Nanos> {
        if self.ready.is_none() {
            if self.queue.occupancy().0.0 == 0 {
                return None;
            }
            self.ready = Some(transmitter.ready(self.waiting_since));
        }
        self.ready
    }

    /// What was decided first of what has not been told.
    #[inline]
    pub fn next_decided(&mut self) -> Option<(u64, Verdict)> {
        self.decided.pop_front()
    }

    pub fn has_decided(&self) -> bool {
        !self.decided.is_empty()
    }

    pub fn occupancy(&self) -> (Packets, Bytes) {
        self.queue.occupancy()
    }

    pub fn occupancy_max(&self) -> (Packets, Bytes) {
        self.occupancy_max
    }

    fn serve(
        &mut self,
        at: Nanos,
        transmitter: &mut Transmitter,
        medium: &mut Medium,
        frames: &impl FrameBytes,
    ) {
        let Some(first) = self.queue.dequeue(at, &mut self.context) else {
            if !self.context.has_drops() {
                // Against its contract; the link stands still rather than
                // spin.
                debug_assert!(false, "{:?} holds frames and gives none", self.queue);
                self.ready = Some(Nanos::MAX);
            }
            return;
        };
        self.note_drops();
        let bytes = frames.bytes(first.number);
        let passing = Passing {
            frame: FrameMeta {
                arrival: first.arrival,
                len: first.len,
            },
            at,
            bytes,
            waiting: self.queue.occupancy(),
        };
        if self.aggregate == Aggregate::ONE {
            let departure = transmitter.serve(&passing, first.len);
            self.deliver(&first, departure, medium, frames);
        } else {
            self.serve_aggregate(first, &passing, transmitter, medium, frames);
        }
    }

    /// The frames that wait now and fit are sent as one and leave together.
    fn serve_aggregate(
        &mut self,
        first: QueuedFrame,
        passing: &Passing<'_>,
        transmitter: &mut Transmitter,
        medium: &mut Medium,
        frames: &impl FrameBytes,
    ) {
        let mut taken = alloc::vec![first];
        let mut bytes = u64::from(first.len);
        let mut wire_bits = transmitter.wire_bits(first.len);
        while (taken.len() as u32) < self.aggregate.frames && bytes < self.aggregate.bytes {
            let Some(next) = self.queue.dequeue(passing.at, &mut self.context) else {
                break;
            };
            bytes += u64::from(next.len);
            wire_bits += transmitter.wire_bits(next.len);
            taken.push(next);
        }
        self.note_drops();
        let departure = transmitter.serve_bits(passing, wire_bits);
        for frame in &taken {
            self.deliver(frame, departure, medium, frames);
        }
    }

    fn deliver(
        &mut self,
        frame: &QueuedFrame,
        departure: Nanos,
        medium: &mut Medium,
        frames: &impl FrameBytes,
    ) {
        let passing = Passing {
            frame: FrameMeta {
                arrival: frame.arrival,
                len: frame.len,
            },
            at: departure,
            bytes: frames.bytes(frame.number),
            waiting: self.queue.occupancy(),
        };
        let verdict = medium.pass(&passing, frame.mark);
        self.decided.push_back((frame.number, verdict));
        while let Some(copy) = medium.next_copy() {
            let copy = Verdict::Deliver(copy);
            self.decided.push_back((frame.number, copy));
        }
    }

    fn note_drops(&mut self) {
        if self.context.has_drops() {
            let drops = self.context.take_drops();
            let verdict = |(number, reason)| (number, Verdict::Drop(reason));
            self.decided.extend(drops.map(verdict));
        }
    }
}
