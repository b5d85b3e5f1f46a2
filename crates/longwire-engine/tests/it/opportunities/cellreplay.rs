//! CellReplay's rules.

use std::collections::VecDeque;

use proptest::prelude::*;

use crate::opportunities::{
    Files, MILLI, Opportunities, any_frames, any_millis, counted, departures, lines,
};
use crate::rates::links;

/// CellReplay's rules in one pass over the arrivals, with times in nanoseconds: the release
/// of each packet, and the base delay in force.
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
    /// Returns when a packet leaves the light queue, and whether it has a place in the
    /// train.
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
            // Tolerance for whole values that are inexact as floats.
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
            // Packets in the heavy queue at the release, or leaving it then.
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
            // In order, as every link.
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

/// CellReplay as an emulator with a millisecond clock: at each tick, packets arrive, leave
/// the queue of trains or skip the other queue, and leave that one at its opportunities.
/// Records when each packet is handed on.
struct Emulator<'a> {
    trains: &'a [(u64, u64, Vec<u64>)],
    opportunities: &'a [u64],
    pause: u64,
    size: u64,
    /// Start of the current lap of the trains and of the opportunities.
    trains_since: u64,
    opportunities_since: u64,
    train: usize,
    /// State of the current train.
    begun: u64,
    base_delay: Option<u64>,
    place: usize,
    left: u64,
    last_release: u64,
    end_release: u64,
    next_opportunity: usize,
    /// Packets by number: delayed ones with their release and whether they may skip the
    /// other queue; queued ones with their remaining bytes.
    delayed: VecDeque<(usize, u64, u64, bool)>,
    queued: VecDeque<(usize, u64)>,
}

impl Emulator<'_> {
    fn arrive(&mut self, number: usize, now: u64, bytes: u64) {
        let begins = self
            .base_delay
            .is_none_or(|delay| now + delay > self.last_release + self.pause);
        let mut skips = true;
        let mut release;
        if begins {
            let last = self.trains.len() - 1;
            while self.trains[self.train + 1].0 <= now - self.trains_since {
                self.train += 1;
                if self.train == last {
                    self.trains_since += self.trains[last].0;
                    self.train = 0;
                }
            }
            let (from, to) = (&self.trains[self.train], &self.trains[self.train + 1]);
            // A trace that starts late is extended before its first row.
            let past = (now - self.trains_since).saturating_sub(from.0);
            let (gap, rise) = (
                i128::from(to.0 - from.0),
                i128::from(to.1) - i128::from(from.1),
            );
            let delay = i128::from(from.1) + (rise * i128::from(past)).div_euclid(gap);
            self.base_delay = Some(delay as u64);
            release = now + delay as u64;
            (self.begun, self.place) = (now, 0);
            self.left = self.size.saturating_sub(bytes);
        } else {
            let places = &self.trains[self.train].2;
            while self.place < places.len() && now - self.begun > places[self.place] {
                self.place += 1;
                self.left = self.size;
            }
            if self.left < bytes {
                self.place += 1;
                self.left = self.size;
            }
            self.left = self.left.saturating_sub(bytes);
            let delay = self.base_delay.unwrap();
            skips = self.place < places.len();
            release = if skips {
                self.begun + places[self.place] + delay
            } else {
                now + delay.max(places[places.len() - 1])
            };
        }
        self.last_release = release;
        if release < self.end_release {
            (release, skips) = (self.end_release, false);
        }
        self.end_release = release;
        self.delayed.push_back((number, release, bytes, skips));
    }

    /// Processes all events of a millisecond.
    fn tick(&mut self, now: u64, delivered: &mut [u64]) {
        let mut sent = Vec::new();
        while let Some((number, release, bytes, skips)) = self.delayed.front().copied() {
            if release > now {
                break;
            }
            self.delayed.pop_front();
            if skips && self.queued.is_empty() && sent.is_empty() {
                delivered[number] = now;
                continue;
            }
            self.send(now, &mut sent);
            self.queued.push_back((number, bytes));
        }
        self.send(now, &mut sent);
        sent.into_iter()
            .for_each(|number: usize| delivered[number] = now);
    }

    /// Uses the opportunities up to `now`.
    fn send(&mut self, now: u64, sent: &mut Vec<usize>) {
        while self.opportunities_since + self.opportunities[self.next_opportunity] <= now {
            self.next_opportunity += 1;
            if self.next_opportunity == self.opportunities.len() {
                self.opportunities_since += self.opportunities[self.next_opportunity - 1];
                self.next_opportunity = 0;
            }
            let mut room = self.size;
            while room > 0
                && let Some((number, bytes)) = self.queued.front_mut()
            {
                let part = room.min(*bytes);
                (room, *bytes) = (room - part, *bytes - part);
                if *bytes == 0 {
                    sent.push(*number);
                    self.queued.pop_front();
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    /// A link's releases, including the base delay, are the milliseconds at which
    /// CellReplay hands packets on.
    #[test]
    fn releases_are_those_of_cellreplay_end_to_end(
        trains in any_trains(),
        millis in any_millis(),
        gaps in proptest::collection::vec((prop_oneof![Just(0u64), 0u64..4, 0u64..200], 40u64..1_504), 1..60),
        pause in prop_oneof![Just(0u64), 0u64..50],
        managed in any::<bool>(),
    ) {
        let mut emulator = Emulator {
            trains: &trains,
            opportunities: &millis,
            pause,
            size: 1_504,
            trains_since: 0,
            opportunities_since: 0,
            train: 0,
            begun: 0,
            base_delay: None,
            place: 0,
            left: 0,
            last_release: 0,
            end_release: 0,
            next_opportunity: 0,
            delayed: VecDeque::new(),
            queued: VecDeque::new(),
        };
        let mut clock = 0;
        let frames: Vec<(u64, u64)> = gaps.iter().map(|(gap, bytes)| {
            clock += gap;
            (clock, *bytes)
        }).collect();
        let mut expected = vec![0; frames.len()];
        let (mut next, mut now) = (0, 0);
        while next < frames.len() || !emulator.delayed.is_empty() || !emulator.queued.is_empty() {
            while next < frames.len() && frames[next].0 == now {
                emulator.arrive(next, now, frames[next].1);
                next += 1;
            }
            emulator.tick(now, &mut expected);
            now += 1;
        }
        let text = trains.iter().map(|(time, delay, places)| {
            let places: Vec<String> = places.iter().map(u64::to_string).collect();
            format!("{time} {delay} {}\n", places.join(" "))
        });
        let files = [("light", text.collect::<String>()), ("heavy", lines(&millis))];
        let rate = format!(
            "cellreplay:trains=light,opportunities=heavy,pause={pause}ms,base-delay=included"
        );
        // The rate counts 10 bytes less than the frame's length.
        let frames: Vec<(u64, u32)> = frames
            .iter()
            .map(|(at, bytes)| (at * MILLI, *bytes as u32 + 10))
            .collect();
        let mut link = links::link_with(&rate, &Files(&files), 0, managed);
        let found = links::deliveries(&mut link, &frames);
        let found: Vec<u64> = found.iter().map(|delivery| delivery.release.as_nanos()).collect();
        let expected: Vec<u64> = expected.iter().map(|at| at * MILLI).collect();
        prop_assert_eq!(found, expected);
    }
}
