//! Histograms of lateness and of watched links' delays.

use hdrhistogram::Histogram;
use longwire_engine::verdict::Edits;
use longwire_engine::{Delivery, Nanos};
use longwire_runtime::counters::{DelayCells, DelayCounts, Spread, buckets};

fn delivery(departure: u64, release: u64) -> Delivery {
    Delivery {
        departure: Nanos::from_nanos(departure),
        release: Nanos::from_nanos(release),
        raised: false,
        edits: Edits::NONE,
        more: false,
    }
}

#[test]
fn quantiles_are_of_what_was_counted_between_two_readings() {
    let (cells, [mut before, mut now]) = (DelayCells::default(), <[DelayCounts; 2]>::default());
    cells.delivered(Nanos::ZERO, 125, &delivery(900_000_000, 900_000_000));
    cells.read(&mut before);
    assert_eq!(before.since(&before.clone()), None);
    // 98 frames do not queue, and two do.
    for _ in 0..98 {
        cells.delivered(Nanos::from_nanos(1_000), 125, &delivery(2_000, 20_001_000));
    }
    for _ in 0..2 {
        cells.delivered(Nanos::ZERO, 125, &delivery(5_000_000, 25_000_000));
    }
    cells.read(&mut now);
    let found = now.since(&before).expect("frames were counted");
    let near = |found: Nanos, time: u64| found.as_nanos().abs_diff(time) <= (time / 100).max(512);
    for (found, [median, high]) in [
        (found.queueing, [1_000, 5_000_000]),
        (found.total, [20_000_000, 25_000_000]),
    ] {
        assert!(near(found[0], median) && near(found[1], high), "{found:?}");
    }
    assert_eq!(
        cells.backlog(Nanos::from_nanos(899_999_999)),
        Nanos::from_nanos(1)
    );
    assert_eq!(cells.backlog(Nanos::from_secs(1)), Nanos::ZERO);
}

#[test]
fn the_rate_is_that_of_the_time_in_which_frames_were_served() {
    let (cells, [before, mut now]) = (DelayCells::default(), <[DelayCounts; 2]>::default());
    // 1 us per 1,000 bits: the second frame waits for the first, the third follows a pause, and a
    // copy departs with its original.
    for (arrival, departure) in [(0, 1_000), (500, 2_000), (9_000, 10_000), (9_000, 10_000)] {
        cells.delivered(
            Nanos::from_nanos(arrival),
            125,
            &delivery(departure, departure),
        );
    }
    cells.read(&mut now);
    assert_eq!(now.rate_since(&before), Some(1e9));
    assert_eq!(now.rate_since(&now.clone()), None);
}

#[test]
fn lateness_falls_into_its_bucket() {
    let mut histogram = Histogram::<u64>::new(3).expect("three digits");
    for nanos in [0, 1_000, 1_500, 400_000, 3_000_000_000] {
        histogram.record(nanos).expect("it grows");
    }
    let spread = Spread::of_nanos(&histogram);
    assert_eq!(spread.count, 5);
    assert_eq!(spread.stddev, (spread.stddev * 1e3).round() / 1e3);
    let sum_s = spread.mean * spread.count as f64 / 1e6;
    assert!((sum_s - 3.000_402_5).abs() < 0.01, "{sum_s}");
    let filled = buckets(&histogram)
        .into_iter()
        .filter(|(_, count)| *count > 0);
    let filled: Vec<(f64, u64)> = filled.collect();
    assert_eq!(
        filled,
        [(1e-6, 2), (2e-6, 1), (5e-4, 1), (f64::INFINITY, 1)]
    );
}
