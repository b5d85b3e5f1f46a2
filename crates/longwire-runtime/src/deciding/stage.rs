//! The deciding stage: takes frames off the input lines, lets the links decide, and passes
//! due frames to the output ports.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::sync::{Arc, OnceLock};

use longwire_engine::{LinkId, Nanos};
use longwire_io::delay_line::Descriptor;
use longwire_io::port::AnyRx;
use longwire_io::{Bell, PortError, PushResult, RxPort, TxPort};

use super::backlog::{self, Backlog};
use super::core::Core;
use super::frames::{Exit, Frame, Frames};
use super::orders::Order;
use super::remote::{RemoteParts, RemoteReader};
use super::report::InsideCounts;
use super::state::line_from_host;
use crate::clock::Clock;
use crate::counters::Artifact;
use crate::counters::LinkShared;
use crate::port_loss::OnPortLoss;
use crate::record::RecordHandle;
use crate::stage::{
    Account, AddressWatch, BURST, Ingress, Judge, OutputStage, RETRY_AFTER, Step, wire_frames_of,
};
use crate::witness::PauseHistory;

/// Maximum time for which a query waits for earlier events.
const QUERY_LAG_MAX: Nanos = Nanos::from_millis(50);

/// Maximum number of frames taken off the lines before due frames are sent.
const TAKEN_IN: usize = 4 * BURST;

/// The deciding stage of a network.
pub struct DecidingStage<T> {
    pub(super) core: Core,
    /// Counters of each port's ingress stage and account.
    ports: Vec<Arc<LinkShared>>,
    pub(super) outputs: Vec<DecidingOutput<T>>,
    orders: Receiver<Order>,
    clock: Clock,
    tolerance: Nanos,
    /// Maximum decision delay. The links may require a lower one.
    slack_max: Nanos,
    backlog: Backlog,
    /// Time of the last step.
    stepped: Nanos,
    /// The reaction to a port loss.
    pub(super) on_port_loss: OnPortLoss,
    /// Frames from other hosts.
    inbound: Vec<RemoteReader>,
}

/// An output port, its account's counters, and the handle that records its frames.
pub(super) type OutputParts<T> = (T, Arc<LinkShared>, Option<RecordHandle>);

/// An output port and its due frames.
pub(super) struct DecidingOutput<T> {
    pub port: T,
    account: Account,
    ready: VecDeque<DueFrame>,
    /// Release of the first frame pushed since the last flush without waiting in `ready`.
    first_pushed: Option<Nanos>,
    /// Whether the interface at the port's other end has no carrier.
    pub no_carrier: bool,
    /// Whether the port rejected a frame at the last attempt.
    full: bool,
    /// Whether the port is lost and the network continues.
    lost: bool,
    /// Whether the port belongs to another host, to which decided frames are sent
    /// immediately.
    is_remote: bool,
    /// Whether gap frames keep the port's wire busy.
    fills: bool,
}

struct DueFrame {
    frame: Frame,
    release: Nanos,
    last: Option<LinkId>,
    /// Whether the frame was decided before all frames decided in place.
    older: bool,
}

impl<T: TxPort> DecidingOutput<T> {
    /// Returns the number of accepted, unsent frames; 0 for a lost port, which will never
    /// send them.
    pub(super) fn unsent(&self) -> usize {
        if self.lost { 0 } else { self.port.unsent() }
    }

    /// Returns whether frames are waiting for the port or in it.
    pub(super) fn holds_frames(&self) -> bool {
        !self.ready.is_empty() || self.unsent() > 0
    }

    /// Pushes a due frame to the port, or queues it behind earlier ones.
    #[inline(always)]
    fn leave(&mut self, frames: &mut Frames, due: DueFrame, now: Nanos) {
        let is_next = self.ready.is_empty() && self.account.batch.len() < BURST;
        if is_next && self.push(frames, &due, now) != PushResult::Full {
            self.first_pushed.get_or_insert(due.release);
            return frames.free(due.frame);
        }
        self.ready.push_back(due);
    }

