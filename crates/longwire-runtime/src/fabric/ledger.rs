//! Recording of a fabric: frames at their arrival, and the verdicts of each
//! link.

use longwire_engine::{FrameMeta, Link, LinkId, Verdict};
use longwire_packet::bridge::PortIndex;

use crate::record::{Event, RecordHandle};

pub(super) use crate::record::RecordingParts;

impl RecordingParts {
    /// Returns a ledger that records arrivals and verdicts.
    pub(super) fn ledger(&self) -> Option<Box<Ledger>> {
        let (record_handle, with_frames) = (self.handle(LinkId(0))?, self.wants_frames());
        Some(Box::new(Ledger::new(record_handle, with_frames)))
    }
}

/// Numbers frames on their links and passes events to the recorder.
#[derive(Debug)]
pub(super) struct Ledger {
    record_handle: RecordHandle,
    with_frames: bool,
    /// The number of frames offered to each link.
    offered: Vec<u64>,
}

impl Ledger {
    /// Returns a ledger of verdicts, and `with_frames` of arriving frames.
    fn new(record_handle: RecordHandle, with_frames: bool) -> Ledger {
        Ledger {
            record_handle,
            with_frames,
            offered: Vec::new(),
        }
    }

    /// Records the arrival of a frame.
    #[cold]
    pub fn entered(&mut self, port: PortIndex, frame: FrameMeta, bytes: &[u8]) {
        if self.with_frames {
            self.record_handle.push(bytes, |bytes| Event::Entered {
                port,
                arrival: frame.arrival,
                wire_len: frame.len,
                bytes,
            });
        }
    }

    /// Records that a frame was offered to a link. Returns the frame's number there,
    /// truncated.
    #[cold]
    pub fn offered(&mut self, id: LinkId, meta: FrameMeta, link: &Link) -> u32 {
        let index = id.0 as usize;
        if index >= self.offered.len() {
            self.offered.resize(index + 1, 0);
        }
        let number = self.offered[index];
        self.offered[index] += 1;
        self.record_handle.push(&[], |bytes| Event::Arrived {
            link: id,
            frame: number,
            arrival: meta.arrival,
            len: meta.len,
            queue: link.occupancy(),
            bytes,
        });
        number as u32
    }

    /// Records a verdict of a link about the frame of a truncated number.
    #[cold]
    pub fn decided(&mut self, link: LinkId, number: u32, verdict: Verdict) {
        let offered = self.offered.get(link.0 as usize).copied().unwrap_or(0);
        // No link holds 2^32 frames: the distance to the last frame determines
        // the truncated part of the number.
        let behind = (offered as u32).wrapping_sub(number);
        let frame = offered.saturating_sub(behind.into());
        self.record_handle.push(&[], |_| Event::Decided {
            link,
            frame,
            verdict,
        });
    }

    /// Makes the ledger wait for the recorder rather than lose events, for
    /// virtual time.
    pub fn waiting(self) -> Ledger {
        Ledger {
            record_handle: self.record_handle.waiting(),
            ..self
        }
    }

    /// Hands over the events of a burst.
    pub fn flush(&mut self) {
        self.record_handle.flush();
    }

    /// Hands over the last events of the run.
    pub fn finish(&mut self) {
        self.record_handle.finish();
    }

    /// Returns the number of events that the recorder did not take.
    pub fn lost(&self) -> u64 {
        self.record_handle.lost()
    }
}
