//! Reading and writing of capture files.
use longwire_testbed::support::Folder;

use crate::common::captures::Builder;
use crate::common::{frame, read_all, read_whole, reader};
use longwire_capture::{
    CAPTURED_MAX, CaptureError, CaptureReader, CaptureWriter, complete_block, push_frame,
};
use longwire_engine::Nanos;
use proptest::prelude::*;

/// Returns the number of frames before the error, its offset and its reason.
fn refusal(bytes: &[u8]) -> (usize, u64, String) {
    let (frames, error) = read_all(bytes, false);
    let Some(CaptureError::Malformed { offset, reason, .. }) = error else {
        panic!("not refused: {frames:?} {error:?}");
    };
    (frames.len(), offset, reason)
}

#[test]
fn frame_check_sequences_are_no_part_of_a_frame() {
    // Frames end with an FCS of two 16-bit words.
    let mut file = Builder::pcap(false, 0xa1b2_c3d4, 0, 1 | 1 << 26 | 2 << 28);
    file.record(1, 0, &frame(64), 64);
    file.record(2, 0, &frame(62), 64);
    let (frames, _) = read_whole(&file.bytes, false);
    assert_eq!(frames[0], (1_000_000_000, frame(64)[..60].to_vec(), 60));
    assert_eq!(frames[1].1.len(), 60, "truncated within the FCS");
}

#[test]
fn pcapng_sections_interfaces_and_clocks() {
    let mut file = Builder::ng(true, 1, 0, &[]);
    file.interface(1, 65_535, &[(2, b"eth7"), (9, &[9])]);
    file.interface(1, 0, &[(9, &[0x80 | 20]), (14, &100u64.to_be_bytes())]);
    file.interface(1, 0, &[(9, &[12]), (14, &(-1i64).to_be_bytes())]);
    file.enhanced(0, 1_700_000_000_123_456, &frame(61), 61);
    // An unknown block.
    file.block(0x0bad_0bad, |b| _ = b.raw(&[7; 21]));
    file.enhanced(1, 1_700_000_000_123_456_789, &frame(62), 9000);
    file.enhanced(2, 3 << 19, &frame(63), 63);
    file.enhanced(3, 2_000_000_000_123_999, &frame(64), 64);
    // The obsolete packet block: 16-bit interface, 16-bit drop count.
    file.block(2, |b| {
        b.u16(1).u16(9).u32(0).u32(77);
        b.u32(14).u32(14).raw(&frame(14));
    });
    file.block(3, |b| _ = b.u32(60).raw(&frame(60)));
    let mut second = Builder::ng(false, 1, 32, &[]);
    second.enhanced(0, 5, &frame(20), 20);
    second.block(3, |b| _ = b.u32(60).raw(&frame(60)[..32]));
    file.raw(&second.bytes);

    let (frames, _) = read_whole(&file.bytes, false);
    let expected = [
        (1_700_000_000_123_456_000, frame(61), 61),
        (1_700_000_000_123_456_789, frame(62), 9000),
        (101_500_000_000, frame(63), 63),
        (1_999_000_000_123, frame(64), 64),
        (77, frame(14), 14),
        (77, frame(60), 60),
        (5_000, frame(20), 20),
        (5_000, frame(60)[..32].to_vec(), 60),
    ];
    assert_eq!(frames, expected);
}

#[test]
fn blocks_longer_than_any_buffer_are_skipped() {
    let mut file = Builder::ng(false, 1, 0, &[]);
    file.block(10, |b| _ = b.raw(&vec![0x5a; 3_000_000]));
    file.enhanced(0, 1, &frame(60), 60);
    let (frames, _) = read_whole(&file.bytes, false);
    assert_eq!(frames, [(1_000, frame(60), 60)]);
    // The trailing length of a skipped block is still checked.
    let closing = file.bytes.len() - (60 + 44) - 4;
    file.bytes[closing] ^= 4;
    let (_, offset, reason) = refusal(&file.bytes);
    assert_eq!(offset, 44 + 20);
    assert!(reason.contains("with trailing length"), "{reason}");
}

