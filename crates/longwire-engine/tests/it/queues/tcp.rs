//! A small closed-loop model of TCP over one link, sufficient to study a queue discipline.
//!
//! All packets have the same size. Each is acknowledged separately, one round-trip time after its
//! departure. A loss is detected when the acknowledgement would have arrived, and a new packet is
//! sent instead. A window is reduced at most once per round trip, that is, only for packets sent
//! after the last reduction.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use longwire_engine::{Link, Nanos, Verdict};

use crate::queues::traffic::Packet;

/// Full frame length.
pub const FRAME: u32 = 1_514;

/// A sender's congestion control.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Control {
    /// RFC 5681: grows by one packet per round trip, halves on a signal.
    Reno,
    /// RFC 9438: a cubic function of the time since the last signal, at least Reno's window;
    /// multiplied by 0.7 on a signal.
    Cubic,
    /// RFC 8257: grows by one packet per round trip, shrinks in proportion to marks.
    Dctcp,
    /// No congestion control: one packet per interval, in nanoseconds.
    Constant(u64),
}

/// A sender.
#[derive(Clone, Copy, Debug)]
pub struct Sender {
    pub control: Control,
    /// Round-trip time without queueing, in nanoseconds.
    pub round_trip: u64,
    /// ECN field (RFC 3168).
    pub ecn: u8,
}

/// A flow's measurements after the warm-up.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub bytes: u64,
    pub losses: u64,
    pub marks: u64,
    /// Each packet's departure and queueing delay, in nanoseconds.
    pub waits: Vec<(u64, u64)>,
}

impl Seen {
    /// Returns the `share`-quantile of queueing delays, in milliseconds.
    pub fn wait_ms(&self, share: f64) -> f64 {
        let mut waits: Vec<u64> = self.waits.iter().map(|(_, wait)| *wait).collect();
        waits.sort_unstable();
        waits[((waits.len() - 1) as f64 * share) as usize] as f64 / 1e6
    }

    pub fn mean_wait_ms(&self) -> f64 {
        let sum: u64 = self.waits.iter().map(|(_, wait)| wait).sum();
        sum as f64 / self.waits.len() as f64 / 1e6
    }
}

struct Flow {
    sender: Sender,
    window: f64,
    threshold: f64,
    in_flight: u64,
    reduced_at: u64,
    /// Cubic: window before the last reduction.
    window_max: f64,
    /// Cubic: Reno's window.
    window_reno: f64,
    /// DCTCP: smoothed fraction of marks.
    alpha: f64,
    /// DCTCP: start of this round, and its numbers of acknowledgements and marks.
    round: (u64, u64, u64),
    seen: Seen,
}

/// DCTCP's gain (RFC 8257, section 3.3).
const GAIN: f64 = 1.0 / 16.0;

impl Flow {
    fn new(sender: Sender) -> Flow {
        Flow {
            sender,
            window: 10.0,
            threshold: f64::INFINITY,
            in_flight: 0,
            reduced_at: 0,
            window_max: 0.0,
            window_reno: 0.0,
            alpha: 1.0,
            round: (0, 0, 0),
            seen: Seen::default(),
        }
    }

    fn acknowledged(&mut self, now: u64, sent_at: u64, mark: bool) {
        if self.sender.control == Control::Dctcp {
            return self.acknowledged_dctcp(now, sent_at, mark);
        }
        if mark {
            self.reduce(now, sent_at);
        } else if self.window < self.threshold {
            self.window += 1.0;
        } else if self.sender.control == Control::Cubic {
            self.grow_cubic(now);
        } else {
            self.window += 1.0 / self.window;
        }
    }

    /// Reduces the window unless the packet was sent before the last reduction.
    fn reduce(&mut self, now: u64, sent_at: u64) {
        if sent_at < self.reduced_at {
            return;
        }
        self.reduced_at = now;
        self.window_max = self.window;
        self.window *= match self.sender.control {
            Control::Cubic => 0.7,
            Control::Reno | Control::Dctcp | Control::Constant(_) => 0.5,
        };
        self.window = self.window.max(2.0);
        (self.threshold, self.window_reno) = (self.window, self.window);
    }

    /// RFC 9438, sections 4.2 and 4.3, with C = 0.4.
    fn grow_cubic(&mut self, now: u64) {
        let seconds = (now - self.reduced_at) as f64 / 1e9;
        let k = (self.window_max * 0.3 / 0.4).cbrt();
        let target = 0.4 * (seconds - k).powi(3) + self.window_max;
        self.window_reno += 3.0 * 0.3 / 1.7 / self.window_reno;
        let grown =
            self.window + (target - self.window).clamp(0.0, self.window / 2.0) / self.window;
        self.window = grown.max(self.window_reno);
    }

