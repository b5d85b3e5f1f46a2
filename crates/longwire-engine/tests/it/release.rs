//! The release queue, and lanes that share it, compared with naive oracles.

use crate::common::fates::Fates;
use crate::common::{config, frame};
use longwire_engine::{Delivery, Lane, Link, LinkId, Nanos, ReleaseQueue, Verdict};
use proptest::prelude::*;

/// Unordered items; the next one is found by a search.
#[derive(Default)]
struct Oracle {
    waiting: Vec<(Nanos, LinkId, usize)>,
    pushed: usize,
}

impl Oracle {
    fn push(&mut self, link: LinkId, release: Nanos) -> usize {
        self.waiting.push((release, link, self.pushed));
        self.pushed += 1;
        self.pushed - 1
    }

    fn next_at(&self) -> Option<Nanos> {
        self.waiting.iter().map(|(release, ..)| *release).min()
    }

    fn pop_due(&mut self, now: Nanos) -> Option<(LinkId, Nanos, usize)> {
        let next = *self.waiting.iter().min()?;
        if next.0 > now {
            return None;
        }
        self.waiting.retain(|waiting| *waiting != next);
        Some((next.1, next.0, next.2))
    }
}

/// A step in a run: time passes, items are pushed, due items are popped.
#[derive(Clone, Debug)]
struct Step {
    gap: u64,
    pushes: Vec<(u32, u64)>,
    pops: usize,
    /// Link whose items are removed afterwards.
    forgotten: u32,
}

/// Returns steps for `links` links, with delays and gaps below these maxima, in nanoseconds.
fn any_steps(links: u32, delay_max: u64, gap_max: u64) -> impl Strategy<Value = Vec<Step>> {
    let pushes = proptest::collection::vec((0..links, 0..delay_max), 0..20);
    let step = (0..gap_max, pushes, 0usize..30, 0..links * 4);
    let step = step.prop_map(|(gap, pushes, pops, forgotten)| Step {
        gap,
        pushes,
        pops,
        forgotten,
    });
    proptest::collection::vec(step, 1..40)
}

fn follow_the_oracle(steps: Vec<Step>, in_order: bool) -> Result<(), TestCaseError> {
    let (mut queue, mut oracle) = (ReleaseQueue::new(), Oracle::default());
    let mut now = Nanos::ZERO;
    let mut last = [Nanos::ZERO; 64];
    for step in steps {
        now = now.saturating_add(Nanos::from_nanos(step.gap));
        for (link, delay) in step.pushes {
            let mut release = now.saturating_add(Nanos::from_nanos(delay));
            if in_order {
                release = release.max(last[link as usize]);
                last[link as usize] = release;
            }
            let number = oracle.push(LinkId(link), release);
            queue.push(LinkId(link), release, number);
            prop_assert_eq!(queue.next_at(), oracle.next_at());
        }
        // Due items may remain, as they do when a port is full.
        for _ in 0..step.pops {
            prop_assert_eq!(queue.pop_due(now), oracle.pop_due(now));
            prop_assert_eq!(queue.next_at(), oracle.next_at());
        }
        let forgotten = LinkId(step.forgotten);
        queue.retain(|link, _| link != forgotten);
        oracle.waiting.retain(|(_, link, _)| *link != forgotten);
        prop_assert_eq!(queue.next_at(), oracle.next_at());
        prop_assert_eq!(queue.len(), oracle.waiting.len());
    }
    while let Some(expected) = oracle.pop_due(Nanos::MAX) {
        prop_assert_eq!(queue.pop_due(Nanos::MAX), Some(expected));
    }
    prop_assert_eq!(queue.pop_due(Nanos::MAX), None);
    prop_assert!(queue.is_empty());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Covers overtaking items, items in order, many links, a few hundred slots of 65,536 ns, and
    /// turns of the wheel (1.07 s).
    #[test]
    fn releases_follow_a_search(
        (in_order, steps) in prop_oneof![
            (Just(false), any_steps(5, 100, 20)),
            (Just(false), any_steps(64, 300, 20)),
            (Just(false), any_steps(8, 20_000_000, 1_000_000)),
            (Just(false), any_steps(8, 5_000_000_000, 700_000_000)),
            (Just(true), any_steps(8, 1_000, 20)),
        ],
    ) {
        follow_the_oracle(steps, in_order)?;
    }
}

