//! One link: one direction of emulation.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use longwire_packet::edit;
use longwire_packet::frame::FrameMeta;
use longwire_units::random::Stream;
use longwire_units::{Bytes, Nanos, Packets};

use crate::losses::Losses;
use crate::medium::Medium;
use crate::models::corruption::CorruptionModel;
use crate::models::delay::{DelayModel, constant::Constant};
use crate::models::duplication::DuplicationModel;
use crate::models::framing::Framing;
use crate::models::loss::PlacedLoss;
use crate::models::mtu::Mtu;
use crate::models::order::OrderPolicy;
use crate::models::queue::{Queue, QueueLimit, TailDrop};
use crate::models::rate::{Rate, Transmitter};
use crate::models::reordering::ReorderingModel;
use crate::models::rewrite::RewriteModel;
use crate::passing::{FrameBytes, Passing};
use crate::server::Server;
use crate::verdict::{Delivery, DropReason, Edits, Verdict};

mod building;
mod change;

use change::Changing;
pub use change::{LinkChange, LinkState, Replaced};

/// The number of a link in its run. With the seed it decides the link's
/// random streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

/// What a link is to be.
#[derive(Debug)]
pub struct LinkConfig {
    /// How fast it serialises.
    pub rate: Rate,
    /// What the wire adds to a frame.
    pub framing: Framing,
    /// The queue; `None` is tail drop, its limit derived from rate and delay.
    pub queue: Option<Queue>,
    /// Loss models, each at its place, in the order given.
    pub loss: Vec<PlacedLoss>,
    /// Frames that arrive spoilt.
    pub corruption: Option<Box<dyn CorruptionModel>>,
    /// Frames that arrive several times.
    pub duplication: Option<Box<dyn DuplicationModel>>,
    /// Propagation delay and jitter.
    pub delay: Box<dyn DelayModel>,
    /// Frames that are held back or overtake on purpose.
    pub reordering: Option<Box<dyn ReorderingModel>>,
    /// Whether jitter may reorder.
    pub order: OrderPolicy,
    /// The largest payload behind the MAC header, and what happens to longer
    /// ones.
    pub mtu: Mtu,
    /// What is changed in every frame, in this order.
    pub rewrite: Vec<Box<dyn RewriteModel>>,
    /// When the link comes to be, on the clock of arrivals: schedules and
    /// traces count from it.
    pub epoch: Nanos,
    /// What its text allows and its user probably did not mean, to be warned
    /// of.
    pub doubts: Vec<Doubt>,
}

/// An option's value that is allowed and probably not meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// The option's name: `rate`, `queue`, …
    pub option: &'static str,
    /// What is doubtful, and what to write instead.
    pub message: String,
}

impl Default for LinkConfig {
    /// A wire: infinitely fast, without delay or loss.
    fn default() -> LinkConfig {
        LinkConfig {
            rate: Rate::Unlimited,
            framing: Framing::NONE,
            queue: None,
            loss: Vec::new(),
            corruption: None,
            duplication: None,
            delay: Box::new(Constant(Nanos::ZERO)),
            reordering: None,
            order: OrderPolicy::InOrder,
            mtu: Mtu::None,
            rewrite: Vec::new(),
            epoch: Nanos::ZERO,
            doubts: Vec::new(),
        }
    }
}

impl LinkConfig {
    /// The queue's limit, given or derived.
    pub fn queue_limit(&self) -> QueueLimit {
        match &self.queue {
            Some(queue) => queue.limit(),
            None => QueueLimit::derived(self.rate.bit_rate(), self.delay.mean()),
        }
    }

    /// If the queue in force is too small for one TCP flow to fill the link
    /// ([`QueueLimit::undersized`]): the limit that would do.
    pub fn queue_undersized(&self) -> Option<QueueLimit> {
        let limit = self.queue_limit();
        limit.undersized(self.rate.bit_rate(), self.delay.mean())
    }
}

/// A link and its state.
#[derive(Debug)]
pub struct Link {
    mtu: Mtu,
    /// It has only a rate, a queue that is not managed, loss on the medium and
    /// delay.
    plain: bool,
    rewrite: Vec<(Box<dyn RewriteModel>, Stream)>,
    entry: Losses,
    /// Of a link whose queue is not managed.
    queue: TailDrop,
    /// The managed queue, if there is one.
    server: Option<Box<Server>>,
    transmitter: Transmitter,
    medium: Medium,
    last_arrival: Nanos,
    /// It loses what arrives.
    down: bool,
    /// Of a link that may be changed.
    changing: Option<Box<Changing>>,
}

