//! Lanes: links together with their queued frames.

use core::mem;
use core::ops::RangeBounds;

use longwire_packet::frame::FrameMeta;
use longwire_units::Nanos;

use crate::held::{HeldBytes, HeldItems};
use crate::link::early::EarlyLink;
use crate::link::{Link, LinkChange, ReplacedParts, SequentialLink};
use crate::verdict::{Delivery, DropReason, Verdict};

/// Access to frame bytes; by default, no bytes are available. `T` is the caller's frame handle.
pub trait FrameAccess<T> {
    /// Returns the frame's bytes; empty if unavailable.
    #[inline]
    fn bytes<'a>(&'a self, _item: &'a T) -> &'a [u8] {
        &[]
    }

    /// Edits a frame's bytes, copying them first if other handles share them.
    fn edit(&mut self, _item: &mut T, _edit: &mut dyn FnMut(&mut [u8])) {}

    /// Returns another handle to the same frame, for an additional delivery.
    fn copy(&mut self, item: &mut T) -> T;
}

/// A lane's interface to its caller: frame access and per-frame events.
pub trait LaneHost<T>: FrameAccess<T> {
    /// Returns the time until which the link stays unchanged, or `None` if [`LaneHost::offered`]
    /// must be called for every frame. Frames that depart before that time may be decided on
    /// arrival, without a call to `offered`.
    #[inline]
    fn steady_until(&self) -> Option<Nanos> {
        None
    }

    /// Called when a frame has been offered to the link, before its decision is reported.
    #[inline]
    fn offered(&mut self, _item: &mut T, _frame: FrameMeta, _link: &Link) {}

    /// Called when the link's router answers a frame with an ICMP error, before the frame is
    /// dropped. `error` is a frame to send from the dropped frame's ingress port.
    fn icmp_error(&mut self, _item: &T, _at: Nanos, _error: &[u8]) {}

    /// Called for each delivery. `is_duplicate` is set for all deliveries of a frame but the first.
    fn delivered(&mut self, item: T, delivery: &Delivery, is_duplicate: bool);

    /// Called for each drop.
    fn dropped(&mut self, item: T, reason: DropReason);
}

/// A link with its queued frames. Edits and copies frames according to the link's decisions, and
/// reports each decision to a [`LaneHost`].
#[derive(Debug)]
pub struct Lane<T> {
    link: Link,
    held: HeldItems<T>,
}

impl<T> Lane<T> {
    /// Creates a lane with no queued frames.
    pub fn new(link: Link) -> Lane<T> {
        Lane {
            link,
            held: HeldItems::new(),
        }
    }

