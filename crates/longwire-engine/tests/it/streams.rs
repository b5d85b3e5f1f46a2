//! Effects of the seed, and the order in which frames leave a link.

use crate::common::assert_binomial;
use crate::common::{link, release, verdicts};
use longwire_engine::{DropReason, Link, LinkId, Verdict};
use longwire_units::random::{Purpose, Stream};
use proptest::prelude::*;

const FRAMES: u64 = 20_000;

/// Returns the verdicts for the link specified by `line`.
fn outcome(line: &str) -> Vec<Verdict> {
    verdicts(&mut link(line, 42), FRAMES, 1_000_000_000)
}

fn is_loss(verdict: &Verdict) -> bool {
    *verdict == Verdict::Drop(DropReason::Loss)
}

#[test]
fn another_seed_or_link_gives_others() {
    let line = "loss=50% delay=uniform:1ms,9ms";
    let run = |seed, id| {
        let mut link = Link::new(crate::common::config(line), seed, LinkId(id));
        verdicts(&mut link, FRAMES, 1_000_000_000)
    };
    let one = run(1, 0);
    for other in [run(2, 0), run(1, 1), run(0, 1)] {
        // Losses agree as often as two fair coins: 20,000 frames, 99.999 % confidence.
        let agree = one.iter().zip(&other);
        let agree = agree
            .filter(|(one, other)| is_loss(one) == is_loss(other))
            .count() as u64;
        assert_binomial("agree", agree, FRAMES, 0.5, 0.99999);
    }
}

#[test]
fn streams_of_different_places_differ() {
    let mut first_draws: Vec<u64> = Vec::new();
    for seed in [0, 1, 2, 1 << 32, u64::MAX] {
        for link in [0, 1, u32::MAX] {
            for purpose in [Purpose::EntryLoss, Purpose::MediumLoss, Purpose::Delay] {
                for (model, nth) in [("", 0), ("packet", 0), ("packet", 1), ("ber", 0)] {
                    let mut stream = Stream::of_model(seed, link, purpose, model, nth);
                    first_draws.push(stream.next_u64());
                }
            }
        }
    }
    let count = first_draws.len();
    first_draws.sort_unstable();
    first_draws.dedup();
    assert_eq!(first_draws.len(), count);
}

/// Another kind of loss before or after a model, or the same kind after it, does not change the
/// model's losses.
#[test]
fn a_loss_model_draws_the_same_whatever_stands_beside_it() {
    let alone = outcome("loss=5%");
    let companies = [
        "loss=ber:1e-5 loss=5%",
        "loss=5% loss=ber:1e-5",
        "loss=5% loss=7%",
    ];
    for line in companies {
        let together = outcome(line);
        let mut more = 0;
        for (alone, together) in alone.iter().zip(&together) {
            if is_loss(alone) {
                // An earlier model may have determined the reason.
                assert!(matches!(together, Verdict::Drop(_)), "{line}");
            } else if !matches!(together, Verdict::Deliver(_)) {
                more += 1;
            }
        }
        assert!(more > 500, "{line}: the other model lost only {more}");
    }
}

/// Two loss models of one kind are independent: 20,000 frames, both at 50 %, 99.999 % confidence.
#[test]
fn two_of_a_kind_lose_independently() {
    let both = outcome("loss=50% loss=50%");
    let lost = both.iter().filter(|verdict| is_loss(verdict)).count() as u64;
    assert_binomial("lost", lost, FRAMES, 0.75, 0.99999);
}

#[test]
fn survivors_are_delayed_the_same_with_loss_as_without() {
    for delay in ["uniform:1ms,9ms", "exponential:5ms"] {
        let without = outcome(&format!("delay={delay}"));
        let with = outcome(&format!("delay={delay} loss=30%"));
        let mut survivors = 0;
        for (without, with) in without.iter().zip(&with) {
            if !is_loss(with) {
                assert_eq!(release(*without), release(*with));
                survivors += 1;
            }
        }
        assert!(survivors > 10_000);
    }
}

/// Loss before the queue changes which frames reach the medium, but not the medium's draws: it
/// loses the same positions among those frames.
#[test]
fn entry_loss_does_not_change_what_the_medium_draws() {
    let alone = outcome("loss=10%");
    let with = outcome("loss=10% loss=packet:40%,at=entry");
    let reached = with
        .iter()
        .filter(|verdict| **verdict != Verdict::Drop(DropReason::EntryLoss));
    let pairs: Vec<_> = reached.zip(&alone).collect();
    assert!((11_000..13_000).contains(&pairs.len()), "{}", pairs.len());
    for (with, alone) in pairs {
        assert_eq!(is_loss(with), is_loss(alone));
    }
}

/// A release is postponed only to that of a delivered frame, never to that of a lost one.
#[test]
fn a_lost_frame_raises_nobody() {
    let line = "delay=uniform:0ms,20ms loss=50%";
    let (mut before, mut raised) = (0, 0);
    for verdict in verdicts(&mut link(line, 3), 5_000, 1_000) {
        if let Verdict::Deliver(delivery) = verdict {
            if delivery.raised {
                assert_eq!(delivery.release.as_nanos(), before);
                raised += 1;
            }
            before = delivery.release.as_nanos();
        }
    }
    assert!(raised > 1_000, "{raised}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// In order, a release is the maximum of the same draws so far; `raised` is set if that exceeds
    /// the frame's own release.
    #[test]
    fn only_the_order_policy_tells_in_order_from_reorder(
        seed in any::<u64>(),
        gap in 0u64..3_000_000,
        exponential in any::<bool>(),
    ) {
        let delay = if exponential { "exponential:9ms" } else { "uniform:0ms,20ms" };
        let run = |order| verdicts(
            &mut link(&format!("delay={delay} order={order}"), seed), 300, gap);
        let mut highest = 0;
        for (reordered, ordered) in run("reorder").into_iter().zip(run("in-order")) {
            let own = release(reordered);
            let expected = own.max(highest);
            prop_assert_eq!(release(ordered), expected);
            let Verdict::Deliver(delivery) = ordered else { unreachable!() };
            prop_assert_eq!(delivery.raised, own < highest);
            highest = expected;
        }
    }
}
