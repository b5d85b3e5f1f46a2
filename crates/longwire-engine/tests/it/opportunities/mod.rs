//! Packet delivery opportunities, compared with simple simulations of mahimahi's and CellReplay's
//! queues.

mod cellreplay;
mod mahimahi;

use std::collections::VecDeque;

use proptest::prelude::*;

use crate::rates::links;

const MILLI: u64 = 1_000_000;

/// Returns file contents with one number per line.
fn lines(numbers: &[u64]) -> String {
    numbers.iter().map(|number| format!("{number}\n")).collect()
}

/// A queue served at opportunities, in event order: each opportunity's bytes serve frames that
/// arrived before it.
#[derive(Clone)]
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

    /// Processes all opportunities up to `now`.
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

    /// Processes opportunities until no more frames can leave.
    fn drain(&mut self) {
        while self.transit > 0 || !self.waiting.is_empty() {
            let Some(time) = self.next_time() else { return };
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

/// Frames at whole milliseconds, when opportunities occur, and between them.
fn any_frames() -> impl Strategy<Value = Vec<(u64, u32)>> {
    let gap = prop_oneof![
        Just(0u64),
        0u64..100_000,
        (0u64..5).prop_map(|millis| millis * MILLI),
        (0u64..300).prop_map(|millis| millis * MILLI),
        0u64..2_000 * MILLI,
    ];
    let len = prop_oneof![Just(64u32), Just(1_514), 1u32..1_600, 1u32..20_000];
    links::after_gaps(gap, len)
}
