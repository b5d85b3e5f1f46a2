//! The links of a pair of ports in virtual time, without a switch or classifier. These links never
//! change, so each decides at arrival unless its queue is managed.

use longwire_engine::{
    Delivery, DropReason, Fragments, FrameAccess, FrameMeta, Lane, LaneHost, Link, LinkId, Nanos,
    ReleaseQueue,
};
use longwire_packet::bridge::PortIndex;

use super::frames::{Exit, Frame, Frames};
use super::recorder::LinkAccount;
use super::state::{CoreState, PASSING};
use crate::report::LinkReport;

/// One or two links between two ports. Their frames are in a [`CoreState`].
#[derive(Default)]
pub(super) struct Pair {
    /// By port of arrival.
    lanes: [Option<Lane<Frame>>; 2],
    /// Name and options of each link.
    reports: [LinkReport; 2],
    both: bool,
    is_managed: bool,
    fragments: Fragments,
}

/// The host of a link's lane. All frames wait on one line of the release queue, so those
/// with the same release leave in the order of their decisions.
struct PairHost<'a> {
    account: LinkAccount<'a>,
    frames: &'a mut Frames,
    waiting: &'a mut ReleaseQueue<Frame>,
    /// Whether the reverse link exists. Without it, ICMP errors are dropped.
    both: bool,
}

impl<'a> PairHost<'a> {
    #[inline]
    fn new(link: LinkId, state: &'a mut CoreState, both: bool) -> PairHost<'a> {
        let CoreState {
            frames,
            waiting,
            cells,
            recorder,
            ..
        } = state;
        PairHost {
            account: LinkAccount {
                link,
                cells: cells.get(link.0 as usize).and_then(Option::as_deref),
                recorder: recorder.as_deref_mut(),
            },
            frames,
            waiting,
            both,
        }
    }
}

impl Pair {
    /// Adds the link from a port, and its report without counts.
    ///
    /// # Panics
    /// If the port has a link.
    pub fn add(&mut self, port: PortIndex, link: Link, report: LinkReport) {
        let index = usize::from(port.0);
        self.is_managed |= link.is_managed();
        let before = self.lanes[index].replace(Lane::new(link));
        assert!(before.is_none(), "two links at port {}", port.0);
        self.reports[index] = report;
        self.both = self.lanes.iter().all(Option::is_some);
    }

    /// Returns the link from a port, and its report without counts.
    pub fn link(&self, port: usize) -> Option<(&Link, &LinkReport)> {
        Some((self.lanes[port].as_ref()?.link(), &self.reports[port]))
    }

    /// Processes a frame that arrives at a port, or its fragments. All earlier events must
    /// have been processed.
    #[inline(always)]
    pub fn bring(&mut self, port: PortIndex, meta: FrameMeta, bytes: &[u8], state: &mut CoreState) {
        let both = self.both;
        let Some(lane) = &mut self.lanes[usize::from(port.0)] else {
            return;
        };
        if !lane.link().fragments() || !self.fragments.cut(lane.link().mtu(), bytes) {
            return offer(lane, port, meta, bytes, (state, both));
        }
        for bytes in self.fragments.iter() {
            let meta = FrameMeta::new(meta.arrival, bytes.len() as u32);
            offer(lane, port, meta, bytes, (state, both));
        }
    }

    /// Processes queue events up to and including `until`, in order of time.
    #[inline]
    pub fn advance(&mut self, until: Nanos, state: &mut CoreState) {
        if self.is_managed {
            self.advance_managed(until, state);
        }
    }

    #[inline(never)]
    fn advance_managed(&mut self, until: Nanos, state: &mut CoreState) {
        if !self.both {
            for (index, lane) in self.lanes.iter_mut().enumerate() {
                if let Some(lane) = lane {
                    let link = LinkId(index as u32);
                    lane.poll(..=until, &mut PairHost::new(link, state, false));
                }
            }
            return;
        }
        while let Some((at, index)) = self.next_event()
            && at <= until
            && let Some(lane) = &mut self.lanes[index]
        {
            let link = LinkId(index as u32);
            lane.poll(..=until, &mut PairHost::new(link, state, false));
        }
    }

    /// Returns the time and link of the next queue event.
    #[inline]
    fn next_event(&mut self) -> Option<(Nanos, usize)> {
        let next_at = |lane: &mut Option<Lane<Frame>>| lane.as_mut()?.next_at();
        let [first, second] = &mut self.lanes;
        match (next_at(first), next_at(second)) {
            (Some(first), Some(second)) if second < first => Some((second, 1)),
            (None, Some(second)) => Some((second, 1)),
            (first, _) => first.map(|at| (at, 0)),
        }
    }

    /// Returns the time of the next queue event.
    pub fn next_at(&mut self) -> Option<Nanos> {
        self.next_event().map(|(at, _)| at)
    }
}

/// Offers an arriving frame to a lane.
//
// Not inlined: the link's state would spill from the caller's registers.
#[inline(never)]
fn offer(
    lane: &mut Lane<Frame>,
    port: PortIndex,
    meta: FrameMeta,
    bytes: &[u8],
    (state, both): (&mut CoreState, bool),
) {
    let host = &mut PairHost::new(LinkId(port.0.into()), state, both);
    if let Some(cells) = host.account.cells {
        cells.arrived(meta.len);
    }
    let exit = Exit::One(PortIndex(1 - port.0));
    let frame = host.frames.adopt(bytes, meta.len, (exit, port), None);
    lane.offer(meta, frame, host);
}

impl FrameAccess<Frame> for PairHost<'_> {
    #[inline(always)]
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

impl LaneHost<Frame> for PairHost<'_> {
    #[inline]
    fn offered(&mut self, frame: &mut Frame, meta: FrameMeta, link: &Link) {
        if self.account.records() {
            frame.number = self.account.offered(meta, link.occupancy());
        }
    }

    #[cold]
    fn icmp_error(&mut self, frame: &Frame, at: Nanos, error: &[u8]) {
        if let Some(cells) = self.account.cells {
            cells.icmp_sent();
        }
        if self.both {
            let error = self.frames.reply(frame, error);
            self.waiting.push(PASSING, at, error);
        }
    }

    #[inline(always)]
    fn delivered(&mut self, frame: Frame, delivery: &Delivery, is_duplicate: bool) {
        self.account
            .delivered(frame.number, None, delivery, is_duplicate);
        self.waiting.push(PASSING, delivery.release, frame);
    }

    #[inline]
    fn dropped(&mut self, frame: Frame, reason: DropReason) {
        self.account.dropped(frame.number, reason);
        self.frames.free(frame);
    }
}
