//! The deciding part of a fabric: switch, classifier, links and paths, in
//! event time. It knows neither clock nor ports.

use std::sync::Arc;

use longwire_engine::emulator::ItemBytes;
use longwire_engine::network::FrameHost;
use longwire_engine::{
    Delivery, DropReason, FrameMeta, Link, LinkId, Nanos, Network, PathId, ReleaseQueue, Verdict,
};
use longwire_packet::bridge::{Bridge, Forwarding, PortIndex};
use longwire_packet::classify::{Classifier, RuleId};

use serde::Serialize;

use super::cells::LinkCells;
use super::frames::{Exit, Frame, Frames};
use super::ledger::Ledger;
use super::orders::{Order, Orders};
use crate::counters::Artifact;
use crate::stage::{BURST, LateFrame};

/// Where a classifier sends frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// On, without any link.
    Pass,
    /// Nowhere.
    Drop,
    /// Along a path of links.
    Path(PathId),
    /// Nowhere, as of now: they are being moved to a path, whose first link
    /// counts them as lost.
    Handover(PathId),
}

/// Switch, classifier, links and paths.
pub struct Core {
    /// Which ports a frame leaves by.
    pub bridge: Bridge,
    pub(super) classifier: Classifier<Target>,
    /// The classifier's rules by the numbers that the caller gave them.
    pub(super) rules: Vec<Option<RuleId>>,
    pub(super) network: Network<Frame>,
    pub(super) yard: Yard,
    /// Frames that were taken off the lines; memory that is used again.
    incoming: Vec<Incoming>,
    orders: Orders,
    /// Everything before has happened.
    advanced: Nanos,
    /// The switch counts its time from here, so that it forgets the same in a
    /// run that is repeated on another clock.
    pub(super) epoch: Nanos,
    /// No link's decision may come later than this after its event.
    pub(super) slack: Nanos,
    counts: CoreCounts,
    /// By port: whether it went away. Empty while none has.
    lost_ports: Vec<bool>,
}

/// A frame that has come: by which port, when, itself, how long it is.
type Incoming = (PortIndex, Nanos, Frame, u32);

/// What is counted of all links together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CoreCounts {
    /// Frames that were dropped because no path was for them.
    pub unmatched_dropped: u64,
    /// Frames that passed without a link.
    pub passed: u64,
    /// Frames without a link that were to leave by a port that went away.
    pub port_lost: u64,
    /// Frames that were taken to have arrived later than they did, by more
    /// than the tolerance.
    pub moved: u64,
    /// Arrivals and verdicts that were to be recorded and could not be.
    pub unrecorded: u64,
}

/// What is around the network: frames, what waits for its release, counters.
pub(super) struct Yard {
    pub frames: Frames,
    pub waiting: ReleaseQueue<(Frame, Option<LinkId>)>,
    pub cells: Vec<Option<Arc<LinkCells>>>,
    pub ledger: Option<Box<Ledger>>,
}

/// Frames that pass without a link wait in this line of the release queue;
/// links have those behind it.
const PASSING: LinkId = LinkId(0);

fn line_of(link: LinkId) -> LinkId {
    LinkId(link.0 + 1)
}

impl Core {
    pub(super) fn new(bridge: Bridge, classifier: Classifier<Target>, frames: Frames) -> Core {
        let rules = 0..classifier.len() as u32;
        Core {
            bridge,
            rules: rules.map(|rule| Some(RuleId(rule))).collect(),
            classifier,
            slack: Nanos::MAX,
            network: Network::new(),
            yard: Yard {
                frames,
                waiting: ReleaseQueue::new(),
                cells: Vec::new(),
                ledger: None,
            },
            incoming: Vec::with_capacity(BURST),
            orders: Orders::default(),
            advanced: Nanos::ZERO,
            epoch: Nanos::ZERO,
            counts: CoreCounts::default(),
            lost_ports: Vec::new(),
        }
    }

    /// What was counted of all links together.
    pub fn counts(&self) -> CoreCounts {
        let ledger = self.yard.ledger.as_ref();
        CoreCounts {
            unrecorded: ledger.map_or(0, |ledger| ledger.lost()),
            ..self.counts
        }
    }

    /// Everything before has happened.
    pub(super) fn now(&self) -> Nanos {
        self.advanced
    }