impl Link {
    /// Decides what the link does to one frame: the whole order of
    /// impairments. `bytes` holds the frame's first bytes, or all of it.
    ///
    /// A link with a managed queue ([`Link::is_managed`]) has yet to decide
    /// about what its queue takes, and says [`Verdict::Queued`]: such frames
    /// are numbered from 0, and [`Link::poll`] tells what became of them.
    /// Before each frame, also one of several with the same arrival, it must
    /// have been polled up to the frame's arrival until it had nothing to tell:
    /// what the link can take out at an instant it takes out before a frame
    /// that arrives at that instant is queued.
    ///
    /// When the delivery says [`Delivery::more`], [`Link::next_copy`] has
    /// another one of the same frame.
    ///
    /// Arrivals that go back in time count as simultaneous with the latest.
    //
    // Always inlined: it has few callers, each in a loop over frames, and the
    // call costs a seventh of the whole.
    #[inline(always)]
    pub fn offer(&mut self, frame: FrameMeta, bytes: &[u8]) -> Verdict {
        let arrival = frame.arrival.max(self.last_arrival);
        let frame = FrameMeta { arrival, ..frame };
        self.last_arrival = arrival;
        if self.plain {
            self.decide::<true>(frame, bytes)
        } else {
            self.decide_with_all(frame, bytes)
        }
    }

    // Cold for the sake of the plain link, which then runs straight on.
    #[cold]
    #[inline(never)]
    fn decide_with_all(&mut self, frame: FrameMeta, bytes: &[u8]) -> Verdict {
        self.decide::<false>(frame, bytes)
    }

    /// The order of impairments. It is compiled twice: a plain link, which has
    /// nothing that `PLAIN` leaves out, does not even look for it.
    #[inline(always)]
    fn decide<const PLAIN: bool>(&mut self, frame: FrameMeta, bytes: &[u8]) -> Verdict {
        let FrameMeta { arrival, len } = frame;
        if !PLAIN && self.down {
            return Verdict::Drop(DropReason::Outage);
        }
        if !PLAIN && self.mtu.is_exceeded(len, bytes) {
            return Verdict::Drop(DropReason::Mtu);
        }
        if !PLAIN && !self.rewrite.iter().all(|(model, _)| model.passes(bytes)) {
            return Verdict::Drop(DropReason::Ttl);
        }
        // Only a queue that is not managed knows already.
        let admitted = (!PLAIN && self.server.is_some()) || self.queue.admits(arrival, len);
        let (queue, server) = (&self.queue, &mut self.server);
        let passing = |at| Passing {
            frame,
            at,
            bytes,
            waiting: match &server {
                Some(server) => server.occupancy(arrival),
                None => queue.occupancy(),
            },
        };
        if !PLAIN && self.entry.judge(|| passing(arrival)).is_some() {
            return Verdict::Drop(DropReason::EntryLoss);
        }
        if !PLAIN && let Some(server) = server {
            server.enqueue(frame, bytes, &self.transmitter);
            return Verdict::Queued;
        }
        if !admitted {
            return Verdict::Drop(DropReason::QueueFull);
        }
        let departure = match PLAIN {
            true => self.transmitter.depart_exactly(arrival, len),
            false => self.transmitter.depart(&passing(arrival)),
        };
        // A frame that departs as it arrives never waits.
        if departure > arrival {
            self.queue.hold(departure, len);
        }
        if !PLAIN {
            self.medium.set_rate_delay(self.transmitter.delay());
        }
        let queue = &self.queue;
        let passing = || Passing {
            frame,
            at: departure,
            bytes,
            waiting: queue.occupancy(),
        };
        self.medium.pass::<PLAIN>(departure, false, passing)
    }

    /// Decides, for a managed queue, about the next frame by events up to `now`
    /// and at it, and returns its number and its verdict. A frame with several
    /// deliveries comes as often. Calling late changes no decision; but what
    /// is offered afterwards cannot have arrived before `now`.
    #[inline]
    pub fn poll(&mut self, now: Nanos, frames: &impl FrameBytes) -> Option<(u64, Verdict)> {
        let server = self.server.as_mut()?;
        let now = self.last_arrival.max(now);
        self.last_arrival = now;
        let happens = |at| at <= now && at < Nanos::MAX;
        server.next_decided(happens, &mut self.transmitter, &mut self.medium, frames)
    }

