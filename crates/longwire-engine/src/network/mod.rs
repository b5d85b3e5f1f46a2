//! Links joined into paths, in event time. Paths may share links.
//!
//! Events are processed in order of emulated time, regardless of how late the caller is: a frame
//! released by one link arrives at the next link at that time, interleaved with frames on other
//! paths. This is hop-by-hop emulation like ModelNet (Vahdat et al., 2002), but exact: events are
//! not batched into ticks.

mod build;
mod crossing;
mod in_turn;
mod links;
mod path;
mod transit;

use longwire_packet::frame::FrameMeta;
use longwire_units::Nanos;

use crate::lane::{FrameAccess, Lane};
use crate::link::{Link, LinkId};
use crate::models::mtu::Fragments;
use crate::models::mtu::Mtu;
use crate::prelude::*;
use crate::release::{ReleaseQueue, Sequence};
use crate::verdict::{Delivery, DropReason, Verdict};
pub use build::RemovedLink;
pub use crossing::{Crossing, EventPlace};
use links::Links;
pub use path::PathId;
use transit::Transit;

/// A network's interface to its caller: frame access and per-frame events.
pub trait FrameHost<T>: FrameAccess<T> {
    /// Allocates a fragment of a frame, with these bytes; `None` if out of memory.
    fn fragment(&mut self, of: &T, bytes: &[u8]) -> Option<T>;

    /// Announces that the following events happen at `now`.
    #[inline]
    fn at(&mut self, _now: Nanos) {}

    /// Called when a frame of `len` bytes arrives at a link.
    fn on_arrival(&mut self, link: LinkId, len: u32);

    /// Called when a frame has been offered to a link, before its decision is reported. The host
    /// may number the frame for its accounting.
    #[inline]
    fn offered(&mut self, _id: LinkId, _item: &mut T, _frame: FrameMeta, _link: &Link) {}

    /// Whether [`FrameHost::offered`] uses the link. If so, a managed queue keeps all frames
    /// until an event dequeues them. Otherwise, frames may be decided on arrival, without a call to
    /// `offered`.
    #[inline]
    fn watches_offers(&self) -> bool {
        false
    }

    /// Called when a link's router answers a frame with an ICMP error, before the frame is dropped.
    /// `error` is a frame to send from the dropped frame's ingress port.
    fn icmp_error(&mut self, _link: LinkId, _item: &T, _at: Nanos, _error: &[u8]) {}

    /// Called for each drop.
    fn dropped(&mut self, link: LinkId, item: T, reason: DropReason);

    /// Called when a link delivers a frame of `len` bytes to the next link or to the end of its
    /// path. `is_duplicate` is set for all deliveries of a frame but the first.
    fn delivered(
        &mut self,
        link: LinkId,
        item: &T,
        len: u32,
        delivery: &Delivery,
        is_duplicate: bool,
    );

    /// Called when the only link of a path decides a frame on arrival and delivers it unchanged. Equivalent
    /// to [`FrameHost::on_arrival`], [`FrameHost::delivered`] and [`FrameHost::on_exit`].
    #[inline]
    fn passed_through(&mut self, link: LinkId, item: T, len: u32, delivery: &Delivery) {
        self.on_arrival(link, len);
        self.delivered(link, &item, len, delivery, false);
        self.on_exit(item, link, delivery.release);
    }

    /// Called when a delivered frame of `len` bytes reaches the next link on its path, or leaves
    /// for another network.
    #[inline]
    fn passed_on(&mut self, _link: LinkId, _len: u32) {}

    /// Called when a frame leaves the last link on its path.
    fn on_exit(&mut self, item: T, last: LinkId, release: Nanos);

    /// Called when a frame, never a copy, is replaced by its fragments.
    fn forget(&mut self, item: T);
}

/// Stale agenda entries allowed in addition to one per link.
const STALE_MIN: usize = 1_024;

const NANO: Nanos = Nanos::from_nanos(1);

/// Number of links whose data fits in a core's cache.
const IN_CACHE_MAX: usize = 512;

/// A frame on its path.
#[derive(Debug)]
struct PathFrame<T> {
    item: T,
    path: PathId,
    /// Index of its current link in the path.
    hop: u32,
    len: u32,
}

