//! Arbitrary links and changes: no panics, every frame is accounted for, and neither late polling
//! nor changeability alters a verdict.

use longwire_engine::models::rate::Rate;
use longwire_engine::{Link, LinkChange, LinkId, LinkSpec, LinkState, Nanos, Verdict};
use proptest::prelude::*;

use super::driven::{Event, run_all};
use crate::common::any_spec::{Choices, Examples, any_spec};
use crate::common::composition::{build, packet};

/// Returns a change to some parts or to the state.
fn any_change(choices: &mut Choices<'_>) -> (LinkSpec, Option<LinkState>) {
    let any = any_spec(choices);
    let states = [
        LinkState::On,
        LinkState::On,
        LinkState::Off,
        LinkState::Paused,
    ];
    let state = choices.one_in(2).then(|| choices.pick(&states));
    let mut change = LinkSpec::new();
    match choices.below(8) {
        0 => change.rate = any.rate,
        1 => change.queue = any.queue,
        2 => change.delay = any.delay,
        3 => change.loss = any.loss,
        4 => (change.order, change.reordering) = (any.order, any.reordering),
        5 => (change.mtu, change.framing) = (any.mtu, any.framing),
        6 => return (any, state),
        _ => {}
    }
    (change, state)
}

/// Returns the events. Called twice per case, because events are not `Clone`.
fn events(data: &[u8], changes: bool, gap_least: u64) -> (Vec<(u64, Event)>, String) {
    let mut choices = Choices(data);
    let gaps = [0, 1, 500, 12_000, 120_000, 3_000_000, 90_000_000];
    let (mut now, mut usual, mut said) = (1_000_000_003, 12_000, String::new());
    let mut events = Vec::new();
    for _ in 0..20 + choices.below(120) {
        if choices.one_in(20) {
            usual = choices.pick(&gaps);
        }
        now += gap_least.max(usual * [1, 3][usize::from(choices.one_in(3))]);
        if changes && choices.one_in(6) {
            let (spec, state) = any_change(&mut choices);
            said += &format!("{now}: {state:?} {spec}\n");
            let parts = spec.build_change(&Examples).unwrap();
            let change = LinkChange { state, ..parts };
            events.push((now, Event::Change(Box::new(change))));
        } else {
            let len = choices.pick(&[60, 64, 590, 1514, 1514, 4000]);
            events.push((now, Event::Frame(packet(choices.below(5), len))));
        }
    }
    (events, said)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn being_changeable_changes_nothing(
        link in proptest::collection::vec(any::<u8>(), 0..200),
        traffic in proptest::collection::vec(any::<u8>(), 0..600),
        seed in 0..100u64,
    ) {
        let spec = any_spec(&mut Choices(&link));
        // With a rate model, a frame that departs within the nanosecond of its arrival still counts
        // as queued for later arrivals in that nanosecond.
        let modelled = matches!(build(&spec).rate, Rate::Model(_));
        let least = if modelled { 1_001 } else { 0 };
        let run = |link| run_all(link, events(&traffic, false, least).0, true);
        let (mut plain, ..) = run(Link::new(build(&spec), seed, LinkId(2)));
        let (changeable, ..) = run(Link::new_changeable(build(&spec), seed, LinkId(2)));
        // Frames that the link would never dequeue stay queued.
        let waits = |verdict: &Verdict| match verdict {
            Verdict::Deliver(delivery) => delivery.departure == Nanos::MAX,
            _ => true,
        };
        plain.retain(|frame, verdicts_of_frame| changeable.contains_key(frame) || !verdicts_of_frame.iter().all(waits));
        prop_assert_eq!(plain, changeable, "{}", spec);
    }

    #[test]
    fn polling_late_changes_nothing(
        link in proptest::collection::vec(any::<u8>(), 0..200),
        traffic in proptest::collection::vec(any::<u8>(), 0..900),
        seed in 0..100u64,
    ) {
        let spec = any_spec(&mut Choices(&link));
        let run = |often| {
            let link = Link::new_changeable(build(&spec), seed, LinkId(2));
            let (events, said) = events(&traffic, true, 0);
            let (verdicts, offered, lane) = run_all(link, events, often);
            (verdicts, offered, lane.link().occupancy().0.0, said)
        };
        let often = run(true);
        let rarely = run(false);
        prop_assert_eq!(&often, &rarely, "{}", spec);
        let (verdicts, offered, _, said) = often;
        prop_assert!(verdicts.len() as u64 <= offered);
        for verdicts_of_frame in verdicts.values() {
            for (at, verdict) in verdicts_of_frame.iter().enumerate() {
                let more = matches!(
                    verdict,
                    Verdict::Deliver(delivery) if delivery.more
                );
                prop_assert_eq!(more, at + 1 < verdicts_of_frame.len(), "{} {}", spec, said);
            }
        }
    }
}
