//! Whole runs between capture files: every placement, the end of input, a full arena, managed
//! queues, and frames truncated by the capture. Needs no privileges.

use std::time::Duration;

use longwire_capture::CaptureReader;
use longwire_engine::models::Described;
use longwire_engine::models::queue::fifo::ManagedFifo;
use longwire_engine::models::queue::{Queue, QueueLimit};
use longwire_engine::{Bytes, LinkConfig, Nanos, models};
use longwire_runtime::{Placement, RunConfig, WaitMode};
use longwire_testbed::support::Folder;

use crate::common::{begin, delayed, run, write_capture, write_input};

#[test]
fn every_placement_and_way_of_waiting_delivers_every_frame_in_order() {
    let folder = Folder::new();
    write_input(&folder.file("in.pcap"), 2_000, Nanos::from_micros(50));
    let placements = [
        Placement::Together,
        Placement::PerDirection,
        Placement::PerStage,
    ];
    for placement in placements {
        for wait in [WaitMode::Adaptive, WaitMode::Block, WaitMode::Spin] {
            let config = RunConfig {
                placement,
                wait,
                ..RunConfig::default()
            };
            let (report, frames) = run(&folder, delayed("5ms"), config);
            let numbers: Vec<u32> = frames.iter().map(|(number, _)| *number).collect();
            let in_order = numbers.into_iter().eq(0..2_000);
            assert!(in_order, "{placement:?} {wait:?}");
            let (traffic, in_flight) = (&report.links[0].traffic, report.links[0].in_flight);
            assert_eq!((traffic.packets_in, traffic.packets_out), (2_000, 2_000));
            assert_eq!((traffic.bytes_in, in_flight), (traffic.bytes_out, 0));
            assert_eq!(report.error, None);
            // File ports stamp frames with their release, so the delay is exact.
            let span = frames[1_999].1 - frames[0].1;
            assert_eq!(span, 1_999 * 50_000);
        }
    }
}

#[test]
fn a_full_arena_is_an_artifact_and_not_a_drop() {
    let folder = Folder::new();
    write_input(&folder.file("in.pcap"), 4_000, Nanos::from_micros(10));
    let config = RunConfig {
        memory: Some(Bytes(1 << 20)),
        ..RunConfig::default()
    };
    let (report, frames) = run(&folder, delayed("200ms"), config);
    let link = &report.links[0];
    assert!(link.artifacts["memory"] > 0, "{:?}", link.artifacts);
    assert_eq!(link.drops.values().sum::<u64>(), 0);
    assert_eq!(link.traffic.packets_out + link.artifacts["memory"], 4_000);
    assert_eq!(frames.len() as u64, link.traffic.packets_out);
    assert!(link.memory.memory_max <= 1 << 20);
}

#[test]
fn a_run_that_is_stopped_reports_what_is_in_flight() {
    let folder = Folder::new();
    write_input(&folder.file("in.pcap"), 1_000, Nanos::from_micros(10));
    let running = begin(&folder, delayed("60s"), RunConfig::default());
    for _ in 0..500 {
        if running.snapshot().links[0].traffic.packets_in == 1_000 {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(!running.ended(), "frames still wait");
    let report = running.stop();
    assert_eq!(report.links[0].in_flight, 1_000);
    assert_eq!(report.links[0].traffic.packets_out, 0);
}

/// Returns an unlimited managed queue.
fn managed_fifo() -> Queue {
    let fifo = Box::new(ManagedFifo::new(QueueLimit::UNLIMITED));
    Queue::Managed(Described::new("unlimited".to_owned(), fifo))
}

/// Returns timestamps relative to the first frame's.
fn relative(frames: &[(u32, u64)]) -> Vec<(u32, u64)> {
    let start = frames[0].1;
    let from_start = |(number, stamp): &(u32, u64)| (*number, stamp - start);
    frames.iter().map(from_start).collect()
}

#[test]
fn a_managed_fifo_releases_frames_as_one_decided_at_arrival() {
    let folder = Folder::new();
    write_input(&folder.file("in.pcap"), 1_500, Nanos::from_micros(45));
    let slow = |queue| LinkConfig {
        rate: models::RATE.parse("100mbit").expect("a rate"),
        queue: Some(queue),
        ..delayed("exponential:mean=3ms,min=1ms")
    };
    let at_arrival = slow(Queue::TailDrop(QueueLimit::UNLIMITED));
    let (_, expected) = run(&folder, at_arrival, RunConfig::default());
    assert_eq!(expected.len(), 1_500);
    // With several threads, a frame that is read late counts as having arrived late. With one
    // thread, it does not.
    for wait in [WaitMode::Adaptive, WaitMode::Block, WaitMode::Spin] {
        let config = RunConfig {
            placement: Placement::Together,
            wait,
            ..RunConfig::default()
        };
        let (report, frames) = run(&folder, slow(managed_fifo()), config);
        let same = relative(&frames) == relative(&expected);
        assert!(same, "{wait:?}: other releases");
        let link = &report.links[0];
        assert_eq!((link.traffic.packets_out, link.in_flight), (1_500, 0));
        let queue = link.queue.unwrap_or_default();
        assert!(queue.queue_packets_max > 3, "{}", queue.queue_packets_max);
    }
}

/// Links serialize and record the original length, in whichever stage they decide.
#[test]
fn truncated_frames_count_their_original_length() {
    const FRAMES: u32 = 200;
    const KEPT: usize = 64;
    const LENGTH: u32 = 1_000;
    /// Serialization time of the original length at 80 Mbit/s, in nanoseconds.
    const SERIALISED_NS: u64 = 100_000;
    let folder = Folder::new();
    // The frames are nearly simultaneous, so they queue.
    let cut = (0..FRAMES).map(|number| {
        let mut frame = number.to_be_bytes().to_vec();
        frame.resize(KEPT, 0);
        (
            Nanos::from_nanos(1_000_000_000 + u64::from(number)),
            frame,
            LENGTH,
        )
    });
    write_capture(&folder.file("in.pcap"), cut);
    for queue in [Queue::TailDrop(QueueLimit::UNLIMITED), managed_fifo()] {
        let config = LinkConfig {
            rate: models::RATE.parse("80mbit").expect("a rate"),
            queue: Some(queue),
            ..delayed("1ms")
        };
        let together = RunConfig {
            placement: Placement::Together,
            ..RunConfig::default()
        };
        let (report, frames) = run(&folder, config, together);
        let link = &report.links[0];
        assert_eq!(
            (link.traffic.packets_out, link.in_flight),
            (u64::from(FRAMES), 0)
        );
        let queue = link.queue.unwrap_or_default();
        assert!(queue.queue_packets_max > 3, "{}", queue.queue_packets_max);
        assert_eq!(link.traffic.bytes_in, u64::from(FRAMES * LENGTH));
        let apart = frames.windows(2).map(|pair| pair[1].1 - pair[0].1);
        assert_eq!(apart.collect::<Vec<_>>(), [SERIALISED_NS; 199]);
        let mut reader = CaptureReader::open(&folder.file("out.pcap")).expect("the output");
        while let Some(record) = reader.next().expect("the output is whole") {
            assert_eq!((record.bytes.len(), record.wire_len), (KEPT, LENGTH));
        }
    }
}
