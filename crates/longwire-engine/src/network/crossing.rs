//! Networks with shared paths: each contains some of the links, and frames cross between them.

use longwire_units::Nanos;

use super::path::Path;
use super::{FrameHost, Network, PathFrame, PathId, Transit};
use crate::link::LinkId;
use crate::release::{ReleaseKey, Sequence};

/// A frame that has left a link in one network for a link in another.
#[derive(Debug)]
pub struct Crossing<T> {
    /// Link on which the frame continues.
    pub to: LinkId,
    /// Arrival at that link, previous link, and sequence number on the previous link.
    place: ReleaseKey,
    frame: PathFrame<T>,
}

/// Sort key of an event: its time; whether it is an arrival, which follows all link events at that
/// time; then the event's link or, for an arrival, the previous link and the sequence number on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventPlace {
    /// Time of the event.
    pub at: Nanos,
    is_arrival: bool,
    link: LinkId,
    /// Sequence number among the frames forwarded by the link.
    number: Sequence,
}

impl<T> Crossing<T> {
    /// Returns the frame's arrival at its next link.
    pub fn at(&self) -> Nanos {
        self.place.release
    }

    /// Maps the caller's frame handle.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Crossing<U> {
        let PathFrame {
            item,
            path,
            hop,
            len,
        } = self.frame;
        Crossing {
            to: self.to,
            place: self.place,
            frame: PathFrame {
                item: f(item),
                path,
                hop,
                len,
            },
        }
    }
}

impl<T> Network<T> {
    /// Adds a path that includes links in other networks, under an unused number. Returns `false`,
    /// without effect, if `links` is empty.
    ///
    /// # Panics
    /// If the number is in use.
    pub fn add_shared_path(&mut self, id: PathId, links: &[LinkId]) -> bool {
        let Some(path) = Path::new(links, |link| !self.has_link(link)) else {
            return false;
        };
        self.enter_path(id, path);
        true
    }

    /// Drains the frames that continue in other networks, in the order in which they left links of
    /// this network.
    pub fn crossings(&mut self) -> impl Iterator<Item = Crossing<T>> {
        self.transit.crossings.drain(..)
    }

    /// Whether any frame continues in another network.
    #[inline]
    pub fn has_crossings(&self) -> bool {
        !self.transit.crossings.is_empty()
    }

    /// Accepts a frame that continues on a link in this network. The network must not have been
    /// advanced beyond the frame's arrival, except for events independent of it. Frames from one
    /// link must be accepted in order.
    pub fn accept(&mut self, crossing: Crossing<T>) {
        self.transit.enter(crossing.frame.path);
        self.transit.between.push_at(crossing.place, crossing.frame);
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

    /// Processes the next event if due by `until`.
    pub fn process_next(&mut self, until: Nanos, host: &mut impl FrameHost<T>) {
        match self.next_place().filter(|next| next.at <= until) {
            Some(next) if next.is_arrival => self.arrive(next.at, host),
            Some(next) => self.serve_next(next.at, host),
            None => {}
        }
    }
}

impl<T> Transit<T> {
    /// Sends a delivered frame to a link in another network.
    #[cold]
    pub(super) fn cross(&mut self, place: ReleaseKey, to: LinkId, frame: PathFrame<T>) {
        self.leave(frame.path);
        self.crossings.push(Crossing { to, place, frame });
    }
}