/// An item that is never released comes last.
#[test]
fn never_comes_last() {
    let mut queue = ReleaseQueue::new();
    queue.push(LinkId(0), Nanos::MAX, 0);
    queue.push(LinkId(1), Nanos::from_secs(100), 1);
    assert_eq!(queue.next_at(), Some(Nanos::from_secs(100)));
    assert_eq!(queue.pop_due(Nanos::from_secs(99)), None);
    let popped = queue.pop_due(Nanos::from_secs(1_000));
    assert_eq!(popped, Some((LinkId(1), Nanos::from_secs(100), 1)));
    assert_eq!(queue.pop_due(Nanos::from_secs(1_000)), None);
    assert_eq!(queue.next_at(), Some(Nanos::MAX));
    assert_eq!(queue.pop_due(Nanos::MAX), Some((LinkId(0), Nanos::MAX, 0)));
    // All new items are late from here on.
    queue.push(LinkId(2), Nanos::from_secs(7), 2);
    queue.push(LinkId(2), Nanos::from_secs(6), 3);
    assert_eq!(queue.pop_due(Nanos::MAX).map(|popped| popped.2), Some(3));
}

/// A backlog of 10,000 items on each of 3 links. Seven consecutive items share a release and pop by
/// link number, not in push order.
#[test]
fn long_lines_keep_their_order() {
    let mut queue = ReleaseQueue::new();
    for number in 0..30_000u64 {
        let release = Nanos::from_nanos(number / 7 + 10_000);
        queue.push(LinkId((number % 3) as u32), release, number);
    }
    let mut expected: Vec<u64> = (0..30_000).collect();
    expected.sort_by_key(|number| (number / 7, number % 3));
    for number in expected {
        let (link, _, item) = queue.pop_due(Nanos::MAX).unwrap();
        assert_eq!((link.0, item), ((number % 3) as u32, number));
    }
}

/// Four different links, two of which reorder.
fn lanes(seed: u64) -> Vec<Lane<usize>> {
    let links = [
        "rate=10mbit delay=1ms queue=20p",
        "delay=uniform:0ms,5ms order=reorder loss=10%",
        "rate=1mbit delay=exponential:3ms order=reorder",
        "delay=exponential:2ms,1ms loss=ber:1e-5",
    ];
    let link = |(id, line): (u32, &&str)| Link::new(config(line), seed, LinkId(id));
    (0..).zip(&links).map(link).map(Lane::new).collect()
}

/// Deliveries in polling order, and all verdicts.
type Run = (Vec<(LinkId, usize, Delivery)>, Vec<Verdict>);

/// Offers frames given as (link, gap, length). Polls at each release or, with `late`, once per
/// `late` frames.
fn run(seed: u64, frames: &[(u32, u64, u32)], late: Option<usize>) -> Run {
    let (mut lanes, mut fates) = (lanes(seed), Fates::default());
    let (mut polled, mut now) = (Vec::new(), 0);
    for (index, (link, gap, len)) in frames.iter().enumerate() {
        now += gap;
        match late {
            None => {
                let due = |next: &Nanos| next.as_nanos() <= now;
                while let Some(next) = fates.waiting.next_at().filter(due) {
                    polled.extend(fates.pop_due(next));
                }
            }
            Some(every) if (index + 1) % every == 0 => {
                while let Some(frame) = fates.pop_due(Nanos::from_nanos(now)) {
                    polled.push(frame);
                }
            }
            Some(_) => {}
        }
        fates.link = LinkId(*link);
        assert_eq!(fates.add(&[]), index);
        lanes[*link as usize].offer(frame(now, *len), index, &mut fates);
    }
    while let Some(frame) = fates.pop_due(Nanos::MAX) {
        polled.push(frame);
    }
    assert!(fates.waiting.is_empty());
    assert!(
        fates
            .decided
            .iter()
            .map(|decided| decided.0)
            .eq(0..frames.len())
    );
    let verdicts = fates.decided.into_iter();
    (polled, verdicts.map(|(_, verdict)| verdict).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn polling_late_changes_nothing(
        seed in any::<u64>(),
        frames in proptest::collection::vec((0u32..4, 0u64..400_000, 60u32..1515), 1..150),
        late in 1usize..60,
    ) {
        let (in_time, verdicts) = run(seed, &frames, None);
        let delivered = verdicts.iter().filter(|verdict| matches!(verdict, Verdict::Deliver(_)));
        prop_assert_eq!(in_time.len(), delivered.count());
        let releases: Vec<Nanos> = in_time.iter().map(|(.., delivery)| delivery.release).collect();
        prop_assert!(releases.is_sorted());
        prop_assert_eq!(&run(seed, &frames, Some(late)), &(in_time.clone(), verdicts.clone()));
        prop_assert_eq!(&run(seed, &frames, Some(usize::MAX)), &(in_time, verdicts));
    }
}
