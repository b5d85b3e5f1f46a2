//! Networks that share paths: each has some of the links, and frames cross from one
//! network to another.

use longwire_units::Nanos;

use super::path::Path;
use super::{FrameHost, Network, PathId, Transit, Traveller};
use crate::link::LinkId;
use crate::release::{ReleaseKey, Sequence};

/// A frame that has left a link of one network and continues on a link of another.
#[derive(Debug)]
pub struct Crossing<T> {
    /// The link that it has left.
    pub from: LinkId,
    /// The link on which it continues.
    pub to: LinkId,
    /// When it arrives there.
    pub at: Nanos,
    /// The caller's handle.
    pub item: T,
    path: PathId,
    hop: u32,
    len: u32,
    /// Its number among the frames that the link has passed on.
    number: Sequence,
}

/// The place of an event in the order of all events: its time, whether a frame arrives
/// (after all events of links at that time), and the link of the event, or the one that
/// the frame has left, with its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventPlace {
    /// The time of the event.
    pub at: Nanos,
    is_arrival: bool,
    link: LinkId,
    /// The number of the frame among those that the link has passed on.
    number: Sequence,
}

impl<T> Crossing<T> {
    /// Returns the crossing with the item that `f` makes of its item.
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
    /// Adds a path, some of whose links are in other networks, under an unused number.
    /// Returns `false`, and changes nothing, if it has no links.
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

    /// Returns the frames that continue in other networks, in the order in which they
    /// left their links.
    pub fn crossings(&mut self) -> impl Iterator<Item = Crossing<T>> {
        self.transit.crossings.drain(..)
    }

    /// Whether frames continue in other networks.
    #[inline]
    pub fn has_crossings(&self) -> bool {
        !self.transit.crossings.is_empty()
    }

    /// Takes over a frame that continues on a link of this network. All events before
    /// its arrival there must be unprocessed or independent of it: the network must not
    /// have been advanced beyond that time. Frames of one link come in their order.
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

    /// Returns the place of the next event among those of other networks.
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

    /// Processes the next event, if it is at `until` or before.
    pub fn process_next(&mut self, until: Nanos, host: &mut impl FrameHost<T>) {
        match self.next_place().filter(|next| next.at <= until) {
            Some(next) if next.is_arrival => self.arrive(next.at, host),
            Some(next) => self.serve_next(next.at, host),
            None => {}
        }
    }
}

impl<T> Transit<T> {
    /// Puts a delivered frame on its way to a link of another network.
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
