//! Networks that share paths: each holds some of the links, and frames cross between
//! networks.

use longwire_units::Nanos;

use super::path::Path;
use super::{FrameHost, Network, PathId, Transit, Traveller};
use crate::link::LinkId;
use crate::release::{ReleaseKey, Sequence};

/// A frame that has left a link of one network for a link of another.
#[derive(Debug)]
pub struct Crossing<T> {
    /// The link that the frame has left.
    pub from: LinkId,
    /// The link on which the frame continues.
    pub to: LinkId,
    /// Arrival at that link.
    pub at: Nanos,
    /// The caller's frame handle.
    pub item: T,
    path: PathId,
    hop: u32,
    len: u32,
    /// Sequence number among the frames passed on by `from`.
    number: Sequence,
}

/// Sort key of an event among all events: its time; whether it is an arrival, which follows
/// all events of links at that time; and the event's link, or the link that the frame has
/// left with its sequence number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventPlace {
    /// The time of the event.
    pub at: Nanos,
    is_arrival: bool,
    link: LinkId,
    /// Sequence number among the frames passed on by the link.
    number: Sequence,
}

impl<T> Crossing<T> {
    /// Maps the item.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Crossing<U> {
        Crossing {
            from: self.from,
            to: self.to,
            at: self.at,
            item: f(self.item),
            path: self.path,
            hop: self.hop,
            len: self.len,
            number: self.number,
        }
    }
}

impl<T> Network<T> {
    /// Adds a path with links in other networks, under an unused number. Returns `false`,
    /// without effect, if `links` is empty.
    ///
    /// # Panics
    /// If the number is in use.
    pub fn add_shared_path(&mut self, id: PathId, links: &[LinkId]) -> bool {
        let Some(path) = Path::new(links, |link| self.link(link).is_none()) else {
            return false;
        };
        self.enter_path(id, path);
        true
    }

    /// Drains the frames that continue in other networks, in the order in which they left
    /// their links.
    pub fn crossings(&mut self) -> impl Iterator<Item = Crossing<T>> {
        self.transit.crossings.drain(..)
    }

    /// Whether any frame continues in another network.
    #[inline]
    pub fn has_crossings(&self) -> bool {
        !self.transit.crossings.is_empty()
    }

    /// Accepts a frame that continues on a link of this network. The network must not have
    /// been advanced beyond the frame's arrival there, except for events independent of it.
    /// Frames of one link come in order.
    pub fn accept(&mut self, crossing: Crossing<T>) {
        let Crossing {
            from,
            at,
            item,
            path,
            hop,
            len,
            number,
            ..
        } = crossing;
        self.transit.enter(path);
        let traveller = Traveller {
            item,
            path,
            hop,
            len,
        };
        let place = ReleaseKey {
            release: at,
            link: from,
            sequence: number,
        };
        self.transit.between.push_at(place, traveller);
    }

    /// Returns the key of the next event, for ordering with other networks.
    pub fn next_place(&mut self) -> Option<EventPlace> {
        let service = self.agenda.next_place().map(|(at, link)| EventPlace {
            at,
            is_arrival: false,
            link,
            number: Sequence::default(),
        });
        let arrival = self.transit.between.next_key().map(|next| EventPlace {
            at: next.release,
            is_arrival: true,
            link: next.link,
            number: next.sequence,
        });
        service.into_iter().chain(arrival).min()
    }

    /// Processes the next event if it is due by `until`.
    pub fn process_next(&mut self, until: Nanos, host: &mut impl FrameHost<T>) {
        match self.next_place().filter(|next| next.at <= until) {
            Some(next) if next.is_arrival => self.arrive(next.at, host),
            Some(next) => self.serve_next(next.at, host),
            None => {}
        }
    }
}

impl<T> Transit<T> {
    /// Sends a delivered frame to a link of another network.
    #[cold]
    pub(super) fn cross(&mut self, place: ReleaseKey, to: LinkId, traveller: Traveller<T>) {
        self.leave(traveller.path);
        let Traveller {
            item,
            path,
            hop,
            len,
        } = traveller;
        self.crossings.push(Crossing {
            from: place.link,
            to,
            at: place.release,
            item,
            path,
            hop,
            len,
            number: place.sequence,
        });
    }
}
