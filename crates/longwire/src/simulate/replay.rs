//! Replays a capture from its beginning to its end, each frame through its
//! link.

use std::sync::atomic::{AtomicBool, Ordering};

use longwire_capture::{CaptureReader, CaptureWriter, Record};
use longwire_runtime::Faults;
use serde::Serialize;

use super::{Direction, Sides, Simulation, check_faults};
use crate::Error;
use crate::report::words::count_of;

/// How a replay ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// At the end of the capture.
    Whole,
    /// By a signal.
    Interrupted,
}

/// The directions of frames.
#[derive(Debug)]
pub enum Ways {
    /// All frames have this direction.
    One(Direction),
    /// Addresses decide.
    Two(Sides),
}

impl Ways {
    /// Returns the directions of the links.
    pub fn directions(&self) -> Vec<Direction> {
        match self {
            Ways::One(direction) => vec![*direction],
            Ways::Two(_) => vec![Direction::Up, Direction::Down],
        }
    }
}

/// Frames whose direction is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UnassignedFrames {
    /// Number of frames.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
}

/// A capture under simulation.
#[derive(Debug)]
pub struct Replay {
    simulation: Simulation,
    ways: Ways,
    unassigned: UnassignedFrames,
    /// Failures of plugins.
    faults: Faults,
}

/// Frames between two reports of progress.
const FRAMES_A_LOOK: u32 = 4096;

impl Replay {
    /// Returns a replay; the simulation must have the links of `ways`. A fault
    /// in `faults` ends the replay.
    pub fn new(simulation: Simulation, ways: Ways, faults: &Faults) -> Replay {
        Replay {
            simulation,
            ways,
            unassigned: UnassignedFrames::default(),
            faults: faults.clone(),
        }
    }

    /// Reads to the end or to an error, and releases all frames read before,
    /// unless a signal stops it. `progress` periodically receives the bytes
    /// read and their total.
    ///
    /// # Errors
    /// If the capture is damaged, an output cannot be written, or a plugin
    /// failed.
    pub fn run(
        &mut self,
        reader: &mut CaptureReader,
        writer: &mut CaptureWriter,
        mut progress: impl FnMut(u64, Option<u64>),
        stop: &AtomicBool,
    ) -> Result<End, Error> {
        loop {
            for _ in 0..FRAMES_A_LOOK {
                match reader.next() {
                    Ok(Some(record)) => {
                        self.frame(record, writer)?;
                        check_faults(&self.faults)?;
                        // A plugin may take long for each frame.
                        if stop.load(Ordering::Relaxed) {
                            return Ok(End::Interrupted);
                        }
                    }
                    Ok(None) => {
                        self.simulation.finish(writer)?;
                        return check_faults(&self.faults).map(|()| End::Whole);
                    }
                    Err(error) => {
                        self.simulation.finish(writer)?;
                        return Err(error.into());
                    }
                }
            }
            progress(reader.stored_offset(), reader.size());
        }
    }

    fn frame(&mut self, record: Record<'_>, writer: &mut CaptureWriter) -> Result<(), Error> {
        let direction = match &mut self.ways {
            Ways::One(direction) => Some(*direction),
            Ways::Two(sides) => sides.direction(record.bytes),
        };
        match direction {
            Some(direction) => self.simulation.frame(direction, record, writer),
            None => {
                self.unassigned.packets += 1;
                self.unassigned.bytes += u64::from(record.wire_len);
                Ok(())
            }
        }
    }

    /// Returns the links.
    pub fn simulation(&mut self) -> &mut Simulation {
        &mut self.simulation
    }

    /// Returns the frames without a direction, of a capture of both directions.
    pub fn unassigned(&self) -> Option<UnassignedFrames> {
        matches!(self.ways, Ways::Two(_)).then_some(self.unassigned)
    }

    /// Returns warnings about the replay, in sentences.
    pub fn remarks(&self, end: Option<End>) -> Vec<String> {
        let mut remarks = Vec::new();
        let reports = self.simulation.reports();
        if end == Some(End::Whole) {
            for link in reports.iter().filter(|link| link.in_flight > 0) {
                remarks.push(format!(
                    "{}: {} still held when the capture ended: the link stands still",
                    link.name,
                    count_of(link.in_flight, "frame")
                ));
            }
        }
        if self.unassigned.packets > 0 {
            remarks.push(format!(
                "left out {} without a near address, between stations whose side was not seen \
                 before; name more with --near",
                count_of(self.unassigned.packets, "frame")
            ));
        }
        let arrived: u64 = reports.iter().map(|link| link.traffic.packets_in).sum();
        if self.unassigned().is_some() && arrived > 0 {
            for link in reports.iter().filter(|link| link.traffic.packets_in == 0) {
                remarks.push(format!(
                    "{}: no frame went this way; see whether --near names the near side",
                    link.name
                ));
            }
        }
        remarks
    }
}
