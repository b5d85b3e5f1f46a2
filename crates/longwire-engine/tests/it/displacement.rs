//! Duplicates and displaced frames.

use crate::common::{assert_binomial, frame, link};
use longwire_engine::{Delivery, Link, Nanos, Verdict};

const CONFIDENCE: f64 = 0.9998;
const MS: u64 = 1_000_000;

/// Returns all deliveries of one frame, the original first.
fn deliveries(link: &mut Link, at: u64) -> Vec<Delivery> {
    let mut deliveries = Vec::new();
    if let Verdict::Deliver(delivery) = link.offer(frame(at, 1000), &[]) {
        deliveries.push(delivery);
        while deliveries.last().is_some_and(|delivery| delivery.more) {
            deliveries.extend(link.next_copy());
        }
    }
    assert_eq!(link.next_copy(), None);
    deliveries
}

#[test]
fn every_nth_frame_has_its_copies() {
    let mut link = link("duplicate=nth:every=3,offset=2,copies=2 delay=5ms", 1);
    for number in 1..=20u64 {
        let at = number * MS;
        let deliveries = deliveries(&mut link, at);
        let expected = if number > 2 && (number - 2) % 3 == 0 {
            3
        } else {
            1
        };
        assert_eq!(deliveries.len(), expected, "{number}");
        for delivery in deliveries {
            assert_eq!(delivery.release.as_nanos(), at + 5 * MS);
        }
    }
}

/// 100,000 frames at 99.98 % confidence; lost frames have no copies.
#[test]
fn random_copies_have_their_probability() {
    let mut plain = link("duplicate=7%", 1);
    let mut lossy = link("duplicate=7% loss=50%", 1);
    let (mut copies, mut of_survivors) = (0, 0);
    for index in 0..100_000 {
        let at = index * MS;
        let (all, left) = (deliveries(&mut plain, at), deliveries(&mut lossy, at));
        copies += all.len() as u64 - 1;
        of_survivors += left.len().saturating_sub(1) as u64;
        assert!(left.is_empty() || left == all, "loss moved the copies");
    }
    assert_binomial("copies", copies, 100_000, 0.07, CONFIDENCE);
    assert_binomial("of_survivors", of_survivors, 100_000, 0.035, CONFIDENCE);
}

/// Returns whether each frame is sent ahead.
fn hurried(reorder: &str, frames: u64) -> Vec<bool> {
    let mut link = link(&format!("reorder={reorder} delay=10ms"), 1);
    let hurries = |index: u64| {
        let at = index * MS;
        let delivery = deliveries(&mut link, at).remove(0);
        let delay = delivery.release.saturating_sub(Nanos::from_nanos(at));
        assert!(!delivery.raised);
        assert!(
            delay == Nanos::ZERO || delay == Nanos::from_millis(10),
            "{delay}"
        );
        delay == Nanos::ZERO
    };
    (0..frames).map(hurries).collect()
}

#[test]
fn each_gap_ends_with_a_frame_that_hurries() {
    let numbers = |reorder| -> Vec<usize> {
        let hurried = hurried(reorder, 16);
        (1..=16).filter(|number| hurried[number - 1]).collect()
    };
    assert_eq!(numbers("gap:5"), [5, 10, 15]);
    assert_eq!(numbers("gap:gap=1").len(), 16);
    assert!(numbers("gap:gap=4,rate=0%").is_empty());
}

/// After a frame is sent ahead, gap - 1 frames plus a geometrically distributed number are delayed.
/// Like netem's, the gap does not restart at an unselected frame.
#[test]
fn gaps_are_longer_with_a_probability() {
    let hurried = hurried("gap:gap=5,rate=30%", 400_000);
    let places = hurried.iter().enumerate().filter(|(_, hurries)| **hurries);
    let places: Vec<usize> = places.map(|(place, _)| place).collect();
    let distances: Vec<usize> = places.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let trials = distances.len() as u64;
    assert!(trials > 50_000);
    assert!(distances.iter().all(|distance| *distance >= 5));
    for more in 0..8 {
        let count = distances
            .iter()
            .filter(|distance| **distance == 5 + more)
            .count() as u64;
        let p = 0.3 * 0.7f64.powi(more as i32);
        assert_binomial(more, count, trials, p, CONFIDENCE);
    }
}

/// With correlation, decisions keep their probability, and each correlates with the previous one;
/// with gap 1, each frame has a decision.
#[test]
fn correlated_decisions_keep_their_rate() {
    let hurried = hurried("gap:gap=1,rate=30%,correlation=60%", 2_000_000);
    let pairs = hurried.chunks_exact(50);
    let trials = pairs.len() as u64;
    let first = pairs.clone().filter(|pair| pair[0]).count() as u64;
    let both = pairs.filter(|pair| pair[0] && pair[1]).count() as u64;
    let together = 0.3 * 0.3 + 0.6 * 0.3 * 0.7;
    for (count, p) in [(first, 0.3), (both, together)] {
        assert_binomial(p, count, trials, p, CONFIDENCE);
    }
}

/// A displaced frame neither waits for nor delays other frames, under either order policy;
/// undisplaced frames stay in order.
#[test]
fn those_in_turn_stay_in_order() {
    for reorder in ["gap:gap=7,rate=50%", "hold:rate=10%,time=40ms"] {
        let mut alone = link("delay=uniform:5ms,20ms order=reorder", 2);
        let mut link = link(&format!("reorder={reorder} delay=uniform:5ms,20ms"), 2);
        let (mut last, mut out_of_turn) = (0, 0);
        for index in 0..20_000 {
            let at = index * MS / 10;
            let delivery = deliveries(&mut link, at).remove(0);
            let own = deliveries(&mut alone, at).remove(0).release.as_nanos();
            let release = delivery.release.as_nanos();
            if release == at || release == own + 40 * MS {
                assert!(!delivery.raised);
                out_of_turn += 1;
            } else {
                assert_eq!(release, own.max(last), "{reorder}");
                last = release;
            }
        }
        assert!((1_000..3_000).contains(&out_of_turn), "{out_of_turn}");
    }
}
