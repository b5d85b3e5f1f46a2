//! The links of a pair of ports in virtual time, which frames reach without switch and
//! classifier.

use std::mem;

use longwire_engine::emulator::{HeldBytes, HeldItems, ItemBytes};
use longwire_engine::{Delivery, Fragments, FrameMeta, Link, LinkId, Nanos, Verdict};
use longwire_packet::bridge::PortIndex;

use super::in_order::PairReleases;
use super::ledger::Ledger;
use super::simulation::OutputFrame;
use super::store::{FrameLocation, FrameStore};
use crate::ledger::LinkCells;
use crate::report::LinkReport;

/// One or two links between two ports.
pub(super) struct Pair {
    /// By the port at which their frames arrive.
    links: [Option<PairLink>; 2],
    is_managed: bool,
    waiting: PairReleases<PairFrame>,
    fragments: Fragments,
}

/// A link with its frames. Its number is that of the port at which they arrive.
pub(super) struct PairLink {
    pub link: Link,
    pub cells: LinkCells,
    /// The report, without counts.
    pub report: LinkReport,
    store: FrameStore,
    /// Frames about which the queue has not decided.
    held: HeldItems<PairFrame>,
}

/// A frame on a link, or after it.
#[derive(Clone, Copy, Debug)]
struct PairFrame {
    place: FrameLocation,
    wire_len: u32,
    /// Its number on its link, truncated, if verdicts are recorded.
    number: u32,
}

impl ItemBytes<PairFrame> for FrameStore {
    #[inline]
    fn bytes<'a>(&'a self, frame: &'a PairFrame) -> &'a [u8] {
        self.get(frame.place)
    }
}

impl Pair {
    /// Returns a pair of these links, each with its report without counts.
    ///
    /// # Panics
    /// If two links have the same port.
    pub fn new(links: Vec<(PortIndex, Link, LinkReport)>) -> Pair {
        // The ICMP errors of a router pass by the frames on the other link.
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
                link,
                cells: LinkCells::default(),
                report,
                store: FrameStore::new(),
                held: HeldItems::new(),
            });
        }
        pair
    }

    /// Returns the links, each with the index of its port.
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
        let at = usize::from(port.0);
        let Some(link) = &mut links[at] else {
            return;
        };
        if !fragments.cut(link.link.mtu(), bytes) {
            link.offer(at, meta, bytes, waiting, ledger);
            return self.answer(at, meta.arrival);
        }
        let fragments = mem::take(fragments);
        for bytes in fragments.iter() {
            let meta = FrameMeta::new(meta.arrival, bytes.len() as u32);
            if let Some(link) = &mut self.links[at] {
                link.offer(at, meta, bytes, &mut self.waiting, ledger);
            }
            self.answer(at, meta.arrival);
        }
        self.fragments = fragments;
    }

    /// Sends the ICMP error of a link's router about the frame offered last out by the port
    /// where that came in; without a link to that port there is no way.
    #[inline]
    fn answer(&mut self, at: usize, arrival: Nanos) {
        let [first, second] = &mut self.links;
        let (link, back) = if at == 0 {
            (first, second)
        } else {
            (second, first)
        };
        let Some(link) = link else { return };
        let Some(error) = link.link.icmp_error() else {
            return;
        };
        link.cells.icmp_sent();
        if let Some(back) = back {
            let frame = PairFrame {
                place: back.store.insert(error),
                wire_len: error.len() as u32,
                number: 0,
            };
            self.waiting.push(1 - at, arrival, frame);
        }
    }

    /// Processes the events up to and including `until` of queues that decide later than
    /// at arrival: first all of the link that has the next event.
    #[inline]
    pub fn advance(&mut self, until: Nanos, ledger: &mut Option<Box<Ledger>>) {
        while self.is_managed
            && let Some((at, index)) = self.next_event()
            && at <= until
            && let Some(link) = &mut self.links[index]
        {
            link.serve(index, until, &mut self.waiting, ledger);
        }
    }

    /// Returns the time of the next event of a queue, and the link.
    #[inline]
    fn next_event(&mut self) -> Option<(Nanos, usize)> {
        let links = self.links.iter_mut().enumerate();
        let next = links.filter_map(|(at, link)| Some((link.as_mut()?.link.next_at()?, at)));
        next.min()
    }

    /// Hands the frames that are released by `until` to `out`.
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
        let held = self.links().map(|(_, link)| link.held.len());
        self.waiting.len() + held.sum::<usize>()
    }

    /// Returns the time of the next event of a queue, or of the next release.
    pub fn next_at(&mut self) -> Option<Nanos> {
        let event = self.next_event().map(|(at, _)| at);
        event.into_iter().chain(self.waiting.next_at()).min()
    }
}

