//! Helpers shared by several integration tests.
#![allow(dead_code, missing_docs, reason = "each test uses a part of it")]

pub mod captures;
pub mod packing;

use longwire_capture::{CaptureError, CaptureReader};

/// A frame as read: time in nanoseconds, bytes and wire length.
pub type Frame = (u64, Vec<u8>, u32);

/// Returns all frames up to the end or an error.
pub fn read_to_end(reader: &mut CaptureReader) -> (Vec<Frame>, Option<CaptureError>) {
    let mut frames = Vec::new();
    loop {
        match reader.next() {
            Ok(Some(r)) => frames.push((r.stamp.as_nanos(), r.bytes.to_vec(), r.wire_len)),
            Ok(None) => return (frames, None),
            Err(error) => {
                assert!(matches!(reader.next(), Ok(None)), "nothing after an error");
                return (frames, Some(error));
            }
        }
    }
}

/// Writes a file.
pub fn frame(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + len) as u8).collect()
}

pub fn lengths(frames: &[Frame]) -> Vec<usize> {
    frames.iter().map(|(_, bytes, _)| bytes.len()).collect()
}

pub fn write(path: &str, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap_or_else(|error| panic!("{path}: {error}"));
}
