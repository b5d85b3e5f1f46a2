//! Links that the caller advances apart from the others: each is the only link of the only
//! path that crosses it. Of a sequential link, the caller may also keep the frames, in order,
//! until they are decided.

use core::ops::RangeBounds;

use longwire_units::Nanos;

use super::{FrameHost, Network, PathId, Traveller};
use crate::link::{LinkId, SequentialLink};

impl<T> Network<T> {
    /// Returns the link of a path that has no other, if no other path crosses it.
    pub fn separate_link(&self, path: PathId) -> Option<LinkId> {
        let path = self.transit.paths.get(path.0 as usize)?.as_ref()?;
        let id = path.link(0).filter(|_| path.link(1).is_none())?;
        let node = self.nodes.get(id.0 as usize)?.as_ref()?;
        (node.crossed_by == 1).then_some(id)
    }

    /// Begins to advance a link apart from the others. Frames that the network holds for
    /// it precede those that the caller will keep. Without such frames, it is advanced by
    /// [`Network::advance_detached`], also before each [`Network::offer`].
    pub fn detach(&mut self, id: LinkId) {
        if let Some(Some(node)) = self.nodes.get_mut(id.0 as usize) {
            // Its entry in the agenda is stale.
            node.due = None;
            node.detached = true;
        }
    }

    /// Makes the decisions of a detached link, all of whose frames the network holds, by
    /// events until a time.
    #[inline]
    pub fn advance_detached(
        &mut self,
        id: LinkId,
        until: impl RangeBounds<Nanos>,
        host: &mut impl FrameHost<T>,
    ) {
        while let Some(at) = self.next_of(id, &until)
            && let Some(Some(node)) = self.nodes.get_mut(id.0 as usize)
        {
            host.at(at);
            let (lane, mut host) = node.borrow(id, None, &mut self.transit, host);
            lane.poll(..=at, &mut host);
        }
    }

    /// Makes the decisions about the frames that the network holds for a detached link, by
    /// events until a time. While it holds some, to be called before the caller polls the
    /// link.
    pub fn advance_held(
        &mut self,
        id: LinkId,
        until: impl RangeBounds<Nanos>,
        host: &mut impl FrameHost<T>,
    ) {
        while self.holds_frames(id)
            && let Some(at) = self.next_of(id, &until)
            && let Some(Some(node)) = self.nodes.get_mut(id.0 as usize)
        {
            host.at(at);
            let (lane, mut host) = node.borrow(id, None, &mut self.transit, host);
            lane.poll_held(..=at, &mut host);
        }
    }

    /// Returns the time of a link's next event, if that is in `until`.
    fn next_of(&mut self, id: LinkId, until: &impl RangeBounds<Nanos>) -> Option<Nanos> {
        let node = self.nodes.get_mut(id.0 as usize)?.as_mut()?;
        node.lane.next_at().filter(|at| until.contains(at))
    }

    /// Whether the network holds frames in a link's queue.
    #[inline]
    pub fn holds_frames(&self, id: LinkId) -> bool {
        let node = self.nodes.get(id.0 as usize).and_then(Option::as_ref);
        node.is_some_and(|node| !node.lane.is_empty())
    }

    /// Returns a detached link, whose frames the caller keeps.
    #[inline]
    pub fn detached(&mut self, id: LinkId) -> Option<SequentialLink<'_>> {
        let node = self.nodes.get_mut(id.0 as usize)?.as_mut()?;
        Some(node.lane.in_turn())
    }

    /// Ends what [`Network::detach`] began: takes over the frames in the link's queue
    /// that the caller has kept, in their order, each with its length. Returns the time
    /// from which on the link can be changed.
    pub fn attach(&mut self, path: PathId, frames: impl IntoIterator<Item = (T, u32)>) -> Nanos {
        let Some(id) = self.sole_link(path) else {
            return Nanos::ZERO;
        };
        let Some(Some(node)) = self.nodes.get_mut(id.0 as usize) else {
            return Nanos::ZERO;
        };
        let travellers = frames.into_iter().map(|(item, len)| Traveller {
            item,
            path,
            hop: 0,
            len,
        });
        node.detached = false;
        let taken = node.lane.take_over(travellers);
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
