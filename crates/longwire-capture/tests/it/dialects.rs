//! Captures that other readers accept: records beyond the snapshot length, old and modified
//! versions, FCSs, and skipped interfaces.

use crate::common::captures::Builder;
use crate::common::{self, Frame, frame, left_out, read_to_end, read_whole};
use longwire_capture::{CAPTURED_MAX, CaptureError, CaptureReader, LeftOut};

fn reader(file: &Builder) -> CaptureReader {
    common::reader(&file.bytes).expect("a capture")
}

fn read(file: &Builder) -> (Vec<Frame>, Vec<(LeftOut, u64)>) {
    let (frames, counts) = read_whole(&file.bytes, false);
    (frames, left_out(&counts))
}

fn lengths(file: &Builder) -> Vec<usize> {
    common::lengths(&read(file).0)
}

#[test]
fn records_beyond_the_snapshot_length_are_read_whole() {
    for big in [false, true] {
        let mut classic = Builder::pcap(big, 0xa1b2_c3d4, 96, 1);
        let mut ng = Builder::ng(big, 1, 96, &[]);
        for len in [60, 97, 1514, CAPTURED_MAX as usize] {
            classic.record(1, 0, &frame(len), len as u32);
            ng.enhanced(0, 1, &frame(len), len as u32);
        }
        for file in [&classic, &ng] {
            assert_eq!(lengths(file), [60, 97, 1514, CAPTURED_MAX as usize]);
            assert_eq!(read(file).0[2].1, frame(1514));
        }
    }
}

#[test]
fn interfaces_of_other_link_types_are_left_out_and_counted() {
    let mut file = Builder::ng(true, 195, 0, &[]);
    file.interface(1, 0, &[]).interface(1, 0, &[]);
    for n in 0..4 {
        file.enhanced(0, n, &frame(20), 20);
        file.enhanced(1 + n as u32 % 2, n, &frame(60), 60);
    }
    // Longer than the longest supported block.
    let long = frame(600_000);
    file.enhanced(0, 9, &long, long.len() as u32);
    file.enhanced(1, 9, &long, long.len() as u32);
    file.enhanced(1, 10, &frame(61), 61);
    let (frames, left_out) = read(&file);
    assert_eq!(common::lengths(&frames), [60, 60, 60, 60, 61]);
    let expected = [(LeftOut::LinkType(195), 5), (LeftOut::TooLong, 1)];
    assert_eq!(left_out, expected);
    let mut reader = reader(&file);
    read_to_end(&mut reader);
    let notes = reader.counts().notes();
    let expected = [
        "skipped 5 records: link type 195 (IEEE 802.15.4) cannot be converted to Ethernet",
        "skipped 1 record: longer than 256 KiB",
    ];
    assert_eq!(notes, expected);
}

#[test]
fn a_file_without_an_interface_that_can_be_carried_is_refused_at_its_end() {
    let mut file = Builder::ng(false, 195, 0, &[]);
    for stamp in [1, 2] {
        file.enhanced(0, stamp, &frame(20), 20);
    }
    let mut reader = reader(&file);
    let (frames, error) = read_to_end(&mut reader);
    assert_eq!(frames, []);
    let Some(CaptureError::Unsupported { reason, .. }) = error else {
        panic!("{error:?}");
    };
    assert!(reason.contains("195 (IEEE 802.15.4)"), "{reason}");
    assert_eq!(reader.counts().left_out[&LeftOut::LinkType(195)], 2);
    // A file without any readable frame is rejected.
    let file = Builder::ng(false, 195, 0, &[]);
    assert_eq!(read(&file), (vec![], vec![]));
}

#[test]
fn an_interface_is_chosen_by_name_or_number() {
    let mut file = Builder::ng(false, 1, 0, &[(2, b"west")]);
    file.interface(1, 0, &[(2, b"east")]).interface(195, 0, &[]);
    for interface in [0, 1, 2, 1] {
        file.enhanced(interface, 1, &frame(60 + interface as usize), 99);
    }
    // Another section may list the interfaces in a different order.
    file.section().interface(1, 0, &[(2, b"east")]);
    file.enhanced(0, 2, &frame(70), 70);
    for (chosen, expected, others) in [
        ("west", vec![60], 4),
        ("0", vec![60, 70], 3),
        ("east", vec![61, 61, 70], 2),
        ("1", vec![61, 61], 3),
    ] {
        let mut reader = reader(&file);
        reader.choose_interface(chosen).expect("a pcapng");
        let (frames, error) = read_to_end(&mut reader);
        assert!(error.is_none(), "{error:?}");
        assert_eq!(common::lengths(&frames), expected, "{chosen}");
        let left_out = reader.counts().left_out[&LeftOut::OtherInterface];
        assert_eq!(left_out, others, "{chosen}");
    }
    let mut other = reader(&file);
    other.choose_interface("north").expect("a pcapng");
    let (frames, error) = read_to_end(&mut other);
    let error = error.expect("no such interface").to_string();
    assert!(frames.is_empty());
    let expected = "'north'; the last section has 0 (east)";
    assert!(error.contains(expected), "{error}");
    let classic = Builder::pcap(false, 0xa1b2_c3d4, 0, 1);
    let chosen = reader(&classic).choose_interface("west");
    let refused = chosen.expect_err("classic");
    assert!(refused.to_string().contains("no interfaces"), "{refused}");
}

