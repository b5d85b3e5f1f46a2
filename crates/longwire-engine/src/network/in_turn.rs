//! Links advanced separately by the caller: each is the only link on its path, and no other path
//! crosses it. The undecided frames of a sequential link may also be stored by the caller, in
//! order.

use core::ops::RangeBounds;

use longwire_units::Nanos;

use super::{FrameHost, Network, PathFrame, PathId};
use crate::link::{LinkId, SequentialLink};

impl<T> Network<T> {
    /// Returns a path's only link, if no other path crosses it.
    pub fn separate_link(&self, path: PathId) -> Option<LinkId> {
        let path = self.transit.paths.get(path.0 as usize)?.as_ref()?;
        let id = path.link(0).filter(|_| path.link(1).is_none())?;
        self.links.is_separate(id).then_some(id)
    }

    /// Detaches a link, which the caller then advances separately. Frames of the link that are
    /// still in the network come before the caller's: until they have left, advance the link with
    /// [`Network::advance_held`], also before each [`Network::offer`].
    pub fn detach(&mut self, id: LinkId) {
        if let Some(node) = self.links.get_mut(id) {
            // The agenda entry becomes stale.
            node.due = None;
            node.detached = true;
        }
    }

    /// Processes events up to a time for the frames of a detached link that are still in the
    /// network. Until they have left, call this before polling the link.
    #[inline]
    pub fn advance_held(
        &mut self,
        id: LinkId,
        until: impl RangeBounds<Nanos>,
        host: &mut impl FrameHost<T>,
    ) {
        while self.holds_frames(id)
            && let Some(at) = self.next_of(id, &until)
            && let Some(node) = self.links.get_mut(id)
        {
            host.at(at);
            let (lane, mut host) = node.borrow(id, None, &mut self.transit, host);
            lane.poll_held(..=at, &mut host);
        }
    }

    /// Returns the time of a link's next event, if it lies within `until`.
    fn next_of(&mut self, id: LinkId, until: &impl RangeBounds<Nanos>) -> Option<Nanos> {
        let node = self.links.get_mut(id)?;
        node.lane.next_at().filter(|at| until.contains(at))
    }

    /// Whether the network stores queued frames of a link.
    #[inline]
    pub fn holds_frames(&self, id: LinkId) -> bool {
        let node = self.links.get(id);
        node.is_some_and(|node| !node.lane.is_empty())
    }

    /// Returns a detached link whose frames are stored by the caller.
    #[inline]
    pub fn detached(&mut self, id: LinkId) -> Option<SequentialLink<'_>> {
        let node = self.links.get_mut(id)?;
        Some(node.lane.in_turn())
    }

    /// Reverses [`Network::detach`], moving the caller's queued frames into the network, in order
    /// and with their lengths. Returns the earliest time at which the link may be changed.
    pub fn attach(&mut self, path: PathId, frames: impl IntoIterator<Item = (T, u32)>) -> Nanos {
        let Some(id) = self.sole_link(path) else {
            return Nanos::ZERO;
        };
        let Some(node) = self.links.get_mut(id) else {
            return Nanos::ZERO;
        };
        let path_frames = frames.into_iter().map(|(item, len)| PathFrame {
            item,
            path,
            hop: 0,
            len,
        });
        node.detached = false;
        let taken = node.lane.take_over(path_frames);
        let link = node.lane.link();
        let until = link.last_arrival().max(link.changeable_from());
        if let Some(Some(path)) = self.transit.paths.get_mut(path.0 as usize) {
            path.frames += taken;
        }
        self.note_due(id);
        until
    }

    fn sole_link(&self, path: PathId) -> Option<LinkId> {
        self.transit.paths.get(path.0 as usize)?.as_ref()?.link(0)
    }
}
