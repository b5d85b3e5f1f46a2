//! Links of a pair of ports in virtual time, without switch or classifier.

use longwire_engine::{
    Delivery, DropReason, Fragments, FrameAccess, FrameMeta, Lane, LaneHost, Link, LinkId, Nanos,
    Verdict,
};
use longwire_packet::bridge::PortIndex;

use super::in_order::PairReleases;
use super::ledger::Ledger;
use super::simulation::OutputFrame;
use super::store::{FrameLocation, FrameStore};
use crate::ledger::LinkCells;
use crate::report::LinkReport;

/// One or two links between two ports.
pub(super) struct Pair {
    /// By the port of arrival.
    links: [Option<PairLink>; 2],
    is_managed: bool,
    waiting: PairReleases<PairFrame>,
    fragments: Fragments,
}

/// A link with its frames; its number is the port of arrival.
pub(super) struct PairLink {
    lane: Lane<PairFrame>,
    pub cells: LinkCells,
    /// The report, without counts.
    pub report: LinkReport,
    store: FrameStore,
}

/// A frame on a link or in the release queue.
#[derive(Clone, Copy, Debug)]
struct PairFrame {
    place: FrameLocation,
    wire_len: u32,
    /// Number on its link, truncated; valid if verdicts are recorded.
    number: u32,
}

/// The host of the lane of one link.
struct PairHost<'a> {
    /// The link's number.
    at: usize,
    cells: &'a LinkCells,
    store: &'a mut FrameStore,
    /// Store of the reverse link, for ICMP errors; without that link they are dropped.
    back: Option<&'a mut FrameStore>,
    waiting: &'a mut PairReleases<PairFrame>,
    ledger: &'a mut Option<Box<Ledger>>,
}

impl Pair {
    /// Returns a pair of these links, each with a report template.
    ///
    /// # Panics
    /// If two links have the same port.
    pub fn new(links: Vec<(PortIndex, Link, LinkReport)>) -> Pair {
        // A router's ICMP errors overtake frames of the reverse link.
        let in_order = |link: &Link| link.in_order() && !link.is_router();
        let in_order = links.iter().all(|(_, link, _)| in_order(link));
        let is_managed = links.iter().any(|(_, link, _)| link.is_managed());
        let mut pair = Pair {
            links: [None, None],
            is_managed,
            waiting: PairReleases::new(in_order),
            fragments: Fragments::default(),
        };
        for (port, link, report) in links {
            let place = &mut pair.links[usize::from(port.0)];
            assert!(place.is_none(), "two links at port {}", port.0);
            *place = Some(PairLink {
                lane: Lane::new(link),
                cells: LinkCells::default(),
                report,
                store: FrameStore::new(),
            });
        }
        pair
    }

    /// Returns the links with their port indices.
    pub fn links(&self) -> impl Iterator<Item = (usize, &PairLink)> {
        let links = self.links.iter().enumerate();
        links.filter_map(|(port, link)| Some((port, link.as_ref()?)))
    }

    /// Processes a frame that arrives at a port, or its fragments. All events up to its
    /// arrival are done.
    #[inline]
    pub fn bring(
        &mut self,
        port: PortIndex,
        meta: FrameMeta,
        bytes: &[u8],
        ledger: &mut Option<Box<Ledger>>,
    ) {
        let Pair {
            links,
            waiting,
            fragments,
            ..
        } = self;
        let [first, second] = links;
        let (link, back) = if port.0 == 0 {
            (first, second)
        } else {
            (second, first)
        };
        let Some(link) = link else {
            return;
        };
        let mut back = back.as_mut().map(|back| &mut back.store);
        if !fragments.cut(link.lane.link().mtu(), bytes) {
            return link.offer(port, meta, bytes, back, (waiting, ledger));
        }
        for bytes in fragments.iter() {
            let meta = FrameMeta::new(meta.arrival, bytes.len() as u32);
            link.offer(port, meta, bytes, back.as_deref_mut(), (waiting, ledger));
        }
    }

    /// Processes queue events up to and including `until`, earliest first.
    #[inline]
    pub fn advance(&mut self, until: Nanos, ledger: &mut Option<Box<Ledger>>) {
        while self.is_managed
            && let Some((at, index)) = self.next_event()
            && at <= until
            && let Some(link) = &mut self.links[index]
        {
            let (lane, mut host) = link.borrow(index, None, &mut self.waiting, ledger);
            lane.poll(..=until, &mut host);
        }
    }

    /// Returns the time and link of the next queue event.
    #[inline]
    fn next_event(&mut self) -> Option<(Nanos, usize)> {
        let links = self.links.iter_mut().enumerate();
        let next = links.filter_map(|(at, link)| Some((link.as_mut()?.lane.next_at()?, at)));
        next.min()
    }