    /// Pushes the next ready frame to the port, if any.
    fn push_ready(&mut self, frames: &mut Frames, now: Nanos) -> Option<PushResult> {
        let next = self.ready.pop_front()?;
        let pushed = self.push(frames, &next, now);
        if pushed == PushResult::Full {
            self.ready.push_front(next);
        } else {
            frames.free(next.frame);
        }
        Some(pushed)
    }

    #[inline(always)]
    fn push(&mut self, frames: &Frames, due: &DueFrame, now: Nanos) -> PushResult {
        let (descriptor, bytes) = frames.record(&due.frame);
        let descriptor = descriptor.released_at(due.release);
        let (port, account) = (&mut self.port, &mut self.account);
        account.give_from(port, due.last, (&descriptor, bytes), now)
    }

    /// Pushes the first decided frame of a line to the port.
    #[inline]
    fn push_from_line(
        &mut self,
        frames: &mut Frames,
        (line, link): (usize, LinkId),
        next: &Descriptor,
        now: Nanos,
    ) -> PushResult {
        let reader = frames.line(line);
        let bytes = reader.front_bytes();
        let (port, account) = (&mut self.port, &mut self.account);
        let pushed = account.give_from(port, Some(link), (next, bytes), now);
        if pushed != PushResult::Full {
            frames.pass_decided(line, next);
        }
        pushed
    }

    /// Pushes at most one burst of due frames: ready frames, and frames decided in place.
    /// Returns the number and bytes of wire frames taken off the line.
    #[inline]
    fn push_due(
        &mut self,
        frames: &mut Frames,
        line: Option<(usize, LinkId)>,
        now: Nanos,
    ) -> (u64, u64) {
        let mut from_line = (0, 0);
        while self.account.batch.len() < BURST {
            let on_line = line.and_then(|(line, _)| frames.line(line).decided());
            let on_line = on_line.filter(|next| next.release() <= now);
            let first_on_line = match (&on_line, self.ready.front()) {
                (Some(next), Some(ready)) => (next.release(), ready.older) < (ready.release, true),
                (next, _) => next.is_some(),
            };
            let taken = match (on_line, line) {
                (Some(next), Some(line)) if first_on_line => {
                    let pushed = self.push_from_line(frames, line, &next, now);
                    if pushed != PushResult::Full {
                        let (wire_frames, bytes) = wire_frames_of(&next);
                        from_line.0 += u64::from(wire_frames);
                        from_line.1 += bytes;
                    }
                    Some(pushed)
                }
                _ => self.push_ready(frames, now),
            };
            match taken {
                None => break,
                Some(PushResult::Full) => {
                    self.full = true;
                    if self.account.batch.is_empty() {
                        self.account.full_at = now;
                    }
                    break;
                }
                Some(_) => {}
            }
        }
        from_line
    }
}

impl<T: TxPort> DecidingStage<T> {
    pub(super) fn new(
        core: Core,
        outputs: Vec<OutputParts<T>>,
        orders: Receiver<Order>,
        clock: Clock,
        (tolerance, grace_until, slack_max): (Nanos, Nanos, Nanos),
    ) -> DecidingStage<T> {
        let ports = outputs
            .iter()
            .map(|(_, shared, _)| Arc::clone(shared))
            .collect();
        let judge = || Judge::new(tolerance, grace_until);
        let output = |(port, shared, record_handle): OutputParts<T>| DecidingOutput {
            fills: port.needs_idle_fill(),
            port,
            account: Account::new(judge(), Nanos::ZERO, record_handle, shared),
            ready: VecDeque::new(),
            first_pushed: None,
            no_carrier: false,
            full: false,
            lost: false,
            is_remote: false,
        };
        DecidingStage {
            core,
            ports,
            outputs: outputs.into_iter().map(output).collect(),
            orders,
            clock,
            tolerance,
            slack_max,
            backlog: Backlog::new(tolerance),
            stepped: Nanos::ZERO,
            on_port_loss: OnPortLoss::End,
            inbound: Vec::new(),
        }
    }

