use longwire_units::random::Stream;

use super::*;

fn expected(digest: u64) -> Expected {
    Expected {
        digest,
        due: Nanos::from_micros(70 * digest),
        wire_len: 60 + (digest % 5) as u32,
        late: 0,
    }
}

/// Feeds `matching` like a reader of a trace with `total` frames.
struct Feeder {
    next: u64,
    total: u64,
}

impl Feeder {
    fn fill(&mut self, matching: &mut Matching, name: impl Fn(u64) -> u64) {
        while matching.room() > 0 && self.next < self.total {
            let mut expected = expected(self.next);
            expected.digest = name(self.next);
            matching.expect(expected);
            self.next += 1;
        }
    }
}

/// Matches arrivals, given as digests, against a trace with the digests `0..total`.
fn run(total: u64, arrivals: &[u64]) -> Matching {
    let mut matching = Matching::new();
    let mut feeder = Feeder { next: 0, total };
    for (place, digest) in arrivals.iter().enumerate() {
        feeder.fill(&mut matching, |number| number);
        let wire_len = expected(*digest).wire_len;
        matching.match_frame(*digest, wire_len, Nanos::from_micros(70 * place as u64));
    }
    matching
}

/// Returns frames, matched, lost, duplicates, reordered, changed, foreign, behind_last.
fn counts(report: &TraceReport) -> [u64; 8] {
    [
        report.frames,
        report.matched,
        report.lost,
        report.duplicates,
        report.reordered,
        report.changed,
        report.foreign,
        report.behind_last,
    ]
}

#[test]
fn all_in_order_is_all_matched() {
    let total = 3 * WINDOW as u64 + 17;
    let arrivals: Vec<u64> = (0..total).collect();
    let matching = run(total, &arrivals);
    let report = matching.report();
    assert_eq!(counts(&report), [total, total, 0, 0, 0, 0, 0, 0]);
    let timing = report.timing;
    assert_eq!(timing.gap_error_us.count, total - 1);
    assert_eq!(timing.gap_error_us.max, 0.0);
}

#[test]
fn loss_duplicates_and_disorder_are_counted_exactly() {
    for seed in 0..20 {
        let mut chance = Stream::of_seed(seed);
        let total = 150_000;
        let spread = 1 + seed % 8;
        let (mut lost, mut duplicates) = (0, 0);
        let mut order: Vec<(u64, u64)> = Vec::new();
        // Always receive the last frame, so that losses before it are detected.
        for number in 0..total - 1 {
            if chance.up_to(99) == 0 {
                lost += 1;
                continue;
            }
            order.push((number + chance.up_to(spread), number));
            if chance.up_to(99) == 0 {
                duplicates += 1;
                order.push((number + chance.up_to(50), number));
            }
        }
        order.push((total + 50, total - 1));
        order.sort_by_key(|(place, _)| *place);
        let arrivals: Vec<u64> = order.iter().map(|(_, number)| *number).collect();
        // By definition: the first arrival of a number that is below an earlier one.
        let mut reordered = 0;
        let (mut highest, mut seen) = (0, vec![false; total as usize]);
        for number in &arrivals {
            let first = !std::mem::replace(&mut seen[*number as usize], true);
            reordered += u64::from(first && *number < highest);
            highest = highest.max(*number);
        }
        let found = counts(&run(total, &arrivals).report());
        let wanted = [total, total - lost, lost, duplicates, reordered, 0, 0, 0];
        assert_eq!(found, wanted, "seed {seed}");
    }
}

#[test]
fn changed_frames_are_distinguished_from_foreign_ones() {
    // Frames 5 to 7 arrive changed, with unknown digests and the same lengths.
    let changed = |number: u64| 1_000_000 + number;
    let mut arrivals: Vec<u64> = (0..5).collect();
    arrivals.extend([changed(5), changed(6), changed(7)]);
    arrivals.extend(8..20);
    // Two unknown frames without a missing frame; a loss, and an unknown frame of a different
    // length.
    arrivals.extend([changed(1), changed(2)]);
    arrivals.extend(20..30);
    arrivals.push(changed(31));
    arrivals.extend(31..40);
    let found = counts(&run(40, &arrivals).report());
    assert_eq!(found, [40, 36, 1, 0, 0, 3, 3, 0]);
}

#[test]
fn equal_frames_match_in_order_and_duplicates_match_the_nearest() {
    // Every tenth frame has the same digest.
    let name = |number: u64| {
        if number.is_multiple_of(10) {
            7_777_777
        } else {
            number
        }
    };
    let total = 2_000;
    let mut matching = Matching::new();
    let mut feeder = Feeder { next: 0, total };
    feeder.fill(&mut matching, name);
    for number in 0..total {
        if number == 505 {
            continue;
        }
        let wire_len = expected(number).wire_len;
        matching.match_frame(name(number), wire_len, Nanos::ZERO);
        if number == 1_000 {
            // Duplicate an identical frame; the next identical frame is ten frames ahead.
            matching.match_frame(name(number), wire_len, Nanos::ZERO);
        }
    }
    let found = counts(&matching.report());
    assert_eq!(found, [total, total - 1, 1, 1, 0, 0, 0, 0]);
}

#[test]
fn a_trace_of_equal_frames_is_matched_fast() {
    let mut matching = Matching::new();
    let mut feeder = Feeder {
        next: 0,
        total: 300_000,
    };
    for _ in 0..290_000 {
        feeder.fill(&mut matching, |_| 42);
        matching.match_frame(42, 60, Nanos::ZERO);
        matching.match_frame(43, 99, Nanos::ZERO);
    }
    let counts = matching.report();
    assert_eq!((counts.matched, counts.foreign), (290_000, 290_000));
    assert_eq!(counts.behind_last, 10_000);
}

#[test]
fn frames_after_the_last_received_one_are_not_lost() {
    let counts = run(100, &[0, 1, 2, 5]).report();
    assert_eq!((counts.lost, counts.behind_last), (2, 94));
    let counts = run(10, &[99]).report();
    assert_eq!((counts.lost, counts.behind_last), (0, 10));
}

#[test]
fn a_gap_of_a_window_is_bridged() {
    // The frontier cannot move beyond the frames read ahead.
    let hole = AHEAD - 1_000;
    let mut arrivals: Vec<u64> = (0..1_000).collect();
    arrivals.extend(hole..hole + 3 * AHEAD);
    let counts = run(hole + 3 * AHEAD, &arrivals).report();
    assert_eq!(counts.lost, hole - 1_000);
    assert_eq!(counts.matched, 3 * AHEAD + 1_000);
    assert_eq!(counts.reordered, 0);
}

#[test]
fn a_live_trace_gives_up_its_oldest_frames() {
    let mut matching = Matching::new();
    let all = WINDOW as u64 + 10;
    (0..all).for_each(|number| matching.expect_at_once(expected(number)));
    assert_eq!(matching.report().lost, 10);
    // The first remaining frame has no gap, because its predecessor was evicted; the next one has.
    for number in [10, 11] {
        let arrival = Nanos::from_micros(70 * number + 5);
        let found = matching.match_frame(number, 60, arrival);
        assert_eq!(found.map(|found| found.digest), Some(number));
    }
    assert!(matching.match_frame(9, 60, Nanos::from_secs(1)).is_none());
    let report = matching.report();
    assert_eq!((report.matched, report.foreign), (2, 1));
    assert_eq!(report.timing.gap_error_us.count, 1);
    assert_eq!(report.timing.gap_error_us.max, 0.0);
}
