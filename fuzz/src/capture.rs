//! Arbitrary capture files: read to the end, or refused with position and reason, regardless of how
//! the bytes arrive.
//!
//! The input is a file: classic pcap or pcapng, plain or compressed with gzip, zstd or lz4.

use std::io::{Cursor, Read, Result};

use longwire_capture::{CaptureError, CaptureReader};

/// Reads the file whole, in small pieces, truncated, and sometimes on a thread. The frames of a
/// truncated file are a prefix of those of the whole file.
pub fn check(data: &[u8]) {
    let whole = read_all(data, Cursor::new(data.to_vec()), false);
    // Use a thread only rarely, because threads are slow to start and end.
    if data.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte)) < 32 {
        let ahead = read_all(data, Cursor::new(data.to_vec()), true);
        assert_eq!(ahead, whole);
    }
    let dribble = Dribble(Cursor::new(data.to_vec()), 0);
    let dribble = read_all(data, dribble, false);
    let cut = &data[..data.len() / 2];
    let (cut, _) = read_all(cut, Cursor::new(cut.to_vec()), false);
    let (frames, word) = &whole;
    if is_packed(data) && !word.is_empty() {
        // A decoder with more bytes available detects a fault earlier.
        assert!(one_begins_the_other(&dribble.0, frames));
        assert!(one_begins_the_other(&cut, frames));
    } else {
        assert_eq!(dribble, whole);
        assert!(
            frames.starts_with(&cut),
            "a truncated file has other frames"
        );
    }
}

/// Returns whether the file is gzip, zstd, lz4, or a skippable frame of the latter two.
pub(crate) fn is_packed(data: &[u8]) -> bool {
    matches!(
        data,
        [0x1f, 0x8b, ..]
            | [0x28, 0xb5, 0x2f, 0xfd, ..]
            | [0x04, 0x22, 0x4d, 0x18, ..]
            | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]
    )
}

fn one_begins_the_other(one: &[Frame], other: &[Frame]) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// Time, bytes and length on the wire.
type Frame = (u64, Vec<u8>, u32);

/// Frames, and the final error.
type Contents = (Vec<Frame>, String);

fn read_all(data: &[u8], input: impl Read + Send + 'static, ahead: bool) -> Contents {
    let mut frames = Vec::new();
    let mut reader = match CaptureReader::new("fuzz", input) {
        Ok(reader) => reader,
        Err(error) => return (frames, refusal(data, &error)),
    };
    if ahead {
        reader.read_ahead(false, || ()).expect("a thread");
    }
    assert!(is_packed(data) || reader.packing().is_none());
    let frame_max = reader.frame_max();
    loop {
        match reader.next() {
            Ok(Some(record)) => {
                assert!(record.bytes.len() <= frame_max);
                assert!(record.bytes.len() as u64 <= u64::from(record.wire_len));
                let stamp = record.stamp.as_nanos();
                frames.push((stamp, record.bytes.to_vec(), record.wire_len));
            }
            Ok(None) => return (frames, String::new()),
            Err(error) => {
                let end = reader.next().expect("one error is enough");
                assert!(end.is_none(), "nothing comes after an error");
                return (frames, refusal(data, &error));
            }
        }
    }
}

fn refusal(data: &[u8], error: &CaptureError) -> String {
    if let CaptureError::Malformed { file, offset, .. } = error {
        let unpacked = is_packed(data) && file.contains("unpacked");
        assert!(unpacked || *offset <= data.len() as u64, "{error}");
    }
    error.to_string()
}

/// A reader that returns a few bytes per call, sometimes more.
struct Dribble(Cursor<Vec<u8>>, usize);

impl Read for Dribble {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let Dribble(data, calls) = self;
        *calls += 1;
        let len = (*calls % 7 * *calls % 61 + 1).min(buffer.len());
        data.read(&mut buffer[..len])
    }
}