    /// Frames inside: on paths, and waiting for their release.
    pub fn frames(&self) -> u64 {
        self.yard.frames.len() as u64
    }

    /// To be done at its time, or at once if that has passed.
    pub(super) fn order(&mut self, order: Order) {
        self.orders.add(order);
    }

    /// Lets everything happen that happens before `until`, and the orders of
    /// that time.
    pub(super) fn advance(&mut self, until: Nanos) {
        while let Some(order) = self.orders.take_due(until) {
            // An order that came late is done now.
            let at = order.at.max(self.advanced);
            self.network.advance(at, &mut self.yard);
            self.advanced = at;
            (order.work)(self, at);
        }
        let until = until.max(self.advanced);
        self.network.advance(until, &mut self.yard);
        self.advanced = until;
    }

    /// Takes in the frames that arrived by `until`, a burst of them at the
    /// most, and sends them on their ways. Those that are taken to have arrived
    /// later than they did, by more than the tolerance, are counted. Returns
    /// how many there were.
    pub(super) fn take_in(&mut self, until: Nanos, tolerance: Nanos) -> usize {
        let mut incoming = std::mem::take(&mut self.incoming);
        while incoming.len() < BURST
            && let Some((line, stamped)) = self.yard.frames.next_arrival(until)
            && let Some((frame, len)) = self.yard.frames.take(line)
        {
            let port = PortIndex(line);
            incoming.push((port, stamped, frame, len));
        }
        self.prefetch(&incoming);
        let taken = incoming.len();
        for (port, stamped, frame, len) in incoming.drain(..) {
            let arrival = stamped.max(self.advanced);
            self.advance(arrival);
            self.counts.moved += u64::from(arrival.saturating_sub(stamped) > tolerance);
            self.switch(port, frame, FrameMeta { arrival, len });
        }
        self.incoming = incoming;
        taken
    }

    /// With many links, hardly anything of a frame's way is in cache. The
    /// memory of several frames' ways is fetched in less time at once than one
    /// after the other. Rules may change before a frame has its turn; then it
    /// has been looked for in vain.
    fn prefetch(&self, incoming: &[Incoming]) {
        let mut paths = [PathId(0); BURST];
        let mut found = 0;
        if self.network.is_in_cache() {
            return;
        }
        for (port, _, frame, len) in incoming {
            let bytes = self.yard.frames.bytes(frame);
            if let Target::Path(path) = self.classifier.classify(*port, bytes, *len).target {
                paths[found] = path;
                found += 1;
            }
        }
        let prefetch_link = |link| self.yard.cells_of(link).map_or(0, LinkCells::prefetch_hint);
        let words = self.network.prefetch(&paths[..found], prefetch_link);
        std::hint::black_box(words);
    }

    /// Sends a frame on its way that came by no line.
    pub(super) fn bring(&mut self, port: PortIndex, meta: FrameMeta, bytes: &[u8]) {
        self.advance(meta.arrival);
        let frame = self.yard.frames.bring(bytes, meta.len);
        self.switch(port, frame, meta);
    }

    #[inline]
    fn switch(&mut self, port: PortIndex, mut frame: Frame, meta: FrameMeta) {
        let bytes = self.yard.frames.bytes(&frame);
        if let Some(ledger) = &mut self.yard.ledger {
            ledger.entered(port, meta, bytes);
        }
        let since = meta.arrival.saturating_sub(self.epoch);
        frame.exit = match self.bridge.forward(since, port, bytes) {
            Forwarding::None(_) => return self.yard.frames.free(frame),
            Forwarding::One(port) => Exit::One(port),
            Forwarding::Flood(_) => Exit::AllBut(port),
        };
        let lost = matches!(frame.exit, Exit::One(port) if self.is_lost(port));
        let undelivered = match self.classifier.classify(port, bytes, meta.len).target {
            Target::Pass if lost => {
                self.counts.port_lost += 1;
                return self.yard.frames.free(frame);
            }
            Target::Pass => {
                self.counts.passed += 1;
                return self.yard.waiting.push(PASSING, meta.arrival, (frame, None));
            }
            Target::Drop => Err(frame),
            Target::Path(path) if lost => {
                let reason = DropReason::PortLost;
                self.network
                    .drop_at_entry(path, meta, frame, reason, &mut self.yard)
            }
            Target::Handover(path) => {
                let reason = DropReason::Handover;
                self.network
                    .drop_at_entry(path, meta, frame, reason, &mut self.yard)
            }
            Target::Path(path) => self.network.offer(path, meta, frame, &mut self.yard),
        };
        if let Err(frame) = undelivered {
            self.counts.unmatched_dropped += 1;
            self.yard.frames.free(frame);
        }
    }

