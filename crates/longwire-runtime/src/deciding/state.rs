//! Host of a network's links: frames, release queue and counters.

use std::sync::Arc;

use longwire_engine::network::FrameHost;
use longwire_engine::{
    Delivery, DropReason, FrameAccess, FrameMeta, Link, LinkId, Nanos, Network, PathId,
    ReleaseQueue,
};
use longwire_io::prefetch_to_read;

use super::flows::FlowSketch;
use super::frames::{Frame, Frames};
use super::recorder::{EventRecorder, LinkAccount};
use super::remote::RemoteParts;
use super::watched::WatchedLinks;
use crate::counters::LinkCells;

/// The classifier's target for a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// Forward without a link.
    Pass,
    /// Drop.
    Drop,
    /// A path of links.
    Path(PathId),
    /// Drop during the outage of a move to this path, whose first link counts the loss.
    Handover(PathId),
}

/// Host of a network's links: frames, release queue and counters.
#[derive(Default)]
pub(super) struct CoreState {
    pub frames: Frames,
    /// Frames by release, each on the line of its last link.
    pub waiting: ReleaseQueue<Frame>,
    pub cells: Vec<Option<Arc<LinkCells>>>,
    pub recorder: Option<Box<EventRecorder>>,
    /// Links whose delays are counted.
    pub watched: Option<Box<WatchedLinks>>,
    /// Flows of the observed link.
    pub flows: Option<Box<FlowSketch>>,
    /// Lines to other hosts.
    pub remote: Option<Box<RemoteParts>>,
    /// Reused buffer for links to prefetch.
    links_ahead: Vec<LinkId>,
}

/// The release queue's line for frames without a link. The lines of links follow.
pub(super) const PASSING: LinkId = LinkId(0);

/// Marks lines whose frames no local link counts: routers' ICMP errors, and frames from
/// other hosts.
const UNCOUNTED: u32 = 1;

fn line_of(link: LinkId) -> LinkId {
    LinkId((link.0 + 1) << 1)
}

/// Returns the local line for frames on another host's line.
pub(super) fn line_from_host(line: u32) -> LinkId {
    LinkId(line << 1 | UNCOUNTED)
}

/// Returns the link of a line.
#[inline]
pub(super) fn link_of(line: LinkId) -> Option<LinkId> {
    (line.0 >> 1).checked_sub(1).map(LinkId)
}

impl CoreState {
    pub(super) fn new(frames: Frames) -> CoreState {
        CoreState {
            frames,
            ..CoreState::default()
        }
    }

    /// Sets the counters of a link.
    pub(super) fn set_cells(&mut self, id: LinkId, cells: Arc<LinkCells>) {
        let index = id.0 as usize;
        if index >= self.cells.len() {
            self.cells.resize(index + 1, None);
        }
        self.cells[index] = Some(cells);
    }

    /// Removes and returns the counters of a removed link, whose frames may still wait for
    /// their port. The number stays reserved.
    pub(super) fn take_cells(&mut self, id: LinkId) -> Option<Arc<LinkCells>> {
        self.cells.get_mut(id.0 as usize)?.take()
    }

    /// Queues a frame until its release, after its last link.
    #[inline(always)]
    pub(super) fn wait(&mut self, frame: Frame, last: LinkId, release: Nanos) {
        self.wait_on(line_of(last), release, frame);
    }

    /// Queues a decided frame on a line of the release queue, or immediately sends it to
    /// another host's port.
    #[inline(always)]
    pub(super) fn wait_on(&mut self, line: LinkId, release: Nanos, frame: Frame) {
        if self.remote.is_some() {
            return self.send_or_wait(line, release, frame);
        }
        self.waiting.push(line, release, frame);
    }

    #[inline(never)]
    fn send_or_wait(&mut self, line: LinkId, release: Nanos, frame: Frame) {
        let Some(remote) = &mut self.remote else {
            return;
        };
        let len = frame.wire_len;
        match remote.send(&mut self.frames, line.0 >> 1, release, frame) {
            Some(frame) => self.waiting.push(line, release, frame),
            None => self.left(line, len),
        }
    }

    /// Counts a frame of `len` bytes as departed from its line's link.
    #[inline]
    pub(super) fn left(&self, line: LinkId, len: u32) {
        if line.0 & UNCOUNTED == 0
            && let Some(cells) = link_of(line).and_then(|link| self.cells_of(link))
        {
            cells.left(1, len.into());
        }
    }

    /// Prefetches the data of the first links of `paths` and of the links with the next
    /// events.
    pub(super) fn prefetch(&mut self, network: &Network<Frame>, paths: &[PathId]) {
        network.prefetch(paths, &mut self.links_ahead, prefetch_to_read);
        let cells = |link: &LinkId| self.cells.get(link.0 as usize);
        for there in self.links_ahead.iter().filter_map(cells) {
            prefetch_value(there);
        }
        for there in self.links_ahead.iter().filter_map(cells).flatten() {
            prefetch_value(&**there);
        }
    }

