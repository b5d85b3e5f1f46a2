//! Changing a link while it runs, in event time.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::mem;

use longwire_units::random::{Purpose, Stream};
use longwire_units::{BitRate, Nanos};

use super::building::start_rewriting;
use super::{Link, LinkConfig};
use crate::losses::Losses;
use crate::medium::MediumChange;
use crate::models::corruption::CorruptionModel;
use crate::models::delay::DelayModel;
use crate::models::duplication::DuplicationModel;
use crate::models::framing::Framing;
use crate::models::loss::{LossPlace, PlacedLoss};
use crate::models::mtu::Mtu;
use crate::models::order::OrderPolicy;
use crate::models::queue::fifo::ManagedFifo;
use crate::models::queue::{LinkFacts, Queue, QueueLimit};
use crate::models::rate::{Rate, RateModel};
use crate::models::reordering::ReorderingModel;
use crate::models::rewrite::RewriteModel;
use crate::origin::Origin;
use crate::passing::FrameBytes;
use crate::server::{Held, Server};

/// What of a link is to be another. What is `None` stays as it is, with its
/// state and its random streams.
#[derive(Debug, Default)]
pub struct LinkChange {
    /// How fast it serialises.
    pub rate: Option<Rate>,
    /// What the wire adds to a frame.
    pub framing: Option<Framing>,
    /// The queue; `Some(None)` is tail drop, its limit derived from rate and
    /// delay, now and whenever they change.
    pub queue: Option<Option<Queue>>,
    /// All loss models.
    pub loss: Option<Vec<PlacedLoss>>,
    /// Frames that arrive spoilt.
    pub corruption: Option<Option<Box<dyn CorruptionModel>>>,
    /// Frames that arrive several times.
    pub duplication: Option<Option<Box<dyn DuplicationModel>>>,
    /// Propagation delay and jitter.
    pub delay: Option<Box<dyn DelayModel>>,
    /// Frames that are held back or overtake on purpose.
    pub reordering: Option<Option<Box<dyn ReorderingModel>>>,
    /// Whether jitter may reorder.
    pub order: Option<OrderPolicy>,
    /// The largest payload behind the MAC header.
    pub mtu: Option<Mtu>,
    /// All that is changed in every frame.
    pub rewrite: Option<Vec<Box<dyn RewriteModel>>>,
    /// Whether it carries frames.
    pub state: Option<LinkState>,
}

/// Whether a link carries frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LinkState {
    /// It does.
    #[default]
    Up,
    /// What arrives is lost, and so is what waited when it went down, as
    /// [`DropReason::Outage`]. What was on its way arrives.
    ///
    /// [`DropReason::Outage`]: crate::DropReason::Outage
    Down,
    /// What arrives waits, as far as the queue has room. What was on its way
    /// arrives.
    Paused,
}

impl LinkState {
    /// The state's name in files, on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            LinkState::Up => "up",
            LinkState::Down => "down",
            LinkState::Paused => "paused",
        }
    }

    /// The state of this name.
    pub fn from_name(name: &str) -> Option<LinkState> {
        let all = [LinkState::Up, LinkState::Down, LinkState::Paused];
        all.into_iter().find(|state| state.name() == name)
    }
}

/// What a change has replaced, for the caller to drop where that takes no
/// time from frames: models may hold traces of many megabytes.
#[derive(Debug)]
#[must_use = "drop it where that takes no time from frames"]
pub struct Replaced {
    _rate: Option<Box<dyn RateModel>>,
    _queue: Option<Held>,
    _entry: Option<Losses>,
    _medium: MediumChange,
    _rewrite: Vec<(Box<dyn RewriteModel>, Stream)>,
}

/// What a link that may be changed knows of itself besides.
#[derive(Debug)]
pub(super) struct Changing {
    /// Of the latest change.
    origin: Origin,
    state: LinkState,
    /// The queue's limit follows rate and delay.
    derived: bool,
    rate: Option<BitRate>,
    delay: Nanos,
}