    /// Returns the link.
    #[inline]
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// Returns a sequential view of the link, for use without the lane.
    #[inline]
    pub(crate) fn in_turn(&mut self) -> SequentialLink<'_> {
        self.link.in_turn()
    }

    /// Moves the link's state to `early`, if idle and supported.
    pub(crate) fn load_early(&mut self, early: &mut EarlyLink) {
        if self.held.is_empty() {
            early.load(&mut self.link);
        }
    }

    /// Reverses [`Lane::load_early`].
    pub(crate) fn store_early(&mut self, early: &mut EarlyLink) {
        let frames = early.store(&mut self.link);
        if frames > 0 {
            self.held.skip(frames);
        }
    }

    /// Returns the number of frames whose decisions have not been reported.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether all decisions have been reported.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Offers a frame without a handle. `None`, without effect, if the link may queue, edit or copy
    /// frames.
    #[inline(always)]
    pub fn offer_plain(&mut self, frame: &FrameMeta, bytes: &[u8]) -> Option<Verdict> {
        self.link.offer_plain(frame, bytes)
    }

    /// Offers a frame to the link. The lane must have been [polled](Lane::poll) up to and including
    /// the frame's arrival. Returns `false` if neither the pending decisions nor the next event
    /// changed.
    #[inline]
    pub fn offer(&mut self, frame: FrameMeta, mut item: T, host: &mut impl LaneHost<T>) -> bool {
        if let Some(steady_until) = host.steady_until() {
            // By reference: copying would stall on fields that were just written.
            match &self.link.offer_early(frame, steady_until) {
                None => {}
                Some(Verdict::Queued) => {
                    self.held.push(item);
                    return true;
                }
                Some(Verdict::Deliver(delivery)) => {
                    self.held.skip(1);
                    host.delivered(item, delivery, false);
                    return false;
                }
                Some(Verdict::Drop(reason)) => {
                    self.held.skip(1);
                    host.dropped(item, *reason);
                    return false;
                }
            }
        }
        if let Some(verdict) = self.link.offer_plain(&frame, host.bytes(&item)) {
            host.offered(&mut item, frame, &self.link);
            match &verdict {
                Verdict::Deliver(delivery) => host.delivered(item, delivery, false),
                Verdict::Drop(reason) => host.dropped(item, *reason),
                Verdict::Queued => {}
            }
            return true;
        }
        self.offer_with_all(frame, item, host);
        true
    }

    /// Offers a frame to a link that may queue, edit or copy it, or answer it with an ICMP error.
    //
    // Not inlined, to keep the code for plain links straight-line.
    #[inline(never)]
    fn offer_with_all(&mut self, frame: FrameMeta, mut item: T, host: &mut impl LaneHost<T>) {
        let verdict = self.link.decide_with_all(frame, host.bytes(&item));
        host.offered(&mut item, frame, &self.link);
        match &verdict {
            Verdict::Queued => self.held.push(item),
            Verdict::Deliver(delivery) if delivery.more || delivery.edits.any() => {
                self.deliver_changed(item, *delivery, host);
            }
            Verdict::Deliver(delivery) => host.delivered(item, delivery, false),
            Verdict::Drop(reason) => {
                if let Some(error) = self.link.icmp_error() {
                    host.icmp_error(&item, frame.arrival, error);
                }
                host.dropped(item, *reason);
            }
        }
    }

    /// Reports the deliveries of a frame that was edited or duplicated on arrival.
    #[inline(never)]
    fn deliver_changed(
        &mut self,
        mut item: T,
        mut delivery: Delivery,
        host: &mut impl LaneHost<T>,
    ) {
        if delivery.edits.any() {
            let link = &mut self.link;
            host.edit(&mut item, &mut |bytes| link.edit(&delivery, bytes));
        }
        let mut is_duplicate = false;
        while delivery.more {
            let copy = host.copy(&mut item);
            host.delivered(copy, &delivery, is_duplicate);
            is_duplicate = true;
            match self.link.next_copy() {
                Some(next) => delivery = next,
                None => break,
            }
        }
        host.delivered(item, &delivery, is_duplicate);
    }

    /// Reports decisions up to a time. Poll `..=now` before offering a frame that arrives at `now`,
    /// and `..at` before a change at `at`, so that the change precedes events at `at`. Polling late
    /// changes no decision.
    #[inline]
    pub fn poll(&mut self, until: impl RangeBounds<Nanos> + Clone, host: &mut impl LaneHost<T>) {
        let mut is_duplicate = false;
        while self.report_next(until.clone(), &mut is_duplicate, host) {}
    }

    /// Like [`Lane::poll`], but stops once the lane is empty.
    pub(crate) fn poll_held(
        &mut self,
        until: impl RangeBounds<Nanos> + Clone,
        host: &mut impl LaneHost<T>,
    ) {
        let mut is_duplicate = false;
        while !self.is_empty() && self.report_next(until.clone(), &mut is_duplicate, host) {}
    }

    /// Reports drops caused by the last offered frame.
    #[inline]
    pub(crate) fn report_drops(&mut self, arrival: Nanos, host: &mut impl LaneHost<T>) {
        if self.link.has_decided() {
            self.poll(..arrival, host);
        }
    }

    /// Reports the next decision; returns `false` if there is none. `is_duplicate` is set once the
    /// frame has been delivered. All deliveries of a frame are consecutive.
    #[inline]
    fn report_next(
        &mut self,
        until: impl RangeBounds<Nanos>,
        is_duplicate: &mut bool,
        host: &mut impl LaneHost<T>,
    ) -> bool {
        let frames = HeldBytes {
            held: &self.held,
            of: &*host,
        };
        // By reference: a copy would stall on recently written fields.
        let steady_until = host.steady_until().unwrap_or_default();
        let polled = self.link.poll_steady(until, steady_until, &frames);
        let Some((number, verdict)) = &polled else {
            return false;
        };
        let delivery = match verdict {
            Verdict::Deliver(delivery) => delivery,
            Verdict::Drop(reason) => {
                if let Some(item) = self.held.take(*number) {
                    host.dropped(item, *reason);
                }
                return true;
            }
            Verdict::Queued => return true,
        };
        let was_delivered = mem::replace(is_duplicate, delivery.more);
        if delivery.edits.any()
            && !was_delivered
            && let Some(item) = self.held.get_mut(*number)
        {
            let link = &mut self.link;
            host.edit(item, &mut |bytes| link.edit(delivery, bytes));
        }
        let item = if delivery.more {
            self.held.get_mut(*number).map(|item| host.copy(item))
        } else {
            self.held.take(*number)
        };
        if let Some(item) = item {
            host.delivered(item, delivery, was_delivered);
        }
        true
    }

    /// Returns the time at which [`Lane::poll`] will next report a decision if no frame arrives
    /// first.
    #[inline]
    pub fn next_at(&mut self) -> Option<Nanos> {
        self.link.next_at()
    }

    /// [Changes](Link::change) the link at `at`, after all earlier events, and reports the
    /// resulting drops.
    pub fn change(
        &mut self,
        at: Nanos,
        change: LinkChange,
        host: &mut impl LaneHost<T>,
    ) -> ReplacedParts {
        self.poll(..at, host);
        let frames = HeldBytes {
            held: &self.held,
            of: &*host,
        };
        let replaced = self.link.change(at, change, &frames);
        self.poll(..at, host);
        replaced
    }

    /// Appends the queued frames of a sequential link to the lane's frames, in order. Returns their
    /// number.
    pub(crate) fn take_over(&mut self, items: impl IntoIterator<Item = T>) -> u64 {
        let (numbers, next_number) = self.link.queued_numbers();
        let mut taken = 0;
        for (number, item) in numbers.skip(self.held.len()).zip(items) {
            taken += 1;
            self.held.push_numbered(number, item);
        }
        self.held.skip_to(next_number);
        taken
    }
}
