//! Captures written by Wireshark's tools. Skipped if these are not installed, except in CI.
use longwire_testbed::support::{Folder, output};
use std::process::Command;

use longwire_capture::{CaptureReader, CaptureWriter};
use longwire_engine::Nanos;

/// Returns Ethernet frames of many lengths, with an experimental EtherType.
fn frames() -> Vec<Vec<u8>> {
    let frame = |n: u8| {
        let mut frame = vec![n; 60 + usize::from(n) * 29];
        frame[12..14].copy_from_slice(&[0x88, 0xb5]);
        frame
    };
    (0..48).map(frame).collect()
}

fn stamp(n: usize) -> u64 {
    1_700_000_000_987_654_321 + n as u64 * 1_000_000_007
}

#[test]
fn files_of_editcap_are_read() {
    let dir = Folder::new();
    let frames = frames();
    let source = dir.file("source.pcapng");
    let mut writer = CaptureWriter::create(&source).unwrap();
    for (n, frame) in frames.iter().enumerate() {
        let (stamp, wire_len) = (Nanos::from_nanos(stamp(n)), frame.len() as u32 + 100);
        writer.write(stamp, frame, wire_len).unwrap();
    }
    writer.finish().unwrap();
    for (format, tick) in [("pcap", 1_000), ("nsecpcap", 1), ("pcapng", 1)] {
        let path = dir.file(&format!("editcap-{format}"));
        let arguments = ["-F", format, &source, &path];
        let Some(output) = output(Command::new("editcap").args(arguments)) else {
            return;
        };
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {stderr}");
        let mut reader = CaptureReader::open(&path).unwrap();
        for (n, frame) in frames.iter().enumerate() {
            let record = reader.next().unwrap().unwrap();
            assert_eq!(record.stamp.as_nanos(), stamp(n) / tick * tick, "{format}");
            assert_eq!(record.bytes, frame);
            assert_eq!(record.wire_len as usize, frame.len() + 100);
        }
        assert!(reader.next().unwrap().is_none());
    }
}
