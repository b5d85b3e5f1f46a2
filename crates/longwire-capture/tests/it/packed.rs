//! Compressed captures: intact, truncated and damaged.
use longwire_testbed::support::Folder;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use crate::common::captures::Builder;
use crate::common::packing::{all, by_tool, gzip, lz4};
use crate::common::read_all;
use longwire_capture::{CaptureError, CaptureReader, Packing, Step};

/// Returns a frame whose length and contents vary with `n`: some frames compress well, others do
/// not.
fn frame(n: u32) -> Vec<u8> {
    let mut state = n | 1;
    let len = 60 + n * 37 % 1400;
    let random = (0..len).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if n.is_multiple_of(3) {
            (state >> 24) as u8
        } else {
            n as u8
        }
    });
    random.collect()
}

fn classic(frames: u32) -> Vec<u8> {
    let mut file = Builder::pcap(false, 0xa1b2_3c4d, 262_144, 1);
    for n in 0..frames {
        file.record(1_700_000_000 + n, n, &frame(n), 2_000);
    }
    file.bytes
}

fn ng(frames: u32) -> Vec<u8> {
    let mut file = Builder::ng(true, 1, 0, &[(9, &[9])]);
    for n in 0..frames {
        file.enhanced(0, u64::from(n) << 20, &frame(n), 2_000);
    }
    file.bytes
}

/// Returns a capture in each compression, and uncompressed.
fn with_plain(plain: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let packed = all(plain).into_iter();
    packed.chain([("no", plain.to_vec())]).collect()
}

#[test]
fn packed_captures_are_read_as_if_they_were_not() {
    for plain in [classic(3_000), ng(3_000)] {
        let (expected, error) = read_all(&plain, false);
        assert!(error.is_none() && expected.len() == 3_000);
        for (kind, packed) in all(&plain) {
            for ahead in [false, true] {
                let (frames, error) = read_all(&packed, ahead);
                assert!(error.is_none(), "{kind}: {error:?}");
                assert!(frames == expected, "{kind}, ahead: {ahead}");
            }
        }
    }
}

#[test]
fn files_compressed_by_tools_are_read() {
    let plain = classic(8_000);
    let (expected, _) = read_all(&plain, false);
    let tools: [(&str, &[&str]); 9] = [
        ("gzip", &["-c"]),
        ("gzip", &["-1c"]),
        ("zstd", &["-c"]),
        ("zstd", &["-19", "-c"]),
        ("zstd", &["--no-check", "-c"]),
        ("zstd", &["-T2", "-B512K", "-c"]),
        ("lz4", &["-c"]),
        ("lz4", &["-9", "-BD", "-c"]),
        ("lz4", &["-BX", "--content-size", "-B4", "-c"]),
    ];
    for (tool, arguments) in tools {
        let Some(packed) = by_tool(tool, arguments, &plain) else {
            continue;
        };
        for ahead in [false, true] {
            let (frames, error) = read_all(&packed, ahead);
            assert!(error.is_none(), "{tool} {arguments:?}: {error:?}");
            assert!(frames == expected, "{tool} {arguments:?}");
        }
        // Half of the file yields about half of the frames, and an error.
        let (frames, error) = read_all(&packed[..packed.len() / 2], true);
        let error = error.expect("cut").to_string();
        assert!(error.contains("truncated"), "{tool}: {error}");
        assert!(expected.starts_with(&frames), "{tool}");
        let read = frames.len();
        assert!(tool != "gzip" || read > expected.len() / 3, "{read} frames");
    }
}

#[test]
fn several_members_and_frames_are_one_capture() {
    let plain = classic(1_000);
    let (expected, _) = read_all(&plain, false);
    let (head, tail) = plain.split_at(plain.len() / 3);
    for ((kind, mut packed), (_, rest)) in all(head).into_iter().zip(all(tail)) {
        if kind != "gzip" {
            // A skippable frame of another program.
            packed.extend_from_slice(&[0x53, 0x2a, 0x4d, 0x18, 5, 0, 0, 0, 1, 2, 3, 4, 5]);
        }
        packed.extend_from_slice(&rest);
        let (frames, error) = read_all(&packed, true);
        assert!(error.is_none(), "{kind}: {error:?}");
        assert!(frames == expected, "{kind}");
        let len = packed.len();
        packed.extend_from_slice(b"else");
        let (frames, error) = read_all(&packed, true);
        assert!(frames == expected, "{kind}");
        let Some(CaptureError::Malformed { offset, reason, .. }) = error else {
            panic!("{kind}: {error:?}");
        };
        assert_eq!(offset, len as u64, "{kind}");
        assert!(reason.contains("65, 6c, 73, 65"), "{kind}: {reason}");
    }
}

#[test]
fn frames_before_a_cut_at_any_place_are_read() {
    for plain in [classic(12), ng(12)] {
        let (expected, _) = read_all(&plain, false);
        for (kind, packed) in &with_plain(&plain) {
            for ahead in [false, true] {
                let (frames, error) = read_all(packed, ahead);
                assert!(error.is_none() && frames == expected, "{kind}: {error:?}");
            }
            let mut most = 0;
            for len in 0..packed.len() {
                let (frames, error) = read_all(&packed[..len], false);
                assert!(expected.starts_with(&frames), "{kind} cut at {len}");
                most = most.max(frames.len());
                match error {
                    Some(CaptureError::Malformed { offset, reason, .. }) => {
                        assert!(offset <= plain.len().max(len) as u64);
                        assert!(!reason.is_empty());
                    }
                    None if *kind == "no" => {}
                    other => panic!("{kind} cut at {len}: {other:?}"),
                }
                if len % 16 == 0 {
                    assert_eq!(read_all(&packed[..len], true).0, frames, "{kind} at {len}");
                }
            }
            assert!(most >= 11, "{kind}: {most}");
        }
    }
}

