//! One link: one direction of emulation.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::frame::{ETHERNET_HEADER_LEN, FrameMeta, mac_header_len};
use crate::models::delay::{DelayModel, constant::Constant};
use crate::models::framing::Framing;
use crate::models::loss::{LossModel, LossPlace, PlacedLoss};
use crate::models::order::OrderPolicy;
use crate::models::queue::{QueueLimit, TailDrop};
use crate::models::rate::Serializer;
use crate::random::{Purpose, Stream};
use crate::units::{BitRate, Bytes, Nanos, Packets, Probability};
use crate::verdict::{Delivery, DropReason, Verdict};

/// The number of a link in its run. With the seed it decides the link's
/// random streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

/// What a link is to be.
#[derive(Debug)]
pub struct LinkConfig {
    /// Bits a second; `None` is infinitely fast.
    pub rate: Option<BitRate>,
    /// What the wire adds to a frame.
    pub framing: Framing,
    /// The queue's limit; `None` derives it from rate and delay.
    pub queue: Option<QueueLimit>,
    /// Loss models, each at its place, in the order given.
    pub loss: Vec<PlacedLoss>,
    /// Propagation delay and jitter.
    pub delay: Box<dyn DelayModel>,
    /// Whether jitter may reorder.
    pub order: OrderPolicy,
    /// The largest payload behind the MAC header, in bytes; `None` is no
    /// limit.
    pub mtu: Option<u32>,
}

impl Default for LinkConfig {
    /// A wire: infinitely fast, without delay or loss.
    fn default() -> LinkConfig {
        LinkConfig {
            rate: None,
            framing: Framing::NONE,
            queue: None,
            loss: Vec::new(),
            delay: Box::new(Constant(Nanos::ZERO)),
            order: OrderPolicy::InOrder,
            mtu: None,
        }
    }
}

impl LinkConfig {
    /// The queue's limit, given or derived.
    pub fn queue_limit(&self) -> QueueLimit {
        self.queue
            .unwrap_or_else(|| QueueLimit::derived(self.rate, self.delay.mean()))
    }

    /// If the queue in force is too small for one TCP flow to fill the link
    /// ([`QueueLimit::undersized`]): the limit that would do.
    pub fn queue_undersized(&self) -> Option<QueueLimit> {
        self.queue_limit().undersized(self.rate, self.delay.mean())
    }
}

/// The loss models that act at one place.
#[derive(Debug)]
struct Losses(Vec<Loss>);

/// A loss model with its random stream.
#[derive(Debug)]
struct Loss {
    model: Box<dyn LossModel>,
    /// What it always answers: spares the call.
    fixed: Option<(Probability, DropReason)>,
    stream: Stream,
}

impl Losses {
    /// Those of `loss` which act at `place`, taken out of it.
    fn take(loss: &mut Vec<PlacedLoss>, place: LossPlace, seed: u64, id: LinkId) -> Losses {
        let purpose = match place {
            LossPlace::Entry => Purpose::EntryLoss,
            LossPlace::Medium => Purpose::MediumLoss,
        };
        let mut taken: Vec<Loss> = Vec::new();
        for PlacedLoss { model, .. } in loss.extract_if(.., |loss| loss.place == place) {
            let namesake = |other: &&Loss| other.model.name() == model.name();
            let nth = taken.iter().filter(namesake).count() as u32;
            taken.push(Loss {
                stream: Stream::of_model(seed, id.0, purpose, model.name(), nth),
                fixed: model.fixed(),
                model,
            });
        }
        Losses(taken)
    }

    /// The first model that loses the frame decides the reason; the others
    /// still draw, so that one model's outcome never moves another's.
    #[inline]
    fn judge(&mut self, frame: FrameMeta) -> Option<DropReason> {
        let mut lost = None;
        for loss in &mut self.0 {
            if let Some(reason) = loss.judge(frame) {
                lost = first_reason(lost, reason);
            }
        }
        lost
    }
}

impl Loss {
    #[inline]
    fn judge(&mut self, frame: FrameMeta) -> Option<DropReason> {
        match self.fixed {
            Some((probability, reason)) => self.stream.chance(probability).then_some(reason),
            None => self.model.judge(frame, &mut self.stream),
        }
    }
}

/// Cold, so that the common frame, which nothing loses, runs straight on.
#[cold]
fn first_reason(lost: Option<DropReason>, reason: DropReason) -> Option<DropReason> {
    lost.or(Some(reason))
}

