//! Tests slots with random waits against netem's dequeue function, event by event.

use std::collections::VecDeque;

use longwire_engine::{Bytes, Nanos, Verdict, models};
use longwire_units::random::{Purpose, Stream};
use proptest::prelude::*;

use crate::common::{files, frame, link, spec};
use crate::rates::links::{any_frames, both_ways};

const NANOBITS: u128 = 1_000_000_000;

#[derive(Clone, Copy, Debug)]
struct Slots {
    min: u64,
    max: u64,
    packets: Option<u64>,
    bytes: Option<u64>,
    rate: Option<u64>,
}

impl Slots {
    fn written(&self) -> String {
        let mut text = format!("slots:wait={}ns..{}ns", self.min, self.max);
        if let Some(packets) = self.packets {
            text += &format!(",packets={packets}p");
        }
        if let Some(bytes) = self.bytes {
            text += &format!(",bytes={bytes}b");
        }
        if let Some(rate) = self.rate {
            text += &format!(",rate={rate}bit");
        }
        text
    }
}

/// The slot state of `netem_sched_data`, with the names in net/sched/sch_netem.c, and a device with
/// a rate.
struct Netem {
    slots: Slots,
    stream: Stream,
    /// In nanoseconds; before all arrivals, as if configured earlier.
    slot_next: i128,
    packets_left: i128,
    bytes_left: i128,
    tfifo: VecDeque<(u64, u32)>,
    /// Time at which the device becomes idle, in nanoseconds times the rate.
    free: u128,
    sent: Vec<u64>,
}

impl Netem {
    fn new(slots: Slots) -> Netem {
        let mut netem = Netem {
            slots,
            stream: Stream::new(1, 0, Purpose::Rate),
            slot_next: -1,
            packets_left: 0,
            bytes_left: 0,
            tfifo: VecDeque::new(),
            free: 0,
            sent: Vec::new(),
        };
        netem.fill();
        netem
    }

    fn fill(&mut self) {
        let most = i128::from(i32::MAX);
        self.packets_left = self.slots.packets.map_or(most, i128::from);
        self.bytes_left = self.slots.bytes.map_or(most, i128::from);
    }

    fn get_slot_next(&mut self, now: u64) {
        let delay = self.slots.min + self.stream.up_to(self.slots.max - self.slots.min);
        self.slot_next = i128::from(now + delay);
        self.fill();
    }

    /// Dequeues frames for the device at `now`; returns the time of the next attempt.
    fn dequeue(&mut self, now: u64) -> Option<u64> {
        loop {
            let (time_to_send, len) = *self.tfifo.front()?;
            let rate = self.slots.rate.map(u128::from);
            if let Some(rate) = rate
                && self.free / rate > u128::from(now)
            {
                return Some((self.free / rate) as u64);
            }
            if self.slot_next < i128::from(time_to_send) {
                self.get_slot_next(now);
            }
            if self.slot_next > i128::from(now) {
                return Some(self.slot_next as u64);
            }
            self.tfifo.pop_front();
            let departure = match rate {
                None => now,
                Some(rate) => {
                    let now = u128::from(now);
                    let begin = if now > self.free / rate {
                        now * rate
                    } else {
                        self.free
                    };
                    self.free = begin + u128::from(len) * 8 * NANOBITS;
                    (self.free / rate) as u64
                }
            };
            self.sent.push(departure);
            self.packets_left -= 1;
            self.bytes_left -= i128::from(len);
            if self.packets_left <= 0 || self.bytes_left <= 0 {
                self.get_slot_next(departure);
            } else if rate.is_some() {
                // The slot stays open while the device has frames to send.
                self.slot_next = i128::from(departure);
            }
        }
    }

    /// Returns the departures of all frames, which arrive in order.
    fn run(mut self, frames: &[(u64, u32)]) -> Vec<u64> {
        let mut watchdog = None;
        let mut arrivals = frames.iter().copied().peekable();
        loop {
            let next = arrivals.peek().map(|(arrival, _)| *arrival);
            let now = match (next, watchdog) {
                (None, None) => return self.sent,
                (Some(next), None) => next,
                (None, Some(at)) => at,
                (Some(next), Some(at)) => next.min(at),
            };
            if next == Some(now) {
                self.tfifo.extend(arrivals.next());
            }
            watchdog = self.dequeue(now);
        }
    }
}

