//! The rate model `cellreplay`, compared with CellReplay's rules.

use proptest::prelude::*;

use crate::common::files::Files;
use crate::opportunities::{MILLI, Opportunities, any_frames, any_millis, counted, lines};
use crate::rates::links;

/// CellReplay's rules in one pass over the arrivals, with times in nanoseconds. Computes each
/// packet's release and the base delay in effect.
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
    /// Returns the time at which a packet leaves the light queue, and whether its train has an
    /// opportunity for it.
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
            // Compensates for floating-point rounding.
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

    /// Departures, and releases with and without the base delay.
    #[test]
    fn times_are_those_of_cellreplays_rule(
        trains in any_trains(),
        millis in any_millis(),
        frames in any_frames(),
        pause in prop_oneof![Just(0u64), 0u64..50],
        (managed, included) in any::<(bool, bool)>(),
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
        let (mut expected, mut last, mut released) = (Vec::new(), 0, 0);
        for (arrival, len) in &frames {
            let bytes = counted(*len, -10);
            let (release, in_train) = light.release(*arrival, bytes);
            // Packets in the heavy queue at the release, including one that leaves at that instant.
            heavy.pass(release.saturating_sub(1));
            let empty = heavy.departures.len() == heavy_count;
            let left = if in_train && empty {
                release
            } else {
                heavy.arrive(release, bytes);
                heavy_count += 1;
                let mut served = heavy.clone();
                served.drain();
                served.departures[heavy_count - 1]
            };
            // Departures are in order, as on any link.
            last = left.saturating_sub(light.base_delay).max(last);
            released = left.max(released);
            expected.push((last, if included { released } else { last }));
        }
        let text = trains.iter().map(|(time, delay, opportunities)| {
            let rest: Vec<String> = opportunities.iter().map(u64::to_string).collect();
            format!("{time} {delay} {}\n", rest.join(" "))
        });
        let files = [("light", text.collect::<String>()), ("heavy", lines(&millis))];
        let more = if included { ",base-delay=included" } else { "" };
        let rate = format!("cellreplay:trains=light,opportunities=heavy,pause={pause}ms{more}");
        let mut link = links::link_with(&rate, &Files(&files), 0, managed);
        let deliveries = links::deliveries(&mut link, &frames).into_iter();
        let times = deliveries.map(|delivery| (delivery.departure, delivery.release));
        let times = times.map(|(departure, release)| (departure.as_nanos(), release.as_nanos()));
        prop_assert_eq!(times.collect::<Vec<_>>(), expected);
    }
}
