//! Links that serve frames in arrival order. If the caller stores frames in that order, no frame
//! numbers are needed.

use core::ops::RangeBounds;

use longwire_packet::frame::FrameMeta;
use longwire_units::Nanos;

use super::{Link, LinkQueue, limit_of};
use crate::server::Server;
use crate::verdict::Verdict;

impl Link {
    /// Whether the link is managed and sequential: until changed, it dequeues frames individually
    /// in arrival order, never edits or duplicates them, and never releases out of order.
    pub fn is_sequential(&self) -> bool {
        let served = self.queue.server();
        served.is_some_and(|server| server.is_sequential())
            && !self.is_off
            && self.in_order()
            && !self.changes_frames()
    }

    /// Returns a view for callers that store frames in order. The link must be
    /// [sequential](Link::is_sequential).
    #[inline]
    pub fn in_turn(&mut self) -> SequentialLink<'_> {
        SequentialLink(self)
    }

    /// Offers a frame and starts service without an event, if no undecided frame is ahead of it.
    /// Decides the frame if it departs before `steady_until`, like [`SequentialLink::offer`]. Returns
    /// `None`, without effect, if that is impossible, or if the link has more than a rate, a
    /// tail-drop queue, medium loss and delay. As with [`Link::offer`], all earlier events must have
    /// been processed. Links without a rate are excluded: their frames may depart at their arrival
    /// time, after other frames of that instant.
    #[inline(always)]
    pub(crate) fn offer_early(&mut self, frame: FrameMeta, steady_until: Nanos) -> Option<Verdict> {
        let server = self.queue.server_mut()?;
        let one_by_one = server.is_one_by_one() && !server.has_decided();
        let leaves_later = self.transmitter.takes_time(frame.len);
        if !self.plain || !one_by_one || !leaves_later {
            return None;
        }
        let arrival = frame.arrival.max(self.last_arrival);
        let frame = FrameMeta { arrival, ..frame };
        let (transmitter, medium) = (&mut self.transmitter, &mut self.medium);
        let verdict = server.pass_early(frame, steady_until, transmitter, medium);
        if verdict.is_some() {
            self.last_arrival = arrival;
        }
        verdict
    }

    /// Whether frames are queued or in service.
    #[inline]
    pub(crate) fn holds_frames(&self) -> bool {
        let server = self.queue.server();
        server.is_some_and(|server| server.holds_frames())
    }

    /// Returns the earliest allowed time for a [change](Link::change): after the departures of all
    /// frames that were decided before departing.
    #[inline]
    pub fn changeable_from(&self) -> Nanos {
        let decided = self.queue.server().map(|server| server.decided_until());
        match decided.filter(|at| *at > Nanos::ZERO) {
            Some(at) => at.saturating_add(Nanos::from_nanos(1)),
            None => Nanos::ZERO,
        }
    }

    /// Returns the numbers of a sequential link's frames (queued and in service, in order) and of
    /// the next frame.
    pub(crate) fn queued_numbers(&self) -> (impl Iterator<Item = u64>, u64) {
        let server = self.queue.server();
        let numbers = server.map(|server| server.queued_numbers());
        let next = numbers.as_ref().map_or(0, |(_, next)| *next);
        (numbers.into_iter().flat_map(|(numbers, _)| numbers), next)
    }
}

/// A sequential link whose frames the caller stores in offer order. Avoids frame numbers, dynamic
/// calls and checks for optional models.
#[derive(Debug)]
pub struct SequentialLink<'a>(&'a mut Link);

impl SequentialLink<'_> {
    /// Offers a frame, like [`Link::offer`]. A frame that departs before `steady_until` is decided
    /// immediately if the link is idle, or if no loss is configured, the delay is constant and all
    /// earlier frames are decided. [`SequentialLink::poll`] returns verdicts only for queued frames,
    /// in offer order.
    ///
    /// A [change](Link::change) must not precede [`Link::changeable_from`], so `steady_until` must
    /// not exceed the time of the next change.
    #[inline]
    pub fn offer(&mut self, frame: FrameMeta, bytes: &[u8], steady_until: Nanos) -> Verdict {
        let link = &mut *self.0;
        let rejected = if link.plain
            && let LinkQueue::Managed(server) = &mut link.queue
        {
            let arrival = frame.arrival.max(link.last_arrival);
            let frame = FrameMeta { arrival, ..frame };
            link.last_arrival = arrival;
            let (transmitter, medium) = (&mut link.transmitter, &mut link.medium);
            if let Some(verdict) = server.pass_early(frame, steady_until, transmitter, medium) {
                return verdict;
            }
            server.enqueue(frame, bytes, false, transmitter);
            server.take_rejected()
        } else {
            match link.offer(frame, bytes) {
                Verdict::Queued => link.queue.server_mut().and_then(Server::take_rejected),
                verdict => return verdict,
            }
        };
        rejected.map_or(Verdict::Queued, Verdict::Drop)
    }

    /// Like [`Link::poll`]; verdicts come in offer order.
    #[inline]
    pub fn poll(&mut self, until: impl RangeBounds<Nanos>) -> Option<Verdict> {
        let link = &mut *self.0;
        let server = link.queue.server_mut()?;
        let limit = limit_of(until, &mut link.last_arrival);
        let (transmitter, medium) = (&mut link.transmitter, &mut link.medium);
        if !transmitter.is_modelled() && medium.is_plain() {
            return server.next_in_turn(limit, transmitter, medium);
        }
        let decided = server.next_decided((limit, Nanos::ZERO), transmitter, medium, &());
        decided.map(|(_, verdict)| verdict)
    }

    /// Like [`Link::next_at`].
    #[inline]
    pub fn next_at(&mut self) -> Option<Nanos> {
        self.0.next_at()
    }

    /// Whether frames are queued or in service.
    #[inline]
    pub fn holds_frames(&self) -> bool {
        self.0.holds_frames()
    }

    /// Returns the underlying link.
    #[inline]
    pub fn link(&self) -> &Link {
        self.0
    }
}