/// Appends a classic file header with this version.
fn versioned(big: bool, magic: u32, version: (u16, u16)) -> Builder {
    let mut file = Builder::new(big);
    file.u32(magic).u16(version.0).u16(version.1);
    file.u32(0).u32(0).u32(65_535).u32(1);
    file
}

#[test]
fn old_versions_have_their_lengths_the_other_way_round() {
    for big in [false, true] {
        for (magic, tick) in [(0xa1b2_c3d4, 1_000), (0xa1b2_3c4d, 1)] {
            for version in [(2, 0), (2, 2), (2, 3), (2, 4), (543, 0)] {
                let mut file = versioned(big, magic, version);
                let records = [(1_700_000_000, 999_999, 60, 60), (u32::MAX, 1, 40, 1514)];
                for (seconds, ticks, len, original) in records {
                    let (first, second) = match version {
                        (2, 4) => (len, original),
                        _ => (original, len),
                    };
                    file.u32(seconds).u32(ticks).u32(first).u32(second);
                    file.raw(&frame(len as usize));
                }
                let expected = records.map(|(seconds, ticks, len, original)| {
                    let stamp = u64::from(seconds) * 1_000_000_000 + u64::from(ticks) * tick;
                    (stamp, frame(len as usize), original)
                });
                assert_eq!(read(&file).0, expected, "{version:?}, big {big}");
            }
        }
        // Some writers of 2.3 use the current order.
        let mut file = versioned(big, 0xa1b2_c3d4, (2, 3));
        file.record(7, 0, &frame(40), 1514);
        assert_eq!(read(&file).0, [(7_000_000_000, frame(40), 1514)]);
    }
    let file = versioned(false, 0xa1b2_c3d4, (2, 5));
    let refused = common::reader(&file.bytes).err();
    let refused = refused.expect("an unknown version").to_string();
    assert!(refused.contains("at byte 4: pcap version 2.5"), "{refused}");
}

#[test]
fn modified_captures_have_longer_record_headers() {
    for big in [false, true] {
        let mut file = versioned(big, 0xa1b2_cd34, (2, 4));
        for len in [60, 61] {
            file.u32(7).u32(5).u32(len).u32(len + 4);
            // Kuznetzov's fields: interface, protocol, packet type and padding.
            file.u32(3).u16(0x0800).raw(&[1, 0]);
            file.raw(&frame(len as usize));
        }
        let expected = [60, 61].map(|len| (7_000_005_000, frame(len), len as u32 + 4));
        assert_eq!(read(&file).0, expected);
        assert!(reader(&file).upcoming().next().is_none());
        file.bytes.truncate(24 + 20);
        let (frames, error) = read_to_end(&mut reader(&file));
        let error = error.expect("a cut record").to_string();
        assert!(frames.is_empty());
        assert!(error.contains("20 of 24 bytes"), "{error}");
    }
}

#[test]
fn pcapng_options_and_blocks_give_the_length_of_check_sequences() {
    // FCS lengths in bits, as specified; in bytes, as some writers give them; and without the
    // option.
    let interfaces: [(&[u8], usize); 5] = [(&[32], 4), (&[16], 2), (&[4], 4), (&[0], 0), (&[], 0)];
    for big in [false, true] {
        for (value, fcs_len) in interfaces {
            let options = [(13, value)];
            let options = if value.is_empty() { &[][..] } else { &options };
            let mut file = Builder::ng(big, 1, 0, options);
            file.enhanced(0, 1, &frame(64), 64);
            // The frame is truncated within its FCS.
            file.enhanced(0, 1, &frame(62), 64);
            // Zero means that the block does not specify the length.
            file.flagged(0, &frame(64), 1);
            file.flagged(0, &frame(64), 1 | 2 << 5);
            file.flagged(0, &frame(61), 4 << 5);
            file.block(3, |b| _ = b.u32(64).raw(&frame(64)));
            let plain = 64 - fcs_len;
            let expected = [plain, 62.min(plain), plain, 62, 57, plain];
            assert_eq!(lengths(&file), expected, "{value:?}, big {big}");
            assert_eq!(read(&file).0[0].1, frame(64)[..plain]);
        }
    }
}
