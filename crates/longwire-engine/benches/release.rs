//! Cost per frame in the release queue, one push and one pop, with 1 to 10,000 backlogged links.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use longwire_engine::{LinkId, Nanos, ReleaseQueue};

/// Pushes and pops per measured round.
const FRAMES: u64 = 1_024;

/// About the size of a stage's frame record: three words.
type Item = [u64; 3];

/// Returns a queue with `links` links and a total of `backlog` items, one per nanosecond.
fn filled(links: u64, backlog: u64) -> (ReleaseQueue<Item>, u64) {
    let mut queue = ReleaseQueue::new();
    for clock in 0..backlog {
        push(&mut queue, clock, links, backlog);
    }
    (queue, backlog)
}

fn push(queue: &mut ReleaseQueue<Item>, clock: u64, links: u64, delay: u64) {
    let link = LinkId((clock % links) as u32);
    queue.push(link, Nanos::from_nanos(clock + delay), [clock; 3]);
}

fn bench_release(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("release");
    group.throughput(Throughput::Elements(FRAMES));
    for (links, backlog) in [
        (1, 32),
        (1, 200_000),
        (2, 200_000),
        (1_000, 200_000),
        (10_000, 200_000),
    ] {
        let (mut queue, mut clock) = filled(links, backlog);
        group.bench_function(format!("{links} links, {backlog} waiting"), |bencher| {
            bencher.iter(|| {
                let mut sum = 0;
                // A stage works in bursts of 32.
                for _ in 0..FRAMES / 32 {
                    for _ in 0..32 {
                        push(&mut queue, clock, links, backlog);
                        clock += 1;
                    }
                    while let Some((_, _, item)) = queue.pop_due(Nanos::from_nanos(clock)) {
                        sum += item[0];
                    }
                }
                sum
            });
        });
    }
    group.finish();
}

criterion_group!(benches, bench_release);
criterion_main!(benches);