impl Changing {
    pub fn new(config: &LinkConfig, origin: Origin) -> Changing {
        Changing {
            origin,
            state: LinkState::Up,
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
    /// Changes the link at `at`, between two events. It must have been made by
    /// [`Link::new_changeable`], and polled for what is
    /// [before](Link::poll_before) `at` until it had nothing to tell. What
    /// happens at `at` itself comes after the change, but for frames that were
    /// offered before the call and what was taken out before they were. What
    /// frames wait is asked for their headers (`frames`) when the queue becomes
    /// another; what is dropped by the change is told by the next
    /// [`Link::poll`]. A time before the latest arrival, poll or change counts
    /// as that.
    ///
    /// * **On its way.** Deliveries that were told keep all that was said,
    ///   which includes the frame in service: it departs as it would have. It
    ///   must have been [edited](Link::edit) before the change.
    /// * **Rate and framing** hold for every frame that is taken out of the
    ///   queue at `at` or later. At fixed rates the exact instant at which the
    ///   link becomes free is kept: the part of a nanosecond that departures
    ///   leave out is carried over, rounded down to `1 / rate` nanoseconds. A
    ///   rate model begins when the frame in service has departed, to the whole
    ///   nanosecond. A link that would never have become free again is free at
    ///   `at`.
    /// * **The queue.** The new one is given what waits, in the order of
    ///   arrival, as if it all came at `at`; what it does not take, it drops for
    ///   its own reason, tail drop as [`DropReason::QueueFull`]. How long a
    ///   frame has waited counts from its arrival. A derived limit is derived
    ///   anew when rate or delay change; a lower one drops the latest frames.
    /// * **Models** that are replaced begin at `at`, which their schedules
    ///   count from, with random streams that seed, link, purpose and the
    ///   number of the change decide. A discipline that stays keeps the rate
    ///   that it was told first.
    /// * **Delay and order.** In order, releases never decrease, across changes
    ///   of the delay too; when order changes from `reorder` to `in-order`,
    ///   nothing that departs afterwards comes before what departed before,
    ///   save frames displaced on purpose.
    /// * **Down.** Arrivals are lost before any model sees them, as
    ///   [`DropReason::Outage`], and what waits is lost at `at`. Up again, the
    ///   transmitter is free at `at`, or when the frame that was in service
    ///   then has departed, if that is later.
    /// * **Paused.** Nothing is taken out of the queue; arrivals wait as ever.
    ///   Up again, service goes on at `at`. An opportunity to send that a rate
    ///   model had promised and that has passed is gone.
    ///
    /// [`Link::changes_frames`], [`Link::fragments`], [`Link::in_order`] and
    /// [`Link::poll_slack`] may answer otherwise afterwards.
    ///
    /// A link that was not made to be changed stays as it is.
    ///
    /// [`DropReason::Outage`]: crate::DropReason::Outage
    /// [`DropReason::QueueFull`]: crate::DropReason::QueueFull
    pub fn change(
        &mut self,
        at: Nanos,
        mut change: LinkChange,
        frames: &impl FrameBytes,
    ) -> Replaced {
        debug_assert!(self.changing.is_some(), "a link that cannot be changed");
        let (Some(mut changing), Some(mut server)) = (self.changing.take(), self.server.take())
        else {
            return Replaced::nothing();
        };
        self.last_arrival = self.last_arrival.max(at);
        changing.origin.epoch = self.last_arrival;
        changing.origin.change += 1;
        let origin = changing.origin;
        self.mtu = change.mtu.unwrap_or(self.mtu);
        let delay = change.delay.as_ref().map(|delay| delay.mean());
        changing.delay = delay.unwrap_or(changing.delay);
        let rate = self.change_rate(&mut change, &mut changing, &mut server);
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
        let replaced = self.change_models(change, rate, queue, &origin, |state| {
            changing.set_state(state, &mut server);
        });
        self.down = changing.state == LinkState::Down;
        self.server = Some(server);
        self.changing = Some(changing);
        replaced
    }

    fn change_rate(
        &mut self,
        change: &mut LinkChange,
        changing: &mut Changing,
        server: &mut Server,
    ) -> Option<Box<dyn RateModel>> {
        let origin = &changing.origin;
        let aggregate = change.rate.as_ref().map(Rate::aggregate);
        if let Some(rate) = &change.rate {
            changing.rate = rate.bit_rate();
            self.medium.revive(origin.epoch);
        }
        let (rate, framing) = (change.rate.take(), change.framing.take());
        let stream = origin.stream(Purpose::Rate);
        let old = self.transmitter.change(rate, framing, origin.epoch, stream);
        if let Some(aggregate) = aggregate {
            server.rate_changed(origin.epoch, aggregate);
        }
        old
    }

    fn change_models(
        &mut self,
        change: LinkChange,
        rate: Option<Box<dyn RateModel>>,
        queue: Option<Held>,
        origin: &Origin,
        set_state: impl FnOnce(LinkState),
    ) -> Replaced {
        let (mut losses, mut entry) = (None, None);
        if let Some(mut loss) = change.loss {
            losses = Some(Losses::take(&mut loss, LossPlace::Medium, origin));
            let new = Losses::take(&mut loss, LossPlace::Entry, origin);
            entry = Some(mem::replace(&mut self.entry, new));
        }
        let rewrites = change.rewrite.as_ref().map(|models| !models.is_empty());
        let rewrite = match change.rewrite {
            Some(models) => mem::replace(&mut self.rewrite, start_rewriting(models, origin)),
            None => Vec::new(),
        };
        let medium = MediumChange {
            losses,
            corruption: change.corruption,
            duplication: change.duplication,
            delay: change.delay,
            reordering: change.reordering,
            order: change.order,
            rewrite: rewrites,
        };
        if let Some(state) = change.state {
            set_state(state);
        }
        Replaced {
            _rate: rate,
            _queue: queue,
            _entry: entry,
            _medium: self.medium.change(medium, origin),
            _rewrite: rewrite,
        }
    }

    /// Whether the link carries frames.
    pub fn state(&self) -> LinkState {
        let changing = self.changing.as_ref();
        changing.map_or(LinkState::Up, |changing| changing.state)
    }

    /// The limit of the queue in force.
    pub fn queue_limit(&self) -> QueueLimit {
        match &self.server {
            Some(server) => server.limit(),
            None => self.queue.limit(),
        }
    }
}

impl Changing {
    /// The queue that is to be, and whether its limit is derived.
    fn held(&mut self, queue: Option<Queue>) -> Held {
        self.derived = queue.is_none();
        match queue {
            Some(Queue::Managed(discipline)) => Held::Discipline(discipline),
            Some(Queue::TailDrop(limit)) => Held::Fifo(ManagedFifo::new(limit)),
            None => Held::Fifo(ManagedFifo::new(self.derived_limit())),
        }
    }

    fn facts(&self) -> LinkFacts {
        LinkFacts {
            epoch: self.origin.epoch,
            rate: self.rate,
        }
    }

    fn set_state(&mut self, state: LinkState, server: &mut Server) {
        let at = self.origin.epoch;
        if state == self.state {
            return;
        }
        match state {
            LinkState::Up => server.go_on(at),
            LinkState::Down => {
                server.stop(at);
                server.lose_all();
            }
            LinkState::Paused => server.stop(at),
        }
        self.state = state;
    }
}

impl Replaced {
    fn nothing() -> Replaced {
        Replaced {
            _rate: None,
            _queue: None,
            _entry: None,
            _medium: MediumChange::default(),
            _rewrite: Vec::new(),
        }
    }
}