/// A lane in the network.
#[derive(Debug)]
struct Node<T> {
    lane: Lane<PathFrame<T>>,
    /// Time of its agenda entry.
    due: Option<Nanos>,
    /// Whether the caller advances the lane, which then has no agenda entry.
    detached: bool,
    /// Sequence numbers for frames passed on to other links.
    passed_on: Sequence,
}

impl<T> Node<T> {
    fn new(link: Link) -> Node<T> {
        Node {
            lane: Lane::new(link),
            due: None,
            detached: false,
            passed_on: Sequence::default(),
        }
    }
}

/// Calls `fetch` with a value's address and length.
#[inline]
fn fetch_value<T>(value: &T, fetch: impl Fn(*const u8, usize)) {
    fetch(core::ptr::from_ref(value).cast(), size_of::<T>());
}

/// Links, paths and the frames on them.
#[derive(Debug)]
pub struct Network<T> {
    links: Links<T>,
    transit: Transit<T>,
    /// Links by time of their next event. When a link's time changes, its stale entry stays and is
    /// skipped later: this is rare, and a search would cost more.
    agenda: ReleaseQueue<()>,
    /// Fragments of the last fragmented frame.
    fragments: Fragments,
    /// Time before which no link changes.
    steady_until: Nanos,
    /// The latest [`Link::changeable_from`].
    changeable_from: Nanos,
}

impl<T> Default for Network<T> {
    fn default() -> Network<T> {
        Network::new()
    }
}

impl<T> Network<T> {
    /// Creates a network without links.
    pub fn new() -> Network<T> {
        Network {
            links: Links::new(),
            transit: Transit::new(),
            agenda: ReleaseQueue::new(),
            fragments: Fragments::default(),
            steady_until: Nanos::ZERO,
            changeable_from: Nanos::ZERO,
        }
    }

    /// Promises that no link changes before `until`: frames that depart before then may be decided on
    /// arrival, which saves an event. Without this promise, no frame is decided on arrival.
    #[inline]
    pub fn stays_until(&mut self, until: Nanos) {
        self.steady_until = until;
    }

    /// Returns the earliest allowed time for a change: frames that depart earlier may have been
    /// decided. Never later than times passed to [`Network::stays_until`].
    #[inline]
    pub fn changeable_from(&self) -> Nanos {
        self.changeable_from
    }

    /// Processes all events before `until`. Call it with a frame's arrival before offering the
    /// frame. Results do not depend on when it is called.
    #[inline]
    pub fn advance(&mut self, until: Nanos, host: &mut impl FrameHost<T>) {
        if !self.agenda.is_empty() || !self.transit.between.is_empty() {
            self.process_before(until, host);
        }
    }

    fn process_before(&mut self, until: Nanos, host: &mut impl FrameHost<T>) {
        loop {
            let service = self.agenda.next_at().filter(|at| *at < until);
            let arrival = self.transit.between.next_at().filter(|at| *at < until);
            match (service, arrival) {
                (Some(at), arrival) if arrival.is_none_or(|time| at <= time) => {
                    self.serve_next(at, host);
                }
                (_, Some(_)) => self.arrive(until, host),
                (_, None) => return,
            }
        }
    }

    /// Returns the time at which [`Network::advance`] will next have an event to process if no
    /// frame is offered first.
    pub fn next_at(&self) -> Option<Nanos> {
        let service = self.agenda.next_at();
        let next = service
            .into_iter()
            .chain(self.transit.between.next_at())
            .min();
        // `advance` processes events before its argument.
        next.map(|at| at.saturating_add(NANO))
    }

    /// Offers a frame to a path at its arrival; [`Network::advance`] must have been called up to
    /// that time. Frames that links can dequeue at that instant are dequeued first.
    ///
    /// # Errors
    /// The frame, if the path does not exist.
    #[inline]
    pub fn offer(
        &mut self,
        path: PathId,
        frame: FrameMeta,
        item: T,
        host: &mut impl FrameHost<T>,
    ) -> Result<(), T> {
        let FrameMeta { arrival, len } = frame;
        let Some(Some(there)) = self.transit.paths.get(path.0 as usize) else {
            return Err(item);
        };
        let only = there.only_link();
        // A frame decided on arrival at its only link does not count as on the path.
        if let Some(id) = only {
            self.reach(arrival, host);
            match &self.decide_early(id, frame, host) {
                Some(Verdict::Deliver(delivery)) => {
                    host.passed_through(id, item, len, delivery);
                    return Ok(());
                }
                Some(Verdict::Drop(reason)) => {
                    host.on_arrival(id, len);
                    host.dropped(id, item, *reason);
                    return Ok(());
                }
                Some(Verdict::Queued) | None => {}
            }
        }
        self.transit.enter(path);
        let path_frame = PathFrame {
            item,
            path,
            hop: 0,
            len,
        };
        match only {
            Some(id) => self.offer_to_lane(id, path_frame, arrival, host),
            None => self.offer_to_link(path_frame, arrival, host),
        }
        Ok(())
    }

