//! FIFO with rate changes, compared with a step-by-step simulation and with the `steps` rate model.

use longwire_engine::{BitRate, DropReason, LinkChange, LinkState, Nanos};
use proptest::prelude::*;

use super::driven::{Event, frame, link, outcomes, run, set, state};
use crate::common::config;

/// A line simulated nanosecond by nanosecond. At r bit/s, each step sends r billionths of a bit.
#[derive(Default)]
struct NaiveLine {
    rate: Option<u128>,
    is_off: bool,
    /// Unsent work of a departed frame: departures are rounded down to nanoseconds.
    rest: u128,
    /// Pending frames with their unsent work.
    frames: std::collections::VecDeque<(usize, u128)>,
    outcomes: Vec<Result<u64, DropReason>>,
}

#[derive(Clone, Copy, Debug)]
enum LineEvent {
    Frame(usize),
    Rate(Option<u64>),
    State(LinkState),
}

impl NaiveLine {
    fn event(&mut self, now: u64, event: LineEvent) {
        match event {
            LineEvent::Frame(_) if self.is_off => self.outcomes.push(Err(DropReason::Outage)),
            LineEvent::Frame(len) => {
                // Work that completes within this nanosecond departs before the arrival.
                while let Some((frame, work)) = self.frames.front()
                    && self.rate.is_none_or(|rate| self.rest + work < rate)
                {
                    self.rest += self.rate.map_or(0, |_| *work);
                    self.outcomes[*frame] = Ok(now);
                    self.frames.pop_front();
                }
                let work = len as u128 * 8 * 1_000_000_000;
                self.frames.push_back((self.outcomes.len(), work));
                self.outcomes.push(Ok(u64::MAX));
            }
            LineEvent::Rate(rate) => {
                self.rate = rate.map(u128::from);
                // An infinite rate sends everything immediately.
                self.rest = rate.map_or(0, |_| self.rest);
            }
            LineEvent::State(state) => {
                self.is_off = state == LinkState::Off;
                let lost = if self.is_off { self.frames.len() } else { 0 };
                for (frame, _) in self.frames.drain(..lost) {
                    self.outcomes[frame] = Err(DropReason::Outage);
                }
            }
        }
    }

    /// Sends for one nanosecond. Work that completes exactly at its end departs in the next step.
    fn send(&mut self, now: u64) {
        let mut budget = self.rate.unwrap_or(u128::MAX);
        let sent = self.rest.min(budget);
        (self.rest, budget) = (self.rest - sent, budget - sent);
        while let Some((frame, work)) = self.frames.front_mut() {
            if *work > 0 && *work >= budget {
                *work -= budget;
                return;
            }
            budget -= *work;
            self.outcomes[*frame] = Ok(now);
            self.frames.pop_front();
        }
    }
}

fn line_event() -> impl Strategy<Value = LineEvent> {
    prop_oneof![
        6 => (60..1515usize).prop_map(LineEvent::Frame),
        3 => (100_000_000..40_000_000_000u64).prop_map(|rate| LineEvent::Rate(Some(rate))),
        1 => Just(LineEvent::Rate(None)),
        1 => prop::sample::select([LinkState::On, LinkState::Off].as_slice())
            .prop_map(LineEvent::State),
    ]
}

