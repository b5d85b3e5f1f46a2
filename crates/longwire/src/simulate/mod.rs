//! Networks in virtual time: captured or generated frames in, the same frames
//! out with the stamps that the emulated links give them.
//!
//! Nothing here waits or reads a clock: the frames' own stamps are the time, so
//! the same frames, network and seed give the same output to the byte.

mod inputs;
mod outputs;
mod script;

use std::sync::atomic::{AtomicBool, Ordering};

use longwire_capture::Record;
use longwire_engine::{FrameMeta, Nanos};
use longwire_packet::bridge::PortIndex;
use longwire_packet::sides::Heading;
use longwire_runtime::{DIRECTIONS, Faults, RunReport, Simulation};

pub use inputs::{Inputs, PortFile, UnassignedFrames, Ways};
pub use outputs::Outputs;
pub use script::Script;

use crate::Error;

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
    /// Returns the name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Up => DIRECTIONS[0],
            Direction::Down => DIRECTIONS[1],
        }
    }

    /// Returns the port of [`Simulation::pair`] at which its frames arrive.
    pub fn port(self) -> PortIndex {
        match self {
            Direction::Up => PortIndex(0),
            Direction::Down => PortIndex(1),
        }
    }
}

impl From<Heading> for Direction {
    fn from(heading: Heading) -> Direction {
        match heading {
            Heading::Up => Direction::Up,
            Heading::Down => Direction::Down,
        }
    }
}

/// Why no further frame is taken.
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

/// A network under simulation, with the captures of the frames that leave.
pub struct VirtualRun<'a> {
    simulation: Simulation,
    outputs: Outputs,
    script: Option<Script<'a>>,
    /// Failures of plugins.
    faults: Faults,
    /// Set by a signal.
    stop: &'a AtomicBool,
}

/// Frames between two reports of progress.
const FRAMES_A_LOOK: u32 = 4096;

/// Commands of the scenario that are executed after the end of the input while
/// no frame leaves, at most: a scenario without end would keep frames for ever
/// on links that stand still.
const IDLE_COMMANDS_MAX: u32 = 100_000;

impl<'a> VirtualRun<'a> {
    /// Returns a simulation before its start. A fault in `faults` or a signal
    /// in `stop` ends it.
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

    /// Sets until when the links of the simulation do not change.
    fn note_next_command(&mut self) {
        let next = self.script.as_mut().and_then(Script::next_at);
        self.simulation.stays_until(next.unwrap_or(Nanos::MAX));
    }

    /// Reads to the end or to an error, and releases all frames read before,
    /// unless a signal stops it. `progress` periodically receives the frames and
    /// the bytes read, and the total of these.
    ///
    /// # Errors
    /// If a capture is damaged, an output cannot be written, a command cannot
    /// be executed, or a plugin failed.
    pub fn read(
        &mut self,
        inputs: &mut Inputs<'_>,
        mut progress: impl FnMut(u64, u64, Option<u64>),
    ) -> Result<(), Stop> {
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
            progress(frames, done, all);
        }
    }

    /// Processes the next frame: executes the commands that are due before it,
    /// releases the frames that are, and lets it arrive at a port with the
    /// length that it had on the wire, also if that is 0.
    ///
    /// A frame stamped before its predecessor counts as simultaneous with it.
    ///
    /// # Errors
    /// If an output cannot be written, a command cannot be executed, a plugin
    /// failed, or a signal came.
    pub fn frame(&mut self, port: PortIndex, record: Record<'_>) -> Result<(), Stop> {
        while let Some(at) = self.script.as_mut().and_then(Script::next_at)
            && at <= record.stamp
        {
            // Checked for each: between two frames there may be any number.
            self.check()?;
            self.command(at)?;
        }
        let meta = FrameMeta {
            arrival: record.stamp,
            len: record.wire_len,
        };
        let outputs = &mut self.outputs;
        self.simulation
            .frame(port, meta, record.bytes, &mut |leaving| {
                outputs.write(leaving)
            })?;
        // A plugin may take long for each frame.
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

    /// Executes the next command of the scenario, at its time.
    fn command(&mut self, at: Nanos) -> Result<(), Error> {
        if let Some(script) = &mut self.script {
            script.give(&mut self.simulation)?;
        }
        self.note_next_command();
        self.advance(at)
    }

    fn advance(&mut self, until: Nanos) -> Result<(), Error> {
        let outputs = &mut self.outputs;
        self.simulation
            .advance(until, &mut |leaving| outputs.write(leaving))
    }

    /// Releases the frames inside after the end of the input, while the
    /// scenario goes on. Frames of links that stand still never leave, and
    /// stay.
    ///
    /// # Errors
    /// If an output cannot be written, a command cannot be executed, a plugin
    /// failed, or a signal came.
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

    /// Returns the scenario, if there is one.
    pub fn script(&self) -> Option<&Script<'a>> {
        self.script.as_ref()
    }

    /// Ends the simulation, writes everything, and returns the reports of a
    /// pair's links and of the network, without its duration. Of several
    /// errors, the first is reported: that of `ended`, or `interrupted` if a
    /// signal ended it.
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

/// Checks that no plugin has failed: decisions of a plugin after its failure
/// have no meaning.
fn check_faults(faults: &Faults) -> Result<(), Error> {
    if faults.any() {
        Err(Error::Failed(faults.first().unwrap_or_default()))
    } else {
        Ok(())
    }
}
