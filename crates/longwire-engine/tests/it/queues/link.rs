//! Runs a pattern through the engine's link and through a naive one.

use longwire_engine::{
    BitRate, Bytes, DropReason, Link, LinkConfig, LinkId, Nanos, Verdict, models,
};

use crate::queues::oracle::Oracle;
use crate::queues::traffic::{Draws, Packet, Pattern};

/// A frame's outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Departed, with or without a mark.
    Sent {
        departure: u64,
        mark: bool,
    },
    Dropped(DropReason),
}

/// Returns the engine's link with this queue.
pub fn link(rate: u64, queue: &str, seed: u64) -> Link {
    let queue = models::QUEUE.parse(queue);
    let config = LinkConfig {
        rate: BitRate::from_bits_per_sec(rate).into(),
        queue: Some(queue.unwrap_or_else(|error| panic!("{error}"))),
        ..LinkConfig::default()
    };
    Link::new(config, seed, LinkId(0))
}

/// A link and its decisions. Asserts that each frame is decided exactly once, and that the
/// occupancy of a managed queue equals offered minus decided frames.
pub struct Run {
    link: Link,
    /// Each frame's length, and its fate if decided.
    frames: Vec<(u64, Option<Fate>)>,
    /// Queued frames, by queue number.
    queued: Vec<usize>,
    /// Undecided frames and their bytes.
    held: (u64, u64),
    bytes_max: Bytes,
}

impl Run {
    pub fn new(link: Link) -> Run {
        Run {
            link,
            frames: Vec::new(),
            queued: Vec::new(),
            held: (0, 0),
            bytes_max: Bytes(0),
        }
    }

    /// Records all decisions up to `now`.
    pub fn poll(&mut self, now: u64) {
        while let Some((number, verdict)) = self.link.poll(..=Nanos::from_nanos(now), &()) {
            self.decide(self.queued[number as usize], verdict);
        }
        if self.link.is_managed() {
            let (packets, bytes) = self.link.occupancy();
            assert_eq!((packets.0, bytes.0), self.held);
        }
    }

    /// Offers a frame; the link must have been polled.
    pub fn offer(&mut self, packet: &Packet) {
        let len = u64::from(packet.len);
        self.frames.push((len, None));
        self.held = (self.held.0 + 1, self.held.1 + len);
        match self.link.offer(packet.meta(), &packet.bytes()) {
            Verdict::Queued => self.queued.push(packet.number),
            decided => self.decide(packet.number, decided),
        }
        if self.link.is_managed() {
            // Drops on arrival are only returned by the next poll.
            let (packets, bytes) = self.link.occupancy();
            assert!(packets.0 <= self.held.0);
            self.bytes_max = self.bytes_max.max(bytes);
        }
    }

    fn decide(&mut self, frame: usize, verdict: Verdict) {
        let fate = match verdict {
            Verdict::Deliver(delivery) => Fate::Sent {
                departure: delivery.departure.as_nanos(),
                mark: delivery.edits.mark,
            },
            Verdict::Drop(reason) => Fate::Dropped(reason),
            Verdict::Queued => panic!("frame {frame} was decided to be queued"),
        };
        let (len, decided) = &mut self.frames[frame];
        let before = decided.replace(fate);
        assert_eq!(before, None, "frame {frame} was decided twice");
        self.held = (self.held.0 - 1, self.held.1 - *len);
    }

    /// Polls the remaining decisions and returns each frame's fate.
    pub fn finish(mut self) -> Vec<Fate> {
        self.poll(u64::MAX);
        assert_eq!(self.link.next_at(), None);
        assert!(self.link.occupancy_max().1 >= self.bytes_max);
        let decided = |(_, fate): (u64, Option<Fate>)| fate.expect("every frame is decided");
        self.frames.into_iter().map(decided).collect()
    }
}

