//! Reads a trace far larger than the available memory.
#![allow(missing_docs, reason = "tests")]

use std::fs::File;
use std::os::unix::fs::FileExt;

use longwire_runtime::Feed;
use longwire_runtime::feed::trace::{TraceConfig, TraceFeed};

/// Returns the resident memory in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS"))
        .unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib * 1024
}

/// Writes a trace whose record data are file holes.
fn sparse(path: &str, records: u64, len: u32) {
    let file = File::create(path).unwrap();
    let mut head = Vec::new();
    for word in [0xa1b2_3c4d, 0x0004_0002, 0, 0, 262_144, 1] {
        head.extend_from_slice(&u32::to_le_bytes(word));
    }
    file.write_all_at(&head, 0).unwrap();
    for n in 0..records {
        let mut record = Vec::new();
        for word in [
            1_700_000_000 + n as u32 / 1_000,
            n as u32 % 1_000 * 1_000_000,
            len,
            len,
        ] {
            record.extend_from_slice(&word.to_le_bytes());
        }
        file.write_all_at(&record, 24 + n * (16 + u64::from(len)))
            .unwrap();
    }
    file.set_len(24 + records * (16 + u64::from(len))).unwrap();
}

#[test]
fn memory_does_not_grow_with_the_trace() {
    const RECORDS: u64 = 4_000;
    const LEN: u32 = 250_000;
    let dir = env!("CARGO_TARGET_TMPDIR");
    let path = format!("{dir}/{}-sparse.pcap", std::process::id());
    sparse(&path, RECORDS, LEN);
    let before = resident();
    let mut feed = TraceFeed::open(TraceConfig {
        traces: vec![path.clone()],
        ..TraceConfig::default()
    })
    .unwrap();
    let (mut frames, mut most) = (0, 0);
    loop {
        let received = feed.feed(500, &mut |fed| {
            assert_eq!(fed.bytes.len(), LEN as usize);
            frames += 1;
        });
        most = most.max(resident());
        if received.unwrap().end {
            break;
        }
    }
    std::fs::remove_file(&path).unwrap();
    assert_eq!(frames, RECORDS);
    let grown = most.saturating_sub(before);
    assert!(grown < 64 << 20, "{} MiB for 1 GB", grown >> 20);
}
