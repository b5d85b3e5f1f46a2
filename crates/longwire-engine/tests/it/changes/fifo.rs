//! First in, first out, with rates that change: every departure against exact
//! arithmetic, and against the rate model that steps.

use longwire_engine::{BitRate, DropReason, LinkChange, Nanos};
use proptest::prelude::*;

use super::driven::{Event, link, outcomes, run, set};
use crate::common::config;

fn frame(len: usize) -> Event {
    Event::Frame(vec![0; len])
}

/// An exact instant: nanoseconds and a fraction of one, `part / rate`.
#[derive(Clone, Copy)]
struct Oracle {
    free: u128,
    part: u128,
    rate: u128,
}

impl Oracle {
    fn change(&mut self, rate: u128) {
        self.part = self.part * rate / self.rate;
        self.rate = rate;
    }

    fn serve(&mut self, arrival: u128, len: u128) -> u64 {
        if arrival > self.free {
            (self.free, self.part) = (arrival, 0);
        }
        let work = len * 8 * 1_000_000_000 + self.part;
        self.free += work / self.rate;
        self.part = work % self.rate;
        self.free as u64
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Frames and rate steps at random times, in one line without a limit. A
    /// frame is served at the rate in force when the one before has departed.
    #[test]
    fn departures_are_those_of_exact_arithmetic(
        steps in proptest::collection::vec(
            (0..30_000u64, prop_oneof![
                (60..1515usize).prop_map(Ok),
                (100_000..1_000_000_000u64).prop_map(Err),
            ]),
            1..200,
        ),
    ) {
        let mut now = 1_000;
        let mut events = Vec::new();
        let mut oracle = Oracle { free: 0, part: 0, rate: 10_000_000 };
        let (mut waiting, mut expected) = (std::collections::VecDeque::new(), Vec::new());
        for (gap, step) in steps {
            now += gap;
            // Frames dequeued before `now`.
            while let Some((arrival, len)) = waiting.front().copied()
                && oracle.free.max(arrival) < u128::from(now)
            {
                waiting.pop_front();
                expected.push(Ok(oracle.serve(arrival, len)));
            }
            match step {
                Ok(len) => {
                    waiting.push_back((u128::from(now), len as u128));
                    events.push((now, frame(len)));
                }
                Err(rate) => {
                    oracle.change(rate.into());
                    let change = LinkChange {
                        rate: Some(BitRate::from_bits_per_sec(rate).into()),
                        ..LinkChange::default()
                    };
                    events.push((now, Event::Change(Box::new(change))));
                }
            }
        }
        for (arrival, len) in waiting {
            expected.push(Ok(oracle.serve(arrival, len)));
        }
        let (verdicts, _) = run(link("rate=10mbit queue=unlimited"), events, false);
        prop_assert_eq!(outcomes(&verdicts), expected);
    }
}

#[test]
fn by_hand() {
    // 1000 bytes take 8 ms at 1 Mbit/s and 4 ms at 2 Mbit/s.
    let ms = 1_000_000;
    let mut events: Vec<_> = (0..4).map(|_| (ms, frame(1_000))).collect();
    events.push((10 * ms, set("rate=2mbit")));
    events.push((22 * ms, set("framing=bytes:overhead=1000")));
    let (verdicts, _) = run(link("rate=1mbit queue=unlimited"), events, true);
    // The second is in service at 10 ms and keeps its 8 ms; the fourth begins
    // at 21 ms, before framing makes it twice as long.
    let expected = [9, 17, 21, 25].map(|at| Ok(at * ms));
    assert_eq!(outcomes(&verdicts), expected);
}

#[test]
fn framing_holds_for_what_waits() {
    let ms = 1_000_000;
    let mut events: Vec<_> = (0..3).map(|_| (0, frame(1_000))).collect();
    events.push((ms, set("framing=bytes:overhead=1000")));
    let (verdicts, _) = run(link("rate=1mbit queue=unlimited"), events, true);
    assert_eq!(outcomes(&verdicts), [8, 24, 40].map(|at| Ok(at * ms)));
}

/// A step of the model changes the speed of the frame in service; a change
/// does not. Where the change falls between two frames, they agree.
#[test]
fn as_the_model_that_steps_between_two_frames() {
    let ms = 1_000_000;
    let frames = || (0..6).map(|_| (0, frame(1_000)));
    let mut changed: Vec<_> = frames().collect();
    changed.push((24 * ms, set("rate=2mbit")));
    let (changed, _) = run(link("rate=1mbit queue=unlimited"), changed, true);
    let stepped = link("rate=steps:0s/1mbit;24ms/2mbit queue=unlimited");
    let (stepped, _) = run(stepped, frames().collect(), true);
    assert_eq!(outcomes(&changed), outcomes(&stepped));
    assert_eq!(outcomes(&changed)[5], Ok(36 * ms));
}

#[test]
fn a_lower_limit_drops_the_latest() {
    let mut events: Vec<_> = (0..10).map(|n| (n, frame(1_000))).collect();
    events.push((20, set("queue=4p")));
    events.push((30, frame(1_000)));
    let (verdicts, link) = run(link("rate=1mbit queue=100p"), events, true);
    // The frame being sent counts.
    let dropped: Vec<_> = outcomes(&verdicts).iter().map(Result::is_err).collect();
    let expected = [[false; 4].as_slice(), &[true; 7]].concat();
    assert_eq!(dropped, expected);
    assert_eq!(outcomes(&verdicts)[10], Err(DropReason::QueueFull));
    assert_eq!(link.occupancy_max().0.0, 10);
}

#[test]
fn a_derived_limit_follows_rate_and_delay() {
    let mut link = link("rate=10mbit delay=20ms");
    for (line, same) in [
        ("rate=50mbit", "rate=50mbit delay=20ms"),
        ("delay=300ms", "rate=50mbit delay=300ms"),
        ("queue=7p", "queue=7p"),
        ("rate=1mbit", "queue=7p"),
        ("queue=derived", "rate=1mbit delay=300ms"),
        ("delay=none", "rate=1mbit delay=0s"),
    ] {
        let Event::Change(change) = set(line) else {
            panic!("no change");
        };
        drop(link.change(Nanos::ZERO, *change, &()));
        assert_eq!(link.queue_limit(), config(same).queue_limit(), "{line}");
    }
}

#[test]
fn a_link_without_rate_gets_one_and_loses_it() {
    let ms = 1_000_000;
    let events = vec![
        (ms, frame(1_000)),
        (ms, frame(1_000)),
        (2 * ms, set("rate=1mbit")),
        (2 * ms, frame(1_000)),
        (2 * ms, frame(1_000)),
        (2 * ms, frame(1_000)),
        (3 * ms, set("rate=unlimited")),
        (50 * ms, frame(1_000)),
    ];
    let (verdicts, _) = run(link(""), events, true);
    assert_eq!(
        outcomes(&verdicts),
        [1, 1, 10, 10, 10, 50].map(|at| Ok(at * ms))
    );
}

#[test]
fn a_link_that_stood_still_for_ever_runs_again() {
    let ms = 1_000_000;
    let still = link("rate=steps:0s/1mbit;4ms/0 queue=unlimited");
    let events = vec![
        (0, frame(1_000)),
        (0, frame(1_000)),
        (5 * ms, set("rate=1mbit")),
        (5 * ms, frame(1_000)),
    ];
    let (verdicts, _) = run(still, events, true);
    // Half of the first was sent; its rest never is.
    assert_eq!(
        outcomes(&verdicts),
        [Ok(u64::MAX), Ok(13 * ms), Ok(21 * ms)]
    );
}