impl PairLink {
    /// Offers a frame to the link, and processes the link's verdict. `at` is the link's
    /// number.
    #[inline]
    fn offer(
        &mut self,
        at: usize,
        meta: FrameMeta,
        bytes: &[u8],
        waiting: &mut PairReleases<PairFrame>,
        ledger: &mut Option<Box<Ledger>>,
    ) {
        self.cells.arrived(meta.len);
        let mut frame = PairFrame {
            place: self.store.insert(bytes),
            wire_len: meta.len,
            number: 0,
        };
        let verdict = self.link.offer(meta, bytes);
        if let Some(ledger) = ledger {
            frame.number = ledger.offered(LinkId(at as u32), meta, &self.link);
        }
        let mut delivery = match verdict {
            Verdict::Queued => return self.held.push(frame),
            Verdict::Drop(_) => {
                self.decided(at, &frame, &verdict, false, ledger);
                return self.store.remove(frame.place);
            }
            Verdict::Deliver(delivery) => delivery,
        };
        self.decided(at, &frame, &verdict, false, ledger);
        if delivery.edits.any() {
            self.link.edit(&delivery, self.store.get_mut(frame.place));
        }
        waiting.push(at, delivery.release, frame);
        while delivery.more
            && let Some(copy) = self.link.next_copy()
        {
            delivery = copy;
            self.store.share(frame.place);
            self.decided(at, &frame, &Verdict::Deliver(copy), true, ledger);
            waiting.push(at, copy.release, frame);
        }
    }

    /// Processes the decisions of the queue by events up to and including `until`.
    fn serve(
        &mut self,
        at: usize,
        until: Nanos,
        waiting: &mut PairReleases<PairFrame>,
        ledger: &mut Option<Box<Ledger>>,
    ) {
        // The deliveries of one frame follow each other directly.
        let mut is_duplicate = false;
        loop {
            let frames = HeldBytes {
                held: &self.held,
                of: &self.store,
            };
            // Used where it is: a copy of it would wait for its fields, just written.
            let polled = self.link.poll(until, &frames);
            let Some((number, verdict)) = &polled else {
                return;
            };
            let number = *number;
            let more = matches!(verdict, Verdict::Deliver(Delivery { more: true, .. }));
            let frame = if more {
                self.held.get(number).copied()
            } else {
                self.held.take(number)
            };
            let Some(frame) = frame else { continue };
            match verdict {
                Verdict::Deliver(delivery) => {
                    if delivery.edits.any() && !is_duplicate {
                        self.link.edit(delivery, self.store.get_mut(frame.place));
                    }
                    if more {
                        self.store.share(frame.place);
                    }
                    waiting.push(at, delivery.release, frame);
                }
                Verdict::Drop(_) => self.store.remove(frame.place),
                Verdict::Queued => continue,
            }
            self.decided(at, &frame, verdict, is_duplicate, ledger);
            is_duplicate = more;
        }
    }

    /// Records and counts a verdict.
    #[inline]
    fn decided(
        &self,
        at: usize,
        frame: &PairFrame,
        verdict: &Verdict,
        is_duplicate: bool,
        ledger: &mut Option<Box<Ledger>>,
    ) {
        if let Some(ledger) = ledger {
            ledger.decided(LinkId(at as u32), frame.number, *verdict);
        }
        self.cells.decided(verdict, is_duplicate);
    }

    /// Returns the most memory that its frames have had, in bytes.
    pub fn memory_max(&self) -> u64 {
        self.store.memory_max()
    }
}
