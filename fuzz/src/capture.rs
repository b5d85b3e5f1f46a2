//! Capture files of strangers: read to their end or refused with the place
//! and the reason, and the same however the bytes come.
//!
//! The input is a file, classic pcap or pcapng.

use std::io::{Cursor, Read, Result};

use longwire_io::PortError;
use longwire_io::port::pcap::CaptureReader;

/// Reads the file twice, at once and in dribbles.
pub fn check(data: &[u8]) {
    let whole = read_all(data, Cursor::new(data.to_vec()));
    let dribble = Dribble {
        data: Cursor::new(data.to_vec()),
        calls: 0,
    };
    assert_eq!(read_all(data, dribble), whole);
}

/// Time, bytes and length on the wire of each frame, and the last word.
type Contents = (Vec<(u64, Vec<u8>, u32)>, String);

fn read_all(data: &[u8], input: impl Read + Send + 'static) -> Contents {
    let mut frames = Vec::new();
    let mut reader = match CaptureReader::new("fuzz", input) {
        Ok(reader) => reader,
        Err(error) => return (frames, refusal(data, &error)),
    };
    let frame_max = reader.frame_max();
    loop {
        match reader.next() {
            Ok(Some(record)) => {
                assert!(record.bytes.len() <= frame_max);
                assert!(record.bytes.len() as u64 <= u64::from(record.wire_len));
                frames.push((
                    record.stamp.as_nanos(),
                    record.bytes.to_vec(),
                    record.wire_len,
                ));
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

fn refusal(data: &[u8], error: &PortError) -> String {
    if let PortError::Malformed { offset, .. } = error {
        assert!(*offset <= data.len() as u64, "{error}");
    }
    error.to_string()
}

/// Gives a few bytes a call, sometimes more.
struct Dribble {
    data: Cursor<Vec<u8>>,
    calls: usize,
}

impl Read for Dribble {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        self.calls += 1;
        let len = (self.calls % 7 * self.calls % 61 + 1).min(buffer.len());
        self.data.read(&mut buffer[..len])
    }
}
