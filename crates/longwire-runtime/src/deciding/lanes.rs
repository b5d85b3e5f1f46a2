//! Lanes: lines whose frames all cross one link to one port.
//!
//! If ports form pairs and all frames of each port take a path of one separate link,
//! frames bypass the switch, the classifier and the network's event queue. The link, its
//! queue and its random streams remain those of the network, so verdicts are the same.
//!
//! * *In place*: a sequential link serves and releases frames in the order of the line, so
//!   they are offered, decided and sent without leaving the line.
//! * *Held*: with any other link, undecided frames are in the network, and decided frames
//!   in the release queue.
//!
//! Lanes are closed before any change: frames queued in place move to the network, and
//! decided frames stay on their lines until their release. Afterwards, lanes reopen if they
//! are still permitted.

use std::collections::VecDeque;

use longwire_engine::{
    Bytes, FrameMeta, Link, LinkId, Nanos, Packets, PathId, SequentialLink, Verdict,
};
use longwire_io::delay_line::{DelayLineReader, DelayLineWriter};
use longwire_packet::bridge::PortIndex;

use super::core::{Core, MovedFrame};
use super::frames::Exit;
use super::recorder::LinkAccount;
use super::shards::Shard;
use super::state::{CoreState, Target};
use crate::stage::BURST;

/// The lane of the line with the same number.
#[derive(Clone, Copy, Debug)]
struct LineLane {
    path: PathId,
    link: LinkId,
    exit: PortIndex,
    /// Whether frames are decided in place.
    in_place: bool,
}

/// The lanes of a network.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    /// By line; empty while lanes are closed.
    open: Vec<LineLane>,
    /// Reset by a change. Lanes then open only after a new check.
    checked: bool,
    /// The line that feeds each output port, and that line's link. Kept when lanes close.
    feeders: Vec<Option<(usize, LinkId)>>,
    /// Recorded numbers of the frames queued in place, by line.
    queued: Vec<VecDeque<u32>>,
}

/// Maximum number of rules; with more, lanes stay closed.
const RULES_MAX: usize = 64;

/// Lanes close once a line's discarded frames exceed this number and outnumber the live ones.
/// Discarded frames occupy the line's memory.
const DISCARDED_MAX: u64 = 4_096;

impl Lanes {
    /// Returns whether lanes are open.
    #[inline]
    pub fn are_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Returns whether frames to an output port are decided in place.
    #[inline]
    pub fn leave_in_place(&self, exit: PortIndex) -> bool {
        let feeder = self.feeder_of(exit.0.into());
        let lane = feeder.and_then(|(line, _)| self.open.get(line));
        lane.is_some_and(|lane| lane.in_place)
    }

    /// Returns the line that feeds an output port, and that line's link.
    #[inline]
    pub fn feeder_of(&self, port: usize) -> Option<(usize, LinkId)> {
        *self.feeders.get(port)?
    }
}

impl Core {
    /// Opens the lanes if the network allows it and no change is due by `until`. `ready`
    /// states whether due frames exist that are on no line. Returns whether the lanes
    /// opened.
    #[inline]
    pub(super) fn open_lanes(&mut self, until: Nanos, ready: bool) -> bool {
        if self.lanes.checked || self.lanes.are_open() || self.changes_by(until) {
            return false;
        }
        self.try_to_open_lanes(ready);
        self.lanes.are_open()
    }

    #[cold]
    fn try_to_open_lanes(&mut self, ready: bool) {
        let Shard { network, state, .. } = &mut self.shards.first;
        let lines = state.frames.line_count();
        let on_lines = (0..lines).any(|line| state.frames.line(line).has_decided());
        if on_lines && (ready || !state.waiting.is_empty() || network.frames() > 0) {
            // Releases alone do not determine the order between decided frames on lines and frames
            // elsewhere.
            return;
        }
        self.lanes.checked = true;
        let Some(lanes) = self.plan_lanes() else {
            return;
        };
        self.lanes.feeders = vec![None; lines];
        self.lanes.queued.resize_with(lines, VecDeque::new);
        for (line, lane) in lanes.iter().enumerate() {
            self.lanes.feeders[usize::from(lane.exit.0)] = Some((line, lane.link));
            self.shards.first.network.detach(lane.link);
        }
        self.record_in_turn(true);
        self.lanes.open = lanes;
    }

