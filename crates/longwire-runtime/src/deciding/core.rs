//! The deciding part of a network: switch, classifier, links and paths in event time. It
//! reads no clock and has no ports.

use longwire_engine::{DropReason, FrameMeta, LinkId, Nanos, PathId};
use longwire_io::prefetch_to_read;
use longwire_packet::bridge::{Bridge, PortIndex};
use longwire_packet::classify::{Classifier, DatagramPorts, FrameKey, RuleId};

use super::carriers::FollowedCarriers;
use super::flows::FlowCount;
use super::frames::{ArrivalRun, Arriving, Exit, Frame};
use super::lanes::Lanes;
use super::orders::{Order, Orders, Task};
use super::report::InsideCounts;
use super::report::SwitchReport;
use super::shards::{Shard, Shards};
use super::state::{PASSING, Target, link_of};
use crate::counters::{Artifact, CoreCells, CoreCounts};
use crate::stage::{BURST, LateFrame};

/// Switch, classifier, links and paths.
pub struct Core {
    /// Chooses the output ports of frames.
    pub bridge: Bridge,
    pub(super) classifier: Classifier<Target>,
    pub(super) datagrams: DatagramPorts,
    /// Classifier rules by the caller's numbers.
    pub(super) rules: Vec<Option<RuleId>>,
    pub(super) shards: Shards,
    /// Reused buffer for frames taken off the lines.
    incoming: Vec<IncomingFrame>,
    /// Keys of `incoming`; empty if the network fits in cache.
    keys: Vec<FrameKey>,
    pub(super) orders: Orders,
    /// Lines whose frames bypass the switch and the classifier.
    pub(super) lanes: Lanes,
    /// The network does not change before this time.
    pub(super) steady_until: Nanos,
    /// All events before this time have been processed.
    pub(super) advanced: Nanos,
    /// Arrival of the last frame that entered. Changes must be later: when the run is
    /// repeated, a change at the time of an arrival precedes the frame.
    pub(super) entered: Nanos,
    /// Origin of the switch's time, so that entries expire at the same point when a run is
    /// repeated on another clock.
    pub(super) epoch: Nanos,
    /// Maximum time between an event and its link's decision.
    pub(super) slack: Nanos,
    pub(super) counts: CoreCells,
    /// Frames whose arrival moved by more than the tolerance, pending classification of
    /// their lateness.
    pub(super) moved: Vec<MovedFrame>,
    /// Lost ports by index. Empty until a port is lost.
    pub(super) lost_ports: Vec<bool>,
    pub(super) carriers: FollowedCarriers,
}

/// A frame whose arrival was moved to a later time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MovedFrame {
    /// The line on which it arrived.
    pub line: usize,
    pub stamped: Nanos,
    pub by: Nanos,
}

/// An arrived frame, its exit (`None` if it is not forwarded) and its target.
struct IncomingFrame {
    port: PortIndex,
    meta: FrameMeta,
    frame: Frame,
    exit: Option<Exit>,
    target: Target,
}

/// Bytes of the classifier's table that one lookup reads.
const ROW_LEN: usize = 64;

const NANO: Nanos = Nanos::from_nanos(1);

impl Core {
    pub(super) fn new(bridge: Bridge, classifier: Classifier<Target>, shards: Shards) -> Core {
        let rules = 0..classifier.len() as u32;
        Core {
            bridge,
            rules: rules.map(|rule| Some(RuleId(rule))).collect(),
            classifier,
            datagrams: DatagramPorts::default(),
            slack: Nanos::MAX,
            shards,
            incoming: Vec::with_capacity(BURST),
            keys: Vec::new(),
            orders: Orders::default(),
            lanes: Lanes::default(),
            steady_until: Nanos::ZERO,
            advanced: Nanos::ZERO,
            entered: Nanos::ZERO,
            epoch: Nanos::ZERO,
            counts: CoreCells::default(),
            moved: Vec::new(),
            lost_ports: Vec::new(),
            carriers: FollowedCarriers::default(),
        }
    }

