//! Captures read and written by separate threads, which must give the same bytes, frames and
//! errors.
use std::fs;

use longwire_capture::{Batches, CaptureError, CaptureReader, CaptureWriter};
use longwire_engine::Nanos;
use longwire_testbed::support::Folder;

use crate::common::{Frame, read_to_end};

/// Enough frames for several buffers.
const FRAMES: u64 = 6_000;

fn frame(number: u64) -> Vec<u8> {
    let len = number * 7_919 % 1_500;
    (0..len).map(|at| (at * 31 + number) as u8).collect()
}

/// Writes frames until the first error. Returns the error and the number of frames before it.
fn write(path: &str, behind: bool, frames: u64) -> (u64, Result<(), CaptureError>) {
    let mut writer = CaptureWriter::create(path).expect("it is created");
    if behind {
        writer.write_behind(Batches::Small, || ());
    }
    for number in 0..frames {
        let bytes = frame(number);
        let stamp = Nanos::from_nanos(number * 1_000);
        if let Err(error) = writer.write(stamp, &bytes, bytes.len() as u32) {
            return (number, Err(error));
        }
    }
    (frames, writer.finish())
}

#[test]
fn a_thread_writes_the_same_bytes() {
    let dir = Folder::new();
    for name in ["long.pcap", "long.pcapng"] {
        let (here, behind) = (dir.file(name), dir.file(&format!("behind-{name}")));
        for (path, in_thread) in [(&here, false), (&behind, true)] {
            let (written, result) = write(path, in_thread, FRAMES);
            assert!(result.is_ok(), "{result:?}");
            assert_eq!(written, FRAMES);
        }
        let bytes = fs::read(&here).expect("it is there");
        assert!(bytes.len() > 4_000_000, "{}", bytes.len());
        assert!(bytes == fs::read(&behind).expect("it is there"), "{name}");
    }
}

#[test]
fn dropping_writes_everything_too() {
    let dir = Folder::new();
    let path = dir.file("dropped.pcap");
    let mut writer = CaptureWriter::create(&path).expect("it is created");
    writer.write_behind(Batches::Small, || ());
    for bytes in (0..FRAMES).map(frame) {
        let written = writer.write(Nanos::ZERO, &bytes, bytes.len() as u32);
        written.expect("there is room");
    }
    drop(writer);
    let (frames, error) = read(&path, false);
    assert!(error.is_none(), "{error:?}");
    assert_eq!(frames.len() as u64, FRAMES);
}

#[test]
fn a_full_disk_is_reported_a_few_buffers_later() {
    let dir = Folder::new();
    let full = dir.file("full.pcap");
    std::os::unix::fs::symlink("/dev/full", &full).expect("a link");
    let (before_here, here) = write(&full, false, FRAMES);
    let (before, behind) = write(&full, true, FRAMES);
    let here = here.expect_err("no space").to_string();
    assert_eq!(behind.expect_err("no space").to_string(), here);
    assert!(here.contains("No space"), "{here}");
    // The thread's error is late by at most three buffers of 256 KiB; frames have 750 bytes on
    // average.
    assert!(before < before_here + 1_200, "{before} after {before_here}");
    // Writing a short capture fails only in `finish`.
    let (before, behind) = write(&full, true, 10);
    assert_eq!(before, 10);
    assert_eq!(behind.expect_err("no space").to_string(), here);
}

/// Reads a file, in a separate thread or in this one.
fn read(path: &str, in_thread: bool) -> (Vec<Frame>, Option<String>) {
    let mut reader = CaptureReader::open(path).expect("it is a capture");
    if in_thread {
        reader.read_in_thread(Batches::Small, || ()).unwrap();
    }
    let (frames, error) = read_to_end(&mut reader);
    (frames, error.map(|error| error.to_string()))
}

#[test]
fn a_thread_reads_the_same_frames_and_errors() {
    let dir = Folder::new();
    for name in ["long.pcap", "long.pcapng"] {
        let path = dir.file(name);
        assert!(write(&path, false, FRAMES).1.is_ok());
        let here = read(&path, false);
        assert_eq!(here.0.len() as u64, FRAMES);
        assert!(here == read(&path, true), "{name}");
        let whole = fs::read(&path).expect("it is there");
        for cut in [1, 700, 2_000_000] {
            fs::write(&path, &whole[..whole.len() - cut]).expect("there is room");
            let here = read(&path, false);
            assert!(here.1.is_some(), "{name} without {cut} bytes");
            assert!(here == read(&path, true), "{name} without {cut} bytes");
        }
    }
}

#[test]
fn upcoming_frames_are_the_next_ones() {
    let dir = Folder::new();
    let path = dir.file("long.pcap");
    assert!(write(&path, false, FRAMES).1.is_ok());
    let mut reader = CaptureReader::open(&path).expect("it is a capture");
    reader.read_in_thread(Batches::Small, || ()).unwrap();
    let mut seen = 0;
    for number in 0..FRAMES {
        let upcoming = reader.upcoming().take(3);
        for (ahead, (bytes, wire_len)) in upcoming.enumerate() {
            let expected = frame(number + ahead as u64);
            assert_eq!(bytes, expected);
            assert_eq!(wire_len as usize, expected.len());
            seen += 1;
        }
        let next = reader.next().expect("it is whole").expect("a frame");
        assert_eq!(next.bytes, frame(number));
    }
    assert_eq!(reader.upcoming().count(), 0);
    // Three upcoming frames each time, except at the ends of blocks.
    assert!(seen > FRAMES * 28 / 10, "{seen}");
}