    /// Returns the lane of each line. Returns `None` unless every line has one.
    fn plan_lanes(&self) -> Option<Vec<LineLane>> {
        let lines = self.shards.first.state.frames.line_count();
        if self.shards.in_batches
            || self.shards.first.state.remote.is_some()
            || self.lost_ports.contains(&true)
            || self.classifier.len() > RULES_MAX
        {
            return None;
        }
        let lane = |line: usize| {
            let port = PortIndex(line as u16);
            let exit = self.bridge.partner(port)?;
            let Target::Path(path) = self.classifier.target_of_port(port)? else {
                return None;
            };
            let link = self.shards.first.network.separate_link(path)?;
            (usize::from(exit.0) < lines).then_some(LineLane {
                path,
                link,
                exit,
                in_place: false,
            })
        };
        let mut lanes: Vec<LineLane> = (0..lines).map(lane).collect::<Option<_>>()?;
        let link = |lane: &LineLane| self.shards.first.network.link(lane.link);
        // A router's ICMP errors leave by another lane's port.
        let has_routers = lanes.iter().filter_map(link).any(Link::is_router);
        if !has_routers && self.shards.first.state.flows.is_none() {
            for lane in &mut lanes {
                lane.in_place = link(lane).is_some_and(Link::is_sequential);
            }
        }
        let shared = |(nth, lane): (usize, &LineLane)| {
            let mut others = lanes[..nth].iter();
            others.any(|other| other.link == lane.link || other.exit == lane.exit)
        };
        (!lanes.iter().enumerate().any(shared)).then_some(lanes)
    }

    /// Moves the links' queued frames to the network. If the release queue has frames, decided
    /// frames move to it; otherwise, they stay on their lines.
    pub(super) fn close_lanes(&mut self) {
        self.lanes.checked = false;
        self.entered = self.entered.max(self.lanes_entered());
        if !self.shards.first.state.waiting.is_empty() {
            self.clear_lanes();
        }
        for (line, lane) in std::mem::take(&mut self.lanes.open).into_iter().enumerate() {
            let frames = &mut self.shards.first.state.frames;
            let exit = Exit::One(lane.exit);
            let numbers = &mut self.lanes.queued[line];
            let queued = std::iter::from_fn(|| {
                let mut frame = frames.take_queued(line, exit)?;
                frame.number = numbers.pop_front().unwrap_or_default();
                let len = frame.wire_len;
                Some((frame, len))
            });
            let queued: Vec<_> = queued.collect();
            let until = self.shards.first.network.attach(lane.path, queued);
            self.advanced = self.advanced.max(until);
        }
        self.record_in_turn(false);
    }

    fn record_in_turn(&mut self, in_turn: bool) {
        if let Some(recorder) = &mut self.shards.first.state.recorder {
            recorder.advance_in_turn(in_turn);
        }
    }

    /// Moves the decided frames of all lanes to the release queue.
    #[cold]
    fn clear_lanes(&mut self) {
        let state = &mut self.shards.first.state;
        for (line, lane) in self.lanes.open.iter().enumerate() {
            while let Some((frames, release)) =
                state.frames.take_decided(line, Exit::One(lane.exit))
            {
                for frame in frames {
                    state.wait(frame, lane.link, release);
                }
            }
        }
    }

    /// Offers frames that arrived by `until` to their links, at most one burst per line.
    /// Returns the number of frames.
    pub(super) fn take_in_lanes(&mut self, until: Nanos, tolerance: Nanos) -> usize {
        let mut taken = 0;
        if self.records_frames() {
            // Arrivals at all ports must be recorded in order.
            while taken < BURST
                && let Some(run) = self.shards.first.state.frames.next_run(until)
            {
                let (line, until) = (run.line.into(), run.until);
                taken += self.take_in_lane(line, (until, BURST - taken), tolerance);
            }
        } else {
            for line in 0..self.lanes.open.len() {
                taken += self.take_in_lane(line, (until, BURST), tolerance);
            }
        }
        self.bridge.count_paired(taken as u64);
        taken
    }

    #[inline]
    fn records_frames(&self) -> bool {
        let recorder = self.shards.first.state.recorder.as_ref();
        recorder.is_some_and(|recorder| recorder.with_frames())
    }