#[test]
fn any_byte_may_be_wrong() {
    let plain = classic(6);
    for (_, packed) in all(&plain) {
        for at in 0..packed.len() {
            for wrong in [0x01, 0x80, 0xff] {
                let mut damaged = packed.clone();
                damaged[at] ^= wrong;
                let (frames, _) = read_all(&damaged, false);
                assert!(frames.iter().all(|(_, bytes, _)| bytes.len() <= 262_144));
            }
        }
    }
}

#[test]
fn error_positions_name_the_compressed_file() {
    let mut plain = Builder::pcap(false, 0xa1b2_c3d4, 96, 1);
    plain.record(1, 0, &frame(1)[..90], 97);
    let at = plain.bytes.len();
    plain.u32(1).u32(0).u32(262_145).u32(262_145);
    let (frames, error) = read_all(&gzip(&plain.bytes), false);
    let error = error.expect("refused").to_string();
    assert_eq!(frames.len(), 1);
    let expected = format!("test unpacked (gzip): at byte {at}:");
    assert!(error.contains(&expected), "{error}");
    let packed = lz4(&plain.bytes);
    let (_, error) = read_all(&packed[..packed.len() - 3], false);
    let error = error.expect("refused").to_string();
    assert!(error.starts_with("test"), "{error}");
    let mut damaged = lz4(&classic(50));
    let end = damaged.len() - 1;
    damaged[end] ^= 1;
    let (frames, error) = read_all(&damaged, true);
    let error = error.expect("refused").to_string();
    assert_eq!(frames.len(), 50);
    assert!(error.contains("corrupt lz4 stream"), "{error}");
}

#[test]
fn files_are_read_again_and_again() {
    let dir = Folder::new();
    let plain = classic(2_000);
    let (expected, _) = read_all(&plain, false);
    for (kind, packed) in with_plain(&plain) {
        let path = dir.file(&format!("again-{kind}.pcap"));
        std::fs::write(&path, &packed).unwrap();
        let mut reader = CaptureReader::open(&path).unwrap();
        let packing = reader.packing();
        let packing = packing.map_or("no".into(), |packing: Packing| packing.to_string());
        assert_eq!(packing, kind);
        // 0: on this thread; 1: on a repeating thread; 2: on a thread that does not repeat.
        for way in 0..3 {
            if way > 0 {
                reader.read_ahead(way == 1, || ()).unwrap();
            }
            for round in 0..4 {
                let mut count = 0;
                while let Some(record) = reader.next().unwrap() {
                    assert_eq!(record.bytes, expected[count].1);
                    count += 1;
                    if round == 2 && count == 700 {
                        break;
                    }
                }
                let expected = if round == 2 { 700 } else { 2_000 };
                assert_eq!(count, expected, "{kind} {way} {round}");
                if round != 2 {
                    assert_eq!(reader.stored_offset(), packed.len() as u64, "{kind} {way}");
                }
                reader.rewind().unwrap();
            }
            reader = CaptureReader::open(&path).unwrap();
        }
    }
}

#[test]
fn a_slow_pipe_is_not_waited_for() {
    let plain = classic(20);
    let (expected, _) = read_all(&plain, false);
    let packed = gzip(&plain);
    let (ours, mut theirs) = std::io::pipe().unwrap();
    theirs.write_all(&packed[..packed.len() / 2]).unwrap();
    let path = format!("/proc/self/fd/{}", ours.as_raw_fd());
    let mut reader = CaptureReader::open(&path).unwrap();
    assert!(
        reader.read_ahead(true, || ()).is_err(),
        "a pipe can be read only once"
    );
    reader.read_ahead(false, || ()).unwrap();
    reader.never_wait();
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut frames = Vec::new();
    let mut rest = Some(theirs);
    loop {
        assert!(Instant::now() < deadline);
        match reader.advance().unwrap() {
            Step::Frame => {
                let r = reader.current().unwrap();
                frames.push((r.stamp.as_nanos(), r.bytes.to_vec(), r.wire_len));
            }
            Step::Later => {
                std::thread::sleep(Duration::from_millis(20));
                // Write the second half of the file only after several frames have been read.
                if let Some(mut theirs) = rest.take_if(|_| frames.len() > 3) {
                    theirs.write_all(&packed[packed.len() / 2..]).unwrap();
                }
            }
            Step::End => break,
        }
    }
    assert_eq!(frames, expected);
    // If a pipe's writer stops writing, dropping the reader does not block.
    let (ours, mut theirs) = std::io::pipe().unwrap();
    theirs.write_all(&plain[..100]).unwrap();
    let path = format!("/proc/self/fd/{}", ours.as_raw_fd());
    let mut reader = CaptureReader::open(&path).unwrap();
    reader.read_ahead(false, || ()).unwrap();
    drop(reader);
    assert!(Instant::now() < deadline);
}
