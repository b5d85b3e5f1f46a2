//! Aggregates and the gaps between them.

use longwire_engine::{Link, Verdict};

use crate::common::{assert_binomial, frame};
use crate::rates::links::{departures, link};

/// No random wait; preamble 20 us, acknowledgement 30 us, interframe space 10 us.
const PLAIN: &str =
    "wifi:rate=80mbit,preamble=20us,ack=30us,aifs=10us,slot=9us,window=0,contention=0";

/// An idle station sends at once.
#[test]
fn queued_frames_leave_as_one_aggregate() {
    // 1000 bytes take 100 us. The first frame is sent alone; the next three arrive during its
    // transmission, the fifth during theirs, and the last much later.
    let frames = [
        (0, 1_000),
        (10_000, 1_000),
        (119_000, 1_000),
        (150_000, 500),
        (200_000, 1_000),
        (10_000_000, 1_000),
    ];
    let departures = departures(&mut link(PLAIN, "", 0, false), &frames);
    // 120; 120 + 40 + 20 + 250; 430 + 40 + 20 + 100.
    let expected = [120_000, 430_000, 430_000, 430_000, 590_000, 10_120_000];
    assert_eq!(departures, expected);
}

/// Returns the aggregate sizes on a saturated link.
fn aggregates(rate: &str, frames: &[(u64, u32)]) -> Vec<usize> {
    let departures = departures(&mut link(rate, "", 0, false), frames);
    let sizes = departures.chunk_by(|a, b| a == b);
    sizes.map(<[u64]>::len).collect()
}

#[test]
fn an_aggregate_ends_by_frames_bytes_and_time() {
    let frames = vec![(0u64, 1_000u32); 40];
    let of_frames = aggregates(&format!("{PLAIN},frames=16"), &frames);
    // The first frame of the burst finds the medium idle and is sent alone.
    assert_eq!(of_frames, [1, 16, 16, 7]);
    // A ninth frame fits; after it, a full frame of 1514 bytes would not.
    let of_bytes = aggregates(&format!("{PLAIN},bytes=10000b"), &frames);
    assert_eq!(of_bytes, [1, 9, 9, 9, 9, 3]);
    // At 80 Mbit/s, 20,000 bytes take 2 ms.
    let of_time = aggregates(&format!("{PLAIN},duration=2ms"), &frames);
    assert_eq!(of_time, [1, 19, 19, 1]);
    let alone = aggregates(&format!("{PLAIN},frames=1"), &frames[..3]);
    assert_eq!(alone, [1, 1, 1]);
}

/// Returns the gaps between single-frame aggregates, minus their constant part.
fn backoffs(link: &mut Link, count: u64) -> Vec<u64> {
    let mut last = None;
    let mut waits = Vec::new();
    for _ in 0..count {
        let Verdict::Deliver(delivery) = link.offer(frame(0, 1_000), &[]) else {
            panic!("not delivered");
        };
        let at = delivery.departure.as_nanos();
        if let Some(last) = last.replace(at) {
            // Acknowledgement, interframe space, preamble and 100 us of data.
            waits.push(at - last - 160_000);
        }
    }
    waits
}

/// 60,000 backoffs of 0 to 5 slots: each count stays within bounds that a correct model exceeds
/// with probability 0.2 %.
#[test]
fn backoffs_are_uniform() {
    let rate = PLAIN.replace("window=0", "window=5,frames=1");
    let waits = backoffs(&mut link(&rate, "", 0, false), 60_001);
    for slots in 0..=5 {
        let count = waits.iter().filter(|wait| **wait == slots * 9_000).count() as u64;
        assert_binomial(slots, count, 60_000, 1.0 / 6.0, 0.998);
    }
}

/// 20,000 exponential waits with mean 1 ms: the sample mean is within four standard deviations, or
/// 28 us.
#[test]
fn contention_has_its_mean() {
    let rate = PLAIN.replace("contention=0", "contention=1ms,frames=1");
    let waits = backoffs(&mut link(&rate, "", 0, false), 20_001);
    let mean = waits.iter().sum::<u64>() as f64 / waits.len() as f64;
    assert!((mean - 1e6).abs() < 28e3, "{mean}");
}

/// 300 frames of 2,666 2/3 ns each: an aggregate's fraction of a nanosecond carries over to the
/// next.
#[test]
fn no_rounding_is_carried_on() {
    let rate = "wifi:rate=3gbit,frames=1,preamble=0,ack=0,aifs=1us,window=0";
    let departures = departures(&mut link(rate, "", 0, false), &vec![(0, 1_000); 300]);
    for (nth, departure) in (1u64..).zip(departures) {
        let expected = nth * 8_000 / 3 + (nth - 1) * 1_000;
        assert_eq!(departure, expected, "{nth}");
    }
}
