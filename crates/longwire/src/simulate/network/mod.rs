//! A network in virtual time: captures enter and leave at its ports, and its
//! scenario runs at its times between them.

mod inputs;
mod outputs;
mod script;

use std::sync::atomic::{AtomicBool, Ordering};

use longwire_engine::{FrameMeta, Nanos};
use longwire_runtime::fabric::Simulation;
use longwire_runtime::{Faults, RunReport as FabricReport};

pub use inputs::{Inputs, PortFile};
pub use outputs::Outputs;
pub use script::Script;

use super::{End, check_faults};
use crate::Error;
use longwire_fabric::Changes;

/// A network under simulation.
pub struct NetworkReplay<'a> {
    simulation: Simulation,
    inputs: Inputs,
    outputs: Outputs,
    script: Script<'a>,
    /// The start of the scenario and of all schedules.
    epoch: Nanos,
    /// Failures of plugins.
    faults: Faults,
}

/// Frames between two checks for signals.
const FRAMES_A_LOOK: u32 = 4096;

/// Commands of the scenario that are executed after the end of the captures, at
/// most: a scenario without end would keep frames for ever on links that stand
/// still.
const IDLE_COMMANDS_MAX: u32 = 100_000;

impl<'a> NetworkReplay<'a> {
    /// Returns a simulation before its start, with its captures.
    pub fn new(
        simulation: Simulation,
        (inputs, outputs): (Inputs, Outputs),
        script: Script<'a>,
        epoch: Nanos,
        faults: &Faults,
    ) -> NetworkReplay<'a> {
        NetworkReplay {
            simulation,
            inputs,
            outputs,
            script,
            epoch,
            faults: faults.clone(),
        }
    }

    /// Reads all captures to their ends and releases all frames, unless a
    /// signal stops it. `progress` periodically receives the bytes read and
    /// their total.
    ///
    /// # Errors
    /// If a capture is damaged, after all frames read before have left; if an
    /// output cannot be written, a command cannot be executed, or a plugin
    /// failed.
    pub fn run(
        &mut self,
        mut progress: impl FnMut(u64, Option<u64>),
        stop: &AtomicBool,
    ) -> Result<End, Error> {
        loop {
            for _ in 0..FRAMES_A_LOOK {
                match self.frame(stop) {
                    Ok(true) => check_faults(&self.faults)?,
                    Ok(false) => return self.drain(stop),
                    Err(Stop::Signal) => return Ok(End::Interrupted),
                    Err(Stop::Input(error)) => {
                        self.drain(stop)?;
                        return Err(error);
                    }
                    Err(Stop::Other(error)) => return Err(error),
                }
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(End::Interrupted);
            }
            let (done, all) = self.inputs.progress();
            progress(done, all);
        }
    }

    /// Processes the next frame; returns `false` when there is none.
    fn frame(&mut self, stop: &AtomicBool) -> Result<bool, Stop> {
        let Some((port, record)) = self.inputs.next_frame().map_err(Stop::Input)? else {
            return Ok(false);
        };
        let outputs = &mut self.outputs;
        while let Some(after) = self.script.next_at() {
            let at = self.epoch.saturating_add(after);
            if at > record.stamp {
                break;
            }
            // Checked for each: between two frames there may be any number.
            if stop.load(Ordering::Relaxed) {
                return Err(Stop::Signal);
            }
            check_faults(&self.faults).map_err(Stop::Other)?;
            let given = self.script.give(&mut self.simulation);
            let done = given.and_then(|()| {
                self.simulation
                    .advance(at, &mut |leaving| outputs.write(leaving))
            });
            done.map_err(Stop::Other)?;
        }
        let meta = FrameMeta {
            arrival: record.stamp,
            len: record.wire_len,
        };
        self.simulation
            .frame(port, meta, record.bytes, &mut |leaving| {
                outputs.write(leaving)
            })
            .map_err(Stop::Other)?;
        Ok(true)
    }

    /// Releases the frames inside after the end of the captures. Frames of
    /// links that stand still never leave, and stay.
    fn drain(&mut self, stop: &AtomicBool) -> Result<End, Error> {
        let mut inside = self.simulation.frames();
        let mut in_vain = 0;
        while inside > 0 {
            let command = self.script.next_at();
            let command = command.map(|after| self.epoch.saturating_add(after));
            let event = self.simulation.next_at();
            let at = match (event, command) {
                (Some(event), Some(command)) if event < command => event,
                (_, Some(command)) if in_vain < IDLE_COMMANDS_MAX => {
                    in_vain += 1;
                    self.script.give(&mut self.simulation)?;
                    command
                }
                (Some(event), None) => event,
                _ => break,
            };
            let outputs = &mut self.outputs;
            self.simulation
                .advance(at, &mut |leaving| outputs.write(leaving))?;
            check_faults(&self.faults)?;
            if stop.load(Ordering::Relaxed) {
                return Ok(End::Interrupted);
            }
            let now = self.simulation.frames();
            if now != inside {
                (inside, in_vain) = (now, 0);
            }
        }
        Ok(End::Whole)
    }

    /// Returns the changes that the scenario has made.
    pub fn changes(&self) -> &Changes {
        self.script.made()
    }

    /// Ends the simulation: writes everything, and returns the report without
    /// its duration.
    ///
    /// # Errors
    /// The error is also in the report.
    pub fn finish(self) -> (FabricReport, Result<(), Error>) {
        let written = self.outputs.finish();
        (self.simulation.stop(), written)
    }
}

/// The reason for which no further frame was taken.
enum Stop {
    /// A signal.
    Signal,
    /// A capture is damaged.
    Input(Error),
    /// Anything else.
    Other(Error),
}
