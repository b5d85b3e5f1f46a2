//! Sequential links, whose verdicts by frame number and through [`SequentialLink`] must be equal.

use longwire_engine::{FrameMeta, Link, Nanos, Verdict};
use proptest::prelude::*;

use super::driven::link;

/// Specifications of sequential links.
const LINKS: [&str; 7] = [
    "",
    "rate=10mbit queue=5p",
    "rate=10mbit queue=4kb loss=10% delay=3ms",
    "rate=3mbit queue=8p delay=uniform:min=1ms,max=9ms loss=gilbert:p=10%,r=30%",
    "delay=2ms loss=nth:3",
    "rate=5mbit queue=10p mtu=800 loss=20%,at=entry",
    "rate=steps:at=0s/10mbit;3ms/2mbit queue=6p",
];

/// Sentinel after the last frame.
const END: FrameMeta = FrameMeta {
    arrival: Nanos::MAX,
    len: 0,
};

/// Returns verdicts by frame index, obtained through the general interface.
fn by_numbers(link: &mut Link, frames: &[FrameMeta]) -> Vec<Option<Verdict>> {
    let mut verdicts = vec![None; frames.len()];
    // Frames dropped before the queue have no number.
    let mut numbered = Vec::new();
    for (index, frame) in frames.iter().chain([&END]).enumerate() {
        while let Some((number, verdict)) = link.poll(..=frame.arrival, &()) {
            let decided: usize = numbered[number as usize];
            verdicts[decided] = Some(verdict);
        }
        if index == frames.len() {
            break;
        }
        match link.offer(*frame, &[]) {
            Verdict::Queued => numbered.push(index),
            verdict => verdicts[index] = Some(verdict),
        }
    }
    verdicts
}

/// Returns verdicts by frame index, obtained through the sequential interface; no change follows
/// within `steady` nanoseconds of a frame.
fn in_turn(link: &mut Link, frames: &[FrameMeta], steady: u64) -> Vec<Option<Verdict>> {
    let mut verdicts = vec![None; frames.len()];
    let mut queued = std::collections::VecDeque::new();
    for (index, frame) in frames.iter().chain([&END]).enumerate() {
        while let Some(verdict) = link.in_turn().poll(..=frame.arrival) {
            let next: usize = queued.pop_front().expect("a queued frame");
            verdicts[next] = Some(verdict);
        }
        assert_eq!(link.in_turn().holds_frames(), !queued.is_empty());
        if index == frames.len() {
            break;
        }
        let steady_until = frame.arrival.saturating_add(Nanos::from_nanos(steady));
        match link.in_turn().offer(*frame, &[], steady_until) {
            Verdict::Queued => queued.push_back(index),
            verdict => verdicts[index] = Some(verdict),
        }
    }
    verdicts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn driving_in_turn_changes_no_verdict(
        frames in prop::collection::vec((0u64..2_000_000, 60u32..1_514), 1..200),
        options in prop::sample::select(LINKS.as_slice()),
        steady in prop::sample::select([0, 300_000, u64::MAX].as_slice()),
    ) {
        let mut now = 0;
        let frame = |(gap, len): &(u64, u32)| {
            // A third of the frames coincide with the previous one.
            now += gap.saturating_sub(700_000);
            FrameMeta { arrival: Nanos::from_nanos(now), len: *len }
        };
        let frames: Vec<FrameMeta> = frames.iter().map(frame).collect();
        let (mut a, mut b) = (link(options), link(options));
        prop_assert!(a.is_sequential());
        let last = frames[frames.len() - 1].arrival;
        let expected = by_numbers(&mut a, &frames);
        prop_assert!(expected.iter().all(Option::is_some));
        prop_assert_eq!(in_turn(&mut b, &frames, steady), expected);
        prop_assert_eq!(a.occupancy_max(), b.occupancy_max());
        prop_assert!(b.changeable_from() <= last.saturating_add(Nanos::from_nanos(steady)));
    }
}
