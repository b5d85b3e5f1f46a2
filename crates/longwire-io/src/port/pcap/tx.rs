//! A capture as a sink: frames are stored with their releases as stamps.

use longwire_capture::{CAPTURED_MAX, CaptureWriter};
use longwire_engine::Nanos;

use crate::port::{PortError, PushResult, TxFrame, TxPort};

/// Maximum bytes waiting for a slow pipe.
const WAITING_MAX: usize = 4 * 1024 * 1024;
/// Maximum bytes of a record in addition to the frame: of a pcapng block.
const RECORD_OVERHEAD: usize = 36;

/// The sending port `pcap:FILE`.
pub struct PcapTx {
    writer: CaptureWriter,
    /// Offset from a release to the time since 1970.
    epoch: Nanos,
    unsent: usize,
}

impl PcapTx {
    /// Creates `path` (see [`CaptureWriter::create`]). `epoch` is the time since 1970
    /// at which the clock of the releases was zero.
    ///
    /// # Errors
    /// As for [`CaptureWriter::create`].
    pub fn create(path: &str, epoch: Nanos) -> Result<PcapTx, PortError> {
        Ok(PcapTx {
            writer: CaptureWriter::create(path)?,
            epoch,
            unsent: 0,
        })
    }
}

impl TxPort for PcapTx {
    #[inline]
    fn push(&mut self, frame: TxFrame<'_>) -> PushResult {
        if frame.bytes.is_empty() || frame.bytes.len() > CAPTURED_MAX as usize {
            return PushResult::Refused;
        }
        if self.writer.gathered() + frame.bytes.len() + RECORD_OVERHEAD > WAITING_MAX {
            return PushResult::Full;
        }
        let stamp = self.epoch.saturating_add(frame.release);
        let wire_len = frame.wire_len.max(frame.bytes.len() as u32);
        if self.writer.gather(stamp, frame.bytes, wire_len).is_err() {
            return PushResult::Refused;
        }
        self.unsent += 1;
        PushResult::Taken
    }

    /// Frames count as departed when all of them are written; a slow pipe may have
    /// accepted some before.
    fn flush(&mut self) -> Result<usize, PortError> {
        let gone = if self.writer.drain()? { self.unsent } else { 0 };
        self.unsent -= gone;
        Ok(gone)
    }

    fn free_slots(&self) -> usize {
        let free = WAITING_MAX - self.writer.gathered();
        free / (CAPTURED_MAX as usize + RECORD_OVERHEAD)
    }

    fn unsent(&self) -> usize {
        self.unsent
    }
}
