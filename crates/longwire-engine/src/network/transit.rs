//! Frames on paths, and forwarding of delivered frames.

use longwire_packet::frame::FrameMeta;
use longwire_units::Nanos;

use super::path::Path;
use super::{Crossing, FrameHost, Network, Node, PathFrame, PathId};
use crate::lane::{FrameAccess, Lane, LaneHost};
use crate::link::{Link, LinkId};
use crate::prelude::*;
use crate::release::{ReleaseKey, ReleaseQueue, Sequence};
use crate::verdict::{Delivery, DropReason};

/// Paths, and the frames between links.
#[derive(Debug)]
pub(super) struct Transit<T> {
    pub paths: Vec<Option<Path>>,
    /// Frames in transit to their next link.
    pub between: ReleaseQueue<PathFrame<T>>,
    /// Frames bound for other networks.
    pub crossings: Vec<Crossing<T>>,
}

/// Host for a node's lane.
pub(super) struct NodeHost<'a, T, H> {
    id: LinkId,
    steady_until: Option<Nanos>,
    /// Sequence numbers for frames that the link passes on.
    passed_on: &'a mut Sequence,
    transit: &'a mut Transit<T>,
    host: &'a mut H,
}

impl<T> Node<T> {
    /// Borrows the lane together with its host.
    #[inline]
    pub(super) fn borrow<'a, H>(
        &'a mut self,
        id: LinkId,
        steady_until: Option<Nanos>,
        transit: &'a mut Transit<T>,
        host: &'a mut H,
    ) -> (&'a mut Lane<PathFrame<T>>, NodeHost<'a, T, H>) {
        let host = NodeHost {
            id,
            steady_until,
            passed_on: &mut self.passed_on,
            transit,
            host,
        };
        (&mut self.lane, host)
    }
}

impl<T, H: FrameHost<T>> FrameAccess<PathFrame<T>> for NodeHost<'_, T, H> {
    #[inline]
    fn bytes<'a>(&'a self, path_frame: &'a PathFrame<T>) -> &'a [u8] {
        self.host.bytes(&path_frame.item)
    }

    fn edit(&mut self, path_frame: &mut PathFrame<T>, edit: &mut dyn FnMut(&mut [u8])) {
        self.host.edit(&mut path_frame.item, edit);
    }

    fn copy(&mut self, path_frame: &mut PathFrame<T>) -> PathFrame<T> {
        self.transit.enter(path_frame.path);
        PathFrame {
            item: self.host.copy(&mut path_frame.item),
            ..*path_frame
        }
    }
}

impl<T, H: FrameHost<T>> LaneHost<PathFrame<T>> for NodeHost<'_, T, H> {
    #[inline]
    fn steady_until(&self) -> Option<Nanos> {
        self.steady_until
    }

    #[inline]
    fn offered(&mut self, path_frame: &mut PathFrame<T>, frame: FrameMeta, link: &Link) {
        self.host
            .offered(self.id, &mut path_frame.item, frame, link);
    }

    fn icmp_error(&mut self, path_frame: &PathFrame<T>, at: Nanos, error: &[u8]) {
        self.host.icmp_error(self.id, &path_frame.item, at, error);
    }

    /// Forwards a frame to the next link or the end of the path.
    #[inline]
    fn delivered(&mut self, path_frame: PathFrame<T>, delivery: &Delivery, is_duplicate: bool) {
        let (id, len) = (self.id, path_frame.len);
        self.host
            .delivered(id, &path_frame.item, len, delivery, is_duplicate);
        let place = (id, delivery.release);
        self.transit
            .forward(path_frame, place, self.passed_on, self.host);
    }

    fn dropped(&mut self, path_frame: PathFrame<T>, reason: DropReason) {
        self.transit.leave(path_frame.path);
        self.host.dropped(self.id, path_frame.item, reason);
    }
}

impl<T> Transit<T> {
    pub fn new() -> Transit<T> {
        Transit {
            paths: Vec::new(),
            between: ReleaseQueue::new(),
            crossings: Vec::new(),
        }
    }

    /// Counts a frame on a path, and returns whether the path exists.
    #[inline]
    pub fn enter(&mut self, path: PathId) -> bool {
        let Some(Some(path)) = self.paths.get_mut(path.0 as usize) else {
            return false;
        };
        path.frames += 1;
        true
    }

    /// Forwards a frame that leaves link `from` at a release, to the next link or the end of its path.
    #[inline]
    pub fn forward(
        &mut self,
        path_frame: PathFrame<T>,
        (from, release): (LinkId, Nanos),
        passed_on: &mut Sequence,
        host: &mut impl FrameHost<T>,
    ) {
        let path = self.paths.get_mut(path_frame.path.0 as usize);
        let Some(path) = path.and_then(Option::as_mut) else {
            return host.on_exit(path_frame.item, from, release);
        };
        let Some(next) = path.hop(path_frame.hop + 1) else {
            path.frames -= 1;
            return host.on_exit(path_frame.item, from, release);
        };
        let path_frame = PathFrame {
            hop: path_frame.hop + 1,
            ..path_frame
        };
        let place = ReleaseKey {
            release,
            link: from,
            sequence: passed_on.next(),
        };
        if next.is_remote {
            host.passed_on(from, path_frame.len);
            self.cross(place, next.link, path_frame);
        } else {
            self.between.push_at(place, path_frame);
        }
    }

    /// Removes a frame from a path's count.
    #[inline]
    pub fn leave(&mut self, path: PathId) {
        if let Some(Some(path)) = self.paths.get_mut(path.0 as usize) {
            path.frames -= 1;
        }
    }
}

impl<T> Network<T> {
    /// Drops a frame at the first link on a path without offering it: the link counts it, but its
    /// queue and random streams are unaffected. As with [`Network::offer`], [`Network::advance`]
    /// must have been called with the frame's arrival, and events at that instant come first.
    ///
    /// # Errors
    /// The frame, if the path does not exist.
    pub fn drop_at_entry(
        &mut self,
        path: PathId,
        frame: FrameMeta,
        mut item: T,
        reason: DropReason,
        host: &mut impl FrameHost<T>,
    ) -> Result<(), T> {
        let path = self.transit.paths.get(path.0 as usize);
        let Some(id) = path.and_then(|path| path.as_ref()?.link(0)) else {
            return Err(item);
        };
        self.serve_until(frame.arrival, host);
        let Some(node) = self.links.get_mut(id) else {
            return Err(item);
        };
        host.at(frame.arrival);
        host.on_arrival(id, frame.len);
        host.offered(id, &mut item, frame, node.lane.link());
        host.dropped(id, item, reason);
        Ok(())
    }
}