    /// Connects the stage to other hosts. Returns the cell for its thread's bell.
    pub(super) fn connect(&mut self, mut remote: RemoteParts) -> Arc<OnceLock<Arc<Bell>>> {
        for (index, output) in self.outputs.iter_mut().enumerate() {
            output.is_remote = remote.has(index);
        }
        self.inbound = std::mem::take(&mut remote.inbound);
        let deciding = Arc::clone(&remote.deciding);
        self.core.shards.first.state.remote = Some(Box::new(remote));
        deciding
    }

    /// Queues frames from other hosts until their release. Returns the number of frames.
    fn receive_remote(&mut self) -> usize {
        let mut received = 0;
        for line in &mut self.inbound {
            while let Some(frame) = line.front() {
                received += 1;
                let exit = Exit::One(frame.port);
                let state = &mut self.core.shards.first.state;
                let len = frame.bytes.len() as u32;
                let ports = (exit, frame.port);
                let waiting = state.frames.adopt(frame.bytes, len, ports, None);
                let queue_line = line_from_host(frame.line);
                state.waiting.push(queue_line, frame.release, waiting);
                if frame.is_late
                    && let Some(output) = self.outputs.get(usize::from(frame.port.0))
                {
                    output.account.cells().artifacts[Artifact::Underlay].add(1);
                }
                line.advance();
            }
            line.settle();
        }
        received
    }

    /// Watches departing address requests from now on.
    pub(super) fn watch_addresses(&mut self, watch: &Arc<AddressWatch>) {
        for (port, output) in self.outputs.iter_mut().enumerate() {
            output.account.addresses = Some(watch.port(port));
        }
    }

    /// Reads a burst from an input port on this stage's thread. Frames are decided on
    /// arrival if possible.
    ///
    /// # Errors
    /// As for [`Ingress::step`].
    pub fn read<R: RxPort>(
        &mut self,
        ingress: &mut Ingress<R>,
        port: usize,
    ) -> Result<Step, PortError> {
        let now = self.clock.now();
        self.take_orders(now);
        let Some(mut lane) = self.core.lane_at_arrival(port, self.tolerance) else {
            return ingress.step();
        };
        let step = ingress.step_by(&mut lane);
        let counts = lane.into_counts();
        self.core.count_offered(counts);
        step
    }

    /// Receives orders, and promises the core that no later order precedes `now`, or that none
    /// follows if all senders are gone.
    fn take_orders(&mut self, now: Nanos) {
        let steady_until = loop {
            match self.orders.try_recv() {
                Ok(order) => self.core.order(order),
                Err(TryRecvError::Empty) => break now,
                Err(TryRecvError::Disconnected) => break Nanos::MAX,
            }
        };
        self.core.stays_until(steady_until);
    }

    /// Publishes the peak memory of the ports' frames: on the line, plus in the shards.
    fn publish_memory(&mut self) {
        let stored = self.core.shards.stored_max().iter();
        for (output, stored) in self.outputs.iter().zip(stored) {
            let shared = &output.account.shared;
            let on_line = shared.ingress.memory.memory_max.get();
            shared.egress.memory.memory_max.raise(on_line + stored);
        }
    }

    /// Counts frames with moved arrivals as late at their ports.
    #[cold]
    fn judge_moved(&mut self) {
        for moved in self.core.moved.drain(..) {
            let Some(output) = self.outputs.get(moved.line) else {
                continue;
            };
            let (cause, _) = output.account.judge.cause(moved.stamped, moved.by);
            if let Some(artifact) = cause {
                output.account.cells().artifacts[artifact].add(1);
            }
        }
    }

    /// Returns the maximum decision delay.
    fn slack(&self) -> Nanos {
        self.core.slack.min(self.slack_max)
    }

