//! A network in virtual time, frame by frame: the caller supplies each arrival, and the frame
//! leaves at its release. The simulation reads no clock.

use std::sync::Arc;

use longwire_engine::{FrameMeta, Link, LinkConfig, LinkId, Nanos};
use longwire_packet::bridge::{Bridge, BridgeConfig, PortIndex, Switching};
use longwire_packet::classify::{Classifier, Order as RuleOrder};

use super::core::Core;
use super::frames::{Exit, Frames, OutputFrame};
use super::live::NetworkParts;
use super::orders::{Operation, Order, Task};
use super::pair::{FrameExit, Pair};
use super::recorder::{EventRecorder, RecordingParts};
use super::report::{PortReport, SwitchReport};
use super::shards::{ShardTimes, Sharding, Shards};
use super::state::Target;
use crate::config::LinkSetup;
use crate::counters::{Artifact, QueueLengths};
use crate::record::{Epoch, RecordWriter, Recorder};
use crate::report::{LinkReport, RunReport};
use crate::start_error::StartError;
use crate::summary;

/// Minimum number of links with which even one thread processes frames in batches. The data of
/// this many links exceeds the cache, and a batch prefetches it together.
const BATCHED_FROM: usize = 512;

/// A network of links between ports in virtual time. Arrivals define the time scale. Equal arrivals
/// and orders lead to equal results. Memory is proportional to the number of frames in the network.
pub struct Simulation {
    core: Core,
    ports: Vec<PortReport>,
    epoch: Nanos,
    seed: u64,
    recorder: Option<RecordWriter>,
    pair: Option<Pair>,
}

impl Simulation {
    /// Returns a network between named ports, with schedules relative to `epoch`.
    ///
    /// # Errors
    /// If the parts do not fit together, or the recorder's thread cannot be
    /// started.
    pub fn new(
        ports: &[&str],
        mut parts: NetworkParts,
        seed: u64,
        epoch: Nanos,
        recorder: Option<Box<dyn Recorder>>,
    ) -> Result<Simulation, StartError> {
        parts.sharding.in_batches |= parts.links.len() >= BATCHED_FROM;
        let mut core = parts.build(Frames::new(Vec::new()), seed, epoch)?;
        core.shards.collect();
        let recorded = RecordingParts::by(recorder);
        let recorder = recorded.recorder().map(EventRecorder::waiting);
        core.shards.record(recorder.map(EventRecorder::in_order));
        Simulation::of(core, ports, (seed, epoch), recorded)
    }

    /// Returns a pair of ports, 0 and 1, without a switch. Each of `links` carries frames from its
    /// port to the other. The links never change, so each decides at arrival unless its queue is
    /// managed. Schedules are relative to `epoch`.
    ///
    /// # Errors
    /// If the recorder's thread cannot be started.
    ///
    /// # Panics
    /// If two links have the same port.
    pub fn pair(
        links: Vec<(PortIndex, LinkSetup)>,
        seed: u64,
        epoch: Nanos,
        recorder: Option<Box<dyn Recorder>>,
    ) -> Result<Simulation, StartError> {
        let rules = Classifier::new(RuleOrder::First, Target::Drop);
        let switch = BridgeConfig {
            switching: Switching::Pairs(vec![(PortIndex(0), PortIndex(1))]),
            ..BridgeConfig::new(2)
        };
        let shards = Shards::new(Sharding::one(), Frames::new(Vec::new()));
        let shards = shards.map_err(StartError::Thread)?;
        let mut core = Core::new(Bridge::new(switch)?, rules, shards);
        let recorded = RecordingParts::by(recorder);
        core.shards
            .record(recorded.recorder().map(EventRecorder::waiting));
        let mut pair = Pair::default();
        for (port, LinkSetup { name, config }) in links {
            let id = LinkId(port.0.into());
            core.shards.first.state.set_cells(id, Arc::default());
            let report = LinkReport {
                name,
                config: summary::config_by_option(&config.describe()),
                ..LinkReport::default()
            };
            let config = LinkConfig { epoch, ..config };
            pair.add(port, Link::new(config, seed, id), report);
        }
        let mut simulation = Simulation::of(core, &["a", "b"], (seed, epoch), recorded)?;
        simulation.pair = Some(pair);
        Ok(simulation)
    }

    fn of(
        core: Core,
        ports: &[&str],
        (seed, epoch): (u64, Nanos),
        recorded: RecordingParts,
    ) -> Result<Simulation, StartError> {
        let clocks = Epoch {
            monotonic: epoch,
            wall: epoch,
        };
        let port = |name: &&str| PortReport {
            name: (*name).to_owned(),
            artifacts: Artifact::ALL.map(|kind| (kind.name(), 0)).into(),
            ..PortReport::default()
        };
        Ok(Simulation {
            core,
            ports: ports.iter().map(port).collect(),
            epoch,
            seed,
            recorder: recorded.start(clocks)?,
            pair: None,
        })
    }

