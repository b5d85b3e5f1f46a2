//! A fabric in virtual time, frame by frame: a frame arrives at the time that
//! its caller gives, and leaves at its release. No thread decides and no clock
//! is read.

use longwire_engine::{FrameMeta, Nanos};
use longwire_packet::bridge::PortIndex;

use super::core::Core;
use super::frames::{Exit, Frame, Frames};
use super::ledger::RecordingParts;
use super::live::FabricParts;
use super::orders::{Order, Task, Work};
use super::pipeline;
use super::report::{PortReport, SwitchReport};
use crate::ledger::Artifact;
use crate::record::{Epoch, RecordWriter, Recorder};
use crate::report::RunReport as FabricReport;
use crate::start_error::StartError as FabricStartError;

/// A frame that leaves.
#[derive(Clone, Copy, Debug)]
pub struct Leaving<'a> {
    /// The output port.
    pub port: PortIndex,
    /// The release.
    pub release: Nanos,
    /// Its bytes, as far as they are known.
    pub bytes: &'a [u8],
    /// Its length on the wire, in bytes.
    pub wire_len: u32,
}

/// A fabric in virtual time. Times are on the scale of the arrivals, which can
/// be any; the same arrivals and orders have the same outcome.
pub struct Simulation {
    core: Core,
    ports: Vec<PortReport>,
    epoch: Nanos,
    seed: u64,
    recorder: Option<RecordWriter>,
}

impl Simulation {
    /// Returns a fabric between ports of these names, whose schedules count
    /// from `epoch`.
    ///
    /// # Errors
    /// If the parts do not fit together, or the recorder's thread cannot be
    /// started.
    pub fn new(
        ports: &[&str],
        parts: FabricParts,
        seed: u64,
        epoch: Nanos,
        recorder: Option<Box<dyn Recorder>>,
    ) -> Result<Simulation, FabricStartError> {
        let mut core = pipeline::build(parts, Frames::new(Vec::new()), seed, epoch)?;
        let recorded = RecordingParts::by(recorder);
        let ledger = recorded.ledger();
        core.state.ledger = ledger.map(|ledger| Box::new(ledger.waiting()));
        let clocks = Epoch {
            monotonic: epoch,
            wall: epoch,
        };
        let port = |name: &&str| PortReport {
            name: (*name).to_owned(),
            ..PortReport::default()
        };
        Ok(Simulation {
            core,
            ports: ports.iter().map(port).collect(),
            epoch,
            seed,
            recorder: recorded.start(clocks)?,
        })
    }

    /// Schedules an operation at a time after the epoch, or now if that has
    /// passed.
    pub fn order(&mut self, after: Nanos, work: Work) {
        let at = self.epoch.saturating_add(after);
        let task = Task::Change(work);
        self.core.order(Order { at, task });
    }

    /// Processes an arriving frame. Frames released before it are handed to
    /// `out`. A frame whose arrival lies before the last one's counts as
    /// simultaneous with that.
    ///
    /// # Errors
    /// The errors of `out`.
    ///
    /// # Panics
    /// If there is no such port.
    pub fn frame<E>(
        &mut self,
        port: PortIndex,
        frame: FrameMeta,
        bytes: &[u8],
        out: &mut impl FnMut(Leaving<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let arrival = frame.arrival.max(self.core.now());
        self.advance(arrival, out)?;
        let counts = &mut self.ports[usize::from(port.0)];
        counts.traffic.packets_in += 1;
        counts.traffic.bytes_in += u64::from(frame.len);
        if frame.arrival < arrival {
            let kind = Artifact::TimeWentBack.name();
            *counts.artifacts.entry(kind.into()).or_default() += 1;
        }
        let meta = FrameMeta { arrival, ..frame };
        self.core.bring(port, meta, bytes);
        Ok(())
    }

    /// Processes all events before `until`, and hands frames released before
    /// that to `out`.
    ///
    /// # Errors
    /// The errors of `out`.
    pub fn advance<E>(
        &mut self,
        until: Nanos,
        out: &mut impl FnMut(Leaving<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.core.advance(until);
        // Frames released at that time may be joined by later frames.
        let before = until.saturating_sub(Nanos::from_nanos(1));
        while let Some((frame, release, _)) = self.core.pop_due(before) {
            self.leave(frame, release, out)?;
        }
        Ok(())
    }

    fn leave<E>(
        &mut self,
        frame: Frame,
        release: Nanos,
        out: &mut impl FnMut(Leaving<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let frames = &self.core.state.frames;
        let (bytes, wire_len) = (frames.bytes(&frame), frames.wire_len(&frame));
        for (index, counts) in self.ports.iter_mut().enumerate() {
            let port = PortIndex(index as u16);
            let goes = match frame.exit {
                Exit::One(by) => by == port,
                Exit::AllBut(arrival) => arrival != port,
            };
            if goes {
                counts.traffic.packets_out += 1;
                counts.traffic.bytes_out += u64::from(wire_len);
                out(Leaving {
                    port,
                    release,
                    bytes,
                    wire_len,
                })?;
            }
        }
        self.core.state.frames.free(frame);
        Ok(())
    }

    /// Returns the time to which [`Simulation::advance`] must advance for the
    /// next event or release inside. `None` if there is none until another
    /// frame arrives.
    pub fn next_at(&self) -> Option<Nanos> {
        let release = self.core.state.waiting.next_at();
        let release = release.map(|at| at.saturating_add(Nanos::from_nanos(1)));
        let next = release
            .into_iter()
            .chain(self.core.next_network_event())
            .min();
        // An event at the end of time never happens: the link is stalled.
        next.filter(|at| *at < Nanos::MAX)
    }

    /// Returns the number of frames inside.
    pub fn frames(&self) -> u64 {
        self.core.frames()
    }

    /// Ends the simulation and returns its report, without a duration.
    pub fn stop(mut self) -> FabricReport {
        if let Some(ledger) = &mut self.core.state.ledger {
            ledger.finish();
        }
        let report = FabricReport {
            seed: self.seed,
            epoch_ns: self.epoch.as_nanos(),
            ports: std::mem::take(&mut self.ports),
            switch: SwitchReport::of(&self.core.bridge.counters()),
            counts: self.core.counts(),
            in_flight: self.core.frames(),
            ..FabricReport::default()
        };
        let recorder = self.recorder.take();
        // The recorder waits until all record handles are gone.
        drop(self);
        let recorded = recorder.map_or(Ok(()), RecordWriter::end);
        FabricReport {
            error: recorded.err().map(|error| format!("recording: {error}")),
            ..report
        }
    }
}