    /// Moves due frames to the queues of their output ports. Those of the first port are pushed to it
    /// instead; flush it first, because its frames may have left. Returns its number.
    fn make_ready(&mut self, now: Nanos) -> Option<usize> {
        let mut first = None;
        for _ in 0..2 * TAKEN_IN {
            let Some((mut frame, release, last)) = self.core.pop_due(now) else {
                return first;
            };
            self.core.shards.prefetch_ahead();
            let ready = |frame, older| DueFrame {
                frame,
                release,
                last,
                older,
            };
            match frame.exit() {
                Exit::One(port) => match self.outputs.get_mut(usize::from(port.0)) {
                    Some(output) if output.lost => {
                        output.account.refuse(1);
                        self.core.shards.first.state.frames.free(frame);
                    }
                    Some(output) => {
                        let older = self.core.lanes.leave_in_place(port);
                        let due = ready(frame, older);
                        let frames = &mut self.core.shards.first.state.frames;
                        let port = usize::from(port.0);
                        // Frames decided in place may be due earlier.
                        let is_next = !self.core.lanes.are_open() && frames.in_place == 0;
                        if is_next && *first.get_or_insert(port) == port {
                            output.leave(frames, due, now);
                        } else {
                            output.ready.push_back(due);
                        }
                    }
                    None => self.core.shards.first.state.frames.free(frame),
                },
                Exit::AllBut(arrival) => {
                    for (index, output) in self.outputs.iter_mut().enumerate() {
                        let leaves = !output.lost && !output.is_remote && !output.no_carrier;
                        if index != usize::from(arrival.0) && leaves {
                            let copy = self.core.shards.first.state.frames.copy(&mut frame);
                            output.ready.push_back(ready(copy, false));
                        }
                    }
                    self.core.shards.first.state.frames.free(frame);
                }
            }
        }
        first
    }

    /// Marks ports whose input or output failed as lost.
    fn lose_ports(&mut self) {
        for index in 0..self.outputs.len() {
            if self.ports[index].loss.is_set() && !self.outputs[index].lost {
                self.lose_port(index);
            }
        }
    }

    /// Counts frames that wait for a lost port as refused, and drops later ones.
    fn lose_port(&mut self, index: usize) {
        let output = &mut self.outputs[index];
        output.lost = true;
        output.account.port_lost();
        output.account.refuse(output.ready.len() as u64);
        for ready in output.ready.drain(..) {
            self.core.shards.first.state.frames.free(ready.frame);
        }
        self.core.lose_port(index);
    }

    /// Records the stage's lag, not counting frames that wait for a full port.
    fn note_backlog(&mut self, now: Nanos) {
        let mut oldest: Option<Nanos> = None;
        for index in 0..self.outputs.len() {
            if self.outputs[index].full {
                continue;
            }
            let output = &self.outputs[index];
            let ready = output.ready.front().map(|ready| ready.release);
            let ready = output.first_pushed.or(ready);
            let on_line = self.due_on_line(index, now).map(|next| next.release());
            oldest = [oldest, ready, on_line].into_iter().flatten().min();
        }
        self.backlog.note(now, oldest);
    }

    /// Returns the next due frame on an output port's line.
    #[inline]
    fn due_on_line(&mut self, index: usize, now: Nanos) -> Option<Descriptor> {
        let (line, _) = self.core.lanes.feeder_of(index)?;
        let next = self.core.shards.first.state.frames.line(line).decided()?;
        (next.release() <= now).then_some(next)
    }

    /// Counts due frames on a lost port's line as refused.
    #[cold]
    fn refuse_on_line(&mut self, index: usize, now: Nanos) {
        let Some((line, link)) = self.core.lanes.feeder_of(index) else {
            return;
        };
        while let Some(next) = self.due_on_line(index, now) {
            let frames = &mut self.core.shards.first.state.frames;
            let refused = frames.pass_decided(line, &next);
            self.outputs[index].account.refuse(refused);
            let (_, bytes) = wire_frames_of(&next);
            self.core.left_lane(link, (refused, bytes));
        }
    }