    /// Replaces `links` with the first links of `paths`, followed by at most the same number of
    /// links with upcoming events. Calls `fetch` with the addresses and lengths of their data, so
    /// that prefetching overlaps the cache misses of several links. Has no other effect.
    pub fn prefetch(
        &self,
        paths: &[PathId],
        links: &mut Vec<LinkId>,
        fetch: impl Fn(*const u8, usize),
    ) {
        // One pass per level of indirection.
        let path = |path: &PathId| self.transit.paths.get(path.0 as usize);
        for there in paths.iter().filter_map(path) {
            fetch_value(there, &fetch);
        }
        links.clear();
        let first = |id: &PathId| path(id)?.as_ref()?.link(0);
        links.extend(paths.iter().filter_map(first));
        links.extend(self.agenda.next_links().take(paths.len()));
        let early = |link: &LinkId| self.links.peek_early(*link);
        for there in links.iter().filter_map(early) {
            fetch_value(there, &fetch);
        }
        let uses_node = |link: &&LinkId| early(link).is_none_or(|early| !early.is_active());
        let nodes = links.iter().filter(uses_node);
        for there in nodes.filter_map(|link| self.links.get(*link)) {
            fetch_value(there, &fetch);
        }
    }

    /// Whether all data fits in cache, so that prefetching would only cost time.
    pub fn is_in_cache(&self) -> bool {
        self.links.len() < IN_CACHE_MAX
    }

    /// Returns the number of frames on paths.
    pub fn frames(&self) -> u64 {
        let paths = self.transit.paths.iter().flatten();
        paths.map(|path| path.frames).sum()
    }

    /// Offers the next frame in transit to its link.
    fn arrive(&mut self, until: Nanos, host: &mut impl FrameHost<T>) {
        let Some((from, at, path_frame)) = self.transit.between.pop_due(until) else {
            return;
        };
        // The other network has already reported frames from its links.
        if self.links.contains(from) {
            host.passed_on(from, path_frame.len);
        }
        self.offer_to_link(path_frame, at, host);
    }

    /// Offers a frame to the link that it reached.
    fn offer_to_link(
        &mut self,
        path_frame: PathFrame<T>,
        arrival: Nanos,
        host: &mut impl FrameHost<T>,
    ) {
        self.reach(arrival, host);
        let Some(id) = self.link_of(&path_frame) else {
            return;
        };
        let meta = FrameMeta::new(arrival, path_frame.len);
        match &self.decide_early(id, meta, host) {
            Some(Verdict::Deliver(delivery)) => {
                host.on_arrival(id, meta.len);
                host.delivered(id, &path_frame.item, meta.len, delivery, false);
                if let Some(passed_on) = self.links.passed_on(id) {
                    let release = delivery.release;
                    self.transit
                        .forward(path_frame, (id, release), passed_on, host);
                }
            }
            Some(Verdict::Drop(reason)) => {
                host.on_arrival(id, meta.len);
                self.transit.leave(path_frame.path);
                host.dropped(id, path_frame.item, *reason);
            }
            Some(Verdict::Queued) | None => self.offer_to_lane(id, path_frame, arrival, host),
        }
    }

    /// Processes events up to a frame's arrival.
    #[inline(always)]
    fn reach(&mut self, arrival: Nanos, host: &mut impl FrameHost<T>) {
        self.serve_until(arrival, host);
        host.at(arrival);
    }

    /// Decides a frame without its lane, if possible. The caller counts the arrival.
    #[inline(always)]
    fn decide_early(
        &mut self,
        id: LinkId,
        frame: FrameMeta,
        host: &impl FrameHost<T>,
    ) -> Option<Verdict> {
        if host.watches_offers() {
            return None;
        }
        let early = self.links.early(id)?;
        let verdict = early.offer(frame, self.steady_until)?;
        let departed = early.last_departure().saturating_add(NANO);
        self.changeable_from = self.changeable_from.max(departed);
        Some(verdict)
    }