    /// Counts the delays of exactly these links from now on.
    pub fn watch(&mut self, links: &[LinkId]) {
        for link in links {
            if let Some(cells) = self.shards.first.state.cells_of(*link) {
                cells.watch_delays();
            }
        }
        self.shards.watch(links);
    }

    /// Counts the flows of this link from now on. `None` stops counting.
    pub fn watch_flows(&mut self, link: Option<LinkId>) {
        self.shards.watch_flows(link);
    }

    /// Returns the frame count of the link whose flows are counted, and its largest flows
    /// in descending order.
    pub fn flows(&self) -> (u64, Vec<FlowCount>) {
        self.shards.flows()
    }

    /// Returns the totals over all links.
    pub fn counts(&self) -> CoreCounts {
        let recorder = self.shards.first.state.recorder.as_ref();
        CoreCounts {
            unrecorded: recorder.map_or(0, |recorder| recorder.lost()),
            ..self.counts.read()
        }
    }

    /// Returns a snapshot of the counters.
    pub(crate) fn inside(&self) -> InsideCounts {
        InsideCounts {
            switch: SwitchReport::of(&self.bridge.counters()),
            counts: self.counts(),
            frames: self.frames(),
            taken: self.shards.first.state.frames.taken(),
        }
    }

    /// Returns the time before which all link events have been processed, including those
    /// of links whose lane lagged when it was closed.
    pub(super) fn complete_until(&self) -> Nanos {
        match self.shards.first.network.next_at() {
            // The next event is not yet processed.
            Some(next) => next.saturating_sub(NANO).min(self.advanced),
            None => self.advanced,
        }
    }

    /// Returns the number of frames on paths or waiting for their release.
    pub fn frames(&self) -> u64 {
        self.shards.frames() as u64
    }

    /// Schedules an order at its time, or now if that has passed.
    pub(super) fn order(&mut self, order: Order) {
        self.orders.add(order);
        self.stays_until(self.steady_until);
    }

    /// Processes all events before `until`, and orders up to that time.
    pub(super) fn advance(&mut self, until: Nanos) {
        while let Some(order) = self.orders.take_due(until) {
            self.settle_batch();
            // A late order applies now.
            let mut at = order.at.max(self.advanced);
            if order.is_change() {
                at = at.max(self.changeable_from());
            }
            self.advance_links(at);
            match order.task {
                Task::Change(work) => {
                    self.close_lanes();
                    work(self, at);
                }
                Task::Query(query) => query(self),
            }
        }
        self.advance_links(until.max(self.advanced));
    }

    /// Answers queries for times before `until` that need not wait for a change. An
    /// overloaded network answers with its lagging state, because its events may never reach
    /// the present.
    #[inline]
    pub(super) fn answer(&mut self, until: Nanos) {
        while let Some(query) = self.orders.take_query(until) {
            self.settle_batch();
            query(self);
        }
    }

    #[inline(always)]
    fn advance_links(&mut self, until: Nanos) {
        if self.lanes.are_open() {
            self.advance_lanes(until);
        } else if self.shards.in_batches {
            self.advance_batch(until);
        } else {
            self.shards.first.process_before(until);
        }
        self.advanced = until;
    }

    /// Returns the earliest time at which the network may change.
    fn changeable_from(&self) -> Nanos {
        let links = self
            .lanes_changeable_from()
            .max(self.shards.changeable_from());
        let entered = self.entered.max(self.lanes_entered());
        match entered {
            Nanos::ZERO => links,
            _ => links.max(entered.saturating_add(NANO)),
        }
    }

    /// Promises that no new order precedes `until`; see [`Network::stays_until`].
    pub(super) fn stays_until(&mut self, until: Nanos) {
        let change = self.orders.next_change();
        self.steady_until = change.map_or(until, |change| change.min(until));
        self.shards.stay_until(self.steady_until);
    }

