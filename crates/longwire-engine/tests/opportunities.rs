//! Packet delivery opportunities, against plain simulations of the rules of
//! mahimahi's and CellReplay's own queues.

mod common;

use std::collections::VecDeque;

use common::frame;
use longwire_engine::loader::{Hook, Loader, Plugin};
use longwire_engine::models;
use longwire_engine::models::queue::fifo::ManagedFifo;
use longwire_engine::models::queue::{Queue, QueueLimit};
use longwire_engine::{Link, LinkConfig, LinkId, Nanos, Verdict};
use proptest::prelude::*;

const MILLI: u64 = 1_000_000;

/// Files by name.
struct Files<'a>(&'a [(&'a str, String)]);

impl Loader for Files<'_> {
    fn read(
        &self,
        path: &str,
        take: &mut dyn FnMut(&[u8]) -> Result<(), String>,
    ) -> Result<(), String> {
        let file = self.0.iter().find(|(name, _)| *name == path);
        file.map_or(Err("no such file".to_owned()), |(_, text)| {
            take(text.as_bytes())
        })
    }

    fn plugin(
        &self,
        _path: &str,
        _hook: Hook,
        _parameters: &[(String, String)],
    ) -> Result<Box<dyn Plugin>, String> {
        Err("there are no plugins here".to_owned())
    }
}

/// When frames depart, of those that ever do.
fn departures(
    rate: &str,
    files: &[(&str, String)],
    epoch: u64,
    managed: bool,
    frames: &[(u64, u32)],
) -> Vec<u64> {
    let rate = models::RATE.parse_with(rate, &Files(files));
    let config = LinkConfig {
        rate: rate.unwrap_or_else(|error| panic!("{error}")),
        queue: Some(match managed {
            true => Queue::Managed(Box::new(ManagedFifo::new(QueueLimit::UNLIMITED))),
            false => Queue::TailDrop(QueueLimit::UNLIMITED),
        }),
        epoch: Nanos::from_nanos(epoch),
        ..LinkConfig::default()
    };
    let mut link = Link::new(config, 1, LinkId(0));
    let mut departures = Vec::new();
    let mut note = |verdict: Verdict| {
        if let Verdict::Deliver(delivery) = verdict {
            departures.push(delivery.departure.as_nanos());
        }
    };
    for (arrival, len) in frames {
        while let Some((_, verdict)) = link.poll(Nanos::from_nanos(*arrival), &()) {
            note(verdict);
        }
        note(link.offer(frame(*arrival, *len), &[]));
    }
    while let Some((_, verdict)) = link.poll(Nanos::MAX, &()) {
        note(verdict);
    }
    departures.retain(|departure| *departure < u64::MAX);
    departures
}

/// Lines of a file, one number each.
fn lines(numbers: &[u64]) -> String {
    numbers.iter().map(|number| format!("{number}\n")).collect()
}

/// A queue that is served at opportunities, in the order of events: at each
/// opportunity, everything that came before it may use its bytes.
struct Opportunities<'a> {
    millis: &'a [u64],
    repeats: bool,
    size: u64,
    next: usize,
    base: u64,
    waiting: VecDeque<u64>,
    transit: u64,
    departures: Vec<u64>,
}

