use std::collections::BTreeSet;

use longwire_units::random::Stream;

use super::*;

/// A direct implementation of RFC 4737 that remembers all packets.
#[derive(Default)]
struct Oracle {
    /// Numbers in arrival order, excluding duplicates.
    kept: Vec<(u64, Nanos)>,
    duplicates: u64,
    reordered: u64,
    extents: Vec<u64>,
    lates: Vec<u64>,
}

impl Oracle {
    fn record(&mut self, number: u64, arrival: Nanos) {
        if self.kept.iter().any(|(seen, _)| *seen == number) {
            self.duplicates += 1;
            return;
        }
        // Find the earliest packet with a greater number.
        if let Some(at) = self.kept.iter().position(|(seen, _)| *seen > number) {
            self.reordered += 1;
            self.extents.push((self.kept.len() - at) as u64);
            let late = arrival.saturating_sub(self.kept[at].1);
            self.lates.push(late.as_nanos());
        }
        self.kept.push((number, arrival));
    }

    fn check(&self, report: &SequenceReport) {
        let numbers: BTreeSet<u64> = self.kept.iter().map(|(number, _)| *number).collect();
        let (first, last) = (numbers.first().copied(), numbers.last().copied());
        assert_eq!((Some(report.first), Some(report.last)), (first, last));
        assert_eq!(report.received, numbers.len() as u64);
        let all = report.last - report.first + 1;
        assert_eq!(report.lost, all - numbers.len() as u64);
        assert_eq!(report.duplicates, self.duplicates);
        assert_eq!(report.reordered, self.reordered);
        assert_eq!(report.extent.count, self.reordered);
        assert_eq!(report.beyond_window, 0);
        if self.reordered > 0 {
            let max = self.extents.iter().max().copied().unwrap_or(0);
            assert_eq!(report.extent.max, max as f64);
            let mean = self.extents.iter().sum::<u64>() as f64 / self.reordered as f64;
            assert!((report.extent.mean - mean).abs() < 1e-9);
            let late = self.lates.iter().max().copied().unwrap_or(0);
            assert_eq!(report.late_us.max, late as f64 / 1e3);
        }
    }
}

fn compare(numbers: &[u64]) -> SequenceReport {
    let (mut sequence, mut oracle) = (Sequence::default(), Oracle::default());
    for (place, number) in numbers.iter().enumerate() {
        let arrival = Nanos::from_micros(10 * place as u64);
        sequence.record(*number, arrival);
        oracle.record(*number, arrival);
    }
    let report = sequence.report();
    oracle.check(&report);
    report
}

#[test]
fn the_examples_of_rfc_4737() {
    // Section 7.1, figure 1: packet 2 is reordered.
    let report = compare(&[1, 3, 4, 2, 5]);
    assert_eq!((report.reordered, report.lost), (1, 0));
    assert_eq!(report.extent.max, 2.0);
    // Of two missing packets, one is late.
    let report = compare(&[10, 11, 14, 15, 12, 16]);
    assert_eq!((report.reordered, report.lost), (1, 1));
    assert_eq!(report.extent.max, 2.0);
    // Some packets are below the first number.
    compare(&[5, 4, 3, 6]);
    compare(&[1, 1, 1, 2, 1, 3, 2]);
    compare(&[7]);
}

#[test]
fn sequence_counts_agree_with_the_oracle() {
    for seed in 0..30 {
        let mut chance = Stream::of_seed(seed);
        // Delay packets by up to `spread` positions, lose 10 %, and duplicate some.
        let spread = 1 + seed % 15;
        let mut order: Vec<(u64, u64)> = Vec::new();
        for number in 0..600 {
            if chance.up_to(9) == 0 {
                continue;
            }
            let copies = 1 + u64::from(chance.up_to(19) == 0);
            for _ in 0..copies {
                order.push((number + chance.up_to(spread - 1), number));
            }
        }
        order.sort_by_key(|(place, _)| *place);
        let numbers: Vec<u64> = order.iter().map(|(_, number)| number + 1_000).collect();
        compare(&numbers);
    }
}

#[test]
fn numbers_beyond_the_window_are_not_classified() {
    let mut sequence = Sequence::default();
    let mut record = |number| sequence.record(number, Nanos::ZERO);
    assert_eq!(record(0), Classification::InOrder { next: false });
    assert_eq!(record(1), Classification::InOrder { next: true });
    assert_eq!(record(WINDOW + 50), Classification::InOrder { next: false });
    assert_eq!(record(1), Classification::BeyondWindow);
    // This number is at the edge of the window, and has not been received.
    assert_eq!(record(51), Classification::Reordered);
    assert_eq!(record(51), Classification::Duplicate);
    // This number reuses the bit of another one.
    assert_eq!(record(WINDOW + 49), Classification::Reordered);
    let far = record(5 * WINDOW + 1);
    assert_eq!(far, Classification::InOrder { next: false });
    let report = sequence.report();
    assert_eq!(report.beyond_window, 1);
    assert_eq!(report.received, 6);
    assert_eq!(report.lost, 5 * WINDOW + 2 - 6);
}

#[test]
fn a_packet_after_a_reordered_one_has_no_gap() {
    let mut sequence = Sequence::default();
    let came = [1, 2, 5, 3, 6, 7].map(|number| sequence.record(number, Nanos::ZERO));
    assert_eq!(came[4], Classification::InOrder { next: false });
    assert_eq!(came[5], Classification::InOrder { next: true });
}

#[test]
fn memory_is_bounded_under_loss_of_every_other_packet() {
    let mut sequence = Sequence::default();
    for number in 0..100_000 {
        sequence.record(2 * number, Nanos::ZERO);
    }
    assert_eq!(sequence.runs.len(), RUNS);
    let report = sequence.report();
    assert_eq!(report.lost, 99_999);
    assert_eq!(report.reordered, 0);
}
