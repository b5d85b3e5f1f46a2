//! Simulates networks in virtual time: captured or generated frames enter, and leave with the
//! timestamps computed by the emulated links.
//!
//! No clock is read: time comes from the frames' timestamps, so the same frames, network and seed
//! always produce byte-identical output.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};

use longwire_capture::Record;
use longwire_engine::{FrameMeta, Nanos};
use longwire_network::{ChangeRecord, Changes, Numbered, Scenario};
use longwire_packet::bridge::PortIndex;
use longwire_runtime::deciding::{DeferredDrop, OutputFrame, Simulation};
use longwire_runtime::{DIRECTIONS, Faults, FileLoader, RunReport};

use crate::progress::Progress;
use crate::{Error, Globals};

mod captures;

pub use captures::{Inputs, Outputs, PortFile, UnassignedFrames, Ways};

/// Port names of [`Simulation::pair`].
pub const PORTS: [&str; 2] = ["a", "b"];

/// A direction of a link, with its own random streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Direction {
    /// From near to far, or from A to B
    #[default]
    Up,
    /// From far to near, or from B to A
    Down,
}

impl Direction {
    /// Returns the direction's name used in reports.
    pub fn name(self) -> &'static str {
        DIRECTIONS[self as usize]
    }

    /// Returns the port of [`Simulation::pair`] at which frames of this direction arrive.
    pub fn port(self) -> PortIndex {
        PortIndex(self as u16)
    }
}

/// Reason to stop processing frames.
#[derive(Debug)]
pub enum Stop {
    /// A signal.
    Signal,
    /// An error.
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Failed(error)
    }
}

/// A simulated network with its output captures.
pub struct VirtualRun<'a> {
    simulation: Simulation,
    outputs: Outputs,
    script: Option<Script<'a>>,
    /// Plugin faults.
    faults: Faults,
    /// Set by a signal handler.
    stop: &'a AtomicBool,
}

/// Frames between progress reports.
const FRAMES_A_LOOK: u32 = 4096;

/// Maximum number of scenario commands executed without a release after the end of the input.
/// Without this limit, an endless scenario with frames on stalled links would never end.
const IDLE_COMMANDS_MAX: u32 = 100_000;

