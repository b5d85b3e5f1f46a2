//! Helpers shared by several integration tests.
#![allow(dead_code, missing_docs, reason = "each test uses a part of it")]

pub mod captures;
pub mod packing;

use std::io::Cursor;

use longwire_capture::{CaptureError, CaptureReader, LeftOut, RecordCounts};

/// A frame as read: time in nanoseconds, bytes and wire length.
pub type Frame = (u64, Vec<u8>, u32);

/// Opens a capture in memory.
pub fn reader(bytes: &[u8]) -> Result<CaptureReader, CaptureError> {
    CaptureReader::new("test", Cursor::new(bytes.to_vec()))
}

/// Returns all frames up to the end or an error.
pub fn read_to_end(reader: &mut CaptureReader) -> (Vec<Frame>, Option<CaptureError>) {
    let max = reader.frame_max();
    let mut frames = Vec::new();
    loop {
        match reader.next() {
            Ok(Some(r)) => {
                assert!(r.bytes.len() <= max);
                frames.push((r.stamp.as_nanos(), r.bytes.to_vec(), r.wire_len));
            }
            Ok(None) => return (frames, None),
            Err(error) => {
                assert!(matches!(reader.next(), Ok(None)), "nothing after an error");
                return (frames, Some(error));
            }
        }
    }
}

/// Like [`read_to_end`], for a capture in memory; also returns an error in its header.
pub fn read_all(bytes: &[u8], ahead: bool) -> (Vec<Frame>, Option<CaptureError>) {
    let mut reader = match reader(bytes) {
        Ok(reader) => reader,
        Err(error) => return (Vec::new(), Some(error)),
    };
    if ahead {
        reader.read_ahead(false, || ()).unwrap();
    }
    read_to_end(&mut reader)
}

/// Returns the frames of a flawless capture, and the counts.
pub fn read_whole(bytes: &[u8], ahead: bool) -> (Vec<Frame>, RecordCounts) {
    let mut reader = reader(bytes).expect("a capture");
    if ahead {
        reader.read_ahead(false, || ()).unwrap();
    }
    let (frames, error) = read_to_end(&mut reader);
    assert!(error.is_none(), "{error:?}");
    (frames, reader.counts().clone())
}

pub fn left_out(counts: &RecordCounts) -> Vec<(LeftOut, u64)> {
    let left_out = counts.left_out.iter();
    left_out.map(|(reason, count)| (*reason, *count)).collect()
}

pub fn frame(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + len) as u8).collect()
}

pub fn lengths(frames: &[Frame]) -> Vec<usize> {
    frames.iter().map(|(_, bytes, _)| bytes.len()).collect()
}

pub fn write(path: &str, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap_or_else(|error| panic!("{path}: {error}"));
}
