//! The missing half of a one-way port, such as a capture file.

use longwire_engine::Nanos;

use super::{PortError, PushResult, ReceiveResult, Received, RxFrame, RxPort, TxFrame, TxPort};

/// A receiving half that immediately reports the end of input.
#[derive(Debug, Default)]
pub struct SilentRx;

impl RxPort for SilentRx {
    fn receive(
        &mut self,
        _now: Nanos,
        _max: usize,
        _take: &mut impl FnMut(RxFrame<'_>),
    ) -> Received {
        Ok(ReceiveResult {
            frames: 0,
            end: true,
        })
    }

    fn frame_max(&self) -> usize {
        0
    }
}

/// A sending half that discards all frames.
#[derive(Debug, Default)]
pub struct DiscardTx {
    taken: usize,
}

impl TxPort for DiscardTx {
    fn push(&mut self, _frame: TxFrame<'_>) -> PushResult {
        self.taken += 1;
        PushResult::Taken
    }

    fn flush(&mut self) -> Result<usize, PortError> {
        Ok(std::mem::take(&mut self.taken))
    }

    fn free_slots(&self) -> usize {
        // Any finite number works: callers must still read the clock regularly.
        1024
    }

    fn unsent(&self) -> usize {
        0
    }

    fn takes_offload(&self) -> bool {
        true
    }
}