    /// Passes frames released by `until` to `out`.
    #[inline]
    pub fn release<E>(
        &mut self,
        until: Nanos,
        out: &mut impl FnMut(OutputFrame<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some((index, release, frame)) = self.waiting.pop_due(until) {
            let Some(link) = &mut self.links[index] else {
                continue;
            };
            out(OutputFrame {
                port: PortIndex(1 - index as u16),
                release,
                bytes: link.store.get(frame.place),
                wire_len: frame.wire_len,
            })?;
            link.store.remove(frame.place);
        }
        Ok(())
    }

    /// Returns the number of frames inside.
    pub fn frames(&self) -> usize {
        let held = self.links().map(|(_, link)| link.lane.len());
        self.waiting.len() + held.sum::<usize>()
    }

    /// Returns the time of the next queue event or release.
    pub fn next_at(&mut self) -> Option<Nanos> {
        let event = self.next_event().map(|(at, _)| at);
        event.into_iter().chain(self.waiting.next_at()).min()
    }
}

impl PairLink {
    /// Returns the link.
    pub fn link(&self) -> &Link {
        self.lane.link()
    }

    /// Returns the peak memory of its frames, in bytes.
    pub fn memory_max(&self) -> u64 {
        self.store.memory_max()
    }

    /// Offers an arriving frame to the lane.
    //
    // Not inlined: in its caller, the link's state would spill from registers.
    #[inline(never)]
    fn offer(
        &mut self,
        port: PortIndex,
        meta: FrameMeta,
        bytes: &[u8],
        back: Option<&mut FrameStore>,
        (waiting, ledger): (&mut PairReleases<PairFrame>, &mut Option<Box<Ledger>>),
    ) {
        self.cells.arrived(meta.len);
        let frame = PairFrame {
            place: self.store.insert(bytes),
            wire_len: meta.len,
            number: 0,
        };
        let (lane, mut host) = self.borrow(port.0.into(), back, waiting, ledger);
        lane.offer(meta, frame, &mut host);
    }

    /// Borrows the lane and its host; `at` is the link's number.
    #[inline]
    fn borrow<'a>(
        &'a mut self,
        at: usize,
        back: Option<&'a mut FrameStore>,
        waiting: &'a mut PairReleases<PairFrame>,
        ledger: &'a mut Option<Box<Ledger>>,
    ) -> (&'a mut Lane<PairFrame>, PairHost<'a>) {
        let host = PairHost {
            at,
            cells: &self.cells,
            store: &mut self.store,
            back,
            waiting,
            ledger,
        };
        (&mut self.lane, host)
    }
}

impl PairHost<'_> {
    /// Records a verdict.
    #[cold]
    fn record(&mut self, frame: PairFrame, verdict: Verdict) {
        if let Some(ledger) = self.ledger {
            ledger.decided(LinkId(self.at as u32), frame.number, verdict);
        }
    }
}

impl FrameAccess<PairFrame> for PairHost<'_> {
    #[inline]
    fn bytes<'a>(&'a self, frame: &'a PairFrame) -> &'a [u8] {
        self.store.get(frame.place)
    }

    fn edit(&mut self, frame: &mut PairFrame, edit: &mut dyn FnMut(&mut [u8])) {
        edit(self.store.get_mut(frame.place));
    }

    fn copy(&mut self, frame: &mut PairFrame) -> PairFrame {
        self.store.share(frame.place);
        *frame
    }
}

impl LaneHost<PairFrame> for PairHost<'_> {
    #[inline]
    fn offered(&mut self, frame: &mut PairFrame, meta: FrameMeta, link: &Link) {
        if let Some(ledger) = self.ledger {
            frame.number = ledger.offered(LinkId(self.at as u32), meta, link);
        }
    }

    #[cold]
    fn icmp_error(&mut self, _frame: &PairFrame, at: Nanos, error: &[u8]) {
        self.cells.icmp_sent();
        if let Some(back) = &mut self.back {
            let frame = PairFrame {
                place: back.insert(error),
                wire_len: error.len() as u32,
                number: 0,
            };
            self.waiting.push(1 - self.at, at, frame);
        }
    }

    #[inline]
    fn delivered(&mut self, frame: PairFrame, delivery: &Delivery, is_duplicate: bool) {
        if self.ledger.is_some() {
            self.record(frame, Verdict::Deliver(*delivery));
        }
        self.cells.delivered(delivery, is_duplicate);
        self.waiting.push(self.at, delivery.release, frame);
    }

    #[inline]
    fn dropped(&mut self, frame: PairFrame, reason: DropReason) {
        if self.ledger.is_some() {
            self.record(frame, Verdict::Drop(reason));
        }
        self.cells.dropped(reason);
        self.store.remove(frame.place);
    }
}
