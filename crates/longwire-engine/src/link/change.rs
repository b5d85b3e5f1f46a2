//! Changes a running link, in event time.

use core::mem;

use longwire_units::random::{Purpose, Stream};
use longwire_units::{BitRate, Nanos};

use super::building::{start_rewriting, start_router};
use super::{Link, LinkChange, LinkConfig, LinkQueue, LinkState};
use crate::frame_context::FrameBytes;
use crate::losses::Losses;
use crate::models::Described;
use crate::models::loss::LossPlace;
use crate::models::queue::fifo::ManagedFifo;
use crate::models::queue::{LinkFacts, Queue, QueueLimit, TailDrop};
use crate::models::rate::{RateModel, Transmitter};
use crate::models::rewrite::RewriteModel;
use crate::origin::Origin;
use crate::prelude::*;
use crate::server::{ServedQueue, Server};

/// Parts replaced by a change. Drop them off the hot path: models may hold many megabytes of trace.
#[derive(Debug, Default)]
#[must_use = "drop it off the hot path"]
pub struct ReplacedParts {
    _rate: Option<Box<dyn RateModel>>,
    _queue: Option<ServedQueue>,
    _losses: [Option<Losses>; 2],
    _models: LinkChange,
    _rewrite: Vec<(Described<dyn RewriteModel>, Stream)>,
}

/// State present only in changeable links.
#[derive(Debug)]
pub(super) struct ChangeState {
    /// Origin set by the latest change.
    origin: Origin,
    state: LinkState,
    /// Whether the queue limit is derived from rate and delay.
    derived: bool,
    rate: Option<BitRate>,
    delay: Nanos,
}

impl ChangeState {
    pub fn new(config: &LinkConfig, origin: Origin) -> ChangeState {
        ChangeState {
            origin,
            state: LinkState::On,
            derived: config.queue.is_none(),
            rate: config.rate.bit_rate(),
            delay: config.delay.mean(),
        }
    }

    fn derived_limit(&self) -> QueueLimit {
        QueueLimit::derived(self.rate, self.delay)
    }
}

impl Link {
    /// Changes the link at `at`, between two events. The link must have been created by
    /// [`Link::new_changeable`] and [polled](Link::poll) for events before `at` until it returned
    /// `None`. The change precedes events at `at`, except those that earlier offers and polls have
    /// processed. If the queue is replaced, `frames` provides the headers of queued frames, and
    /// [`Link::poll`] returns the resulting drops. An `at` before the latest arrival, poll or
    /// change counts as that time.
    ///
    /// * **In transit.** Deliveries that were already returned stay valid. They must have been
    ///   [edited](Link::edit) before the change.
    /// * **In service.** The frame in service departs at or after `at` and crosses the changed
    ///   medium. A new rate sends the remainder of the frame from `at` on, exact to a billionth of
    ///   a bit, if the old rate was fixed, `steps` or `trace`. Other rate models have no partial
    ///   progress, so the frame is sent again from the start.
    /// * **Framing** applies to frames dequeued at or after `at`.
    /// * **Queue.** The new queue receives the queued frames in arrival order, as if all arrived at
    ///   `at`. Frames that it rejects are dropped with its usual reason ([`DropReason::QueueFull`]
    ///   for tail drop). Sojourn times start at the original arrivals. A derived limit is
    ///   recomputed when rate or delay changes; if it falls below the backlog, queued frames are
    ///   readmitted in arrival order.
    /// * **Models.** Replacements start at `at`: their schedules begin at `at`, and their random
    ///   streams derive from seed, link, purpose and change number. A queue discipline that is kept
    ///   retains its initial rate.
    /// * **Delay and order.** In order, releases never decrease, even across delay changes. When
    ///   the order changes from `reorder` to `in-order`, later frames are not released before
    ///   frames that departed earlier, except frames displaced on purpose.
    /// * **Off.** Arrivals are dropped with [`DropReason::Outage`] before any model processes them;
    ///   queued frames and the frame in service are dropped at `at`. When the link is turned on
    ///   again, the transmitter is free at `at`; rate models other than `steps` and `trace` serve
    ///   the next frame when they would have served it after the discarded one.
    /// * **Paused.** No frame is dequeued; arrivals queue as usual. On resume, service starts at
    ///   `at`. Transmission opportunities during the pause are lost.
    ///
    /// [`Link::changes_frames`], [`Link::fragments`], [`Link::in_order`] and [`Link::poll_slack`]
    /// may return different values afterwards.
    ///
    /// On a link that is not changeable, this is a no-op.
    ///
    /// [`DropReason::Outage`]: crate::DropReason::Outage
    /// [`DropReason::QueueFull`]: crate::DropReason::QueueFull
    pub fn change(
        &mut self,
        at: Nanos,
        mut change: LinkChange,
        frames: &impl FrameBytes,
    ) -> ReplacedParts {
        debug_assert!(self.changing.is_some(), "the link is not changeable");
        let Some(mut changing) = self.changing.take() else {
            return ReplacedParts::default();
        };
        let placeholder = LinkQueue::AtArrival(TailDrop::new(QueueLimit::UNLIMITED));
        let mut server = match mem::replace(&mut self.queue, placeholder) {
            LinkQueue::Managed(server) => server,
            queue @ LinkQueue::AtArrival(_) => {
                debug_assert!(false, "a changeable link without a managed queue");
                self.queue = queue;
                return ReplacedParts::default();
            }
        };
        self.last_arrival = self.last_arrival.max(at);
        changing.origin.epoch = self.last_arrival;
        changing.origin.change += 1;
        let origin = changing.origin;
        self.mtu = change.mtu.unwrap_or(self.mtu);
        let delay = change.delay.as_ref().map(|delay| delay.mean());
        changing.delay = delay.unwrap_or(changing.delay);
        let rate = self.change_rate(&mut change, &mut changing, &mut server, frames);
        let queue = match change.queue.take() {
            Some(queue) => {
                let held = changing.held(queue);
                let (facts, stream) = (changing.facts(), origin.stream(Purpose::Queue));
                let transmitter = &self.transmitter;
                Some(server.replace_queue(held, &facts, stream, transmitter, frames))
            }
            None if changing.derived => {
                let limit = changing.derived_limit();
                server.set_fifo_limit(origin.epoch, limit, &self.transmitter);
                None
            }
            None => {
                server.drop_excess(origin.epoch, &self.transmitter);
                None
            }
        };
        let state = change.state.take();
        let replaced = self.change_models(change, rate, queue, &origin);
        if let Some(state) = state {
            changing.set_state(state, &mut server, &mut self.transmitter);
        }
        self.is_off = changing.state == LinkState::Off;
        self.queue = LinkQueue::Managed(server);
        self.changing = Some(changing);
        self.note_plainness();
        replaced
    }

