//! A queue that decides at dequeue, in every wait mode.

use longwire_testbed::support::Folder;

use crate::common::{delayed, run, write_input};
use longwire_engine::models::queue::fifo::ManagedFifo;
use longwire_engine::models::queue::{Queue, QueueLimit};
use longwire_engine::{LinkConfig, Nanos, models};
use longwire_runtime::{Placement, RunConfig, WaitMode};

/// Returns a link at high load.
fn slow(queue: Queue) -> LinkConfig {
    LinkConfig {
        rate: models::RATE.parse("100mbit").expect("a rate"),
        queue: Some(queue),
        ..delayed("exponential:mean=3ms,min=1ms")
    }
}

/// Returns timestamps relative to the first frame's.
fn relative(frames: &[(u32, u64)]) -> Vec<(u32, u64)> {
    let start = frames[0].1;
    let from_start = |(number, stamp): &(u32, u64)| (*number, stamp - start);
    frames.iter().map(from_start).collect()
}

#[test]
fn a_managed_first_in_first_out_queue_is_one_decided_at_arrival() {
    let folder = Folder::new();
    write_input(&folder.file("in.pcap"), 1_500, Nanos::from_micros(45));
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
        let managed = Queue::Managed(Box::new(ManagedFifo::new(QueueLimit::UNLIMITED)));
        let (report, frames) = run(&folder, slow(managed), config);
        let same = relative(&frames) == relative(&expected);
        assert!(same, "{wait:?}: other releases");
        let link = &report.links[0];
        assert_eq!((link.traffic.packets_out, link.in_flight), (1_500, 0));
        let queue = link.queue.unwrap_or_default();
        assert!(queue.queue_packets_max > 3, "{}", queue.queue_packets_max);
    }
}