fn set_rate(rate: Option<u64>) -> Event {
    Event::Change(Box::new(LinkChange {
        rate: Some(rate.and_then(BitRate::from_bits_per_sec).into()),
        ..LinkChange::default()
    }))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Frames and changes at random times. The frame in service continues at the new rate with
    /// exactly its unsent work.
    #[test]
    fn departures_are_those_of_a_simulated_line(
        steps in prop::collection::vec((0..1_500u64, line_event()), 1..150),
        often in any::<bool>(),
    ) {
        let (mut now, mut events) = (1_000, Vec::new());
        let mut naive = NaiveLine { rate: Some(1_000_000_000), ..NaiveLine::default() };
        for (gap, event) in steps {
            // A third of the events coincide with the previous one.
            let mut gap = gap.saturating_sub(500);
            // A step of zero length sends nothing, except at an infinite rate.
            if naive.rate.is_none() {
                gap += 1;
            }
            (now..now + gap).for_each(|at| naive.send(at));
            now += gap;
            naive.event(now, event);
            let event = match event {
                LineEvent::Frame(len) => frame(len),
                LineEvent::Rate(rate) => set_rate(rate),
                LineEvent::State(to) => state(to),
            };
            events.push((now, event));
        }
        while !naive.frames.is_empty() {
            naive.send(now);
            now += 1;
        }
        let (verdicts, _) = run(link("rate=1gbit queue=unlimited"), events, often);
        prop_assert_eq!(outcomes(&verdicts), naive.outcomes);
    }

    /// Changes of a fixed rate and a rate model with the same steps yield equal releases, with any
    /// models after the rate.
    #[test]
    fn changes_of_the_rate_are_steps_of_the_rate(
        frames in prop::collection::vec((0..40_000u64, 60..1515usize), 1..80),
        rates in prop::collection::vec((1..400_000u64, 1_000_000..2_000_000_000u64), 1..20),
        other in prop::sample::select([
            "", "queue=codel", "queue=fq-codel delay=1ms", "delay=uniform:min=1us,max=90us loss=20%",
            "delay=steps:0s/1us;90us/200us;1ms/3us", "order=reorder delay=uniform:min=1us,max=90us",
            "loss=outages:schedule=100us/100us", "loss=gilbert:p=10%,r=30% duplicate=20% delay=1ms",
            "corrupt=10% reorder=10%,time=1ms delay=20us",
        ].as_slice()),
    ) {
        let mut now = 0;
        let frames: Vec<_> = frames.into_iter().map(|(gap, len)| {
            now += gap;
            (now, len)
        }).collect();
        let (mut at, mut text, mut changes) = (0, "0s/5mbit".to_owned(), Vec::new());
        for (gap, rate) in rates {
            at += gap;
            text += &format!(";{at}ns/{rate}bit");
            changes.push((at, set_rate(Some(rate))));
        }
        let other = match other.contains("queue") {
            true => other.to_owned(),
            false => format!("queue=unlimited {other}"),
        };
        let stepped = link(&format!("rate=steps:at={text} {other}"));
        let changed = link(&format!("rate=5mbit {other}"));
        let arrivals = || frames.iter().map(|(at, len)| (*at, frame(*len)));
        let (stepped, _) = run(stepped, arrivals().collect(), false);
        changes.extend(arrivals());
        changes.sort_by_key(|(at, _)| *at);
        let (changed, _) = run(changed, changes, true);
        let (stepped, changed): (Vec<_>, Vec<_>) =
            (stepped.into_values().collect(), changed.into_values().collect());
        prop_assert_eq!(stepped, changed);
    }
}

#[test]
fn a_lower_limit_drops_the_latest() {
    let mut events: Vec<_> = (0..10).map(|n| (n, frame(1_000))).collect();
    events.push((20, set("queue=4p")));
    events.push((30, frame(1_000)));
    let (verdicts, lane) = run(link("rate=1mbit queue=100p"), events, true);
    // The frame in service counts towards the limit.
    let dropped: Vec<_> = outcomes(&verdicts).iter().map(Result::is_err).collect();
    let expected = [[false; 4].as_slice(), &[true; 7]].concat();
    assert_eq!(dropped, expected);
    assert_eq!(outcomes(&verdicts)[10], Err(DropReason::QueueFull));
    assert_eq!(lane.link().occupancy_max().0.0, 10);
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

/// For various pairs of rates, the second rate sends the work that the first left unsent.
#[test]
fn the_rest_of_a_frame_continues_at_any_rate() {
    let ms = 1_000_000;
    // 1,000 bytes start at 0; the rate changes at 4 ms, in the middle of the frame.
    for (before, after, departure) in [
        ("1mbit", "unlimited", 4 * ms),
        ("1mbit", "500kbit", 12 * ms),
        ("1mbit", "steps:0s/1mbit;1ms/500kbit", 11 * ms),
        ("1mbit", "steps:at=0s/0;1s/1mbit", 1_008 * ms),
        (
            "1mbit",
            "steps:at=0s/0;4ms/4mbit,change=linear",
            4 * ms + 2 * ms * 14142 / 10000,
        ),
        ("1mbit", "slots:wait=10ms,rate=1mbit", 18 * ms),
        ("slots:wait=1ms,rate=2mbit", "1mbit", 6 * ms),
        ("steps:at=0s/2mbit;2ms/0", "1mbit", 8 * ms),
        ("steps:at=0s/2mbit;1ms/0,period=2ms", "1mbit", 8 * ms),
        ("steps:at=0s/0;8ms/1mbit,change=linear", "1mbit", 11 * ms),
        // No partial progress: the frame is sent again.
        ("tdm:rate=2mbit,period=20ms,slot=2ms", "1mbit", 12 * ms),
        (
            "token-bucket:rate=400kbit,burst=2kb,peak=500kbit",
            "1mbit",
            12 * ms,
        ),
    ] {
        let events = vec![(0, frame(1_000)), (4 * ms, set(&format!("rate={after}")))];
        let (verdicts, _) = run(link(&format!("rate={before}")), events, true);
        let found = outcomes(&verdicts)[0].expect("delivered");
        let error = found.abs_diff(departure);
        let tolerance = if after.contains("linear") { 1_000 } else { 0 };
        assert!(error <= tolerance, "{before} {after}: {found} {departure}");
    }
}