    /// Offers up to `frames` of a line's frames that arrived by `until` to its link through
    /// the network. Returns the number of frames.
    fn hold_arrived(
        &mut self,
        line: usize,
        (until, frames): (Nanos, usize),
        tolerance: Nanos,
    ) -> usize {
        let LineLane {
            path, link, exit, ..
        } = self.lanes.open[line];
        let mut taken = 0;
        while taken < frames {
            let Shard { network, state, .. } = &mut self.shards.first;
            let Some((arrived, mut frame)) = state.frames.take(line as u16, until) else {
                break;
            };
            taken += 1;
            let last = network.link(link).map(Link::last_arrival);
            let arrival = arrived.arrival.max(self.advanced);
            let arrival = arrival.max(last.unwrap_or_default());
            network.advance_held(link, ..=arrival, state);
            let meta = FrameMeta { arrival, ..arrived };
            if let Some(recorder) = &mut state.recorder {
                recorder.entered(PortIndex(line as u16), meta, state.frames.bytes(&frame));
            }
            frame.set_exit(Exit::One(exit));
            if let Err(frame) = network.offer(path, meta, frame, state) {
                state.frames.free(frame);
            }
            self.note_moved(line, arrived.arrival, arrival, tolerance);
        }
        taken
    }

    /// Offers up to `frames` of a line's frames that arrived by `until` to its link.
    /// Returns the number of frames.
    fn take_in_lane(
        &mut self,
        line: usize,
        (until, frames): (Nanos, usize),
        tolerance: Nanos,
    ) -> usize {
        let LineLane { link, in_place, .. } = self.lanes.open[line];
        if !in_place {
            return self.hold_arrived(line, (until, frames), tolerance);
        }
        let mut taken = 0;
        while taken < frames {
            // Frames in the network precede those on the line.
            let mut burst = frames - taken;
            let Shard { network, state, .. } = &mut self.shards.first;
            if network.holds_frames(link) {
                let arrived = state.frames.line(line).arrived();
                let Some(arrived) = arrived.filter(|frame| frame.release() <= until) else {
                    break;
                };
                burst = 1;
                network.advance_held(link, ..=arrived.release().max(self.advanced), state);
            }
            let Some(mut turn) = self.turn(line, tolerance) else {
                break;
            };
            while turn.offered < burst && turn.take_in(until) {}
            let (offered, mut moved) = turn.into_counts();
            self.add_moved(&mut moved);
            taken += offered;
            if offered == 0 {
                break;
            }
        }
        taken
    }

    /// Counts wire frames and bytes that left a link through its lane.
    #[inline]
    pub(super) fn left_lane(&self, link: LinkId, (frames, bytes): (u64, u64)) {
        if frames > 0
            && let Some(cells) = self.shards.first.state.cells_of(link)
        {
            cells.left(frames, bytes);
        }
    }

    /// Makes the decisions of all lanes before `until`.
    pub(super) fn advance_lanes(&mut self, until: Nanos) {
        for line in 0..self.lanes.open.len() {
            let LineLane { link, in_place, .. } = self.lanes.open[line];
            let Shard { network, state, .. } = &mut self.shards.first;
            network.advance_held(link, ..until, state);
            if in_place && let Some(mut turn) = self.turn(line, Nanos::MAX) {
                turn.decide_before(until);
            }
        }
    }

    /// Returns the arrival of the last frame that entered a lane.
    pub(super) fn lanes_entered(&self) -> Nanos {
        self.latest_of_lanes(Link::last_arrival)
    }

    /// Returns the earliest time at which the lanes' links may change.
    pub(super) fn lanes_changeable_from(&self) -> Nanos {
        self.latest_of_lanes(Link::changeable_from)
    }

    fn latest_of_lanes(&self, time: impl Fn(&Link) -> Nanos) -> Nanos {
        let links = self.lanes.open.iter();
        let links = links.filter_map(|lane| self.shards.first.network.link(lane.link));
        links.map(time).max().unwrap_or(Nanos::ZERO)
    }

