//! Frames with equal timestamps: before each is queued, the link dequeues as many as it can.

use longwire_engine::DropReason;
use longwire_engine::models;

use crate::queues::link::{Fate, run_engine};
use crate::queues::traffic::{Packet, Pattern};

/// 1000 bytes take a millisecond.
const RATE: u64 = 8_000_000;
const SERVICE: u64 = 1_000_000;

fn burst(arrivals: &[u64]) -> Pattern {
    let packets = arrivals.iter().enumerate();
    Pattern {
        rate: RATE,
        packets: packets
            .map(|(number, at)| Packet::plain(number, *at))
            .collect(),
    }
}

fn departures(queue: &str, arrivals: &[u64]) -> Vec<Result<u64, DropReason>> {
    let fates = run_engine(&burst(arrivals), queue, 1);
    let fate = |fate: &Fate| match fate {
        Fate::Sent { departure, .. } => Ok(*departure),
        Fate::Dropped(reason) => Err(*reason),
    };
    fates.iter().map(fate).collect()
}

/// The limit does not count the frame in service: with a limit of two and three frames, the first
/// is sent and two are queued.
#[test]
fn the_first_of_several_frames_of_one_stamp_is_in_service() {
    const AT: u64 = 5_000_000_000;
    let full = Err(DropReason::QueueFull);
    let sent = [1, 2, 3].map(|n| Ok(AT + n * SERVICE));
    let mut managed = 0;
    for entry in models::QUEUE.entries {
        let info = &entry.info;
        if !info.params.iter().any(|param| param.name == "limit") {
            continue;
        }
        managed += 1;
        let queue = format!("{}:limit=2p", info.name);
        assert_eq!(departures(&queue, &[AT; 3]), sent, "{queue}");
        let mut four = departures(&queue, &[AT; 4]);
        // Which of the four frames is dropped depends on the discipline.
        let dropped = four.iter().filter(|fate| **fate == full).count();
        four.retain(Result::is_ok);
        assert_eq!((dropped, &four[..]), (1, &sent[..]), "{queue}");
        assert!(departures(&queue, &[AT; 4])[0].is_ok(), "{queue}");
    }
    assert!(managed >= 8, "{managed} queues");
    // Tail drop counts the frame in service.
    assert_eq!(departures("3p", &[AT; 3]), sent);
    assert_eq!(
        departures("3p", &[AT; 4]),
        [sent[0], sent[1], sent[2], full]
    );
}

/// If a frame arrives at the instant the link becomes idle, the queued frame is dequeued first.
#[test]
fn a_link_that_falls_free_takes_the_next_frame_before_another_is_queued() {
    let arrivals = [0, 0, 0, SERVICE, SERVICE];
    let sent = |n: u64| Ok(n * SERVICE);
    let full = Err(DropReason::QueueFull);
    for queue in ["3p", "priority:limit=2p", "drr:limit=2p", "codel:limit=2p"] {
        let expected = [sent(1), sent(2), sent(3), sent(4), full];
        assert_eq!(departures(queue, &arrivals), expected, "{queue}");
    }
}
