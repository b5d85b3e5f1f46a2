//! What a fabric has recorded: frames as they came in, and what each link
//! decided about each.

use longwire_engine::{FrameMeta, Link, LinkId, Verdict};
use longwire_packet::bridge::PortIndex;

use super::frames::Frame;
use crate::record::{Epoch, Event, Recorder, Recording, Tap, Writing};
use crate::run::StartError;

/// A recording of a fabric before it starts, if there is to be one.
pub(super) struct Recorded(Option<(Recording, Box<dyn Recorder>)>);

impl Recorded {
    /// A recording by this recorder.
    pub fn by(recorder: Option<Box<dyn Recorder>>) -> Recorded {
        Recorded(recorder.map(|recorder| (Recording::new(), recorder)))
    }

    /// What records what leaves by an output port.
    pub fn output(&self, port: usize) -> Option<Tap> {
        let (recording, recorder) = self.0.as_ref()?;
        let wanted = recorder.wants_frames();
        wanted.then(|| recording.tap(LinkId(port as u32)))
    }

    /// What records arrivals and verdicts.
    pub fn ledger(&self) -> Option<Box<Ledger>> {
        let (recording, recorder) = self.0.as_ref()?;
        let tap = recording.tap(LinkId(0));
        Some(Box::new(Ledger::new(tap, recorder.wants_frames())))
    }

    /// Begins to write.
    pub fn start(self, epoch: Epoch) -> Result<Option<Writing>, StartError> {
        let started = self
            .0
            .map(|(recording, recorder)| recording.start(recorder, epoch));
        started.transpose()
    }
}

/// Numbers frames on their links and tells the recorder.
#[derive(Debug)]
pub(super) struct Ledger {
    tap: Tap,
    with_frames: bool,
    /// How many frames each link has been offered.
    offered: Vec<u64>,
}

impl Ledger {
    /// A ledger of verdicts, and `with_frames` of frames that come in.
    fn new(tap: Tap, with_frames: bool) -> Ledger {
        Ledger {
            tap,
            with_frames,
            offered: Vec::new(),
        }
    }

    /// A frame came in.
    #[cold]
    pub fn entered(&mut self, port: PortIndex, frame: FrameMeta, bytes: &[u8]) {
        if self.with_frames {
            self.tap.push(bytes, |bytes| Event::Entered {
                port,
                arrival: frame.arrival,
                wire_len: frame.len,
                bytes,
            });
        }
    }

    /// A frame came to a link.
    #[cold]
    pub fn offered(&mut self, id: LinkId, frame: &mut Frame, meta: FrameMeta, link: &Link) {
        let index = id.0 as usize;
        if index >= self.offered.len() {
            self.offered.resize(index + 1, 0);
        }
        let number = self.offered[index];
        self.offered[index] += 1;
        frame.number = number as u32;
        self.tap.push(&[], |bytes| Event::Arrived {
            link: id,
            frame: number,
            arrival: meta.arrival,
            len: meta.len,
            queue: link.occupancy(),
            bytes,
        });
    }

    /// A link decided about a frame.
    #[cold]
    pub fn decided(&mut self, link: LinkId, frame: &Frame, verdict: Verdict) {
        let offered = self.offered.get(link.0 as usize).copied().unwrap_or(0);
        // No link holds 2^32 frames: how far behind a frame is tells the part
        // of its number that did not fit.
        let behind = (offered as u32).wrapping_sub(frame.number);
        let frame = offered.saturating_sub(behind.into());
        self.tap.push(&[], |_| Event::Decided {
            link,
            frame,
            verdict,
        });
    }

    /// The same, for virtual time: it waits for the recorder rather than lose
    /// events.
    pub fn waiting(self) -> Ledger {
        Ledger {
            tap: self.tap.waiting(),
            ..self
        }
    }

    /// A burst is over.
    pub fn flush(&mut self) {
        self.tap.flush();
    }

    /// The run is over.
    pub fn finish(&mut self) {
        self.tap.finish();
    }

    /// Events that the recorder did not take.
    pub fn lost(&self) -> u64 {
        self.tap.lost()
    }
}