    /// Takes at most one burst of frames that arrived by `until` off the lines. Counts
    /// frames whose arrival moved by more than the tolerance. Returns the number of frames.
    pub(super) fn take_in(&mut self, until: Nanos, tolerance: Nanos) -> usize {
        if self.shards.in_batches {
            return self.take_in_batch(until, tolerance);
        }
        if self.lanes.are_open() {
            // First take the frames that precede the next change.
            let before = self.orders.next_change();
            let before = before.filter(|at| *at <= until);
            let until = before.map_or(until, |at| at.saturating_sub(NANO));
            let taken = self.take_in_lanes(until, tolerance);
            if taken > 0 || before.is_none() {
                return taken;
            }
            self.close_lanes();
        }
        // Neither the switch nor the rules may change within a burst.
        while let Some(at) = self.orders.next_at()
            && at <= until.max(self.advanced)
        {
            if at > self.advanced {
                let taken = self.take_in_burst(at.saturating_sub(NANO), tolerance);
                if taken > 0 {
                    return taken;
                }
            }
            // Without a later frame, the order waits for frames that the kernel still holds.
            if self.shards.first.state.frames.next_run(until).is_none() {
                return 0;
            }
            self.advance(at);
        }
        self.take_in_burst(until, tolerance)
    }

    /// Like [`Core::take_in`], given that no order is due.
    fn take_in_burst(&mut self, until: Nanos, tolerance: Nanos) -> usize {
        let mut incoming = std::mem::take(&mut self.incoming);
        let mut arrival = self.advanced;
        // With many links, most lookups miss the cache.
        let looks_ahead = !self.shards.first.network.is_in_cache();
        while incoming.len() < BURST
            && let Some(ArrivalRun { line, until, .. }) =
                self.shards.first.state.frames.next_run(until)
        {
            while incoming.len() < BURST
                && let Some((stamped, frame)) = self.shards.first.state.frames.take(line, until)
            {
                arrival = arrival.max(stamped.arrival);
                self.note_moved(line.into(), stamped.arrival, arrival, tolerance);
                let meta = FrameMeta { arrival, ..stamped };
                let (mut coming, key) = self.incoming_frame(PortIndex(line), meta, frame);
                if looks_ahead {
                    self.classifier
                        .prefetch(&key, |row| prefetch_to_read(row, ROW_LEN));
                    self.keys.push(key);
                } else {
                    coming.target = self.target_of(&coming, &key);
                }
                incoming.push(coming);
            }
        }
        if looks_ahead {
            self.classify(&mut incoming);
        }
        let taken = incoming.len();
        for coming in incoming.drain(..) {
            self.shards.first.process_before(coming.meta.arrival);
            self.advanced = coming.meta.arrival;
            self.enter(coming);
        }
        self.incoming = incoming;
        taken
    }

    /// Records a moved arrival if it moved by more than the tolerance.
    #[inline]
    pub(super) fn note_moved(
        &mut self,
        line: usize,
        stamped: Nanos,
        arrival: Nanos,
        tolerance: Nanos,
    ) {
        let by = arrival.saturating_sub(stamped);
        if by > tolerance {
            self.add_moved(&mut vec![MovedFrame { line, stamped, by }]);
        }
    }

    pub(super) fn add_moved(&mut self, moved: &mut Vec<MovedFrame>) {
        self.counts.moved.add(moved.len() as u64);
        self.moved.append(moved);
    }

    /// Returns an arrived frame before classification, and the fields that classify it. A later
    /// fragment has the ports of its datagram.
    #[inline(always)]
    fn incoming_frame(
        &mut self,
        port: PortIndex,
        meta: FrameMeta,
        frame: Frame,
    ) -> (IncomingFrame, FrameKey) {
        let bytes = self.shards.first.state.frames.bytes(&frame);
        let mut key = self.classifier.key(port, bytes);
        if self.classifier.uses_transport()
            && let Some(ports) = self.datagrams.of_later(bytes)
        {
            key.set_ports(ports);
        }
        let since = meta.arrival.saturating_sub(self.epoch);
        let coming = IncomingFrame {
            port,
            meta,
            exit: Exit::of(self.bridge.forward(since, port, bytes), port),
            target: Target::Drop,
            frame,
        };
        (coming, key)
    }

