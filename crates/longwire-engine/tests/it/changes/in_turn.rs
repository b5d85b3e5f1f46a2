//! Sequential links, whose verdicts by frame number and through [`SequentialLink`] must be equal.

use longwire_engine::{Bytes, FrameMeta, Link, Nanos, Packets, Verdict};
use proptest::prelude::*;

use super::driven::link;

/// Specifications of sequential links.
const LINKS: [&str; 8] = [
    "",
    "rate=10mbit queue=5p",
    "rate=5mbit queue=6kb delay=3ms",
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

/// Verdicts, and queue lengths before each offer, by frame index.
type Decided = (Vec<Option<Verdict>>, Vec<(Packets, Bytes)>);

/// Returns the results of the general interface.
fn by_numbers(link: &mut Link, frames: &[FrameMeta]) -> Decided {
    let mut verdicts = vec![None; frames.len()];
    let mut queues = Vec::new();
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
        queues.push(link.occupancy());
        match link.offer(*frame, &[]) {
            Verdict::Queued => numbered.push(index),
            verdict => verdicts[index] = Some(verdict),
        }
    }
    (verdicts, queues)
}

/// Returns the results of the sequential interface. No change precedes the times `steady`, which
/// never decrease.
fn in_turn(link: &mut Link, frames: &[FrameMeta], steady: &[Nanos]) -> Decided {
    let mut verdicts = vec![None; frames.len()];
    let mut queues = Vec::new();
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
        queues.push(link.occupancy());
        match link.in_turn().offer(*frame, &[], steady[index]) {
            Verdict::Queued => queued.push_back(index),
            verdict => verdicts[index] = Some(verdict),
        }
    }
    (verdicts, queues)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn driving_in_turn_changes_no_verdict(
        frames in prop::collection::vec((0u64..2_000_000, 60u32..1_514, 0u64..12_000_000), 1..200),
        options in prop::sample::select(LINKS.as_slice()),
        promised in prop::sample::select([0, 300_000, 6_000_000, u64::MAX].as_slice()),
    ) {
        let mut now = 0;
        let frame = |(gap, len, _): &(u64, u32, u64)| {
            // A third of the frames coincide with the previous one.
            now += gap.saturating_sub(700_000);
            FrameMeta { arrival: Nanos::from_nanos(now), len: *len }
        };
        let extra: Vec<u64> = frames.iter().map(|(.., extra)| *extra).collect();
        let frames: Vec<FrameMeta> = frames.iter().map(frame).collect();
        let mut until = Nanos::ZERO;
        let steady = frames.iter().zip(extra).map(|(frame, extra)| {
            let ahead = if promised == 6_000_000 { extra } else { promised };
            until = until.max(frame.arrival.saturating_add(Nanos::from_nanos(ahead)));
            until
        });
        let steady: Vec<Nanos> = steady.collect();
        let (mut a, mut b) = (link(options), link(options));
        prop_assert!(a.is_sequential());
        let expected = by_numbers(&mut a, &frames);
        prop_assert!(expected.0.iter().all(Option::is_some));
        prop_assert_eq!(in_turn(&mut b, &frames, &steady), expected);
        prop_assert_eq!(a.occupancy_max(), b.occupancy_max());
        prop_assert!(b.changeable_from() <= steady[frames.len() - 1]);
    }
}
