//! Batches of arrived frames, distributed to shards together.

use longwire_engine::FrameMeta;
use longwire_io::port::offload::TrainPart;
use longwire_packet::bridge::PortIndex;
use longwire_packet::classify::Classifier;

use crate::deciding::frames::Exit;
use crate::deciding::state::Target;

/// A frame of a batch, after the switch's decision.
#[derive(Clone, Copy, Debug)]
pub(in crate::deciding) struct BatchFrame {
    pub port: PortIndex,
    pub meta: FrameMeta,
    pub exit: Exit,
    /// Index of the frame's train part plus 1; 0 if it was not cut from a train.
    part: u32,
    /// Whether the output port is lost.
    pub lost: bool,
    /// Ports of the datagram, for a later fragment.
    pub ports: Option<(u16, u16)>,
    start: usize,
    len: u32,
}

/// Frames in order of arrival, and their bytes.
#[derive(Debug, Default)]
pub(in crate::deciding) struct FrameBatch {
    frames: Vec<BatchFrame>,
    bytes: Vec<u8>,
    /// Train parts of the frames that were cut from a train.
    parts: Vec<TrainPart>,
}

impl FrameBatch {
    pub fn push(
        &mut self,
        (port, meta): (PortIndex, FrameMeta),
        exit: Exit,
        (part, lost): (Option<TrainPart>, bool),
        ports: Option<(u16, u16)>,
        bytes: &[u8],
    ) {
        self.parts.extend(part);
        self.frames.push(BatchFrame {
            port,
            meta,
            exit,
            part: part.map_or(0, |_| self.parts.len() as u32),
            lost,
            ports,
            start: self.bytes.len(),
            len: bytes.len() as u32,
        });
        self.bytes.extend_from_slice(bytes);
    }

    pub fn frames(&self) -> &[BatchFrame] {
        &self.frames
    }

    /// Returns a frame's position in the train it was cut from.
    pub fn part(&self, frame: &BatchFrame) -> Option<TrainPart> {
        let index = frame.part.checked_sub(1)?;
        self.parts.get(index as usize).copied()
    }

    pub fn bytes(&self, frame: &BatchFrame) -> &[u8] {
        &self.bytes[frame.start..frame.start + frame.len as usize]
    }

    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Returns the number of bytes of all frames.
    pub fn stored_len(&self) -> usize {
        self.bytes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    pub fn clear(&mut self) {
        self.frames.clear();
        self.bytes.clear();
        self.parts.clear();
    }
}

/// Input of a round, shared by all shards.
#[derive(Debug)]
pub(super) struct RoundInput {
    pub batch: FrameBatch,
    pub classifier: Classifier<Target>,
}
