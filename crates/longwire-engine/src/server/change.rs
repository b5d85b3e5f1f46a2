//! Changes to a managed queue.

use core::mem;

use longwire_units::Nanos;
use longwire_units::random::Stream;

use super::{Aggregating, ServedQueue, Server};
use crate::frame_context::FrameBytes;
use crate::models::queue::{Discipline, HeaderFields, LinkFacts, QueueLimit, QueuedFrame};
use crate::models::rate::{Aggregate, Transmitter};
use crate::prelude::*;
use crate::sent::SentFrames;
use crate::verdict::{DropReason, Verdict};

impl Server {
    /// Makes the link changeable: frames cross the medium at departure, and tail drop counts the
    /// frame in service towards the limit, as it does when deciding on arrival.
    pub fn make_changeable(&mut self) {
        self.changeable = true;
    }

    /// Stops dequeuing at `at`. The frame in service still departs.
    pub fn stop(&mut self, at: Nanos) {
        let was_asking = self.asks_at < at;
        if !self.stopped && self.context.occupancy().0.0 == 0 && was_asking {
            self.ask_without_result();
        }
        self.stopped = true;
    }

    /// Resumes service at `at`.
    pub fn resume(&mut self, at: Nanos) {
        self.stopped = false;
        self.waiting_since = self.waiting_since.max(at);
        self.asks_at = self.asks_at.max(at);
        if self.ready.is_some_and(|ready| ready < at) {
            // The service opportunity passed unused.
            self.ready = None;
        }
    }

    /// Drops the frame in service, then all queued frames in arrival order, because the link is
    /// turned off at `at`.
    pub fn lose_all(&mut self, at: Nanos, transmitter: &mut Transmitter) {
        let departing = self.departing.take().map(|departing| departing.number);
        if departing.is_some() {
            transmitter.discard(at);
            self.sent = SentFrames::default();
            self.asks_at = at;
        }
        let rest = self.take_rest();
        let waiting = self.take_all();
        let frames = rest.iter().chain(&waiting).map(|frame| frame.number);
        for number in departing.into_iter().chain(frames) {
            let lost = (number, Verdict::Drop(DropReason::Outage));
            self.context.decided.push_back(lost);
        }
        self.ready = None;
    }

    /// Returns the part of the frame in service, or of the last frame, that is unsent at `at`, in
    /// billionths of a bit.
    pub fn unsent(&self, at: Nanos, transmitter: &Transmitter) -> u128 {
        match &self.departing {
            Some(departing) => transmitter.unsent(at, departing.len),
            None => transmitter.unsent_of_departed(at),
        }
    }

    /// Adapts to a new rate at `at`: sends the remainder of the frame in service at this rate, and
    /// serves the head when the rate allows.
    pub fn rate_changed(
        &mut self,
        at: Nanos,
        aggregate: Aggregate,
        unsent: u128,
        transmitter: &mut Transmitter,
        frames: &impl FrameBytes,
    ) {
        let rest = self.take_rest();
        let has_any = aggregate != Aggregate::ONE || !rest.is_empty();
        self.aggregating = has_any.then(|| Box::new(Aggregating { aggregate, rest }));
        self.waiting_since = self.waiting_since.max(at);
        self.ready = None;
        let Some(departing) = &mut self.departing else {
            transmitter.occupy(at, unsent);
            return;
        };
        let frame_context = departing.context(at, frames.bytes(departing.number));
        departing.departure = transmitter.resume(&frame_context, unsent);
        departing.delay = transmitter.delay();
        self.sent.set_last_departure(departing.departure);
        self.asks_at = departing.departure;
    }

    /// Replaces the queue, moving the queued frames to the new one. Returns the emptied old one.
    pub fn replace_queue(
        &mut self,
        queue: ServedQueue,
        facts: &LinkFacts,
        mut stream: Stream,
        transmitter: &Transmitter,
        frames: &impl FrameBytes,
    ) -> ServedQueue {
        let waiting = self.take_all();
        let old = mem::replace(&mut self.queue, queue);
        self.perturbation = stream.next_u64();
        self.context.stream = stream;
        self.queue.discipline().start(facts);
        self.reads = self.queue.discipline().reads();
        for mut frame in waiting {
            if self.reads != HeaderFields::Nothing {
                let bytes = frames.bytes(frame.number);
                self.read_header(&mut frame, bytes);
            }
            self.admit(facts.epoch, frame, transmitter);
        }
        self.forget_head_if_empty();
        old
    }

    /// Sets the tail-drop limit and [drops excess frames](Server::drop_excess).
    pub fn set_fifo_limit(&mut self, at: Nanos, limit: QueueLimit, transmitter: &Transmitter) {
        let ServedQueue::Fifo(fifo) = &mut self.queue else {
            return;
        };
        fifo.set_limit(limit);
        self.drop_excess(at, transmitter);
    }

    /// If a tail-drop queue exceeds its limit, readmits its frames in arrival order and drops the
    /// frames that do not fit.
    pub fn drop_excess(&mut self, at: Nanos, transmitter: &Transmitter) {
        let sending = self.counted_sending(at);
        if matches!(&self.queue, ServedQueue::Fifo(fifo) if fifo.exceeds(sending)) {
            for frame in self.take_all() {
                self.admit(at, frame, transmitter);
            }
            self.forget_head_if_empty();
        }
    }

    /// Returns the queue limit in effect.
    pub fn limit(&self) -> QueueLimit {
        match &self.queue {
            ServedQueue::Fifo(fifo) => fifo.limit(),
            ServedQueue::Discipline(discipline) => discipline.limit(),
        }
    }

    fn forget_head_if_empty(&mut self) {
        if self.context.occupancy().0.0 == 0 {
            self.ready = None;
        }
    }

    /// Removes the frames of the aggregate in service after the first.
    fn take_rest(&mut self) -> Vec<QueuedFrame> {
        let aggregating = self.aggregating.as_mut();
        aggregating.map_or_else(Vec::new, |aggregating| mem::take(&mut aggregating.rest))
    }

    /// Removes all queued frames, in arrival order.
    fn take_all(&mut self) -> Vec<QueuedFrame> {
        let mut waiting = Vec::new();
        self.queue.discipline().give_up(&mut waiting);
        waiting.sort_unstable_by_key(|frame| frame.number);
        for frame in &waiting {
            self.context.left(frame);
        }
        waiting
    }
}
