//! The missing half of a port that only sends or only receives, such as a
//! capture file.

use std::os::fd::BorrowedFd;

use longwire_engine::Nanos;

use super::{Arrived, Outgoing, PortError, Pushed, Received, RxPort, TxPort};

/// Receives nothing, and reports its end at once.
#[derive(Debug, Default)]
pub struct Silent;

impl RxPort for Silent {
    fn receive(
        &mut self,
        _now: Nanos,
        _max: usize,
        _take: &mut impl FnMut(Arrived<'_>),
    ) -> Result<Received, PortError> {
        Ok(Received {
            frames: 0,
            end: true,
        })
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn frame_max(&self) -> usize {
        0
    }
}

/// Accepts every frame and drops it.
#[derive(Debug, Default)]
pub struct Discard {
    taken: usize,
}

impl TxPort for Discard {
    fn push(&mut self, _frame: Outgoing<'_>) -> Pushed {
        self.taken += 1;
        Pushed::Taken
    }

    fn flush(&mut self) -> Result<usize, PortError> {
        Ok(std::mem::take(&mut self.taken))
    }

    fn free_slots(&self) -> usize {
        // Any number, so that callers still read the clock now and then.
        1024
    }

    fn unsent(&self) -> usize {
        0
    }

    fn takes_offload(&self) -> bool {
        true
    }
}
