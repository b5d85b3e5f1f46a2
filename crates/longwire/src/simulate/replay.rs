//! A capture from its beginning to its end, each frame to its link.

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
    /// With the end of the capture.
    Whole,
    /// Somebody stopped it.
    Interrupted,
}

/// Which way frames go.
#[derive(Debug)]
pub enum Ways {
    /// All the same.
    One(Direction),
    /// As their addresses tell.
    Two(Sides),
}

impl Ways {
    /// The directions of the links that they lead over.
    pub fn directions(&self) -> Vec<Direction> {
        match self {
            Ways::One(direction) => vec![*direction],
            Ways::Two(_) => vec![Direction::Up, Direction::Down],
        }
    }
}

/// Frames that went neither way, for nothing told which.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Unassigned {
    /// How many.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
}

/// A capture under simulation.
#[derive(Debug)]
pub struct Replay {
    simulation: Simulation,
    ways: Ways,
    unassigned: Unassigned,
    /// Where plugins say that they failed.
    faults: Faults,
}

/// Frames between two reports of progress.
const FRAMES_A_LOOK: u32 = 4096;

impl Replay {
    /// The simulation must have the links that the ways lead over. What is
    /// reported to `faults` ends it.
    pub fn new(simulation: Simulation, ways: Ways, faults: &Faults) -> Replay {
        Replay {
            simulation,
            ways,
            unassigned: Unassigned::default(),
            faults: faults.clone(),
        }
    }

    /// Reads to the end, whatever that is, and releases all that was read
    /// before it; unless it is stopped. `progress` is told now and then how
    /// many bytes have been read, of how many.
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
                        // A plugin may take long over each frame.
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

    /// The links.
    pub fn simulation(&mut self) -> &mut Simulation {
        &mut self.simulation
    }

    /// What went neither way, of a capture that has both.
    pub fn unassigned(&self) -> Option<Unassigned> {
        matches!(self.ways, Ways::Two(_)).then_some(self.unassigned)
    }

    /// What may surprise in how it went, in sentences.
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
        let came: u64 = reports.iter().map(|link| link.packets_in).sum();
        if self.unassigned().is_some() && came > 0 {
            for link in reports.iter().filter(|link| link.packets_in == 0) {
                remarks.push(format!(
                    "{}: no frame went this way; see whether --near names the near side",
                    link.name
                ));
            }
        }
        remarks
    }
}
