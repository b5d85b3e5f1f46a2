//! Runs of links that decide late, edit bytes or duplicate.

use longwire_testbed::support::Folder;

use crate::common::{delayed, run, write_input};
use longwire_capture::CaptureReader;
use longwire_engine::models::queue::fifo::ManagedFifo;
use longwire_engine::models::queue::{Queue, QueueLimit};
use longwire_engine::{LinkConfig, Nanos, Packets, models};
use longwire_runtime::{Placement, RunConfig, WaitMode};

fn managed(limit: QueueLimit) -> Option<Queue> {
    Some(Queue::Managed(Box::new(ManagedFifo::new(limit))))
}

/// Returns a link at high load with either kind of queue.
fn slow(queue: Option<Queue>) -> LinkConfig {
    LinkConfig {
        rate: models::RATE.parse("100mbit").expect("a rate"),
        queue,
        ..delayed("exponential:mean=3ms,min=1ms")
    }
}

/// Returns stamps relative to the first frame's.
fn relative(frames: &[(u32, u64)]) -> Vec<(u32, u64)> {
    let start = frames[0].1;
    let from_start = |(number, stamp): &(u32, u64)| (*number, stamp - start);
    frames.iter().map(from_start).collect()
}

#[test]
fn a_managed_first_in_first_out_queue_is_one_decided_at_arrival() {
    let folder = Folder::new();
    write_input(&folder.file("in.pcap"), 1_500, Nanos::from_micros(45));
    let at_arrival = slow(Some(Queue::TailDrop(QueueLimit::UNLIMITED)));
    let (_, expected) = run(&folder, at_arrival, RunConfig::default());
    assert_eq!(expected.len(), 1_500);
    // On separate threads, a frame read late has arrived late for the queue; not on one
    // thread.
    for wait in [WaitMode::Adaptive, WaitMode::Block, WaitMode::Spin] {
        let config = RunConfig {
            placement: Placement::Together,
            wait,
            ..RunConfig::default()
        };
        let (report, frames) = run(&folder, slow(managed(QueueLimit::UNLIMITED)), config);
        let same = relative(&frames) == relative(&expected);
        assert!(same, "{wait:?}: other releases");
        let link = &report.links[0];
        assert_eq!(
            (link.traffic.packets_in, link.traffic.packets_out),
            (1_500, 1_500)
        );
        assert_eq!(link.in_flight, 0);
        assert!(
            link.queue.unwrap_or_default().queue_packets_max > 3,
            "{}",
            link.queue.unwrap_or_default().queue_packets_max
        );
    }
}

#[test]
fn a_managed_queue_accounts_for_every_frame() {
    let folder = Folder::new();
    write_input(&folder.file("in.pcap"), 3_000, Nanos::from_micros(20));
    let limit = QueueLimit {
        packets: Some(Packets(8)),
        bytes: None,
    };
    let mut config = slow(managed(limit));
    for loss in ["5%", "packet:rate=5%,at=entry"] {
        config
            .loss
            .push(models::LOSS.parse(loss).expect("a loss model"));
    }
    config.duplication = Some(models::DUPLICATION.parse("10%").expect("duplicates"));
    let (report, frames) = run(&folder, config, RunConfig::default());
    let link = &report.links[0];
    for reason in ["loss", "entry_loss", "queue_full"] {
        assert!(link.drops[reason] > 50, "{:?}", link.drops);
    }
    let dropped: u64 = link.drops.values().sum();
    assert!(link.effects.duplicated > 50, "{}", link.effects.duplicated);
    assert_eq!(link.traffic.packets_in, 3_000);
    assert_eq!(
        link.traffic.packets_in + link.effects.duplicated,
        link.traffic.packets_out + dropped
    );
    assert_eq!(frames.len() as u64, link.traffic.packets_out);
    assert_eq!(
        (
            link.in_flight,
            link.queue.unwrap_or_default().queue_packets_max
        ),
        (0, 8)
    );
    assert!(frames.is_sorted_by_key(|(number, _)| *number), "in order");
}

/// Returns every frame of a capture.
fn frames_of(path: &str) -> Vec<Vec<u8>> {
    let mut reader = CaptureReader::open(path).expect("the capture opens");
    let mut frames = Vec::new();
    while let Some(record) = reader.next().expect("the capture is whole") {
        frames.push(record.bytes.to_vec());
    }
    frames
}

fn bits_apart(a: &[u8], b: &[u8]) -> u32 {
    a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum()
}

#[test]
fn corrupted_frames_differ_in_as_many_bits_as_asked_and_copies_are_alike() {
    let folder = Folder::new();
    write_input(&folder.file("in.pcap"), 400, Nanos::from_micros(50));
    let before = frames_of(&folder.file("in.pcap"));
    for queue in [None, managed(QueueLimit::UNLIMITED)] {
        let mut config = slow(queue);
        config.corruption = Some(
            models::CORRUPTION
                .parse("random:rate=100%,bits=3")
                .expect("corruption"),
        );
        config.duplication = Some(
            models::DUPLICATION
                .parse("random:rate=100%,copies=2")
                .expect("duplicates"),
        );
        let (report, _) = run(&folder, config, RunConfig::default());
        let link = &report.links[0];
        assert_eq!(
            (link.effects.corrupted, link.effects.duplicated),
            (400, 800)
        );
        assert_eq!(link.traffic.packets_out, 1_200);
        let after = frames_of(&folder.file("out.pcap"));
        assert_eq!(after.len(), 1_200);
        for (before, copies) in before.iter().zip(after.chunks(3)) {
            assert!(copies.iter().all(|copy| *copy == copies[0]));
            assert_eq!(before.len(), copies[0].len());
            assert_eq!(bits_apart(before, &copies[0]), 3);
        }
    }
}

#[test]
fn frames_held_back_are_overtaken() {
    let folder = Folder::new();
    write_input(&folder.file("in.pcap"), 500, Nanos::from_micros(100));
    for queue in [None, managed(QueueLimit::UNLIMITED)] {
        let mut config = delayed("1ms");
        config.queue = queue;
        config.reordering = Some(
            models::REORDERING
                .parse("hold:rate=10%,time=5ms")
                .expect("reordering"),
        );
        let (report, frames) = run(&folder, config, RunConfig::default());
        assert_eq!(report.links[0].traffic.packets_out, 500);
        assert!(!frames.is_sorted_by_key(|(number, _)| *number));
        let times: std::collections::BTreeMap<u32, u64> = frames.iter().copied().collect();
        // Stamps without delay and position.
        let base = |(number, stamp): (&u32, &u64)| stamp - u64::from(*number) * 100_000;
        let prompt = times.iter().map(base).min().expect("frames");
        let held = times
            .iter()
            .map(base)
            .filter(|base| *base == prompt + 5_000_000);
        let held = held.count();
        assert!((20..100).contains(&held), "{held} of 500 held back");
    }
}
