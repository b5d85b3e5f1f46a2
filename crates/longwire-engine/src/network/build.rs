//! Adds, changes and removes links and paths.

use longwire_units::Nanos;

use super::path::Path;
use super::{FrameHost, Network, Node, PathId};
use crate::link::{Link, LinkChange, LinkId, ReplacedParts};
use crate::models::queue::QueueLengths;
use crate::prelude::*;

/// A removed link. Drop it off the hot path: models may hold many megabytes of trace.
#[derive(Debug)]
#[must_use = "drop it off the hot path"]
pub struct RemovedLink<T>(#[allow(dead_code, reason = "it is only dropped")] Box<Node<T>>);

impl<T> Network<T> {
    /// Adds a link under an unused number.
    ///
    /// # Panics
    /// If the number is in use.
    pub fn add_link(&mut self, id: LinkId, link: Link) {
        assert!(self.links.insert(id, link), "link number in use");
    }

    /// Adds a path under an unused number. Returns `false`, without effect, if `links` is
    /// empty or names a link that is not in the network.
    ///
    /// # Panics
    /// If the number is in use.
    pub fn add_path(&mut self, id: PathId, links: &[LinkId]) -> bool {
        let known = links.iter().all(|link| self.has_link(*link));
        let Some(path) = Path::new(links, |_| false).filter(|_| known) else {
            return false;
        };
        self.enter_path(id, path);
        true
    }

    pub(super) fn enter_path(&mut self, id: PathId, path: Path) {
        self.count_crossings(&path, 1);
        let before = place(&mut self.transit.paths, id.0).replace(path);
        assert!(before.is_none(), "path number in use");
    }

    /// Removes a path. Returns `false`, without effect, while frames are on it.
    pub fn remove_path(&mut self, id: PathId) -> bool {
        let Some(place) = self.transit.paths.get_mut(id.0 as usize) else {
            return true;
        };
        if place.as_ref().is_some_and(|path| path.frames > 0) {
            return false;
        }
        if let Some(path) = place.take() {
            self.count_crossings(&path, -1);
        }
        true
    }

    /// Removes a link, unless a path crosses it.
    pub fn remove_link(&mut self, id: LinkId) -> Option<RemovedLink<T>> {
        self.links.remove(id).map(RemovedLink)
    }

    /// Returns the number of frames on a path.
    pub fn frames_on(&self, id: PathId) -> u64 {
        let path = self
            .transit
            .paths
            .get(id.0 as usize)
            .and_then(Option::as_ref);
        path.map_or(0, |path| path.frames)
    }

    fn count_crossings(&mut self, path: &Path, change: i32) {
        for link in path.links() {
            if let Some(paths) = self.links.crossed_by(link) {
                *paths = paths.saturating_add_signed(change);
            }
        }
    }

    /// Whether the link exists. Takes no memory, unlike [`Network::link`].
    pub fn has_link(&self, id: LinkId) -> bool {
        self.links.contains(id)
    }

    /// Returns the link with this number; allocates the node of a dormant one. Unless it is
    /// [detached](Network::detach), its queue lengths, `last_arrival` and `changeable_from` may be
    /// stale; see [`Network::occupancy`].
    pub fn link(&self, id: LinkId) -> Option<&Link> {
        Some(self.links.get(id)?.lane.link())
    }

    /// Returns the frames and bytes in a link's queue at `now`, their peaks and their limits. The
    /// network must have been advanced to that time.
    pub fn occupancy(&self, id: LinkId, now: Nanos) -> Option<QueueLengths> {
        let early = self.links.peek_early(id)?.occupancy(now);
        let link = self.links.existing(id).map(|node| node.lane.link());
        if link.is_none() && early.is_none() {
            return None;
        }
        let mut lengths = early.unwrap_or(QueueLengths::NONE);
        if let Some(link) = link {
            let max = link.occupancy_max();
            lengths.max = (lengths.max.0.max(max.0), lengths.max.1.max(max.1));
            lengths.limit = link.queue_limit();
            if early.is_none() {
                lengths.now = link.occupancy_at(now);
            }
        }
        Some(lengths)
    }

    /// Changes a link at `at`, once all earlier events have been processed ([`Network::advance`]).
    /// Reports the frames that the queue drops because of the change. Returns the replaced parts;
    /// `None` for an unknown link.
    pub fn change(
        &mut self,
        id: LinkId,
        at: Nanos,
        change: LinkChange,
        host: &mut impl FrameHost<T>,
    ) -> Option<ReplacedParts> {
        host.at(at);
        let node = self.links.get_mut(id)?;
        let (lane, mut host) = node.borrow(id, None, &mut self.transit, host);
        let replaced = lane.change(at, change, &mut host);
        self.note_due(id);
        Some(replaced)
    }
}

/// Returns the place with this number, creating it if necessary.
fn place<P>(places: &mut Vec<Option<P>>, number: u32) -> &mut Option<P> {
    let index = number as usize;
    if index >= places.len() {
        places.resize_with(index + 1, || None);
    }
    &mut places[index]
}