    /// Schedules an operation `after` the epoch, or now if that has passed. A pair ignores
    /// it, because its links never change.
    pub fn order(&mut self, after: Nanos, work: Operation) {
        let at = self.epoch.saturating_add(after);
        let task = Task::Change(work);
        self.core.order(Order { at, task });
    }

    /// Promises that no new order precedes `until`, which makes decisions cheaper.
    pub fn stays_until(&mut self, until: Nanos) {
        self.core.stays_until(until);
    }

    /// Processes an arriving frame, after passing frames released before it to `out`. With
    /// batches, processing starts once a batch is full. An arrival earlier than the last
    /// one counts as simultaneous with it.
    ///
    /// # Errors
    /// The errors of `out`.
    ///
    /// # Panics
    /// If the port does not exist, or the frame has 16 MiB or more.
    #[inline]
    pub fn frame<E>(
        &mut self,
        port: PortIndex,
        frame: FrameMeta,
        bytes: &[u8],
        out: &mut impl FnMut(OutputFrame<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let arrival = frame.arrival.max(self.core.advanced);
        if !self.core.shards.in_batches {
            self.process(arrival, out)?;
            if self.keeps_frames() {
                // Not at `arrival`: more frames may get this release.
                self.release(arrival, out)?;
            }
        } else if self.core.is_ordered_by(arrival) {
            self.advance(arrival, out)?;
        }
        // A late change may have applied after this arrival.
        let arrival = arrival.max(self.core.advanced);
        self.count(port, frame, arrival);
        let meta = FrameMeta { arrival, ..frame };
        let Simulation {
            core, ports, pair, ..
        } = self;
        if let Some(pair) = pair {
            let mut outputs = PortOutputs {
                ports,
                out,
                result: Ok(()),
            };
            let state = &mut core.shards.first.state;
            pair.bring(port, meta, bytes, state, &mut outputs);
            return outputs.result;
        }
        if core.bring(port, meta, bytes) {
            core.settle_batch();
            self.release(arrival, out)?;
        }
        Ok(())
    }

    #[inline]
    fn count(&mut self, port: PortIndex, frame: FrameMeta, arrival: Nanos) {
        let counts = &mut self.ports[usize::from(port.0)];
        counts.traffic.packets_in += 1;
        counts.traffic.bytes_in += u64::from(frame.len);
        if frame.arrival < arrival {
            count_step_back(counts);
        }
    }

    /// Processes all events before `until`, and passes frames released before it to `out`.
    /// [`Nanos::MAX`] releases all frames except those on stalled links.
    ///
    /// # Errors
    /// The errors of `out`.
    pub fn advance<E>(
        &mut self,
        until: Nanos,
        out: &mut impl FnMut(OutputFrame<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.process(until, out)?;
        self.release(until, out)
    }

    /// Processes all events before `until`; for a pair, also those at `until`.
    #[inline(always)]
    fn process<E>(
        &mut self,
        until: Nanos,
        out: &mut impl FnMut(OutputFrame<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Simulation {
            core, ports, pair, ..
        } = self;
        let Some(pair) = pair else {
            core.advance(until);
            return Ok(());
        };
        let mut outputs = PortOutputs {
            ports,
            out,
            result: Ok(()),
        };
        pair.advance(until, &mut core.shards.first.state, &mut outputs);
        core.advanced = core.advanced.max(until);
        outputs.result
    }

    /// Returns whether decided frames wait for their releases.
    #[inline(always)]
    fn keeps_frames(&self) -> bool {
        self.pair
            .as_ref()
            .is_none_or(|pair| !pair.leaves_in_order())
    }

    /// Passes frames released before `end` to `out`.
    #[inline]
    fn release<E>(
        &mut self,
        end: Nanos,
        out: &mut impl FnMut(OutputFrame<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Simulation { core, ports, .. } = self;
        if core.shards.in_batches {
            return core.hand_out(|exit, leaving| leave_by(exit, leaving, ports, out));
        }
        if end == Nanos::ZERO {
            return Ok(());
        }
        let until = end.saturating_sub(Nanos::from_nanos(1));
        while let Some((line, release, frame)) = core.shards.pop_due(until) {
            let state = &mut core.shards.first.state;
            state.left(line, frame.wire_len);
            let leaving = OutputFrame {
                port: PortIndex(0),
                release,
                bytes: state.frames.bytes(&frame),
                wire_len: frame.wire_len,
            };
            leave_by(frame.exit(), leaving, ports, out)?;
            state.frames.free(frame);
        }
        Ok(())
    }

    /// Returns the time to pass to [`Simulation::advance`] for the next event or release.
    /// `None` if nothing happens before the next arrival.
    pub fn next_at(&mut self) -> Option<Nanos> {
        let after = |at: Nanos| at.saturating_add(Nanos::from_nanos(1));
        let release = self.core.shards.next_release().map(after);
        let event = match &mut self.pair {
            Some(pair) => pair.next_at().map(after),
            None => self.core.next_network_event(),
        };
        let next = release.into_iter().chain(event).min();
        // An event at the end of time marks a stalled link.
        next.filter(|at| *at < Nanos::MAX)
    }

    /// Returns the number of frames in the network.
    pub fn frames(&self) -> u64 {
        self.core.frames()
    }

    /// Returns the phase times of batches.
    pub fn shard_times(&self) -> ShardTimes {
        self.core.shards.times
    }

    /// Returns the current reports of a pair's links.
    fn link_reports(&self) -> Vec<LinkReport> {
        (0..2).filter_map(|port| self.link_report(port)).collect()
    }

    /// Returns the report of the link from a port.
    fn link_report(&self, port: usize) -> Option<LinkReport> {
        let (link, report) = self.pair.as_ref()?.link(port)?;
        let cells = self.core.shards.first.state.cells_of(LinkId(port as u32))?;
        let (from, to) = (&self.ports[port], &self.ports[1 - port]);
        let mut totals = cells.totals();
        // A frame counts as departed at its release, not at its decision.
        totals.traffic.packets_out = to.traffic.packets_out;
        totals.traffic.bytes_out = to.traffic.bytes_out;
        let (packets, bytes) = link.occupancy_max();
        Some(LinkReport {
            traffic: totals.traffic,
            drops: totals.drops.iter().collect(),
            artifacts: from.artifacts.clone(),
            effects: totals.effects,
            in_flight: totals.held(),
            queue: Some(QueueLengths {
                queue_packets_max: packets.0,
                queue_bytes_max: bytes.0,
            }),
            ..report.clone()
        })
    }

    /// Ends the simulation and returns its report, without a duration. An error in the report comes
    /// from the recorder.
    pub fn stop(mut self) -> RunReport {
        self.core.finish_recording();
        let report = RunReport {
            seed: self.seed,
            epoch_ns: self.epoch.as_nanos(),
            links: self.link_reports(),
            ports: std::mem::take(&mut self.ports),
            switch: SwitchReport::of(&self.core.bridge.counters()),
            counts: self.core.counts(),
            in_flight: self.frames(),
            virtual_time: true,
            ..RunReport::default()
        };
        let recorder = self.recorder.take();
        // The recorder ends once all record handles are dropped.
        drop(self);
        RunReport {
            error: recorder.and_then(|recorder| recorder.end().err()),
            ..report
        }
    }
}

/// Counts frames and passes them to `out`, up to the first error.
struct PortOutputs<'a, O, E> {
    ports: &'a mut [PortReport],
    out: &'a mut O,
    result: Result<(), E>,
}

impl<E, O: FnMut(OutputFrame<'_>) -> Result<(), E>> FrameExit for PortOutputs<'_, O, E> {
    #[inline(always)]
    fn leave(&mut self, exit: Exit, frame: OutputFrame<'_>) {
        if self.result.is_ok() {
            self.result = leave_by(exit, frame, self.ports, self.out);
        }
    }
}

/// Counts a frame at each of its output ports, and passes it to `out` for each.
#[inline(always)]
fn leave_by<E>(
    exit: Exit,
    leaving: OutputFrame<'_>,
    ports: &mut [PortReport],
    out: &mut impl FnMut(OutputFrame<'_>) -> Result<(), E>,
) -> Result<(), E> {
    match exit {
        Exit::One(port) => leave(OutputFrame { port, ..leaving }, ports, out),
        Exit::AllBut(arrival) => leave_all_but(arrival, leaving, ports, out),
    }
}

#[inline(never)]
fn leave_all_but<E>(
    arrival: PortIndex,
    leaving: OutputFrame<'_>,
    ports: &mut [PortReport],
    out: &mut impl FnMut(OutputFrame<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let all = (0..ports.len() as u16).map(PortIndex);
    let mut others = all.filter(|port| *port != arrival);
    others.try_for_each(|port| leave(OutputFrame { port, ..leaving }, ports, out))
}

#[inline(always)]
fn leave<E>(
    leaving: OutputFrame<'_>,
    ports: &mut [PortReport],
    out: &mut impl FnMut(OutputFrame<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let traffic = &mut ports[usize::from(leaving.port.0)].traffic;
    traffic.packets_out += 1;
    traffic.bytes_out += u64::from(leaving.wire_len);
    out(leaving)
}

#[cold]
fn count_step_back(counts: &mut PortReport) {
    let kind = Artifact::TimeWentBack.name();
    *counts.artifacts.entry(kind.into()).or_default() += 1;
}
