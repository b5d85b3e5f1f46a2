//! The release queue, compared with a naive oracle.

use longwire_engine::{LinkId, Nanos, ReleaseQueue};
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

/// Steps for `links` links, with delays and gaps up to these maxima.
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
