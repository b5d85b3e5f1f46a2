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
            gatherer.add(&row(
                "up",
                frame,
                1_795_000_000_000_000_000 + frame as i64 * gap,
            ));
        }
        let found = gatherer.finish(8, 6_000);
        let bins = &found.links[0].bins;
        assert!(
            (2..=BINS_MAX).contains(&bins.len()),
            "{gap}: {}",
            bins.len()
        );
        let sum = |of: fn(&Bin) -> u64| bins.iter().map(of).sum::<u64>();
        assert_eq!(sum(|bin| bin.offered), 10_000_000);
        assert_eq!(sum(|bin| bin.delivered), 10_000_000);
        assert_eq!(sum(|bin| bin.delay.total()), 10_000);
        let delays = bins.iter().filter_map(|bin| bin.delay.range());
        assert!(
            delays
                .into_iter()
                .all(|range| range == (5_100_000, 5_100_000))
        );
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
            log.write(&row(&format!("l{link}.up"), frame, at))
                .expect("writable");
        }
    }
    log.finish().expect("writable");
    let found = gather_file(&path, &Selection::default(), None, |_, _| ());
    let found = found.expect("readable").finish(8, 6_000);
    let names: Vec<&str> = found.links.iter().map(|link| &*link.link).collect();
    assert_eq!(
        names,
        [
            "l32.up", "l33.up", "l34.up", "l35.up", "l36.up", "l37.up", "l38.up", "l39.up"
        ]
    );
    assert_eq!((found.counts.len(), found.rows), (40, 820));
    let only = Selection {
        links: vec!["l3".parse().expect("a pattern")],
        direction: Some(LogDirection::Up),
    };
    let found = gather_file(&path, &only, None, |_, _| ())
        .expect("readable")
        .finish(8, 6_000);
    assert_eq!(found.links.len(), 1);
    std::fs::remove_file(&path).expect("it was written");
}
