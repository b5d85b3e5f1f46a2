//! Links that the caller advances apart from the others: each is the only link of the only
//! path that crosses it. Of a sequential link, the caller may also keep the frames, in order,
//! until they are decided.

use longwire_units::Nanos;

use super::{FrameHost, Network, PathId, Traveller};
use crate::link::{Link, LinkId};
use crate::verdict::Verdict;

impl<T> Network<T> {
    /// Returns the link of a path that has no other, if no other path crosses it.
    pub fn separate_link(&self, path: PathId) -> Option<LinkId> {
        let path = self.paths.get(path.0 as usize)?.as_ref()?;
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
    /// events before `now` and, if `at_now`, at it.
    #[inline]
    pub fn advance_detached(
        &mut self,
        id: LinkId,
        now: Nanos,
        at_now: bool,
        host: &mut impl FrameHost<T>,
    ) {
        while let Some(link) = self.detached(id)
            && let Some(at) = link.service_at()
            && (at < now || at_now && at == now)
        {
            host.at(at);
            self.serve(id, at, true, host);
        }
    }

    /// Makes the decisions about the frames that the network holds for a detached link, by
    /// events before `now` and, if `at_now`, at it. While it holds some, to be called
    /// before the caller polls the link.
    pub fn advance_held(
        &mut self,
        id: LinkId,
        now: Nanos,
        at_now: bool,
        host: &mut impl FrameHost<T>,
    ) {
        while self.holds_frames(id) {
            let Some(Some(node)) = self.nodes.get_mut(id.0 as usize) else {
                return;
            };
            let at = node.link.service_at();
            let Some(at) = at.filter(|at| *at < now || at_now && *at == now) else {
                return;
            };
            host.at(at);
            let decided = node.link.poll(at, &());
            let Some((number, verdict)) = decided else {
                continue;
            };
            let Some(traveller) = node.held.take(number) else {
                continue;
            };
            match verdict {
                Verdict::Deliver(delivery) => self.deliver(id, traveller, &delivery, false, host),
                Verdict::Drop(reason) => self.drop_frame(id, traveller, reason, host),
                Verdict::Queued => {}
            }
        }
    }

    /// Whether the network holds frames in a link's queue.
    #[inline]
    pub fn holds_frames(&self, id: LinkId) -> bool {
        let node = self.nodes.get(id.0 as usize).and_then(Option::as_ref);
        node.is_some_and(|node| !node.held.is_empty())
    }

    /// Returns a detached link, whose frames the caller keeps.
    #[inline]
    pub fn detached(&mut self, id: LinkId) -> Option<&mut Link> {
        let node = self.nodes.get_mut(id.0 as usize)?.as_mut()?;
        Some(&mut node.link)
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
        let (numbers, next_number) = node.link.queued_numbers();
        let own = node.held.len();
        let mut taken = 0;
        for (number, (item, len)) in numbers.skip(own).zip(frames) {
            taken += 1;
            let traveller = Traveller {
                item,
                path,
                hop: 0,
                len,
            };
            node.held.push_numbered(number, traveller);
        }
        node.detached = false;
        node.held.skip_to(next_number);
        let until = node.link.last_arrival().max(node.link.changeable_from());
        if let Some(Some(path)) = self.paths.get_mut(path.0 as usize) {
            path.frames += taken;
        }
        self.note_due(id);
        until
    }

    fn sole_link(&self, path: PathId) -> Option<LinkId> {
        self.paths.get(path.0 as usize)?.as_ref()?.link(0)
    }
}