/// Runs a pattern through the engine. Asserts that the times of polling do not affect fates.
pub fn run_engine(pattern: &Pattern, queue: &str, seed: u64) -> Vec<Fate> {
    let fates = run_polled(pattern, queue, seed, |_, _| {});
    let eager = run_polled(pattern, queue, seed, |run, until| {
        while let Some(at) = run.link.next_at().map(|at| at.as_nanos())
            && at <= until
        {
            run.poll(at);
        }
    });
    assert_same(&eager, &fates, || format!("{queue}, polled eagerly"));
    let (mut draws, mut now) = (Draws::new(!seed), 0);
    let random = run_polled(pattern, queue, seed, |run, until| {
        while draws.once_in(2) && now < until {
            now = draws.between(now, until);
            run.poll(now);
        }
        now = now.max(until);
    });
    assert_same(&random, &fates, || format!("{queue}, polled at random"));
    fates
}

fn assert_same(found: &[Fate], expected: &[Fate], what: impl Fn() -> String) {
    assert_eq!(found.len(), expected.len(), "{}", what());
    for (frame, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert_eq!(found, expected, "{}: frame {frame}", what());
    }
}

/// Runs a pattern, polling at each arrival. `before` may poll before it, up to the given time.
fn run_polled(
    pattern: &Pattern,
    queue: &str,
    seed: u64,
    mut before: impl FnMut(&mut Run, u64),
) -> Vec<Fate> {
    let mut run = Run::new(link(pattern.rate, queue, seed));
    for packet in &pattern.packets {
        before(&mut run, packet.arrival);
        run.poll(packet.arrival);
        run.offer(packet);
    }
    run.finish()
}

/// Runs a pattern through an oracle, event by event. At one instant, a timer tick precedes a
/// dequeue, and a dequeue precedes an arrival.
pub fn run_oracle(pattern: &Pattern, oracle: &mut dyn Oracle) -> Vec<Fate> {
    let mut fates = vec![None; pattern.packets.len()];
    let mut arrivals = pattern.packets.iter().peekable();
    let mut wire = Wire {
        rate: u128::from(pattern.rate),
        free_at: 0,
    };
    let mut next_tick = oracle.tick_period();
    // Time at which the link next requests a packet; `None` between an empty dequeue and the next
    // arrival.
    let mut asks_at = None;
    while arrivals.peek().is_some() || oracle.len() > 0 {
        let arrival = arrivals.peek().map_or(u64::MAX, |packet| packet.arrival);
        let service = asks_at.unwrap_or(u64::MAX);
        let event = arrival.min(service);
        if let Some(tick) = next_tick.filter(|tick| *tick <= event) {
            oracle.tick(tick);
            next_tick = oracle.tick_period().map(|period| tick + period);
        } else if arrival < service {
            asks_at = asks_at.or(Some(arrival));
            if let Some(packet) = arrivals.next() {
                oracle.enqueue(arrival, packet.clone(), &mut fates);
            }
        } else {
            asks_at = oracle.dequeue(service, &mut fates).map(|sent| {
                let departure = wire.serve(service, sent.packet.len);
                let mark = sent.mark;
                decide(
                    &mut fates,
                    sent.packet.number,
                    Fate::Sent { departure, mark },
                );
                departure
            });
        }
    }
    fates.into_iter().flatten().collect()
}

/// Records a frame's fate, which must not be known yet.
pub fn decide(fates: &mut [Option<Fate>], number: usize, fate: Fate) {
    let before = fates[number].replace(fate);
    assert_eq!(before, None, "the oracle decided twice");
}

/// A link with exact times, in nanoseconds times the rate.
struct Wire {
    rate: u128,
    free_at: u128,
}

impl Wire {
    fn serve(&mut self, now: u64, len: u32) -> u64 {
        let start = self.free_at.max(u128::from(now) * self.rate);
        self.free_at = start + u128::from(len) * 8_000_000_000;
        (self.free_at / self.rate) as u64
    }
}