    /// Counts frames that were due by the last step and have not left as late, at the end of the
    /// run. Discards those on lines.
    #[cold]
    fn count_overdue(&mut self) {
        let now = self.stepped;
        for index in 0..self.outputs.len() {
            let output = &self.outputs[index];
            for due in &output.ready {
                output.account.overdue(due.release, now, 1);
            }
            let line = self.core.lanes.feeder_of(index).map(|(line, _)| line);
            while let Some(line) = line
                && let Some(next) = self.due_on_line(index, now)
            {
                let frames = self
                    .core
                    .shards
                    .first
                    .state
                    .frames
                    .pass_decided(line, &next);
                self.outputs[index]
                    .account
                    .overdue(next.release(), now, frames);
            }
        }
        // The release of undecided frames is unknown.
        let until = now.saturating_sub(backlog::WINDOW);
        let frames = &mut self.core.shards.first.state.frames;
        while let Some(run) = frames.next_run(until)
            && let Some((_, frame)) = frames.take(run.line, run.first)
        {
            frames.free(frame);
            if let Some(output) = self.outputs.get_mut(usize::from(run.line)) {
                output.account.overloaded = true;
                output.account.overdue(run.first, now, 1);
            }
        }
    }

    /// Sends a port's due frames and returns the number that left.
    fn send(&mut self, index: usize, now: Nanos, full: &mut bool) -> Result<usize, PortError> {
        let output = &mut self.outputs[index];
        let overloaded = self.backlog.is_overload() && !output.full;
        output.full = false;
        output.account.overloaded = overloaded;
        if output.lost {
            self.refuse_on_line(index, now);
            return Ok(0);
        }
        let line = self.core.lanes.feeder_of(index);
        let nothing_ready = output.first_pushed.take().is_none() && output.ready.is_empty();
        if nothing_ready && output.unsent() == 0 && self.due_on_line(index, now).is_none() {
            let output = &mut self.outputs[index];
            if output.fills {
                output.port.fill(now);
                output.port.flush()?;
            }
            output.account.rest(now);
            output.account.look_at_losses(&mut output.port, now);
            return Ok(0);
        }
        // Frames in the release queue may precede those on the line.
        let lanes_wait = self.core.lanes.are_open()
            && self.core.shards.next_release().is_some_and(|at| at <= now);
        let output = &mut self.outputs[index];
        let frames = &mut self.core.shards.first.state.frames;
        let from_line = output.push_due(frames, line.filter(|_| !lanes_wait), now);
        if let Some((_, link)) = line {
            self.core.left_lane(link, from_line);
        }
        *full |= output.full;
        *full |= !output.ready.is_empty() || lanes_wait;
        if output.fills {
            output.port.fill(now);
        }
        let core = &self.core;
        let flushed = output
            .account
            .flush_noting(&mut output.port, &self.clock, |late| core.was_late(&late));
        let left = match flushed {
            Ok((left, _)) => left,
            Err(error) if self.on_port_loss.outlives(&error) => {
                self.ports[index].loss.set(now, &error);
                self.lose_port(index);
                return Ok(0);
            }
            Err(error) => return Err(error),
        };
        Ok(left)
    }

    fn next_at(&mut self, now: Nanos, full: bool) -> Option<Nanos> {
        if self.outputs.iter().any(|output| output.fills) {
            return Some(now);
        }
        if full || self.outputs.iter().any(|output| output.unsent() > 0) {
            return Some(now.saturating_add(RETRY_AFTER));
        }
        self.next_release()
    }

    /// Returns the output ports and drops the stage.
    pub fn into_ports(self) -> Vec<T> {
        self.outputs.into_iter().map(|output| output.port).collect()
    }
}

impl<T: TxPort> OutputStage for DecidingStage<T> {
    fn read(&mut self, ingress: &mut Ingress<AnyRx>, port: usize) -> Result<Step, PortError> {
        DecidingStage::read(self, ingress, port)
    }