/// A link and its state.
#[derive(Debug)]
pub struct Link {
    mtu: Option<u32>,
    entry: Losses,
    queue: TailDrop,
    serializer: Serializer,
    medium: Losses,
    delay: Box<dyn DelayModel>,
    /// The delay if it never varies: spares the call.
    delay_fixed: Option<Nanos>,
    delay_stream: Stream,
    order: OrderPolicy,
    last_arrival: Nanos,
    /// Of the frame before, whatever the order policy.
    last_release: Nanos,
}

impl Link {
    /// A fresh link. The same configuration, seed and arrivals give the same
    /// verdicts.
    pub fn new(config: LinkConfig, seed: u64, id: LinkId) -> Link {
        let queue = TailDrop::new(config.queue_limit());
        let mut loss = config.loss;
        Link {
            mtu: config.mtu,
            entry: Losses::take(&mut loss, LossPlace::Entry, seed, id),
            queue,
            serializer: Serializer::new(config.rate, config.framing),
            medium: Losses::take(&mut loss, LossPlace::Medium, seed, id),
            delay_fixed: config.delay.fixed(),
            delay: config.delay,
            delay_stream: Stream::new(seed, id.0, Purpose::Delay),
            order: config.order,
            last_arrival: Nanos::ZERO,
            last_release: Nanos::ZERO,
        }
    }

    /// Decides what the link does to one frame: the whole order of
    /// impairments. `header` holds the frame's first bytes.
    ///
    /// Every model draws once for each frame that reaches it: delay is drawn
    /// for frames lost on the medium too, so that the survivors' delays are
    /// the same with loss as without.
    ///
    /// Arrivals that go back in time count as simultaneous with the latest.
    //
    // Always inlined: it has few callers, each in a loop over frames, and the
    // call costs a seventh of the whole.
    #[inline(always)]
    pub fn offer(&mut self, frame: FrameMeta, header: &[u8]) -> Verdict {
        let arrival = frame.arrival.max(self.last_arrival);
        let frame = FrameMeta { arrival, ..frame };
        self.last_arrival = arrival;
        if self.exceeds_mtu(frame.len, header) {
            return Verdict::Drop(DropReason::Mtu);
        }
        if self.entry.judge(frame).is_some() {
            return Verdict::Drop(DropReason::EntryLoss);
        }
        if !self.queue.admits(arrival, frame.len) {
            return Verdict::Drop(DropReason::QueueFull);
        }
        let departure = self.serializer.depart(arrival, frame.len);
        // A frame that departs as it arrives never waits.
        if departure > arrival {
            self.queue.hold(departure, frame.len);
        }
        let lost = self.medium.judge(frame);
        let delay = self.draw_delay();
        if let Some(reason) = lost {
            return Verdict::Drop(reason);
        }
        Verdict::Deliver(self.order(departure, departure.saturating_add(delay)))
    }

    /// Frames and bytes in the queue as of the last arrival.
    pub fn occupancy(&self) -> (Packets, Bytes) {
        self.queue.occupancy()
    }

    /// The most frames and bytes the queue ever held.
    pub fn occupancy_max(&self) -> (Packets, Bytes) {
        self.queue.occupancy_max()
    }

    /// Whether releases never decrease.
    pub fn in_order(&self) -> bool {
        self.order == OrderPolicy::InOrder
    }

    #[inline]
    fn exceeds_mtu(&self, len: u32, header: &[u8]) -> bool {
        // Most frames fit without a look at their tags.
        self.mtu.is_some_and(|mtu| {
            len > mtu.saturating_add(ETHERNET_HEADER_LEN)
                && len > mtu.saturating_add(mac_header_len(header))
        })
    }

    #[inline]
    fn draw_delay(&mut self) -> Nanos {
        match self.delay_fixed {
            Some(delay) => delay,
            None => self.delay.draw(&mut self.delay_stream),
        }
    }

    #[inline]
    fn order(&mut self, departure: Nanos, wanted: Nanos) -> Delivery {
        let release = match self.order {
            OrderPolicy::InOrder => wanted.max(self.last_release),
            OrderPolicy::Reorder => wanted,
        };
        self.last_release = release;
        Delivery {
            departure,
            release,
            raised: release > wanted,
        }
    }
}
