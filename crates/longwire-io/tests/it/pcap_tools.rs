//! Captured wire frames of super-packets, as tshark interprets them. Without tshark, the test is
//! skipped with a message.
use longwire_testbed::support::{Folder, output, words};
use std::process::Command;

use crate::common::frames::FrameSpec;
use longwire_capture::CaptureWriter;
use longwire_engine::Nanos;
use longwire_io::port::offload::cut;

/// Returns a tool's output, or skips the test if the tool is not installed.
fn run(tool: &str, arguments: &[&str]) -> Option<String> {
    let output = output(Command::new(tool).args(arguments))?;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{tool} {arguments:?}: {said}");
    Some(String::from_utf8(output.stdout).unwrap())
}

/// Returns the wire frames cut from super-packets of each kind.
fn wire_frames() -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    for (v6, udp) in [(false, false), (true, false), (false, true), (true, true)] {
        for vlan_tags in [0, 1] {
            let spec = FrameSpec {
                v6,
                udp,
                vlan_tags,
                extras: 1,
                tcp_flags: 0x10,
                ..FrameSpec::tcp(5_001)
            };
            let segments = spec.segments(1_300);
            let super_frame = spec.build_partial();
            for n in 0..segments.wire_frames(super_frame.len()).len() {
                let mut frame = Vec::new();
                cut(&super_frame, segments, n..n + 1, &mut frame).unwrap();
                frames.push(frame);
            }
        }
    }
    frames
}

fn stamp(n: usize) -> u64 {
    1_700_000_000_987_654_321 + n as u64 * 1_000_000_007
}

fn write(path: &str, frames: &[Vec<u8>]) {
    let mut writer = CaptureWriter::create(path).unwrap();
    for (n, frame) in frames.iter().enumerate() {
        let wire_len = frame.len() as u32;
        writer
            .write(Nanos::from_nanos(stamp(n)), frame, wire_len)
            .unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn tshark_finds_times_lengths_and_checksums_right() {
    let dir = Folder::new();
    let frames = wire_frames();
    for extension in ["pcap", "pcapng"] {
        let path = dir.file(&format!("tshark.{extension}"));
        write(&path, &frames);
        let fields = "-n -T fields -E occurrence=l -o tcp.check_checksum:TRUE \
                      -o udp.check_checksum:TRUE -o ip.check_checksum:TRUE -e frame.time_epoch \
                      -e frame.len -e ip.checksum.status -e tcp.checksum.status \
                      -e udp.checksum.status";
        let said = run("tshark", &[&["-r", &path][..], &words(fields)].concat());
        let Some(said) = said else { return };
        assert_eq!(said.lines().count(), frames.len());
        for (n, line) in said.lines().enumerate() {
            let fields: Vec<&str> = line.split('\t').collect();
            let (seconds, nanos) = (stamp(n) / 1_000_000_000, stamp(n) % 1_000_000_000);
            assert_eq!(fields[0], format!("{seconds}.{nanos:09}"));
            assert_eq!(fields[1], frames[n].len().to_string());
            // 1 means good; a field is empty if its header is absent.
            let transport = format!("{}{}", fields[3], fields[4]);
            assert_eq!(transport, "1", "frame {n}: {line}");
            assert!(matches!(fields[2], "" | "1"), "frame {n}: {line}");
        }
    }
}