    /// Prefetches the counters of the frame that leaves `ahead` frames later.
    #[inline]
    pub(super) fn prefetch_counters(&self, ahead: usize) {
        let link = self.waiting.link_ahead(ahead).and_then(link_of);
        if let Some(cells) = link.and_then(|link| self.cells_of(link)) {
            prefetch_value(cells);
        }
    }

    /// Borrows the account of a link.
    #[inline]
    fn account(&mut self, link: LinkId) -> LinkAccount<'_> {
        LinkAccount {
            link,
            cells: self.cells.get(link.0 as usize).and_then(Option::as_deref),
            recorder: self.recorder.as_deref_mut(),
        }
    }

    #[inline]
    pub(super) fn cells_of(&self, link: LinkId) -> Option<&LinkCells> {
        self.cells.get(link.0 as usize)?.as_deref()
    }
}

#[inline]
fn prefetch_value<T>(value: &T) {
    prefetch_to_read(std::ptr::from_ref(value).cast(), size_of::<T>());
}

impl FrameAccess<Frame> for CoreState {
    #[inline]
    fn bytes<'a>(&'a self, frame: &'a Frame) -> &'a [u8] {
        self.frames.bytes(frame)
    }

    fn edit(&mut self, frame: &mut Frame, edit: &mut dyn FnMut(&mut [u8])) {
        self.frames.edit(frame, edit);
    }

    fn copy(&mut self, frame: &mut Frame) -> Frame {
        self.frames.copy(frame)
    }
}

impl FrameHost<Frame> for CoreState {
    fn fragment(&mut self, of: &Frame, bytes: &[u8]) -> Option<Frame> {
        Some(self.frames.make(of, bytes))
    }

    #[inline]
    fn at(&mut self, now: Nanos) {
        if let Some(recorder) = &mut self.recorder {
            recorder.at(now);
        }
    }

    #[inline]
    fn on_arrival(&mut self, link: LinkId, len: u32) {
        if let Some(cells) = self.cells_of(link) {
            cells.arrived(len);
        }
    }

    #[inline]
    fn watches_offers(&self) -> bool {
        self.recorder.is_some() || self.watched.is_some()
    }

    #[inline]
    fn offered(&mut self, id: LinkId, frame: &mut Frame, meta: FrameMeta, link: &Link) {
        if let Some(recorder) = &mut self.recorder {
            frame.number = recorder.offered(id, meta, link.occupancy());
        }
        if let Some(watched) = &mut self.watched {
            let recorded = self.recorder.as_ref().map(|_| frame.number);
            frame.number = watched.offered(id, recorded, meta.arrival);
        }
    }

    #[cold]
    fn icmp_error(&mut self, link: LinkId, frame: &Frame, at: Nanos, error: &[u8]) {
        if let Some(cells) = self.cells_of(link) {
            cells.icmp_sent();
        }
        let error = self.frames.reply(frame, error);
        self.wait_on(LinkId(line_of(link).0 | UNCOUNTED), at, error);
    }

    fn dropped(&mut self, link: LinkId, frame: Frame, reason: DropReason) {
        self.account(link).dropped(frame.number, reason);
        if let Some(watched) = &mut self.watched {
            watched.decided(link, frame.number);
        }
        self.frames.free(frame);
    }

    #[inline]
    fn delivered(
        &mut self,
        link: LinkId,
        frame: &Frame,
        len: u32,
        delivery: &Delivery,
        is_duplicate: bool,
    ) {
        if let Some(flows) = &mut self.flows {
            flows.delivered(link, self.frames.bytes(frame), len);
        }
        let watched = self.watched.as_mut();
        let arrival = watched.and_then(|watched| watched.decided(link, frame.number));
        let meta = arrival.map(|arrival| FrameMeta::new(arrival, len));
        let mut account = self.account(link);
        account.delivered(frame.number, meta, delivery, is_duplicate);
    }

    #[inline(always)]
    fn passed_through(&mut self, link: LinkId, frame: Frame, len: u32, delivery: &Delivery) {
        if let Some(flows) = &mut self.flows {
            flows.delivered(link, self.frames.bytes(&frame), len);
        }
        // Without `watches_offers`, nothing is recorded.
        if let Some(cells) = self.cells_of(link) {
            cells.arrived(len);
            cells.delivered(delivery, false);
        }
        self.wait(frame, link, delivery.release);
    }

    #[inline]
    fn passed_on(&mut self, link: LinkId, len: u32) {
        self.left(line_of(link), len);
    }

    #[inline]
    fn on_exit(&mut self, frame: Frame, last: LinkId, release: Nanos) {
        self.wait(frame, last, release);
    }

    fn forget(&mut self, frame: Frame) {
        self.frames.free(frame);
    }
}
