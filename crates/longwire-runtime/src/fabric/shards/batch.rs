//! Frames that arrived and are distributed to shards together.

use longwire_engine::FrameMeta;
use longwire_io::port::offload::TrainPart;
use longwire_packet::bridge::PortIndex;
use longwire_packet::classify::Classifier;

use crate::fabric::core::Target;
use crate::fabric::frames::Exit;

/// A frame of a batch, after the switch.
#[derive(Clone, Copy, Debug)]
pub(in crate::fabric) struct BatchFrame {
    pub port: PortIndex,
    pub meta: FrameMeta,
    pub exit: Exit,
    pub part: Option<TrainPart>,
    /// The output port is gone.
    pub lost: bool,
    start: usize,
    len: u32,
}

/// Frames in the order of their arrivals, and their bytes.
#[derive(Debug, Default)]
pub(in crate::fabric) struct Batch {
    frames: Vec<BatchFrame>,
    bytes: Vec<u8>,
}

impl Batch {
    pub fn push(
        &mut self,
        (port, meta): (PortIndex, FrameMeta),
        exit: Exit,
        (part, lost): (Option<TrainPart>, bool),
        bytes: &[u8],
    ) {
        self.frames.push(BatchFrame {
            port,
            meta,
            exit,
            part,
            lost,
            start: self.bytes.len(),
            len: bytes.len() as u32,
        });
        self.bytes.extend_from_slice(bytes);
    }

    pub fn frames(&self) -> &[BatchFrame] {
        &self.frames
    }

    pub fn bytes(&self, frame: &BatchFrame) -> &[u8] {
        &self.bytes[frame.start..frame.start + frame.len as usize]
    }

    pub fn len(&self) -> usize {
        self.frames.len()
    }

    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    pub fn clear(&mut self) {
        self.frames.clear();
        self.bytes.clear();
    }
}

/// The parts of a round that all shards read.
#[derive(Debug)]
pub(super) struct Shared {
    pub batch: Batch,
    pub classifier: Classifier<Target>,
}