    fn step(&mut self) -> Result<Step, PortError> {
        let now = self.clock.now();
        self.stepped = now;
        for output in self.outputs.iter_mut().filter(|output| output.fills) {
            output.port.sync_clock(now);
        }
        self.take_orders(now);
        let seen = self.ports.iter().map(|port| port.seen_until.get()).min();
        let until = seen.unwrap_or(Nanos::MAX).min(now);
        let ready = self.outputs.iter().any(|output| !output.ready.is_empty());
        if self.core.open_lanes(until, ready) {
            let ready = self.outputs.iter_mut();
            let ready = ready.flat_map(|output| output.ready.iter_mut());
            ready.for_each(|due| due.older = true);
        }
        let mut taken = 0;
        while taken < TAKEN_IN {
            match self.core.take_in(until, self.tolerance) {
                0 => break,
                frames => taken += frames,
            }
        }
        if !self.core.moved.is_empty() {
            self.judge_moved();
        }
        if taken > 0 {
            self.publish_memory();
        }
        if taken < TAKEN_IN {
            let decided = until.saturating_sub(self.slack());
            let recorder = self.core.shards.first.state.recorder.as_ref();
            let records_wait = recorder.is_some_and(|recorder| recorder.holds_events());
            if records_wait || self.core.next_event().is_some_and(|next| next <= decided) {
                self.core.advance(decided);
            }
        }
        self.core.answer(now.saturating_sub(QUERY_LAG_MAX));
        if self.on_port_loss == OnPortLoss::Continue {
            self.lose_ports();
        }
        self.core.close_wasteful_lanes();
        taken += self.receive_remote();
        if let Some(remote) = &mut self.core.shards.first.state.remote {
            remote.publish();
        }
        self.switch_carriers();
        let first = self.make_ready(now);
        self.note_backlog(now);
        let mut sent = 0;
        let mut full = false;
        let others = (0..self.outputs.len()).filter(|index| Some(*index) != first);
        for index in first.into_iter().chain(others) {
            sent += self.send(index, now, &mut full)?;
        }
        self.core.shards.first.state.frames.settle();
        let complete = self.core.complete_until();
        if let Some(recorder) = &mut self.core.shards.first.state.recorder {
            recorder.pass_on_before(complete);
            recorder.flush();
        }
        Ok(Step {
            frames: taken + sent,
            next_at: self.next_at(now, full),
            ended: false,
        })
    }

    fn next_release(&mut self) -> Option<Nanos> {
        let event = self.core.next_event();
        let decision = event.map(|at| at.saturating_add(self.slack()));
        let waiting = self.core.shards.next_release();
        let frames = &mut self.core.shards.first.state.frames;
        let arrival = frames.next_run(Nanos::MAX);
        let has_inbound = self.inbound.iter_mut().any(|line| !line.is_empty());
        let times = [
            decision,
            frames.next_release(),
            waiting,
            arrival.map(|run| run.first),
            has_inbound.then_some(Nanos::ZERO),
        ];
        times.into_iter().flatten().min()
    }

    fn is_empty(&mut self) -> bool {
        self.core.is_empty() && self.outputs.iter().all(|output| output.unsent() == 0)
    }

    fn excuse_by(&mut self, pauses: &Arc<PauseHistory>) {
        for output in &mut self.outputs {
            output.account.judge.threads.push(Arc::clone(pauses));
        }
    }

    fn finish(&mut self) -> Option<InsideCounts> {
        let mut unsent = 0;
        for output in &mut self.outputs {
            unsent += output.account.finish(&mut output.port, &self.clock);
        }
        self.core.finish_recording();
        let inside = self.core.inside();
        // The line's peak may have been published after the last step.
        self.publish_memory();
        self.count_overdue();
        Some(InsideCounts {
            frames: inside.frames + unsent,
            ..inside
        })
    }

    fn remarks(&self) -> Vec<String> {
        let ports = self.outputs.iter().flat_map(|output| output.port.remarks());
        ports.chain(self.carrier_remarks()).collect()
    }
}