    /// Returns the target that the classifier finds for a frame.
    #[inline]
    fn target_of(&self, coming: &IncomingFrame, key: &FrameKey) -> Target {
        let bytes = if self.classifier.reads_bytes() {
            self.shards.first.state.frames.bytes(&coming.frame)
        } else {
            &[]
        };
        let len = coming.meta.len;
        self.classifier.classify_by(key, bytes, len).target
    }

    /// Classifies a burst by its prefetched `keys`, and prefetches its links.
    fn classify(&mut self, incoming: &mut [IncomingFrame]) {
        let mut paths = [PathId(0); BURST];
        let mut found = 0;
        let keys = std::mem::take(&mut self.keys);
        for (coming, key) in incoming.iter_mut().zip(&keys) {
            coming.target = self.target_of(coming, key);
            if let Target::Path(path) = coming.target {
                paths[found] = path;
                found += 1;
            }
        }
        self.keys = keys;
        self.keys.clear();
        let Shard { network, state, .. } = &mut self.shards.first;
        state.prefetch(network, &paths[..found]);
    }

    /// Processes a frame that is on no line, after all events before its arrival. Returns whether
    /// the frame filled a batch, which must then be settled.
    #[inline]
    pub(super) fn bring(&mut self, port: PortIndex, meta: FrameMeta, bytes: &[u8]) -> bool {
        if self.shards.in_batches {
            return self.enter_batch(port, meta, Arriving::Bytes(bytes));
        }
        let frame = self.shards.first.state.frames.bring(port, bytes, meta.len);
        let (mut coming, key) = self.incoming_frame(port, meta, frame);
        coming.target = self.target_of(&coming, &key);
        self.enter(coming);
        false
    }

    /// Offers a frame to its target.
    #[inline(always)]
    fn enter(&mut self, coming: IncomingFrame) {
        let IncomingFrame {
            port,
            meta,
            mut frame,
            exit,
            target,
        } = coming;
        self.entered = meta.arrival;
        let state = &mut self.shards.first.state;
        if let Some(recorder) = &mut state.recorder {
            recorder.entered(port, meta, state.frames.bytes(&frame));
        }
        let Some(exit) = exit else {
            return state.frames.free(frame);
        };
        frame.set_exit(exit);
        let lost = exit.is_one_of(&self.lost_ports);
        let shard = &mut self.shards.first;
        let undelivered = match target {
            Target::Pass if lost => {
                self.counts.port_lost.add(1);
                return shard.state.frames.free(frame);
            }
            Target::Pass => {
                self.counts.passed.add(1);
                return shard.state.wait_on(PASSING, meta.arrival, frame);
            }
            Target::Drop => Err(frame),
            Target::Handover(path) => shard.offer(path, meta, frame, Some(DropReason::Handover)),
            Target::Path(path) => {
                shard.offer(path, meta, frame, lost.then_some(DropReason::PortLost))
            }
        };
        if let Err(frame) = undelivered {
            self.counts.unmatched_dropped.add(1);
            shard.state.frames.free(frame);
        }
    }

    /// Drops frames to this port from now on.
    pub(super) fn lose_port(&mut self, port: usize) {
        self.set_reachable(PortIndex(port as u16), false);
        self.close_lanes();
    }

    /// Sets whether a port of another host is reachable. Frames to an unreachable port are
    /// dropped.
    pub fn set_reachable(&mut self, port: PortIndex, is_reachable: bool) {
        let port = usize::from(port.0);
        if port >= self.lost_ports.len() {
            self.lost_ports.resize(port + 1, false);
        }
        self.lost_ports[port] = !is_reachable;
    }

