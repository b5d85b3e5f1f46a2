//! The links of a pair of ports in virtual time, which frames reach without switch and
//! classifier.

use std::sync::Arc;

use longwire_engine::models::mtu::Mtu;
use longwire_engine::{Fragments, FrameMeta, Link, LinkId, Nanos, ReleaseQueue, Verdict};
use longwire_packet::bridge::PortIndex;

use super::core::{Core, FabricState};
use super::frames::Exit;
use super::simulation::OutputFrame;
use super::store::FrameLocation;
use crate::report::LinkReport;

/// One or two links between two ports. A link has the number of the port at which its
/// frames arrive, and keeps their bytes in the store of that number.
#[derive(Default)]
pub(super) struct Pair {
    /// The reports of the links, without their counts.
    pub links: Vec<(LinkId, LinkReport)>,
    is_managed: bool,
    /// By link.
    mtus: [Mtu; 2],
    /// Frames that wait for their release, unless the network keeps them.
    waiting: ReleaseQueue<DecidedFrame>,
    fragments: Fragments,
}

/// A frame whose link has decided.
#[derive(Clone, Copy, Debug)]
struct DecidedFrame {
    place: FrameLocation,
    wire_len: u32,
}

impl Pair {
    /// Adds a link to the pair and to the core.
    pub fn add(&mut self, core: &mut Core, id: LinkId, link: Link, report: LinkReport) {
        self.is_managed |= link.is_managed();
        self.mtus[id.0 as usize] = link.mtu();
        self.links.push((id, report));
        core.add_link(id, link, Arc::default());
    }

    /// Whether a queue of the links decides later than at arrival: the network then keeps
    /// the frames of both links.
    #[inline]
    pub fn is_managed(&self) -> bool {
        self.is_managed
    }

    /// Processes a frame that arrives at a port, or its fragments. All events up to its
    /// arrival are done.
    #[inline]
    pub fn bring(&mut self, core: &mut Core, port: PortIndex, meta: FrameMeta, bytes: &[u8]) {
        let id = LinkId(port.0.into());
        if !self.fragments.cut(self.mtus[usize::from(port.0)], bytes) {
            return self.offer(core, id, meta, bytes);
        }
        let fragments = std::mem::take(&mut self.fragments);
        for bytes in fragments.iter() {
            let meta = FrameMeta::new(meta.arrival, bytes.len() as u32);
            self.offer(core, id, meta, bytes);
        }
        self.fragments = fragments;
    }

    #[inline]
    fn offer(&mut self, core: &mut Core, id: LinkId, meta: FrameMeta, bytes: &[u8]) {
        if self.is_managed {
            let index = id.0 as usize;
            let mut frame = core.state.frames.bring(index, bytes, meta.len);
            frame.exit = Exit::One(PortIndex(1 - index as u16));
            core.network.offer_alone(id, meta, frame, &mut core.state);
        } else {
            self.decide(core, id, meta, bytes);
        }
    }

    /// Offers a frame to a link that decides at arrival.
    #[inline]
    fn decide(&mut self, core: &mut Core, id: LinkId, meta: FrameMeta, bytes: &[u8]) {
        let Core { network, state, .. } = core;
        let FabricState {
            frames,
            cells,
            ledger,
            ..
        } = state;
        let cells = cells.get(id.0 as usize).and_then(Option::as_deref);
        let (Some(link), Some(cells)) = (network.detached(id), cells) else {
            return;
        };
        cells.arrived(meta.len);
        let store = frames.store(id.0 as usize);
        let place = store.insert(bytes);
        let mut verdict = link.offer(meta, bytes);
        let number = ledger.as_mut().map(|ledger| ledger.offered(id, meta, link));
        let mut is_duplicate = false;
        loop {
            if let (Some(ledger), Some(number)) = (ledger.as_mut(), number) {
                ledger.decided(id, number, verdict);
            }
            cells.decided(&verdict, is_duplicate);
            let Verdict::Deliver(delivery) = verdict else {
                return store.remove(place);
            };
            if delivery.edits.any() && !is_duplicate {
                link.edit(&delivery, store.get_mut(place));
            }
            let wire_len = meta.len;
            let decided = DecidedFrame { place, wire_len };
            self.waiting.push(id, delivery.release, decided);
            let Some(copy) = delivery.more.then(|| link.next_copy()).flatten() else {
                return;
            };
            store.share(place);
            verdict = Verdict::Deliver(copy);
            is_duplicate = true;
        }
    }

    /// Hands the frames that are released by `until` to `out`, of links that decide at
    /// arrival.
    #[inline]
    pub fn release<E>(
        &mut self,
        core: &mut Core,
        until: Nanos,
        out: &mut impl FnMut(OutputFrame<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some((id, release, DecidedFrame { place, wire_len })) =
            self.waiting.pop_due(until)
        {
            let store = core.state.frames.store(id.0 as usize);
            out(OutputFrame {
                port: PortIndex(1 - id.0 as u16),
                release,
                bytes: store.get(place),
                wire_len,
            })?;
            store.remove(place);
        }
        Ok(())
    }

    /// Returns the number of frames that wait here for their release.
    pub fn frames(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the time of the next event of a link, or of the next release here.
    pub fn next_at(&self, core: &mut Core) -> Option<Nanos> {
        let event = core.network.next_alone().map(|(at, _)| at);
        event.into_iter().chain(self.waiting.next_at()).min()
    }
}