impl<'a> Opportunities<'a> {
    fn new(millis: &'a [u64], size: u64, repeats: bool) -> Opportunities<'a> {
        Opportunities {
            millis,
            repeats,
            size,
            next: 0,
            base: 0,
            waiting: VecDeque::new(),
            transit: 0,
            departures: Vec::new(),
        }
    }

    fn next_time(&self) -> Option<u64> {
        let milli = self.millis.get(self.next)?;
        Some((self.base + milli) * MILLI)
    }

    /// All opportunities up to `now` pass.
    fn pass(&mut self, now: u64) {
        while let Some(time) = self.next_time().filter(|time| *time <= now) {
            self.next += 1;
            if self.next == self.millis.len() && self.repeats {
                self.next = 0;
                self.base += self.millis[self.millis.len() - 1];
            }
            let mut left = self.size;
            while left > 0 {
                if self.transit == 0 {
                    let Some(bytes) = self.waiting.pop_front() else {
                        break;
                    };
                    self.transit = bytes;
                }
                let sent = left.min(self.transit);
                left -= sent;
                self.transit -= sent;
                if self.transit == 0 {
                    self.departures.push(time);
                }
            }
        }
    }

    fn arrive(&mut self, now: u64, bytes: u64) {
        self.pass(now);
        self.waiting.push_back(bytes);
    }

    /// Lets everything out that still gets out.
    fn drain(&mut self) {
        while self.transit > 0 || !self.waiting.is_empty() {
            let Some(time) = self.next_time() else {
                return;
            };
            self.pass(time);
        }
    }
}

fn counted(len: u32, overhead: i64) -> u64 {
    (i64::from(len) + overhead).max(1) as u64
}

fn any_millis() -> impl Strategy<Value = Vec<u64>> {
    let gap = prop_oneof![Just(0u64), Just(0), 0u64..4, 0u64..60];
    let gaps = proptest::collection::vec(gap, 1..60);
    let millis = gaps.prop_map(|gaps| {
        let mut clock = 0;
        let time = |gap| {
            clock += gap;
            clock
        };
        gaps.into_iter().map(time).collect::<Vec<u64>>()
    });
    millis.prop_filter("a trace lasts some time", |millis| {
        millis[millis.len() - 1] > 0
    })
}

/// Frames on whole milliseconds, where opportunities are, and between them.
fn any_frames() -> impl Strategy<Value = Vec<(u64, u32)>> {
    let gap = prop_oneof![
        Just(0u64),
        0u64..100_000,
        (0u64..5).prop_map(|millis| millis * MILLI),
        (0u64..300).prop_map(|millis| millis * MILLI),
        0u64..2_000 * MILLI,
    ];
    let len = prop_oneof![Just(64u32), Just(1_514), 1u32..1_600, 1u32..20_000];
    proptest::collection::vec((gap, len), 1..80).prop_map(|mut frames| {
        let mut clock = 0;
        for (gap, _) in &mut frames {
            clock += *gap;
            *gap = clock;
        }
        frames
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn departures_are_those_of_mahimahis_rule(
        millis in any_millis(),
        frames in any_frames(),
        repeats in any::<bool>(),
        epoch in prop_oneof![Just(0u64), 0u64..1 << 50],
        (size, overhead) in prop_oneof![Just((1504u64, -10i64)), Just((1500, -14)), (1u64..4_000, -100i64..100)],
    ) {
        let mut oracle = Opportunities::new(&millis, size, repeats);
        for (arrival, len) in &frames {
            oracle.arrive(*arrival, counted(*len, overhead));
        }
        oracle.drain();
        let expected: Vec<u64> = oracle.departures.iter().map(|at| epoch + at).collect();
        let frames: Vec<(u64, u32)> = frames.iter().map(|(at, len)| (epoch + at, *len)).collect();
        let end = if repeats { "loop" } else { "stop" };
        let rate = format!(
            "mahimahi:file=t,end={end},opportunity={size}b,overhead={overhead}"
        );
        let files = [("t", lines(&millis))];
        for managed in [false, true] {
            let departures = departures(&rate, &files, epoch, managed, &frames);
            prop_assert_eq!(&departures, &expected, "managed: {}", managed);
        }
    }
}

/// What the wrap does, by hand: opportunities at 2, 2 and 5 ms, then at 7, 7
/// and 10, and so on. A full frame takes one, and a small one shares it.
#[test]
fn a_trace_begins_again_at_its_last_time() {
    let files = [("t", "2\n2\n5\n".to_owned())];
    let full = vec![(0u64, 1_514u32); 7];
    let at = |rate: &str, frames: &[(u64, u32)]| {
        let departures = departures(rate, &files, 0, false, frames);
        departures.iter().map(|at| at / MILLI).collect::<Vec<u64>>()
    };
    assert_eq!(at("trace:t", &full), [2, 2, 5, 7, 7, 10, 12]);
    assert_eq!(at("mahimahi:t,stop", &full), [2, 2, 5]);
    // 100 bytes count 90: sixteen of them fit into one opportunity, and the
    // seventeenth ends in the next.
    assert_eq!(at("trace:t", &[(0, 100); 18])[15..], [2, 2, 2]);
    assert_eq!(at("trace:t", &[(3 * MILLI, 100); 17])[15..], [5, 7]);
    // A frame that comes with an opportunity has missed it.
    assert_eq!(at("trace:t", &[(5 * MILLI, 100)]), [7]);
}

/// 4 GB, a byte at a time: as many opportunities, three in each 5 ms.
#[test]
fn a_frame_of_very_many_opportunities_is_delivered_at_once() {
    let files = [("t", "2\n2\n5\n".to_owned())];
    let rate = "mahimahi:file=t,opportunity=1b,overhead=0";
    let departures = departures(rate, &files, 0, false, &[(0, u32::MAX)]);
    assert_eq!(departures, [u64::from(u32::MAX) / 3 * 5 * MILLI]);
}

#[test]
fn wrong_lines_are_refused_with_their_number() {
    let refusal = |text: &str| {
        let files = [("t.up", text.to_owned())];
        let rate = models::RATE.parse_with("mahimahi:t.up", &Files(&files));
        rate.err()
            .map_or_else(|| panic!("{text:?} was read"), |error| error.to_string())
    };
    for (text, message) in [
        (
            "1\n5\n4\n",
            "line 3: 4 ms is before the 5 ms of the line above",
        ),
        (
            "1\n\n2\n",
            "line 2: '' is not a whole number of milliseconds",
        ),
        (
            "1.5\n",
            "line 1: '1.5' is not a whole number of milliseconds",
        ),
        ("-1\n", "line 1: '-1' is not a whole number of milliseconds"),
        (
            "4294967296\n",
            "line 1: '4294967296' is too large; the most is 4294967295",
        ),
        ("", "it holds no opportunity"),
        (
            "0\n0\n",
            "its last opportunity is at 0 ms, so it has no length",
        ),
    ] {
        assert_eq!(refusal(text), format!("mahimahi: file: t.up: {message}"));
    }
}

/// CellReplay's rule in one pass over the arrivals, with times in
/// nanoseconds: the release of each packet, and the base delay in force.
struct CellReplay<'a> {
    trains: &'a [(u64, u64, Vec<u64>)],
    pause: u64,
    size: u64,
    base: u64,
    train: usize,
    first: Option<u64>,
    opportunity: usize,
    left: u64,
    base_delay: u64,
    last_release: u64,
    end_release: u64,
}

impl CellReplay<'_> {
    /// When a packet leaves the light queue, and whether it has its place.
    fn release(&mut self, time: u64, bytes: u64) -> (u64, bool) {
        let begins = match self.first {
            None => true,
            Some(_) => time + self.base_delay > self.last_release + self.pause,
        };
        let mut in_train = true;
        let mut release = if begins {
            while self.trains[self.train + 1].0 * MILLI <= time - self.base {
                self.train += 1;
                if self.train >= self.trains.len() - 1 {
                    self.base += self.trains[self.train].0 * MILLI;
                    self.train = 0;
                }
            }
            let (from, to) = (&self.trains[self.train], &self.trains[self.train + 1]);
            let past = ((time - self.base) / MILLI).saturating_sub(from.0) as f64;
            let rise = to.1 as f64 - from.1 as f64;
            // A hair more, for what is whole but for the float.
            let delay = from.1 as f64 + rise * past / (to.0 - from.0) as f64 + 1e-9;
            self.base_delay = delay as u64 * MILLI;
            (self.first, self.opportunity) = (Some(time), 0);
            self.left = self.size.saturating_sub(bytes);
            time + self.base_delay
        } else {
            let opportunities = &self.trains[self.train].2;
            let first = self.first.unwrap();
            while self.opportunity < opportunities.len()
                && time - first > opportunities[self.opportunity] * MILLI
            {
                self.opportunity += 1;
                self.left = self.size;
            }
            if self.left < bytes {
                self.opportunity += 1;
                self.left = self.size;
            }
            self.left = self.left.saturating_sub(bytes);
            match opportunities.get(self.opportunity) {
                Some(opportunity) => first + self.base_delay + opportunity * MILLI,
                None => {
                    in_train = false;
                    let last = opportunities[opportunities.len() - 1] * MILLI;
                    time + self.base_delay.max(last)
                }
            }
        };
        self.last_release = release;
        if release < self.end_release {
            release = self.end_release;
            in_train = false;
        }
        self.end_release = release;
        (release, in_train)
    }
}

fn any_trains() -> impl Strategy<Value = Vec<(u64, u64, Vec<u64>)>> {
    let opportunities = proptest::collection::vec(prop_oneof![Just(0u64), 0u64..5], 1..8);
    let train = (1u64..200, 0u64..40, opportunities);
    proptest::collection::vec(train, 3..8).prop_map(|trains| {
        let mut clock = None;
        let sum = |gaps: Vec<u64>| {
            let mut sum = 0;
            let add = |gap| {
                sum += gap;
                sum
            };
            gaps.into_iter().map(add).collect()
        };
        let train = |(gap, delay, gaps)| {
            let time = clock.map_or(0, |clock| clock + gap);
            clock = Some(time);
            (time, delay, sum(gaps))
        };
        trains.into_iter().map(train).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn departures_are_those_of_cellreplays_rule(
        trains in any_trains(),
        millis in any_millis(),
        frames in any_frames(),
        pause in prop_oneof![Just(0u64), 0u64..50],
    ) {
        const SIZE: u64 = 1_504;
        let mut light = CellReplay {
            trains: &trains,
            pause: pause * MILLI,
            size: SIZE,
            base: 0,
            train: 0,
            first: None,
            opportunity: 0,
            left: 0,
            base_delay: 0,
            last_release: 0,
            end_release: 0,
        };
        let mut heavy = Opportunities::new(&millis, SIZE, true);
        let mut heavy_count = 0;
        let (mut expected, mut last) = (Vec::new(), 0);
        for (arrival, len) in &frames {
            let bytes = counted(*len, -10);
            let (release, in_train) = light.release(*arrival, bytes);
            // What is in the heavy queue at the release, or leaves it then.
            heavy.pass(release.saturating_sub(1));
            let empty = heavy.departures.len() == heavy_count;
            let left = if in_train && empty {
                release
            } else {
                heavy.arrive(release, bytes);
                heavy_count += 1;
                let mut served = Opportunities { departures: heavy.departures.clone(), ..Opportunities::new(&millis, SIZE, true) };
                served.next = heavy.next;
                served.base = heavy.base;
                served.transit = heavy.transit;
                served.waiting = heavy.waiting.clone();
                served.drain();
                served.departures[heavy_count - 1]
            };
            // In order, as every link is.
            last = left.saturating_sub(light.base_delay).max(last);
            expected.push(last);
        }
        let text = trains.iter().map(|(time, delay, opportunities)| {
            let rest: Vec<String> = opportunities.iter().map(u64::to_string).collect();
            format!("{time} {delay} {}\n", rest.join(" "))
        });
        let files = [("light", text.collect::<String>()), ("heavy", lines(&millis))];
        let rate = format!("cellreplay:trains=light,opportunities=heavy,pause={pause}ms");
        let departures = departures(&rate, &files, 0, false, &frames);
        prop_assert_eq!(departures, expected);
    }
}