#[test]
fn files_cut_anywhere_give_the_frames_before() {
    assert!(refusal(&[]).2.contains("empty"));
    let mut classic = Builder::pcap(false, 0xa1b2_3c4d, 262_144, 1);
    classic.record(1, 2, &frame(60), 60);
    classic.record(3, 4, &frame(100), 100);
    let mut ng = Builder::new(true);
    let mut ends = vec![0];
    ends.push(ng.section().bytes.len());
    ends.push(ng.interface(1, 0, &[(9, &[9])]).bytes.len());
    ends.push(ng.enhanced(0, 1, &frame(61), 61).bytes.len());
    ends.push(ng.block(99, |b| _ = b.u32(1)).bytes.len());
    ng.enhanced(0, 2, &frame(62), 62);
    let first = ends[3];
    for (file, ends, first) in [(&classic, vec![0, 24, 100], 100), (&ng, ends, first)] {
        for len in (1..file.bytes.len()).filter(|len| !ends.contains(len)) {
            let (frames, offset, reason) = refusal(&file.bytes[..len]);
            let begun = ends.iter().rfind(|at| **at < len).unwrap();
            assert_eq!(offset, *begun as u64, "cut at {len}: {reason}");
            assert_eq!(frames, usize::from(len > first));
        }
    }
}

#[test]
fn impossible_lengths_are_refused_with_their_place() {
    let mut file = Builder::pcap(false, 0xa1b2_c3d4, 0, 1);
    file.u32(0).u32(0).u32(262_145).u32(262_145);
    assert_eq!(refusal(&file.bytes).1, 24);

    let head = Builder::ng(false, 1, 100, &[]);
    let at = head.bytes.len() as u64;
    for (len, place) in [(8, 4), (30, 4), (44, 0), (0, 4), (4_000_000, 0)] {
        let mut file = head.clone();
        file.u32(6).u32(len).raw(&[0; 60]);
        assert_eq!(refusal(&file.bytes).1, at + place, "length {len}");
    }
    // A frame longer than its block, and a frame on an unknown interface.
    for (interface, captured, place) in [(0, 49, 0), (1, 8, 8)] {
        let mut file = head.clone();
        file.block(6, |b| {
            b.u32(interface).u32(0).u32(0).u32(captured).u32(captured);
            b.raw(&[0; 48]);
        });
        assert_eq!(refusal(&file.bytes).1, at + place);
    }
}

#[test]
fn impossible_options_and_times_are_refused() {
    for (code, value) in [(9, &[9, 9][..]), (14, &[0; 4]), (13, &[])] {
        let file = Builder::ng(false, 1, 0, &[(code, value)]);
        let (_, offset, reason) = refusal(&file.bytes);
        assert_eq!(offset, 44 + 8 + 8);
        assert!(reason.contains("length"), "{reason}");
    }
    let before = (14, &(-5i64).to_le_bytes()[..]);
    for (option, time, year) in [(before, 4_999_999, "1970"), ((9, &[0]), u64::MAX, "2554")] {
        let mut file = Builder::ng(false, 1, 0, &[option]);
        file.enhanced(0, time, &frame(20), 20);
        assert!(refusal(&file.bytes).2.contains(year), "{year}");
    }
}

#[test]
fn other_files_are_named() {
    for (bytes, name) in [
        (&b"BZh91AY"[..], "bzip2"),
        (&[0xfd, 0x37, 0x7a, 0x58, 0x5a, 0], "xz"),
        (&[2, 0x21, 0x4c, 0x18, 0], "lz4"),
        (b"PK\x03\x04", "50 4b 03 04"),
    ] {
        assert!(refusal(bytes).2.contains(name), "{name}");
    }
    let file = Builder::pcap(false, 0xa1b2_c3d4, 0, 195);
    let error = reader(&file.bytes).err().unwrap().to_string();
    assert!(error.contains("195 (IEEE 802.15.4)"), "{error}");
}

#[test]
fn written_files_are_read_back() {
    let dir = Folder::new();
    for extension in ["pcap", "pcapng"] {
        let path = dir.file(&format!("round.{extension}"));
        let mut writer = CaptureWriter::create(&path).unwrap();
        let mut expected = Vec::new();
        for i in 0..5_000u64 {
            let stamp = 1_700_000_000_000_000_001 + i * 333_333_337;
            let data = frame(14 + (i as usize * 7) % 1600);
            let wire_len = data.len() as u32 + (i % 3) as u32;
            let written = writer.write(Nanos::from_nanos(stamp), &data, wire_len);
            written.unwrap();
            expected.push((stamp, data, wire_len));
        }
        let long = vec![0; 262_145];
        assert!(writer.write(Nanos::ZERO, &long, 0).is_err());
        writer.finish().unwrap();
        let mut reader = CaptureReader::open(&path).unwrap();
        let size = std::fs::metadata(&path).unwrap().len();
        assert_eq!(reader.size(), Some(size));
        for (stamp, data, wire_len) in expected {
            let record = reader.next().unwrap().unwrap();
            assert_eq!(record.stamp.as_nanos(), stamp);
            assert_eq!((record.bytes, record.wire_len), (&data[..], wire_len));
        }
        assert!(reader.next().unwrap().is_none());
        assert_eq!(reader.offset(), size);
    }
}

