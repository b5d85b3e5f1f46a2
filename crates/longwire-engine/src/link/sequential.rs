//! Links that serve frames in the order of their arrival: a caller that keeps the frames
//! in that order needs no numbers.

use longwire_packet::frame::FrameMeta;
use longwire_units::Nanos;

use super::{Link, LinkQueue};
use crate::verdict::Verdict;

impl Link {
    /// Whether the link is managed and sequential: until it is changed, it dequeues
    /// frames one by one in the order of their arrival, leaves their bytes as they are,
    /// duplicates none, and its releases never decrease.
    pub fn is_sequential(&self) -> bool {
        let served = self.queue.server();
        served.is_some_and(|server| server.is_sequential())
            && !self.down
            && self.in_order()
            && !self.changes_frames()
    }

    /// Offers a frame to a sequential link, as [`Link::offer`]. The verdict about a frame
    /// that finds the link idle and departs before `steady_until` is returned at once;
    /// [`Link::poll_in_turn`] returns only those of queued frames, in the order of their
    /// offers.
    ///
    /// A [change](Link::change) must not be earlier than [`Link::changeable_from`], so
    /// `steady_until` must not be later than the next change.
    #[inline]
    pub fn offer_in_turn(
        &mut self,
        frame: FrameMeta,
        bytes: &[u8],
        steady_until: Nanos,
    ) -> Verdict {
        let rejected = if self.plain_apart_from_queue
            && let LinkQueue::Managed(server) = &mut self.queue
        {
            let arrival = frame.arrival.max(self.last_arrival);
            let frame = FrameMeta { arrival, ..frame };
            self.last_arrival = arrival;
            let (transmitter, medium) = (&mut self.transmitter, &mut self.medium);
            if let Some(verdict) = server.pass_idle(frame, steady_until, transmitter, medium) {
                return verdict;
            }
            server.enqueue(frame, bytes, false, transmitter);
            server.take_rejected()
        } else {
            match self.offer(frame, bytes) {
                Verdict::Queued => self
                    .queue
                    .server_mut()
                    .and_then(|server| server.take_rejected()),
                verdict => return verdict,
            }
        };
        rejected.map_or(Verdict::Queued, Verdict::Drop)
    }

    /// Offers a frame that finds the link idle, and begins to serve it at once as the link
    /// would by an event of that instant; decides about it if it departs before
    /// `steady_until`, as [`Link::offer_in_turn`] does. `None`, and no change, unless the
    /// link is idle and has only a rate, a queue with tail drop, loss on the medium and
    /// delay. As [`Link::offer`], it needs all earlier events. A link without a rate is left
    /// out: its frames may leave at the instant of their arrival, after others of that
    /// instant.
    #[inline]
    pub(crate) fn offer_idle(&mut self, frame: FrameMeta, steady_until: Nanos) -> Option<Verdict> {
        let server = self.queue.server_mut()?;
        let one_by_one = server.is_one_by_one() && !server.has_decided();
        let leaves_later = self.transmitter.takes_time(frame.len);
        if !self.plain_apart_from_queue || !one_by_one || !leaves_later {
            return None;
        }
        let arrival = frame.arrival.max(self.last_arrival);
        let frame = FrameMeta { arrival, ..frame };
        let (transmitter, medium) = (&mut self.transmitter, &mut self.medium);
        let verdict = server.pass_idle(frame, steady_until, transmitter, medium)?;
        self.last_arrival = arrival;
        Some(verdict)
    }

    /// Whether frames are queued or in service.
    #[inline]
    pub fn holds_frames(&self) -> bool {
        let server = self.queue.server();
        server.is_some_and(|server| server.holds_frames())
    }

    /// Returns the earliest time of a [change](Link::change): later than the departures of
    /// the frames that the link has decided about when they were offered.
    #[inline]
    pub fn changeable_from(&self) -> Nanos {
        let decided = self.queue.server().map(|server| server.decided_until());
        match decided.filter(|at| *at > Nanos::ZERO) {
            Some(at) => at.saturating_add(Nanos::from_nanos(1)),
            None => Nanos::ZERO,
        }
    }

    /// As [`Link::poll`], for a sequential link: verdicts come in the order of the offers.
    #[inline]
    pub fn poll_in_turn(&mut self, now: Nanos) -> Option<Verdict> {
        let now = self.last_arrival.max(now);
        self.last_arrival = now;
        self.next_in_turn(|at| at <= now && at < Nanos::MAX)
    }

    /// As [`Link::poll_before`], for a sequential link.
    #[inline]
    pub fn poll_in_turn_before(&mut self, now: Nanos) -> Option<Verdict> {
        self.last_arrival = self.last_arrival.max(now);
        self.next_in_turn(|at| at < now)
    }

    #[inline]
    fn next_in_turn(&mut self, happens: impl Fn(Nanos) -> bool) -> Option<Verdict> {
        let is_plain = self.plain_apart_from_queue;
        let (transmitter, medium) = (&mut self.transmitter, &mut self.medium);
        let server = self.queue.server_mut()?;
        if is_plain || !transmitter.is_modelled() && medium.is_plain() {
            return server.next_in_turn(happens, transmitter, medium);
        }
        let decided = server.next_decided(happens, transmitter, medium, &());
        decided.map(|(_, verdict)| verdict)
    }

    /// Returns the numbers of the frames of a sequential link that are queued or in
    /// service, in order, and that of the next frame.
    pub(crate) fn queued_numbers(&self) -> (impl Iterator<Item = u64>, u64) {
        let server = self.queue.server();
        let numbers = server.map(|server| server.queued_numbers());
        let next = numbers.as_ref().map_or(0, |(_, next)| *next);
        (numbers.into_iter().flat_map(|(numbers, _)| numbers), next)
    }
}
