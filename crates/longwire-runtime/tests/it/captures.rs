//! Whole runs between capture files: every placement, the end of input, a full arena. Needs no
//! privileges.

use std::time::Duration;

use longwire_testbed::support::Folder;

use crate::common::{begin, delayed, run, write_input};
use longwire_engine::{Bytes, Nanos};
use longwire_runtime::{Placement, RunConfig, WaitMode};

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