    /// Returns the origin of a changeable link that has neither seen a frame nor been changed, and
    /// whether its queue limit is derived.
    pub(super) fn new_origin(&self) -> Option<(Origin, bool)> {
        let changing = self.changing.as_ref()?;
        let is_new = changing.origin.change == 0
            && self.last_arrival == Nanos::ZERO
            && self.queue.server()?.is_new();
        is_new.then_some((changing.origin, changing.derived))
    }

    fn change_rate(
        &mut self,
        change: &mut LinkChange,
        changing: &mut ChangeState,
        server: &mut Server,
        frames: &impl FrameBytes,
    ) -> Option<Box<dyn RateModel>> {
        if let Some(framing) = change.framing.take() {
            self.transmitter.set_framing(framing);
        }
        let rate = change.rate.take()?;
        let (at, stream) = (changing.origin.epoch, changing.origin.stream(Purpose::Rate));
        changing.rate = rate.bit_rate();
        let aggregate = rate.aggregate();
        let transmitter = &mut self.transmitter;
        let unsent = server.unsent(at, transmitter);
        let old = transmitter.set_rate(rate, at, stream);
        server.rate_changed(at, aggregate, unsent, transmitter, frames);
        old
    }

    fn change_models(
        &mut self,
        mut change: LinkChange,
        rate: Option<Box<dyn RateModel>>,
        queue: Option<ServedQueue>,
        origin: &Origin,
    ) -> ReplacedParts {
        if let Some(router) = change.router.take() {
            self.router = start_router(router, origin);
        }
        let rewrite = match change.rewrite.take() {
            Some(models) => mem::replace(&mut self.rewrite, start_rewriting(models, origin)),
            None => Vec::new(),
        };
        let rewrites = self.rewrites();
        let losses = self.medium.change(&mut change, rewrites, origin);
        let entry = change.loss.as_mut().map(|loss| {
            let new = Losses::take(loss, LossPlace::Entry, origin);
            mem::replace(&mut self.entry, new)
        });
        ReplacedParts {
            _rate: rate,
            _queue: queue,
            _losses: [losses, entry],
            _models: change,
            _rewrite: rewrite,
        }
    }

    /// Returns whether the link is on, off or paused.
    pub fn state(&self) -> LinkState {
        let changing = self.changing.as_ref();
        changing.map_or(LinkState::On, |changing| changing.state)
    }

    /// Returns the queue limit in effect.
    pub fn queue_limit(&self) -> QueueLimit {
        match &self.queue {
            LinkQueue::AtArrival(queue) => queue.limit(),
            LinkQueue::Managed(server) => server.limit(),
        }
    }
}

impl ChangeState {
    /// Builds the new queue and records whether its limit is derived.
    fn held(&mut self, queue: Option<Queue>) -> ServedQueue {
        self.derived = queue.is_none();
        match queue {
            Some(Queue::Managed(discipline)) => ServedQueue::Discipline(discipline.model),
            Some(Queue::TailDrop(limit)) => ServedQueue::Fifo(ManagedFifo::new(limit)),
            None => ServedQueue::Fifo(ManagedFifo::new(self.derived_limit())),
        }
    }

    fn facts(&self) -> LinkFacts {
        LinkFacts {
            epoch: self.origin.epoch,
            rate: self.rate,
        }
    }

    fn set_state(&mut self, state: LinkState, server: &mut Server, transmitter: &mut Transmitter) {
        let at = self.origin.epoch;
        if state == self.state {
            return;
        }
        match state {
            LinkState::On => server.resume(at),
            LinkState::Off => {
                server.stop(at);
                server.lose_all(at, transmitter);
            }
            LinkState::Paused => server.stop(at),
        }
        self.state = state;
    }
}