#[test]
fn frames_know_their_interface() {
    let dir = Folder::new();
    let path = dir.file("interfaces.pcapng");
    let long = "x".repeat(300);
    let names = ["west", "", "no\u{ef}r", &long];
    let mut writer = CaptureWriter::create_for(&path, &names, CAPTURED_MAX).unwrap();
    for (number, interface) in [2, 0, 3, 1, 2].into_iter().enumerate() {
        let stamp = Nanos::from_nanos(number as u64);
        writer.write_on(interface, stamp, &frame(60), 60).unwrap();
    }
    writer.finish().unwrap();
    let mut reader = CaptureReader::open(&path).unwrap();
    let mut seen = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        let interface = record.interface;
        assert_eq!(record.bytes, frame(60));
        let name = reader.interface_name(interface).unwrap_or("none");
        seen.push((interface, name.to_owned()));
    }
    let shown = [names[0], "none", names[2], &long[..256]];
    let expected = [2, 0, 3, 1, 2].map(|number| (number as u32, shown[number].to_owned()));
    assert_eq!(seen, expected);
    assert_eq!(reader.interface_name(1), None);
    assert_eq!(reader.interface_name(4), None);
    let refused = CaptureWriter::create_for(&dir.file("interfaces.pcap"), &["a"], 60);
    assert!(refused.err().unwrap().to_string().contains(".pcapng"));
}

#[test]
fn errors_of_creating_and_opening_files_are_reported() {
    let dir = Folder::new();
    let error = |r: Result<CaptureWriter, CaptureError>| r.err().unwrap().to_string();
    assert!(error(CaptureWriter::create("x.txt")).contains(".pcapng"));
    assert!(error(CaptureWriter::create("/nowhere/x.pcap")).contains("/nowhere/x.pcap"));
    assert!(CaptureReader::open("/nowhere/x.pcap").is_err());
    let full = dir.file("full.pcap");
    std::os::unix::fs::symlink("/dev/full", &full).unwrap();
    let finished = CaptureWriter::create(&full).unwrap().finish();
    assert!(finished.unwrap_err().to_string().contains("No space"));
    let path = dir.file("late.pcap");
    let mut writer = CaptureWriter::create(&path).unwrap();
    let late = writer.write(Nanos::from_secs(1 << 32), &frame(60), 60);
    assert!(late.err().unwrap().to_string().contains("2106"));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(
        start in 0usize..4,
        bytes in prop::collection::vec(any::<u8>(), 0..600),
    ) {
        let mut file = match start {
            0 | 1 => Builder::pcap(start == 1, 0xa1b2_c3d4, 0, 1),
            2 => Builder::ng(false, 1, 0, &[]),
            _ => Builder::new(false),
        };
        file.raw(&bytes);
        read_all(&file.bytes, false);
    }

    #[test]
    fn damaged_files_are_read_or_refused(
        big: bool,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut file = Builder::ng(big, 1, 0, &[(9, &[9]), (14, &[0; 8])]);
        file.enhanced(0, 1, &frame(61), 61).block(99, |b| { b.u32(1); });
        file.enhanced(0, 2, &frame(62), 62);
        for (at, value) in damage {
            let at = at.index(file.bytes.len());
            file.bytes[at] = value;
        }
        read_all(&file.bytes, false);
    }
}

#[test]
fn blocks_equal_frames_written_one_by_one() {
    let dir = Folder::new();
    let path = dir.file("blocks.pcapng");
    let open = || CaptureWriter::create_for(&path, &["a", "b"], CAPTURED_MAX).unwrap();
    // Few blocks are buffered, and many are written at once.
    for frames in [3_u64, 3_000] {
        let (mut writer, mut all, mut blocks) = (open(), Vec::new(), 0..0);
        for number in 0..frames {
            let bytes = frame(60 + number as usize % 5);
            let stamp = Nanos::from_nanos(number << 30);
            writer.write_on(1, stamp, &bytes, 1_500).unwrap();
            let range = push_frame(&mut all, &bytes);
            blocks.end = complete_block(&mut all, range, 1, stamp, 1_500).end;
        }
        writer.finish().unwrap();
        let expected = std::fs::read(&path).unwrap();
        let mut writer = open();
        let (few, rest) = all[blocks].split_at(96);
        writer.write_blocks(few).unwrap();
        writer.write_blocks(rest).unwrap();
        writer.finish().unwrap();
        assert!(expected == std::fs::read(&path).unwrap(), "{frames} frames");
    }
    let mut classic = CaptureWriter::create(&dir.file("blocks.pcap")).unwrap();
    let refused = classic.write_blocks(&[0; 32]);
    assert!(refused.unwrap_err().to_string().contains(".pcapng"));
}