    /// Borrows the parts of a lane. Notes arrivals that move by more than `tolerance`.
    fn turn(&mut self, line: usize, tolerance: Nanos) -> Option<InPlaceLane<'_>> {
        let id = self.lanes.open.get(line)?.link;
        let CoreState {
            frames,
            cells,
            recorder,
            ..
        } = &mut self.shards.first.state;
        let queued = &mut self.lanes.queued[line];
        let account = LinkAccount {
            link: id,
            cells: cells.get(id.0 as usize)?.as_deref(),
            recorder: recorder.as_deref_mut(),
        };
        let port = PortIndex(line as u16);
        let (line, in_place) = frames.line_in_place(line);
        Some(InPlaceLane {
            link: self.shards.first.network.detached(id)?,
            line,
            in_place,
            // A recorded link processes each event at its own time.
            steady_until: if account.records() {
                Nanos::ZERO
            } else {
                self.steady_until
            },
            account,
            port,
            queued,
            limit: self.orders.next_change().unwrap_or(Nanos::MAX),
            advanced: self.advanced,
            tolerance,
            offered: 0,
            moved: Vec::new(),
        })
    }

    /// Returns the time to advance to for the next event in a lane.
    pub(super) fn next_in_lanes(&mut self) -> Option<Nanos> {
        let (lanes, network) = (&self.lanes, &mut self.shards.first.network);
        let next = lanes.open.iter();
        let next = next.filter_map(|lane| network.detached(lane.link)?.next_at());
        // `advance` excludes the end of its interval.
        next.min().map(|at| at.saturating_add(Nanos::from_nanos(1)))
    }

    /// Closes the lanes if most records on a line are discarded frames, because closed
    /// lanes free their memory as the line advances. Call in every step.
    pub(super) fn close_wasteful_lanes(&mut self) {
        let lines = 0..self.lanes.open.len();
        let voids = lines.map(|line| self.shards.first.state.frames.line(line).voids());
        let voids = voids.max().unwrap_or(0);
        if voids > DISCARDED_MAX && voids > self.shards.first.state.frames.in_place as u64 {
            self.close_lanes();
        }
    }
}

/// A lane's parts, borrowed to decide frames on its line and, on the receiving thread,
/// arriving frames. Arriving frames are decided before they are copied to the line, so a
/// dropped frame is never copied.
pub(crate) struct InPlaceLane<'a> {
    link: SequentialLink<'a>,
    line: &'a mut DelayLineReader,
    /// Number of frames queued or decided in place.
    in_place: &'a mut usize,
    account: LinkAccount<'a>,
    /// The port of arrival. It has the line's number.
    port: PortIndex,
    /// Recorded numbers of the frames queued in place.
    queued: &'a mut VecDeque<u32>,
    /// The network does not change before this time.
    steady_until: Nanos,
    /// Frames that arrive at or after this time stay undecided.
    limit: Nanos,
    /// All events before this time have been processed.
    advanced: Nanos,
    tolerance: Nanos,
    /// Number of offered frames.
    offered: usize,
    moved: Vec<MovedFrame>,
}