    /// Decides as [`Link::poll`] does, but only by events before `now`: what
    /// happens at `now` is left for after a [change](Link::change) at `now`.
    #[inline]
    pub fn poll_before(&mut self, now: Nanos, frames: &impl FrameBytes) -> Option<(u64, Verdict)> {
        let server = self.server.as_mut()?;
        self.last_arrival = self.last_arrival.max(now);
        let happens = |at| at < now;
        server.next_decided(happens, &mut self.transmitter, &mut self.medium, frames)
    }

    /// Returns when [`Link::poll`] will have something to tell, if no frame
    /// arrives before.
    #[inline]
    pub fn next_at(&mut self) -> Option<Nanos> {
        match self.has_decided() {
            true => Some(Nanos::ZERO),
            false => self.service_at(),
        }
    }

    /// Whether [`Link::poll`] has something to tell whatever the time.
    #[inline]
    pub(crate) fn has_decided(&self) -> bool {
        let server = self.server.as_ref();
        server.is_some_and(|server| server.has_decided())
    }

    /// Returns when a managed queue gives its next frame to the rate, if no
    /// frame arrives before.
    #[inline]
    pub(crate) fn service_at(&mut self) -> Option<Nanos> {
        let at = self.server.as_mut()?.service_at(&mut self.transmitter)?;
        (at < Nanos::MAX).then_some(at)
    }

    /// The next delivery of the frame offered last, if that said
    /// [`Delivery::more`].
    pub fn next_copy(&mut self) -> Option<Delivery> {
        self.medium.next_copy()
    }

    /// Does to a frame's bytes what its delivery says: once for each frame
    /// that is delivered, in the order of the verdicts, whatever the number
    /// of its copies.
    pub fn edit(&mut self, delivery: &Delivery, bytes: &mut [u8]) {
        let Edits {
            mark,
            corrupt,
            rewrite,
        } = delivery.edits;
        if mark {
            edit::mark(bytes);
        }
        if rewrite {
            for (model, stream) in &mut self.rewrite {
                model.rewrite(delivery.departure, bytes, stream);
            }
        }
        if corrupt && let Some(corruption) = self.medium.next_corruption() {
            edit::corrupt(bytes, &corruption);
        }
    }

    /// Whether the frame must be offered in pieces: then `take` has been
    /// given each of them. `piece` is scratch memory.
    #[inline]
    pub fn fragment(&self, frame: &[u8], piece: &mut Vec<u8>, take: impl FnMut(&[u8])) -> bool {
        self.mtu.fragment(frame, piece, take)
    }

    /// The MTU, and what happens to longer frames.
    #[inline]
    pub fn mtu(&self) -> Mtu {
        self.mtu
    }

    /// Reads a word of each part of the link that a frame meets, so that they
    /// are in cache when one comes. What it returns says nothing.
    #[inline]
    pub(crate) fn look_at(&self) -> u64 {
        let words = self.last_arrival.as_nanos() ^ self.medium.look_at();
        let words = words ^ self.transmitter.look_at() ^ u64::from(self.plain);
        words ^ self.server.as_ref().map_or(0, |server| server.look_at())
    }

    /// Whether the queue decides after a frame's arrival: [`Link::poll`] has
    /// the verdicts.
    pub fn is_managed(&self) -> bool {
        self.server.is_some()
    }

    /// Whether frames' bytes may change or are looked at, or frames become
    /// several: buffers that stand for several frames must then be cut into
    /// them first.
    pub fn changes_frames(&self) -> bool {
        let reads = self.entry.reads_bytes() || self.transmitter.reads_bytes();
        reads || self.fragments() || !self.rewrite.is_empty() || self.medium.changes_frames()
    }

    /// Whether the link may cut frames in pieces.
    pub fn fragments(&self) -> bool {
        matches!(self.mtu, Mtu::Fragment(_))
    }

    /// The arrival that the frame offered last was taken to have.
    pub fn last_arrival(&self) -> Nanos {
        self.last_arrival
    }

    /// How late [`Link::poll`] may be called without a release having passed:
    /// no frame's delay is shorter.
    pub fn poll_slack(&self) -> Nanos {
        self.medium.delay_least()
    }

    /// Frames and bytes in the queue as of the last arrival.
    pub fn occupancy(&self) -> (Packets, Bytes) {
        match &self.server {
            Some(server) => server.occupancy(self.last_arrival),
            None => self.queue.occupancy(),
        }
    }

    /// The most frames and bytes the queue ever held.
    pub fn occupancy_max(&self) -> (Packets, Bytes) {
        match &self.server {
            Some(server) => server.occupancy_max(),
            None => self.queue.occupancy_max(),
        }
    }

    /// Whether releases never decrease.
    pub fn in_order(&self) -> bool {
        self.medium.in_order()
    }
}