    fn acknowledged_dctcp(&mut self, now: u64, sent_at: u64, mark: bool) {
        let (started, all, marked) = &mut self.round;
        *all += 1;
        *marked += u64::from(mark);
        if sent_at >= *started {
            self.alpha += GAIN * (*marked as f64 / *all as f64 - self.alpha);
            self.round = (now, 0, 0);
        }
        if mark && sent_at >= self.reduced_at {
            self.reduced_at = now;
            self.window = (self.window * (1.0 - self.alpha / 2.0)).max(2.0);
            self.threshold = self.window;
        } else if self.window < self.threshold {
            self.window += 1.0;
        } else if !mark {
            self.window += 1.0 / self.window;
        }
    }
}

/// An event of a flow: time, tie-breaker, flow.
type Event = (u64, u64, usize, What);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Acknowledged { sent_at: u64, mark: bool },
    Lost { sent_at: u64 },
    Tick,
}

/// Senders and the link to their receivers.
pub struct Network {
    link: Link,
    rate: u64,
    flows: Vec<Flow>,
    events: BinaryHeap<Reverse<Event>>,
    next_event: u64,
    /// Flow and time of each offered packet, by number.
    sent: Vec<(usize, u64)>,
    warm_up: u64,
}

impl Network {
    /// Creates flows that start 50 ms apart; measurement starts at `warm_up`.
    pub fn new(link: Link, rate: u64, senders: &[Sender], warm_up: u64) -> Network {
        let mut network = Network {
            link,
            rate,
            flows: senders.iter().copied().map(Flow::new).collect(),
            events: BinaryHeap::new(),
            next_event: 0,
            sent: Vec::new(),
            warm_up,
        };
        for flow in 0..senders.len() {
            network.at(flow as u64 * 50_000_000, flow, What::Tick);
        }
        network
    }

    fn at(&mut self, time: u64, flow: usize, what: What) {
        self.next_event += 1;
        self.events
            .push(Reverse((time, self.next_event, flow, what)));
    }

    /// Runs until `end`, in nanoseconds, and returns each flow's measurements.
    pub fn run(mut self, end: u64) -> Vec<Seen> {
        loop {
            let event = self.events.peek().map_or(u64::MAX, |event| event.0.0);
            let decision = self.link.next_at().map_or(u64::MAX, Nanos::as_nanos);
            if event.min(decision) > end {
                return self.flows.into_iter().map(|flow| flow.seen).collect();
            }
            if decision <= event {
                self.decide(decision);
            } else if let Some(Reverse((now, _, flow, what))) = self.events.pop() {
                self.happen(now, flow, what);
            }
        }
    }

    fn decide(&mut self, until: u64) {
        while let Some((number, verdict)) = self.link.poll(..=Nanos::from_nanos(until), &()) {
            self.decided(number as usize, verdict, until);
        }
    }

    fn decided(&mut self, number: usize, verdict: Verdict, now: u64) {
        let (flow, sent_at) = self.sent[number];
        let round_trip = self.flows[flow].sender.round_trip;
        let counts = sent_at >= self.warm_up;
        let seen = &mut self.flows[flow].seen;
        match verdict {
            Verdict::Deliver(delivery) => {
                let mark = delivery.edits.mark;
                let departure = delivery.departure.as_nanos();
                if counts {
                    let serialisation = u64::from(FRAME) * 8_000_000_000 / self.rate;
                    seen.bytes += u64::from(FRAME);
                    seen.marks += u64::from(mark);
                    let wait = departure.saturating_sub(sent_at + serialisation);
                    seen.waits.push((departure, wait));
                }
                let what = What::Acknowledged { sent_at, mark };
                self.at(departure + round_trip, flow, what);
            }
            Verdict::Drop(_) => {
                seen.losses += u64::from(counts);
                self.at(now.max(sent_at) + round_trip, flow, What::Lost { sent_at });
            }
            Verdict::Queued => {}
        }
    }

    fn happen(&mut self, now: u64, index: usize, what: What) {
        self.decide(now);
        let flow = &mut self.flows[index];
        match what {
            What::Tick => {}
            What::Acknowledged { sent_at, mark } => {
                flow.in_flight -= 1;
                flow.acknowledged(now, sent_at, mark);
            }
            What::Lost { sent_at } => {
                flow.in_flight -= 1;
                flow.reduce(now, sent_at);
            }
        }
        if let Control::Constant(interval) = flow.sender.control {
            if what == What::Tick {
                self.send(now, index);
                self.at(now + interval, index, What::Tick);
            }
            return;
        }
        while self.flows[index].in_flight < self.flows[index].window as u64 {
            self.send(now, index);
        }
    }

    fn send(&mut self, now: u64, index: usize) {
        let flow = &mut self.flows[index];
        flow.in_flight += 1;
        let packet = Packet {
            len: FRAME,
            ecn: flow.sender.ecn,
            flow: index as u8,
            ..Packet::plain(self.sent.len(), now)
        };
        let verdict = self.link.offer(packet.meta(), &packet.bytes());
        self.sent.push((index, now));
        match verdict {
            Verdict::Queued => {}
            decided => self.decided(packet.number, decided, now),
        }
    }
}
