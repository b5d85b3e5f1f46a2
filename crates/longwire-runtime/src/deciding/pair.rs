//! The links of a pair of ports in virtual time, without a switch or classifier. These links never
//! change, so each decides at arrival unless its queue is managed.

use longwire_engine::{
    Delivery, DropReason, Fragments, FrameAccess, FrameMeta, Lane, LaneHost, Link, LinkId, Nanos,
    ReleaseQueue, Verdict,
};
use longwire_packet::bridge::PortIndex;

use super::frames::{Exit, Frame, Frames, OutputFrame};
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
    order: PairOrder,
    is_managed: bool,
    fragments: Fragments,
}

/// How the frames of a pair's links are ordered by release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum PairOrder {
    /// The only link decides frames in order of release and leaves them unchanged, so each leaves at
    /// its decision. Plugins, which may fail, count as changing frames.
    #[default]
    OfDecisions,
    /// The frames of the only link wait for their releases.
    OneLink,
    /// The frames of both links wait for their releases. ICMP errors leave in reverse.
    TwoLinks,
}

/// Receives frames that need not wait for others.
pub(super) trait FrameExit {
    /// Passes a frame to its output port.
    fn leave(&mut self, exit: Exit, frame: OutputFrame<'_>);
}

/// The host of a link's lane. Frames that wait for their release are on one line of the release
/// queue, so those with the same release leave in the order of their decisions.
struct PairHost<'a, L> {
    account: LinkAccount<'a>,
    frames: &'a mut Frames,
    waiting: &'a mut ReleaseQueue<Frame>,
    order: PairOrder,
    leave: &'a mut L,
}

impl<'a, L> PairHost<'a, L> {
    #[inline]
    fn new(
        link: LinkId,
        state: &'a mut CoreState,
        (order, leave): (PairOrder, &'a mut L),
    ) -> PairHost<'a, L> {
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
            order,
            leave,
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
        self.order = match self.lanes.iter().flatten().next() {
            Some(_) => PairOrder::TwoLinks,
            None if link.in_order() && !link.changes_frames() => PairOrder::OfDecisions,
            None => PairOrder::OneLink,
        };
        let before = self.lanes[index].replace(Lane::new(link));
        assert!(before.is_none(), "two links at port {}", port.0);
        self.reports[index] = report;
    }

    /// Returns the link from a port, and its report without counts.
    pub fn link(&self, port: usize) -> Option<(&Link, &LinkReport)> {
        Some((self.lanes[port].as_ref()?.link(), &self.reports[port]))
    }

    /// Returns whether no frame waits for its release.
    pub fn leaves_in_order(&self) -> bool {
        self.order == PairOrder::OfDecisions
    }

    /// Processes a frame that arrives at a port, or its fragments. All earlier events must
    /// have been processed. Frames that need not wait leave by `leave`.
    #[inline(always)]
    pub fn bring(
        &mut self,
        port: PortIndex,
        meta: FrameMeta,
        bytes: &[u8],
        state: &mut CoreState,
        leave: &mut impl FrameExit,
    ) {
        let order = self.order;
        let Some(lane) = &mut self.lanes[usize::from(port.0)] else {
            return;
        };
        let mut host = PairHost::new(LinkId(port.0.into()), state, (order, leave));
        // The link decides and the frame leaves without a handle.
        if order == PairOrder::OfDecisions
            && !host.account.records()
            && let Some(verdict) = lane.offer_plain(&meta, bytes)
        {
            return host.decided(port, meta, bytes, &verdict);
        }
        if !lane.link().fragments() || !self.fragments.cut(lane.link().mtu(), bytes) {
            return offer(lane, port, meta, bytes, &mut host);
        }
        for bytes in self.fragments.iter() {
            let meta = FrameMeta::new(meta.arrival, bytes.len() as u32);
            offer(lane, port, meta, bytes, &mut host);
        }
    }

    /// Processes queue events up to and including `until`, in order of time. Frames that
    /// need not wait leave by `leave`.
    #[inline]
    pub fn advance(&mut self, until: Nanos, state: &mut CoreState, leave: &mut impl FrameExit) {
        if self.is_managed {
            self.advance_managed(until, state, leave);
        }
    }

    #[inline(never)]
    fn advance_managed(&mut self, until: Nanos, state: &mut CoreState, leave: &mut impl FrameExit) {
        let order = self.order;
        if order != PairOrder::TwoLinks {
            for (index, lane) in self.lanes.iter_mut().enumerate() {
                if let Some(lane) = lane {
                    let link = LinkId(index as u32);
                    lane.poll(..=until, &mut PairHost::new(link, state, (order, leave)));
                }
            }
            return;
        }
        while let Some((at, index)) = self.next_event()
            && at <= until
            && let Some(lane) = &mut self.lanes[index]
        {
            let link = LinkId(index as u32);
            lane.poll(..=until, &mut PairHost::new(link, state, (order, leave)));
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
fn offer<L: FrameExit>(
    lane: &mut Lane<Frame>,
    port: PortIndex,
    meta: FrameMeta,
    bytes: &[u8],
    host: &mut PairHost<'_, L>,
) {
    if let Some(cells) = host.account.cells {
        cells.arrived(meta.len);
    }
    let frame = host
        .frames
        .adopt(bytes, meta.len, (exit_of(port), port), None);
    lane.offer(meta, frame, host);
}

/// Returns the exit of frames that arrive at a port.
fn exit_of(port: PortIndex) -> Exit {
    Exit::One(PortIndex(1 - port.0))
}

impl<L: FrameExit> PairHost<'_, L> {
    /// Applies the verdict on a frame that has no handle.
    #[inline(always)]
    fn decided(&mut self, port: PortIndex, meta: FrameMeta, bytes: &[u8], verdict: &Verdict) {
        if let Some(cells) = self.account.cells {
            cells.arrived(meta.len);
        }
        match verdict {
            Verdict::Deliver(delivery) if delivery.release < Nanos::MAX => {
                self.account.delivered(0, None, delivery, false);
                let leaving = OutputFrame {
                    port,
                    release: delivery.release,
                    bytes,
                    wire_len: meta.len,
                };
                self.leave.leave(exit_of(port), leaving);
            }
            Verdict::Deliver(delivery) => {
                let ports = (exit_of(port), port);
                let frame = self.frames.adopt(bytes, meta.len, ports, None);
                self.delivered(frame, delivery, false);
            }
            Verdict::Drop(reason) => self.account.dropped(0, *reason),
            Verdict::Queued => {}
        }
    }
}

impl<L> FrameAccess<Frame> for PairHost<'_, L> {
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

impl<L: FrameExit> LaneHost<Frame> for PairHost<'_, L> {
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
        if self.order == PairOrder::TwoLinks {
            let error = self.frames.reply(frame, error);
            self.waiting.push(PASSING, at, error);
        }
    }

    #[inline(always)]
    fn delivered(&mut self, frame: Frame, delivery: &Delivery, is_duplicate: bool) {
        self.account
            .delivered(frame.number, None, delivery, is_duplicate);
        let release = delivery.release;
        // A frame without a release stays.
        if self.order != PairOrder::OfDecisions || release == Nanos::MAX {
            return self.waiting.push(PASSING, release, frame);
        }
        let leaving = OutputFrame {
            port: frame.entry,
            release,
            bytes: self.frames.bytes(&frame),
            wire_len: frame.wire_len,
        };
        self.leave.leave(frame.exit(), leaving);
        self.frames.free(frame);
    }

    #[inline]
    fn dropped(&mut self, frame: Frame, reason: DropReason) {
        self.account.dropped(frame.number, reason);
        self.frames.free(frame);
    }
}