fn any_slots() -> impl Strategy<Value = Slots> {
    let wait = prop_oneof![
        Just((1_000u64, 1_000u64)),
        (0u64..3_000_000, 1u64..3_000_000)
    ];
    let packets = prop_oneof![Just(None), (1u64..8).prop_map(Some)];
    let bytes = prop_oneof![Just(None), (1u64..20_000).prop_map(Some)];
    let rate = prop_oneof![
        Just(None),
        Just(None),
        (100_000u64..10_000_000_000).prop_map(Some)
    ];
    (wait, packets, bytes, rate).prop_map(|((min, span), packets, bytes, rate)| Slots {
        min,
        max: min + span,
        packets,
        bytes,
        rate,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn frames_leave_as_from_netem(slots in any_slots(), frames in any_frames(3_000_000)) {
        let departures = both_ways(&slots.written(), "", 0, &frames);
        prop_assert_eq!(departures, Netem::new(slots).run(&frames));
    }
}

const MS: u64 = 1_000_000;

#[test]
fn frames_gather_for_a_slot() {
    let gathered = [
        (5 * MS, 100),
        (9 * MS, 100),
        (14 * MS, 100),
        (15 * MS + 1, 100),
    ];
    let departures = both_ways("slots:wait=10ms", "", 0, &gathered);
    // The last frame misses the first slot.
    assert_eq!(departures, [15 * MS, 15 * MS, 15 * MS, 25 * MS + 1]);
    // The third frame reaches the limit of 250 bytes; the next wait starts at the end of the slot.
    let frames = [(5 * MS, 100); 5];
    let departures = both_ways("slots:wait=10ms,bytes=250b", "", 0, &frames);
    assert_eq!(departures, [15 * MS, 15 * MS, 15 * MS, 25 * MS, 25 * MS]);
    // 1 ms per frame: arrivals before the end of a frame belong to its slot.
    let frames = [(5 * MS, 1_000), (16 * MS, 1_000), (17 * MS + 1, 1_000)];
    let departures = both_ways("slots:wait=10ms,rate=8mbit", "", 0, &frames);
    assert_eq!(departures, [16 * MS, 17 * MS, 28 * MS + 1]);
}

/// With one frame per slot, the gaps in a backlog are draws from the distribution; the delay tests
/// compare the distribution with its formula.
#[test]
fn waits_have_the_distribution_of_a_delay() {
    for (wait, delay) in [
        ("normal:mean=10ms;stddev=3ms", "normal:mean=10ms,stddev=3ms"),
        ("pareto:scale=1ms;shape=2", "pareto:scale=1ms,shape=2"),
        ("5ms", "constant:delay=5ms"),
    ] {
        let frames = vec![(7, 1_000); 2_000];
        let departures = both_ways(&format!("slots:wait={wait},packets=1p"), "", 0, &frames);
        let mut model = models::DELAY.parse(delay).unwrap();
        let mut stream = Stream::new(1, 0, Purpose::Rate);
        let mut at = 7;
        for departure in departures {
            at += model
                .draw(&files::frame_context(0, 0), &mut stream)
                .as_nanos();
            assert_eq!(departure, at, "{wait}");
        }
    }
}

#[test]
fn a_discipline_chooses_at_the_slot() {
    let rate = "slots:wait=10ms,packets=1p";
    let line = format!("rate={rate} queue=head-drop:limit=2p");
    let mut link = link(&line, 1);
    // The first two frames are displaced from the queue before the slot opens.
    for arrival in [0, 1, 2, 3] {
        let _ = link.offer(frame(arrival * MS, 100), &[]);
    }
    let mut departures = Vec::new();
    while let Some((number, verdict)) = link.poll(..=Nanos::MAX, &()) {
        if let Verdict::Deliver(delivery) = verdict {
            departures.push((number, delivery.departure.as_nanos()));
        }
    }
    assert_eq!(departures, [(2, 10 * MS), (3, 20 * MS)]);
}

#[test]
fn the_queue_derived_from_slots_holds_100_ms_of_full_frames() {
    let bytes = |rate: &str| spec(&format!("rate={rate}")).queue_limit().bytes;
    let expected = Some(Bytes(20 * 10 * 1_514));
    assert_eq!(bytes("slots:wait=10ms,packets=20p"), expected);
    // Without limits, a slot sends all queued frames.
    assert_eq!(bytes("slots:wait=10ms"), None);
}

#[test]
fn a_derived_queue_below_one_slot_is_doubtful() {
    let doubts = |line: &str| {
        let doubts = spec(line).joint_doubts();
        let messages = doubts.into_iter().map(|doubt| doubt.message);
        messages.collect::<Vec<_>>()
    };
    // 40 frames per 200 ms: the mean rate sends half of them in 100 ms.
    let line = "rate=slots:wait=200ms,packets=40p";
    assert_eq!(
        doubts(line),
        [
            "the derived queue limit of 30280b is smaller than a slot of full-size frames; add \
             queue=60560b"
        ]
    );
    assert!(doubts(&format!("{line} queue=60560b")).is_empty());
    assert!(doubts("rate=slots:wait=200ms").is_empty());
}

#[test]
fn waits_can_be_drawn_from_a_file() {
    let rate = "slots:wait=samples:file=t;unit=ms,packets=1p";
    let departures = both_ways(rate, "4\n4\n4\n", 0, &[(0, 100); 3]);
    assert_eq!(departures, [4 * MS, 8 * MS, 12 * MS]);
    let loader = files::file("4\nfour\n");
    let error = models::RATE.parse_with(rate, &loader).unwrap_err();
    // Hidden from clients that may not read the file.
    assert!(error.to_string().contains("four"), "{error}");
    assert!(!error.without_content().contains("four"), "{error}");
}
