//! Runs a pattern through the engine's link and through a naive one.

use longwire_engine::{
    BitRate, DropReason, Link, LinkConfig, LinkId, Nanos, Packets, Verdict, models,
};

use crate::queues::oracle::Oracle;
use crate::queues::traffic::{Packet, Pattern};

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

/// A link and its decisions.
pub struct Run {
    pub link: Link,
    fates: Vec<Option<Fate>>,
    /// Frames in verdict order.
    pub order: Vec<usize>,
    /// Queued frames, by queue number.
    queued: Vec<usize>,
}

impl Run {
    pub fn new(link: Link, frames: usize) -> Run {
        Run {
            link,
            fates: vec![None; frames],
            order: Vec::new(),
            queued: Vec::new(),
        }
    }

    /// Records all decisions up to `now`.
    pub fn poll(&mut self, now: u64) {
        while let Some((number, verdict)) = self.link.poll(..=Nanos::from_nanos(now), &()) {
            self.decide(self.queued[number as usize], verdict);
        }
    }

    /// Offers a frame; the link must have been polled.
    pub fn offer(&mut self, packet: &Packet) {
        let verdict = self.link.offer(packet.meta(), &packet.bytes());
        match verdict {
            Verdict::Queued => self.queued.push(packet.number),
            decided => self.decide(packet.number, decided),
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
        let before = self.fates[frame].replace(fate);
        assert_eq!(before, None, "frame {frame} was decided twice");
        self.order.push(frame);
    }

    /// Decides all remaining frames.
    pub fn finish(mut self) -> (Vec<Fate>, Vec<usize>) {
        self.poll(u64::MAX);
        assert_eq!(self.link.next_at(), None);
        if self.link.is_managed() {
            assert_eq!(self.link.occupancy().0, Packets(0));
        }
        let fates = self.fates.into_iter().enumerate();
        let fates = fates
            .map(|(frame, fate)| fate.unwrap_or_else(|| panic!("frame {frame} was never decided")));
        (fates.collect(), self.order)
    }
}

/// Runs a pattern through the engine.
pub fn run_engine(pattern: &Pattern, queue: &str, seed: u64) -> Vec<Fate> {
    let mut run = Run::new(link(pattern.rate, queue, seed), pattern.packets.len());
    for packet in &pattern.packets {
        run.poll(packet.arrival);
        run.offer(packet);
    }
    run.finish().0
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