impl InPlaceLane<'_> {
    /// Offers the next frame on the line to the link if it arrived by `until`. Returns
    /// whether there was one.
    #[inline]
    fn take_in(&mut self, until: Nanos) -> bool {
        let arrived = self.line.arrived();
        let Some(arrived) = arrived.filter(|frame| frame.release() <= until) else {
            return false;
        };
        let meta = self.arrives(arrived.release(), arrived.wire_len());
        if let Some(recorder) = &mut self.account.recorder
            && recorder.with_frames()
        {
            self.line.finish_arrived();
            recorder.entered(self.port, meta, self.line.arrived_bytes());
        }
        self.decide_until(meta.arrival);
        let bytes = self.line.arrived_bytes();
        let verdict = self.link.offer(meta, bytes, self.steady_until);
        self.count(meta, &verdict);
        match verdict {
            Verdict::Deliver(delivery) => self.line.decide_arrived(delivery.release),
            Verdict::Queued => self.line.queue_arrived(),
            Verdict::Drop(_) => self.line.drop_arrived(),
        }
        true
    }

    /// Returns whether the next frame may be decided before it is on the line.
    #[inline]
    pub fn admits(&self, arrival: Nanos) -> bool {
        arrival < self.limit
    }

    /// Leaves all later frames undecided, because one of them is on the line.
    pub fn close(&mut self) {
        self.limit = Nanos::ZERO;
    }

    /// Offers a frame to the link before it is on the line.
    #[inline]
    pub fn offer(&mut self, stamped: Nanos, len: u32, bytes: &[u8]) -> Verdict {
        let meta = self.arrives(stamped, len);
        self.decide_until(meta.arrival);
        let verdict = self.link.offer(meta, bytes, self.steady_until);
        self.count(meta, &verdict);
        verdict
    }

    /// Moves the line's reader past an offered frame that has just been written.
    #[inline]
    pub fn follow(&mut self, line: &DelayLineWriter, decided: bool) {
        let followed = self.line.follow_writer(line, decided);
        debug_assert!(
            followed,
            "the reader had not seen the frames before this one"
        );
    }

    /// Returns the number of offered frames, and the frames whose arrival moved.
    pub fn into_counts(self) -> (usize, Vec<MovedFrame>) {
        (self.offered, self.moved)
    }

    /// Returns the frame's effective arrival and length.
    #[inline]
    fn arrives(&mut self, stamped: Nanos, len: u32) -> FrameMeta {
        let mut arrival = stamped.max(self.advanced);
        if self.account.records() {
            arrival = arrival.max(self.link.link().last_arrival());
        }
        self.offered += 1;
        let by = arrival.saturating_sub(stamped);
        if by > self.tolerance {
            let line = self.port.0.into();
            self.moved.push(MovedFrame { line, stamped, by });
        }
        FrameMeta { arrival, len }
    }

    /// Decides queued frames by events up to and including `now`.
    #[inline]
    fn decide_until(&mut self, now: Nanos) {
        if self.link.holds_frames() {
            if self.account.records() {
                return self.decide_recorded(|at| at <= now);
            }
            while let Some(verdict) = self.link.poll(..=now) {
                self.decided(&verdict);
            }
        }
    }

    /// Decides queued frames by events before `now`.
    fn decide_before(&mut self, now: Nanos) {
        if self.account.records() {
            return self.decide_recorded(|at| at < now);
        }
        while let Some(verdict) = self.link.poll(..now) {
            self.decided(&verdict);
        }
    }

    /// Processes and records the events whose times satisfy `happens`, each at its own
    /// time.
    #[cold]
    fn decide_recorded(&mut self, happens: impl Fn(Nanos) -> bool) {
        while let Some(at) = self.link.next_at().filter(|at| happens(*at)) {
            if let Some(verdict) = self.link.poll(..=at) {
                if let Some(recorder) = &mut self.account.recorder {
                    recorder.at(at);
                }
                self.decided(&verdict);
            }
        }
    }

    /// Counts and records an offered frame and its verdict.
    #[inline]
    fn count(&mut self, meta: FrameMeta, verdict: &Verdict) {
        let number = if self.account.records() {
            self.record_offer(meta, verdict)
        } else {
            0
        };
        if let Some(cells) = self.account.cells {
            cells.arrived(meta.len);
        }
        match verdict {
            Verdict::Deliver(delivery) => {
                self.account.delivered(number, Some(meta), delivery, false);
                *self.in_place += 1;
            }
            Verdict::Queued => *self.in_place += 1,
            Verdict::Drop(reason) => self.account.dropped(number, *reason),
        }
    }

    /// Records an offer and returns the frame's number.
    #[cold]
    fn record_offer(&mut self, meta: FrameMeta, verdict: &Verdict) -> u32 {
        if let Some(recorder) = &mut self.account.recorder {
            recorder.at(meta.arrival);
        }
        // At its arrival, a frame may already be in service and no longer in the queue.
        let queue = match (verdict, self.link.link().occupancy()) {
            (Verdict::Queued, (Packets(0), _)) => (Packets(1), Bytes(meta.len.into())),
            (_, queue) => queue,
        };
        let number = self.account.offered(meta, queue);
        if *verdict == Verdict::Queued {
            self.queued.push_back(number);
        }
        number
    }

    /// Applies the verdict on the oldest queued frame.
    #[inline(always)]
    fn decided(&mut self, verdict: &Verdict) {
        let number = if self.account.records() {
            self.queued.pop_front().unwrap_or_default()
        } else {
            0
        };
        match verdict {
            Verdict::Deliver(delivery) => {
                let queued = self.line.decide_queued(Some(delivery.release));
                self.account.delivered(number, queued, delivery, false);
            }
            Verdict::Drop(reason) => {
                self.line.decide_queued(None);
                *self.in_place -= 1;
                self.account.dropped(number, *reason);
            }
            Verdict::Queued => {}
        }
    }
}

impl Core {
    /// Returns the lane of a line, to decide frames as they arrive. Returns `None` unless
    /// all earlier frames are decided or queued in it.
    pub(super) fn lane_at_arrival(
        &mut self,
        line: usize,
        tolerance: Nanos,
    ) -> Option<InPlaceLane<'_>> {
        let lane = *self.lanes.open.get(line)?;
        // Arrivals at all ports must be recorded in order, not port by port.
        let in_place = lane.in_place && !self.records_frames();
        let Shard { network, state, .. } = &mut self.shards.first;
        let is_behind = state.frames.line(line).arrived().is_some();
        if !in_place || is_behind || network.holds_frames(lane.link) {
            return None;
        }
        self.turn(line, tolerance)
    }

    /// Counts the frames offered at their arrival, and those whose arrival moved.
    pub(super) fn count_offered(&mut self, (offered, mut moved): (usize, Vec<MovedFrame>)) {
        self.bridge.count_paired(offered as u64);
        self.add_moved(&mut moved);
    }
}
