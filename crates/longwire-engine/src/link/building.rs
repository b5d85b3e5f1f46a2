//! Builds a link from its configuration.

use core::mem;

use longwire_units::Nanos;
use longwire_units::random::{Purpose, Stream};

use super::change::ChangeState;
use super::{Link, LinkChange, LinkConfig, LinkId, LinkQueue};
use crate::losses::Losses;
use crate::medium::Medium;
use crate::models::Described;
use crate::models::loss::LossPlace;
use crate::models::mtu::Mtu;
use crate::models::queue::fifo::ManagedFifo;
use crate::models::queue::{LinkFacts, Queue, TailDrop};
use crate::models::rate::{Aggregate, Transmitter};
use crate::models::rewrite::RewriteModel;
use crate::models::router::{Router, RouterHop};
use crate::origin::Origin;
use crate::prelude::*;
use crate::server::{ServedQueue, Server};

impl Link {
    /// Creates a link. Equal configurations, seeds and arrivals yield equal verdicts.
    pub fn new(config: LinkConfig, seed: u64, id: LinkId) -> Link {
        Link::build(config, seed, id, false)
    }

    /// Creates a link that [`Link::change`] can modify. Its queue is always managed, even with tail
    /// drop and an infinite rate. Until the first change, its verdicts equal those of an
    /// unchangeable link with the same configuration, with two exceptions:
    ///
    /// * Models that read the queue occupancy ([`FrameContext::waiting`]: plugins) read it at
    ///   dequeue instead of on arrival.
    /// * A frame that the rate would never send ([`Nanos::MAX`]) has no verdict until a rate change
    ///   sends it.
    ///
    /// [`FrameContext::waiting`]: crate::FrameContext::waiting
    pub fn new_changeable(config: LinkConfig, seed: u64, id: LinkId) -> Link {
        Link::build(config, seed, id, true)
    }

    fn build(mut config: LinkConfig, seed: u64, id: LinkId, changeable: bool) -> Link {
        let limit = config.queue_limit();
        let origin = Origin {
            seed,
            link: id.0,
            epoch: config.epoch,
            change: 0,
        };
        let facts = LinkFacts {
            epoch: config.epoch,
            rate: config.rate.bit_rate(),
        };
        let changing = changeable.then(|| Box::new(ChangeState::new(&config, origin)));
        let aggregate = config.rate.aggregate();
        let held = match config.queue.take() {
            Some(Queue::Managed(discipline)) => Some(ServedQueue::Discipline(discipline.model)),
            _ if changeable || aggregate != Aggregate::ONE => {
                Some(ServedQueue::Fifo(ManagedFifo::new(limit)))
            }
            _ => None,
        };
        let server = held.map(|held| {
            let mut server = Server::new(held, aggregate, &facts, origin.stream(Purpose::Queue));
            if changeable {
                server.make_changeable();
            }
            server
        });
        let (rate, framing, mtu) = (mem::take(&mut config.rate), config.framing, config.mtu);
        let transmitter =
            Transmitter::new(rate, framing, origin.epoch, origin.stream(Purpose::Rate));
        let rewrite = start_rewriting(mem::take(&mut config.rewrite), &origin);
        let router = start_router(config.router.take(), &origin);
        let mut parts = LinkChange::from(config);
        let medium = Medium::new(&mut parts, router.is_some() || !rewrite.is_empty(), &origin);
        let loss = &mut parts.loss.unwrap_or_default();
        let entry = Losses::take(loss, LossPlace::Entry, &origin);
        let mut link = Link {
            plain: false,
            mtu,
            router,
            rewrite,
            entry,
            queue: server.map_or_else(
                || LinkQueue::AtArrival(TailDrop::new(limit)),
                LinkQueue::Managed,
            ),
            transmitter,
            medium,
            last_arrival: Nanos::ZERO,
            is_off: false,
            changing,
        };
        link.note_plainness();
        link
    }

    /// Updates `plain`.
    pub(super) fn note_plainness(&mut self) {
        self.plain = self.mtu == Mtu::None
            && !self.is_off
            && !self.rewrites()
            && self.entry.is_empty()
            && !self.transmitter.is_modelled()
            && self.medium.is_plain();
    }
}

/// Creates the router, started at the origin's epoch.
pub(super) fn start_router(router: Option<Router>, origin: &Origin) -> Option<Box<RouterHop>> {
    router.map(|router| Box::new(RouterHop::new(router, origin.epoch)))
}

/// Pairs each rewriting model with its random stream.
pub(super) fn start_rewriting(
    models: Vec<Described<dyn RewriteModel>>,
    origin: &Origin,
) -> Vec<(Described<dyn RewriteModel>, Stream)> {
    let started = models.into_iter().enumerate().map(|(nth, mut model)| {
        model.start(origin.epoch);
        let stream = origin.stream_of(Purpose::Rewrite, "", nth as u32);
        (model, stream)
    });
    started.collect()
}