    /// Offers a frame to a link, after events up to its arrival.
    fn offer_to_lane(
        &mut self,
        id: LinkId,
        path_frame: PathFrame<T>,
        arrival: Nanos,
        host: &mut impl FrameHost<T>,
    ) {
        let fragments = self.link(id).is_some_and(Link::fragments);
        if fragments && self.cut(&path_frame, arrival, id, host) {
            self.transit.leave(path_frame.path);
            return host.forget(path_frame.item);
        }
        let Some(node) = self.links.get_mut(id) else {
            return;
        };
        host.on_arrival(id, path_frame.len);
        let meta = FrameMeta::new(arrival, path_frame.len);
        let steady_until = (!host.watches_offers()).then_some(self.steady_until);
        let (lane, mut host) = node.borrow(id, steady_until, &mut self.transit, host);
        if lane.offer(meta, path_frame, &mut host) {
            lane.report_drops(arrival, &mut host);
            self.note_due(id);
        } else {
            let changeable_from = lane.link().changeable_from();
            self.changeable_from = self.changeable_from.max(changeable_from);
            self.links.load_early(id);
        }
    }

    /// Offers a frame's fragments instead of the frame, if the link fragments it.
    #[cold]
    fn cut(
        &mut self,
        whole: &PathFrame<T>,
        arrival: Nanos,
        id: LinkId,
        host: &mut impl FrameHost<T>,
    ) -> bool {
        let mut fragments = core::mem::take(&mut self.fragments);
        let mtu = self.link(id).map_or(Mtu::None, Link::mtu);
        let cut = fragments.cut(mtu, host.bytes(&whole.item));
        if cut {
            for bytes in fragments.iter() {
                let Some(item) = host.fragment(&whole.item, bytes) else {
                    continue;
                };
                self.transit.enter(whole.path);
                let fragment = PathFrame {
                    item,
                    len: bytes.len() as u32,
                    ..*whole
                };
                self.offer_to_link(fragment, arrival, host);
            }
        }
        self.fragments = fragments;
        cut
    }

    /// Processes link events up to `arrival`, a frame's arrival.
    #[inline]
    fn serve_until(&mut self, arrival: Nanos, host: &mut impl FrameHost<T>) {
        while self.agenda.next_at().is_some_and(|at| at <= arrival) {
            self.serve_next(arrival, host);
        }
    }

    /// Processes the first agenda event if due by `until`.
    fn serve_next(&mut self, until: Nanos, host: &mut impl FrameHost<T>) {
        let Some((id, at, ())) = self.agenda.pop_due(until) else {
            return;
        };
        // Otherwise, the entry is stale: the link's time changed, or the link was removed.
        let is_due = self.links.get(id).is_some_and(|node| node.due == Some(at));
        if is_due && let Some(node) = self.links.get_mut(id) {
            node.due = None;
            host.at(at);
            let steady_until = (!host.watches_offers()).then_some(self.steady_until);
            let (lane, mut host) = node.borrow(id, steady_until, &mut self.transit, host);
            lane.poll(..=at, &mut host);
            let changeable_from = lane.link().changeable_from();
            self.changeable_from = self.changeable_from.max(changeable_from);
            self.note_due(id);
        }
    }

    fn link_of(&self, path_frame: &PathFrame<T>) -> Option<LinkId> {
        let path = self
            .transit
            .paths
            .get(path_frame.path.0 as usize)?
            .as_ref()?;
        path.link(path_frame.hop)
    }

    /// Schedules the link's next event.
    #[inline]
    fn note_due(&mut self, id: LinkId) {
        let Some(node) = self.links.get_mut(id) else {
            return;
        };
        if node.detached {
            return;
        }
        let due = node.lane.next_at();
        if due == node.due {
            return;
        }
        node.due = due;
        if let Some(at) = due {
            self.agenda.push(id, at, ());
        }
        if self.agenda.len() > STALE_MIN + 2 * self.links.len() {
            let links = &self.links;
            let is_current = |id, at| links.get(id).is_some_and(|node| node.due == Some(at));
            self.agenda.retain(is_current);
        }
    }
}
