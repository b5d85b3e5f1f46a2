//! A fabric in virtual time, frame by frame: what goes in is taken to arrive
//! when it is said to have, and what leaves does so at its release. No thread
//! decides and no clock is read.

use longwire_engine::{FrameMeta, Nanos};
use longwire_packet::bridge::PortIndex;

use super::core::Core;
use super::frames::{Exit, Frame, Frames};
use super::ledger::Recorded;
use super::orders::{Order, Work};
use super::pipeline;
use super::report::{FabricReport, PortReport, SwitchReport};
use super::run::{FabricParts, FabricStartError};
use crate::record::{Epoch, Recorder, Writing};

/// A frame that leaves.
#[derive(Clone, Copy, Debug)]
pub struct Leaving<'a> {
    /// The port that it leaves by.
    pub port: PortIndex,
    /// When.
    pub release: Nanos,
    /// Its bytes, as far as they are known.
    pub bytes: &'a [u8],
    /// How long it is on the wire, in bytes.
    pub wire_len: u32,
}

/// A fabric in virtual time. Times are on the scale of the arrivals, whatever
/// that is; the same arrivals and orders have the same outcome.
pub struct Simulation {
    core: Core,
    ports: Vec<PortReport>,
    epoch: Nanos,
    seed: u64,
    recorder: Option<Writing>,
}

impl Simulation {
    /// A fabric between ports of these names, whose schedules count from
    /// `epoch`.
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
        let recorded = Recorded::by(recorder);
        let ledger = recorded.ledger();
        core.yard.ledger = ledger.map(|ledger| Box::new(ledger.waiting()));
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

    /// Has something done at a time after the epoch, or at once if that has
    /// passed.
    pub fn order(&mut self, after: Nanos, work: Work) {
        let at = self.epoch.saturating_add(after);
        self.core.order(Order { at, work });
    }

    /// A frame comes in. What is released before is handed to `out`. One
    /// whose arrival lies before the last one's counts as simultaneous with
    /// that.
    ///
    /// # Errors
    /// What `out` returns.
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
        counts.packets_in += 1;
        counts.bytes_in += u64::from(frame.len);
        if frame.arrival < arrival {
            *counts.artifacts.entry(TIME_WENT_BACK).or_default() += 1;
        }
        let meta = FrameMeta { arrival, ..frame };
        self.core.bring(port, meta, bytes);
        Ok(())
    }

    /// Lets everything happen that happens before `until`, and hands what is
    /// released before to `out`.
    ///
    /// # Errors
    /// What `out` returns.
    pub fn advance<E>(
        &mut self,
        until: Nanos,
        out: &mut impl FnMut(Leaving<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.core.advance(until);
        // What is released at that time may be joined by frames to come.
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
        let frames = &self.core.yard.frames;
        let (bytes, wire_len) = (frames.bytes(&frame), frames.wire_len(&frame));
        for (index, counts) in self.ports.iter_mut().enumerate() {
            let port = PortIndex(index as u16);
            let goes = match frame.exit {
                Exit::One(by) => by == port,
                Exit::AllBut(arrival) => arrival != port,
            };
            if goes {
                counts.packets_out += 1;
                counts.bytes_out += u64::from(wire_len);
                out(Leaving {
                    port,
                    release,
                    bytes,
                    wire_len,
                })?;
            }
        }
        self.core.yard.frames.free(frame);
        Ok(())
    }

    /// When something happens next inside, if nothing comes in before; a time
    /// that lies behind it by a nanosecond, to be given to
    /// [`Simulation::advance`]. `None` if nothing ever does.
    pub fn next_at(&self) -> Option<Nanos> {
        let release = self.core.yard.waiting.next_at();
        let release = release.map(|at| at.saturating_add(Nanos::from_nanos(1)));
        let next = release.into_iter().chain(self.core.next_event()).min();
        // What is to happen at the end of time never does: a link stands still.
        next.filter(|at| *at < Nanos::MAX)
    }

    /// Frames inside.
    pub fn frames(&self) -> u64 {
        self.core.frames()
    }

    /// Ends it and reports on all of it but its duration.
    pub fn stop(mut self) -> FabricReport {
        if let Some(ledger) = &mut self.core.yard.ledger {
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
        // The recorder waits for all that may still tell it something.
        drop(self);
        let recorded = recorder.map_or(Ok(()), Writing::end);
        FabricReport {
            error: recorded.err().map(|error| format!("recording: {error}")),
            ..report
        }
    }
}

/// Frames that an input stamped before the one in front of them.
const TIME_WENT_BACK: &str = "time_went_back";
