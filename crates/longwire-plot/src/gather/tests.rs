use super::*;
use crate::gather::fixture;

fn row(link: &str, frame: u64, arrival: i64) -> Row {
    Row {
        length: 1_000,
        release_ns: Some(arrival + 5_100_000),
        queue_bytes: 1_000,
        ..fixture::row(link, frame, arrival, Some(arrival + 100_000))
    }
}

/// Runs of one microsecond and of one day have the same maximum number of bins, and no byte is
/// lost.
#[test]
fn bins_are_bounded_and_lose_nothing() {
    for gap in [1, 1_000, 1_000_000, 86_400_000_000] {
        let mut gatherer = RunGatherer::new(Selection::default());
        for frame in 0..10_000 {
            let arrival = 1_795_000_000_000_000_000 + frame as i64 * gap;
            gatherer.add(&row("up", frame, arrival));
        }
        let found = gatherer.finish(8, 6_000);
        let bins = &found.links[0].bins;
        let count = bins.len();
        assert!((2..=BINS_MAX).contains(&count), "{gap}: {count}");
        let sum = |of: fn(&Bin) -> u64| bins.iter().map(of).sum::<u64>();
        assert_eq!(sum(|bin| bin.offered), 10_000_000);
        assert_eq!(sum(|bin| bin.delivered), 10_000_000);
        assert_eq!(sum(|bin| bin.delay.total()), 10_000);
        let mut delays = bins.iter().filter_map(|bin| bin.delay.range());
        assert!(delays.all(|range| range == (5_100_000, 5_100_000)));
        assert_eq!(found.counts[&Name::from("up")].frames_out, 10_000);
    }
}

#[test]
fn the_queue_is_weighted_by_time() {
    let mut gatherer = RunGatherer::new(Selection::default());
    gatherer.set_origin(0);
    // One packet is queued for a tenth of every millisecond.
    for frame in 0..1_000 {
        gatherer.add(&row("up", frame, frame as i64 * 1_000_000));
    }
    let found = gatherer.finish(1, 100);
    let bins = &found.links[0].bins;
    for bin in &bins[1..bins.len() - 2] {
        let mean = bin.queue.mean().expect("it is known");
        assert!((mean - 0.1).abs() < 0.02, "{mean}");
        assert_eq!(bin.queue.most, 1);
        assert_eq!(bin.served.rate(), Some(8e7));
    }
}

#[test]
fn of_many_links_those_that_carried_most_have_bins() {
    let path = std::env::temp_dir().join(format!("gather-{}.csv", std::process::id()));
    let mut log = longwire_capture::log::LogWriter::create(&path).expect("writable");
    let mut at = 0;
    for link in 0..40u64 {
        for frame in 0..=link {
            at += 1_000;
            let row = row(&format!("l{link}.up"), frame, at);
            log.write(&row).expect("writable");
        }
    }
    log.finish().expect("writable");
    let gather = |selection: &Selection| {
        let found = gather_file(&path, selection, None, |_, _| ());
        found.expect("readable").finish(8, 6_000)
    };
    let found = gather(&Selection::default());
    let names: Vec<&str> = found.links.iter().map(|link| &*link.link).collect();
    let busiest: Vec<String> = (32..40).map(|link| format!("l{link}.up")).collect();
    assert_eq!(names, busiest);
    assert_eq!((found.counts.len(), found.rows), (40, 820));
    let only = Selection {
        links: vec!["l3".parse().expect("a pattern")],
        direction: Some(LogDirection::Up),
    };
    assert_eq!(gather(&only).links.len(), 1);
    std::fs::remove_file(&path).expect("it was written");
}