impl<'a> VirtualRun<'a> {
    /// Returns a simulation that has not started. A fault in `faults` or a signal in `stop` ends
    /// it.
    pub fn new(
        simulation: Simulation,
        outputs: Outputs,
        script: Option<Script<'a>>,
        faults: &Faults,
        stop: &'a AtomicBool,
    ) -> VirtualRun<'a> {
        let mut run = VirtualRun {
            simulation,
            outputs,
            script,
            faults: faults.clone(),
            stop,
        };
        run.note_next_command();
        run
    }

    /// Sets the time until which no link changes.
    fn note_next_command(&mut self) {
        let next = self.script.as_mut().and_then(Script::next_at);
        self.simulation.stays_until(next.unwrap_or(Nanos::MAX));
    }

    /// Reads to the end or to an error, and releases all frames read unless a signal arrives. Shows
    /// progress.
    ///
    /// # Errors
    /// If a capture is corrupt, an output cannot be written, a command cannot be executed, or a
    /// plugin failed.
    pub fn read(&mut self, inputs: &mut Inputs<'_>, globals: &Globals) -> Result<(), Stop> {
        let mut progress = Progress::new(Progress::FRAMES, globals);
        let ended = self.read_all(inputs, &mut progress);
        progress.clear();
        ended
    }

    fn read_all(&mut self, inputs: &mut Inputs<'_>, progress: &mut Progress) -> Result<(), Stop> {
        let mut frames = 0;
        loop {
            for _ in 0..FRAMES_A_LOOK {
                match inputs.next_frame() {
                    Ok(Some((port, record))) => self.frame(port, record)?,
                    Ok(None) => {
                        self.check()?;
                        return self.drain();
                    }
                    Err(error) => {
                        self.drain()?;
                        return Err(error.into());
                    }
                }
            }
            frames += u64::from(FRAMES_A_LOOK);
            let (done, all) = inputs.progress();
            progress.at_frame(frames, done, all);
        }
    }

    /// Processes the next frame. First executes the commands and releases the frames due before it,
    /// then delivers it to a port with its original length on the wire, even if that is 0.
    ///
    /// A frame timestamped before its predecessor is treated as simultaneous with it.
    ///
    /// # Errors
    /// If an output cannot be written, a command cannot be executed, a plugin failed, or a signal
    /// arrived.
    #[inline(always)]
    pub fn frame(&mut self, port: PortIndex, record: Record<'_>) -> Result<(), Stop> {
        while let Some(at) = self.script.as_mut().and_then(Script::next_at)
            && at <= record.stamp
        {
            // Check before each command, because any number of them may be due between two frames.
            self.check()?;
            self.command(at)?;
        }
        let meta = FrameMeta {
            arrival: record.stamp,
            len: record.wire_len,
        };
        let mut write = |leaving: OutputFrame<'_>| self.outputs.write(leaving);
        self.simulation
            .frame(port, meta, record.bytes, &mut write)?;
        // Check again, because a plugin may be slow.
        self.check()
    }

    /// Checks for faults and signals.
    fn check(&self) -> Result<(), Stop> {
        check_faults(&self.faults)?;
        if self.stop.load(Ordering::Relaxed) {
            return Err(Stop::Signal);
        }
        Ok(())
    }

    /// Executes the scenario's next command at its time.
    fn command(&mut self, at: Nanos) -> Result<(), Error> {
        if let Some(script) = &mut self.script {
            script.give(&mut self.simulation)?;
        }
        self.advance(at)?;
        self.note_next_command();
        Ok(())
    }

    fn advance(&mut self, until: Nanos) -> Result<(), Error> {
        let mut write = |leaving: OutputFrame<'_>| self.outputs.write(leaving);
        self.simulation.advance(until, &mut write)
    }

    /// Drains the network after the end of the input, while the scenario continues. Frames on
    /// stalled links remain.
    ///
    /// # Errors
    /// If an output cannot be written, a command cannot be executed, a plugin failed, or a signal
    /// arrived.
    pub fn drain(&mut self) -> Result<(), Stop> {
        if self.script.is_none() {
            self.advance(Nanos::MAX)?;
            return Ok(check_faults(&self.faults)?);
        }
        let mut inside = self.simulation.frames();
        let mut idle = 0;
        while inside > 0 {
            let command = self.script.as_mut().and_then(Script::next_at);
            match (self.simulation.next_at(), command) {
                (Some(event), command) if command.is_none_or(|command| event < command) => {
                    self.advance(event)?;
                }
                (_, Some(command)) if idle < IDLE_COMMANDS_MAX => {
                    idle += 1;
                    self.command(command)?;
                }
                _ => break,
            }
            self.check()?;
            let now = self.simulation.frames();
            if now != inside {
                (inside, idle) = (now, 0);
            }
        }
        Ok(())
    }

    /// Returns the scenario, if any.
    pub fn script(&self) -> Option<&Script<'a>> {
        self.script.as_ref()
    }

    /// Ends the simulation, writes all output, and returns the report of the links or the network,
    /// without a duration. Reports only the first error: the one in `ended`, or `interrupted` if a
    /// signal ended the simulation.
    pub fn finish(self, ended: Result<(), Stop>, interrupted: &str) -> RunReport {
        let written = self.outputs.finish();
        let mut report = self.simulation.stop();
        if self.script.is_some() {
            let recorded = report.error.take();
            report.error = recorded.map(|error| format!("recording: {error}"));
        }
        let error = match ended {
            Ok(()) => written.err().map(|error| error.to_string()),
            Err(Stop::Signal) => Some(interrupted.to_owned()),
            Err(Stop::Failed(error)) => Some(error.to_string()),
        };
        report.error = error.or(report.error);
        report
    }
}

/// Checks that no plugin has failed: decisions after a failure would be meaningless.
fn check_faults(faults: &Faults) -> Result<(), Error> {
    if faults.any() {
        return Err(Error::failed(faults.first().unwrap_or_default()));
    }
    Ok(())
}

/// A scenario in virtual time.
pub struct Script<'a> {
    network: &'a Numbered,
    scenario: Scenario<'a>,
    loader: FileLoader,
    /// Has no receiver, so replaced parts are freed immediately: no thread waits for them.
    retired: Sender<DeferredDrop>,
    made: Changes,
    /// Start time of the scenario.
    epoch: Nanos,
}

impl<'a> Script<'a> {
    /// Returns a network's scenario, starting at `epoch`; plugins report to `faults`.
    pub fn new(network: &'a Numbered, epoch: Nanos, faults: &Faults) -> Script<'a> {
        let (retired, _) = channel();
        Script {
            network,
            scenario: Scenario::new(&network.topology().timeline),
            loader: FileLoader::reporting_to(faults),
            retired,
            made: Changes::default(),
            epoch,
        }
    }

    /// Returns when the next command is due.
    pub fn next_at(&mut self) -> Option<Nanos> {
        Some(self.epoch.saturating_add(self.scenario.next_at()?))
    }

    /// Executes the next command.
    ///
    /// # Errors
    /// If it names an item that was removed after the topology was read.
    pub fn give(&mut self, simulation: &mut Simulation) -> Result<(), Error> {
        let Some(command) = self.scenario.next_due(Nanos::MAX) else {
            return Ok(());
        };
        let prepared = self.network.plan(&command, &self.loader, &self.retired);
        let prepared = prepared.map_err(|problem| {
            let at = command.at.unwrap_or(Nanos::ZERO);
            Error::failed(format!("scenario at {at}: {problem}"))
        })?;
        self.made
            .remember(ChangeRecord::of_scenario(&command, &prepared));
        for (at, work) in prepared.operations {
            simulation.order(at, work);
        }
        Ok(())
    }

    /// Returns the executed commands.
    pub fn made(&self) -> &Changes {
        &self.made
    }
}