    #[inline]
    fn is_lost(&self, port: PortIndex) -> bool {
        self.lost_ports.get(usize::from(port.0)) == Some(&true)
    }

    /// Frames that are to leave by a port are lost from now on.
    pub(super) fn lose_port(&mut self, port: usize) {
        if port >= self.lost_ports.len() {
            self.lost_ports.resize(port + 1, false);
        }
        self.lost_ports[port] = true;
    }

    /// The next frame that is due by `now`: itself, its release, its last
    /// link.
    #[inline]
    pub(super) fn pop_due(&mut self, now: Nanos) -> Option<(Frame, Nanos, Option<LinkId>)> {
        let (_, release, (frame, last)) = self.yard.waiting.pop_due(now)?;
        Some((frame, release, last))
    }

    /// A frame was handed over later than it is allowed to be. Its last link
    /// counts it as the port does, and only what is the emulator's own.
    pub(super) fn was_late(&self, late: &LateFrame) {
        let Some(cells) = late.link.and_then(|link| self.yard.cells_of(link)) else {
            return;
        };
        match late.artifact {
            Artifact::Late => cells.late(late.lateness, false),
            Artifact::Overload => cells.late(late.lateness, true),
            _ => {}
        }
    }

    /// When something happens next: an event of links, an order. Releases
    /// beside.
    pub(super) fn next_event(&self) -> Option<Nanos> {
        let order = self.orders.next_at();
        order.into_iter().chain(self.network.next_at()).min()
    }

    /// Whether no frame is anywhere inside.
    pub(super) fn is_empty(&mut self) -> bool {
        self.yard.frames.len() == 0 && self.yard.frames.lines_are_empty()
    }
}

impl Yard {
    #[inline]
    fn cells_of(&self, link: LinkId) -> Option<&LinkCells> {
        self.cells.get(link.0 as usize)?.as_deref()
    }
}

impl ItemBytes<Frame> for Yard {
    #[inline]
    fn bytes<'a>(&'a self, frame: &'a Frame) -> &'a [u8] {
        self.frames.bytes(frame)
    }
}

impl FrameHost<Frame> for Yard {
    fn edit(&mut self, frame: &mut Frame, edit: &mut dyn FnMut(&mut [u8])) {
        self.frames.edit(frame, edit);
    }

    fn copy(&mut self, frame: &Frame) -> Frame {
        self.frames.copy(frame)
    }

    fn fragment(&mut self, of: &Frame, bytes: &[u8]) -> Option<Frame> {
        Some(self.frames.make(of, bytes))
    }

    #[inline]
    fn on_arrival(&mut self, link: LinkId, len: u32) {
        if let Some(cells) = self.cells_of(link) {
            cells.came(len);
        }
    }

    #[inline]
    fn offered(&mut self, id: LinkId, frame: &mut Frame, meta: FrameMeta, link: &Link) {
        if let Some(ledger) = &mut self.ledger {
            ledger.offered(id, frame, meta, link);
        }
    }

    fn dropped(&mut self, link: LinkId, frame: Frame, reason: DropReason) {
        if let Some(ledger) = &mut self.ledger {
            ledger.decided(link, &frame, Verdict::Drop(reason));
        }
        if let Some(cells) = self.cells_of(link) {
            cells.dropped(reason);
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
        if let Some(ledger) = &mut self.ledger {
            ledger.decided(link, frame, Verdict::Deliver(*delivery));
        }
        if let Some(cells) = self.cells_of(link) {
            cells.delivered(len, delivery, is_duplicate);
        }
    }

    #[inline]
    fn on_exit(&mut self, frame: Frame, last: LinkId, release: Nanos) {
        self.waiting
            .push(line_of(last), release, (frame, Some(last)));
    }

    fn forget(&mut self, frame: Frame) {
        self.frames.free(frame);
    }
}
