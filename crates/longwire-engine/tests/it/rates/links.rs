//! Links with only a rate model, on both code paths of the engine.

use longwire_engine::models::queue::fifo::ManagedFifo;
use longwire_engine::models::queue::{Queue, QueueLimit};
use longwire_engine::models::{self, Described};
use longwire_engine::{Delivery, Link, LinkConfig, LinkId, Loader, Nanos, Verdict};
use proptest::prelude::*;

use crate::common::{files, frame};

/// Returns a link with only this rate; every file has these contents.
pub fn link(rate: &str, file: &str, epoch: u64, managed: bool) -> Link {
    link_with(rate, &files::file(file), epoch, managed)
}

/// Like [`link`], with a file loader.
pub fn link_with(rate: &str, loader: &dyn Loader, epoch: u64, managed: bool) -> Link {
    let rate = models::RATE.parse_with(rate, loader);
    let queue = if managed {
        let fifo = Box::new(ManagedFifo::new(QueueLimit::UNLIMITED));
        Queue::Managed(Described::new("unlimited".to_owned(), fifo))
    } else {
        Queue::TailDrop(QueueLimit::UNLIMITED)
    };
    let config = LinkConfig {
        rate: rate.unwrap_or_else(|error| panic!("{error}")),
        queue: Some(queue),
        epoch: Nanos::from_nanos(epoch),
        ..LinkConfig::default()
    };
    Link::new(config, 1, LinkId(0))
}

/// Returns all deliveries in order.
pub fn deliveries(link: &mut Link, frames: &[(u64, u32)]) -> Vec<Delivery> {
    let mut deliveries = Vec::new();
    let mut note = |verdict: Verdict| match verdict {
        Verdict::Deliver(delivery) => deliveries.push(delivery),
        Verdict::Queued => {}
        Verdict::Drop(reason) => panic!("dropped: {reason:?}"),
    };
    for (arrival, len) in frames {
        while let Some((_, verdict)) = link.poll(..=Nanos::from_nanos(*arrival), &()) {
            note(verdict);
        }
        note(link.offer(frame(*arrival, *len), &[]));
    }
    while let Some((_, verdict)) = link.poll(..=Nanos::MAX, &()) {
        note(verdict);
    }
    deliveries
}

/// Returns the departures of the frames that are eventually sent.
pub fn departures(link: &mut Link, frames: &[(u64, u32)]) -> Vec<u64> {
    let deliveries = deliveries(link, frames).into_iter();
    let departures = deliveries.map(|delivery| delivery.departure.as_nanos());
    departures
        .filter(|departure| *departure < u64::MAX)
        .collect()
}

/// Returns the departures, which must be equal on both code paths.
pub fn both_ways(rate: &str, file: &str, epoch: u64, frames: &[(u64, u32)]) -> Vec<u64> {
    let at_arrival = departures(&mut link(rate, file, epoch, false), frames);
    let managed = departures(&mut link(rate, file, epoch, true), frames);
    assert_eq!(at_arrival, managed, "{rate}");
    at_arrival
}

/// Frames as (arrival, length): bursts, gaps of every size, and occasional long pauses.
pub fn any_frames(gap_max: u64) -> impl Strategy<Value = Vec<(u64, u32)>> {
    let gap = prop_oneof![
        Just(0u64),
        0u64..100,
        0..gap_max / 100 + 1,
        0..gap_max,
        0..20 * gap_max,
    ];
    let len = prop_oneof![Just(64u32), Just(1514), 1u32..2_000, 1u32..70_000];
    after_gaps(gap, len)
}

/// Up to 79 frames as (arrival, length), with these gaps and lengths.
pub fn after_gaps(
    gap: impl Strategy<Value = u64>,
    len: impl Strategy<Value = u32>,
) -> impl Strategy<Value = Vec<(u64, u32)>> {
    proptest::collection::vec((gap, len), 1..80).prop_map(|mut frames| {
        let mut clock = 0;
        for (gap, _) in &mut frames {
            clock += *gap;
            *gap = clock;
        }
        frames
    })
}