    /// Returns the next frame due by `now`, its release and its last link.
    #[inline]
    pub(super) fn pop_due(&mut self, now: Nanos) -> Option<(Frame, Nanos, Option<LinkId>)> {
        let (line, release, frame) = self.shards.pop_due(now)?;
        let state = &self.shards.first.state;
        state.left(line, frame.wire_len);
        Some((frame, release, link_of(line)))
    }

    /// Counts a late frame at its last link if the emulator caused the lateness. The port counts it
    /// too.
    pub(super) fn was_late(&self, late: &LateFrame) {
        let Some(cells) = late
            .link
            .and_then(|link| self.shards.first.state.cells_of(link))
        else {
            return;
        };
        match late.artifact {
            Artifact::Late => cells.late(late.wire_frames, late.lateness, false),
            Artifact::Overload => cells.late(late.wire_frames, late.lateness, true),
            _ => {}
        }
    }

    /// Returns the time of the next link event or order, not counting releases.
    pub(super) fn next_event(&mut self) -> Option<Nanos> {
        if !self.lanes.are_open() {
            return self.next_network_event();
        }
        let order = self.orders.next_at();
        order.into_iter().chain(self.next_in_lanes()).min()
    }

    /// Like [`Core::next_event`], for closed lanes.
    pub(super) fn next_network_event(&self) -> Option<Nanos> {
        let order = self.orders.next_at();
        order.into_iter().chain(self.shards.next_at()).min()
    }

    /// Returns whether an order is due by `until`.
    pub(super) fn is_ordered_by(&self, until: Nanos) -> bool {
        self.orders.next_at().is_some_and(|at| at <= until)
    }

    /// Returns whether a change is due by `until`.
    pub(super) fn changes_by(&self, until: Nanos) -> bool {
        self.orders.next_change().is_some_and(|at| at <= until)
    }

    /// Returns whether the network has no frames.
    pub(super) fn is_empty(&mut self) -> bool {
        self.frames() == 0 && self.shards.first.state.frames.lines_are_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use longwire_engine::Bytes;
    use longwire_io::Offload;
    use longwire_io::delay_line::{DelayLineConfig, Note, delay_line};
    use longwire_packet::bridge::BridgeConfig;
    use longwire_packet::classify;

    use super::*;
    use crate::deciding::frames::Frames;
    use crate::deciding::{NetworkParts, Sharding};
    use crate::sync::locked;

    const MS: fn(u64) -> Nanos = Nanos::from_millis;

    /// The kernel may still hold frames that arrived before the order.
    #[test]
    fn an_order_waits_for_a_later_frame() {
        let config = DelayLineConfig {
            budget: Bytes(1 << 20),
            huge_pages: false,
        };
        let (mut writer, reader) = delay_line(&config).expect("memory");
        let parts = NetworkParts {
            switch: BridgeConfig::new(2),
            classifier: Classifier::new(classify::Order::First, Target::Pass),
            links: Vec::new(),
            paths: Vec::new(),
            orders: Vec::new(),
            on_port_loss: crate::OnPortLoss::End,
            sharding: Sharding::one(),
            remote: None,
        };
        let core = parts.build(Frames::new(vec![reader]), 1, Nanos::ZERO);
        let mut core = core.expect("a network");
        let changed = Arc::new(Mutex::new(Vec::new()));
        let note = Arc::clone(&changed);
        core.order(Order {
            at: MS(5),
            task: Task::Change(Box::new(move |_, at| locked(&note).push(at))),
        });
        for (arrival, applied) in [(None, false), (Some(4), false), (Some(7), true)] {
            if let Some(arrival) = arrival {
                let note = Note {
                    release: MS(arrival),
                    tag: 0,
                    offload: Offload::NONE,
                    part: None,
                    wire_len: 60,
                };
                writer.push(&[0; 60], note).expect("room");
                writer.publish();
            }
            let taken = core.take_in(MS(10), Nanos::ZERO);
            assert_eq!(taken, usize::from(arrival.is_some()));
            let expected = if applied { vec![MS(5)] } else { Vec::new() };
            assert_eq!(*locked(&changed), expected);
        }
    }
}
