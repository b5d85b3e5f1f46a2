//! TCP-like senders, one per link: limited by a window, clocked by acknowledgements, and responsive
//! to loss.
//!
//! The model has only those parts of TCP that determine the load of a link. A sender has at most
//! one window of frames in flight. Each arriving frame is acknowledged and makes room for the next
//! one, so the link clocks its sender. The window grows by one frame per acknowledgement up to a
//! threshold, and by one frame per window above it (RFC 5681, section 3.1). Frames arrive in order,
//! so a gap in the numbers is a loss. Window and threshold are halved once per window with a loss
//! (sections 3.1 and 3.2; "once" is from RFC 6582, section 3.2). After a timeout, a sender gives up
//! its frames in flight and restarts with one frame (RFC 5681, section 3.1, with a fixed timeout
//! instead of RFC 6298's). There are no retransmissions: every frame is new.

use std::collections::VecDeque;

use longwire_engine::Nanos;
use longwire_units::random::Stream;

/// Initial window, in frames (RFC 6928).
const WINDOW_START: f32 = 10.0;
/// Minimum window after a loss, in frames (RFC 5681, equation 4).
const WINDOW_LOSS: f32 = 2.0;
/// Receive window in frames, larger than the capacity of queue and delay line together.
const WINDOW_MAX: f32 = 128.0;

/// Acknowledgement of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ack {
    pub flow: u32,
    pub number: u32,
}

/// One sender.
#[derive(Clone, Copy, Debug)]
struct Flow {
    /// Number of the next frame.
    next: u32,
    /// Lowest number neither acknowledged nor lost; frames from `expected` to `next` are in flight.
    expected: u32,
    /// Losses before this number belong to a window that has already been halved.
    recover: u32,
    window: f32,
    threshold: f32,
    heard: Nanos,
}

/// All senders.
#[derive(Debug)]
pub(super) struct Flows {
    flows: Vec<Flow>,
    /// Senders in the order of their start times, and the time of the first start.
    order: Vec<u32>,
    begun: usize,
    start: Option<Nanos>,
    /// Interval over which the senders start.
    spread: Nanos,
    /// Time without acknowledgements after which a sender restarts.
    timeout: Nanos,
    /// Unprocessed acknowledgements.
    acks: VecDeque<Ack>,
    /// A sender that was interrupted while its window had room.
    current: Option<u32>,
    /// Next sender to check for a timeout.
    watched: usize,
}

impl Flow {
    fn new() -> Flow {
        Flow {
            next: 0,
            expected: 0,
            recover: 0,
            window: WINDOW_START,
            threshold: f32::MAX,
            heard: Nanos::ZERO,
        }
    }

    fn on_the_way(&self) -> u32 {
        self.next.wrapping_sub(self.expected)
    }

    fn has_room(&self) -> bool {
        self.on_the_way() < self.window as u32
    }

    /// Returns whether `a` was sent before `b`.
    fn before(a: u32, b: u32) -> bool {
        a.wrapping_sub(b).cast_signed() < 0
    }

    fn acknowledged(&mut self, number: u32, now: Nanos) {
        self.heard = now;
        if Flow::before(number, self.expected) {
            // Ignore the acknowledgement of a frame that was given up.
            return;
        }
        let missing = number != self.expected;
        let counts = !Flow::before(self.expected, self.recover);
        self.expected = number.wrapping_add(1);
        if missing {
            if counts {
                self.threshold = (self.window / 2.0).max(WINDOW_LOSS);
                self.window = self.threshold;
                self.recover = self.next;
            }
        } else if self.window < self.threshold {
            self.window += 1.0;
        } else {
            self.window += 1.0 / self.window;
        }
        self.window = self.window.min(WINDOW_MAX);
    }

    fn given_up(&mut self, now: Nanos) {
        self.threshold = (self.window / 2.0).max(WINDOW_LOSS);
        self.window = 1.0;
        self.expected = self.next;
        self.recover = self.next;
        self.heard = now;
    }
}

impl Flows {
    /// Creates `count` senders, which start in random order within the time `spread`, and restart
    /// after `timeout` without acknowledgements.
    pub fn new(count: u32, spread: Nanos, timeout: Nanos) -> Flows {
        let mut order: Vec<u32> = (0..count).collect();
        let mut chance = Stream::of_seed(1);
        for last in (1..order.len()).rev() {
            order.swap(last, chance.up_to(last as u64) as usize);
        }
        Flows {
            flows: vec![Flow::new(); count as usize],
            order,
            begun: 0,
            start: None,
            spread,
            timeout,
            acks: VecDeque::new(),
            current: None,
            watched: 0,
        }
    }

    /// Adds acknowledgements.
    pub fn hear(&mut self, acks: impl IntoIterator<Item = Ack>) {
        self.acks.extend(acks);
    }

    /// Sends up to `max` frames by calling `send` with the flow and the number of each. Returns the
    /// number of frames sent.
    pub fn send(&mut self, now: Nanos, max: usize, mut send: impl FnMut(u32, u32)) -> usize {
        let mut sent = 0;
        self.watch(now);
        while sent < max {
            let Some(flow) = self.next_flow(now) else {
                break;
            };
            let Some(sender) = self.flows.get_mut(flow as usize) else {
                continue;
            };
            while sent < max && sender.has_room() {
                send(flow, sender.next);
                sender.next = sender.next.wrapping_add(1);
                sent += 1;
            }
            if sender.has_room() {
                self.current = Some(flow);
            }
        }
        sent
    }

    /// Returns the next sender that may have room: one that was interrupted, starts, or has an
    /// acknowledgement.
    fn next_flow(&mut self, now: Nanos) -> Option<u32> {
        if let Some(flow) = self.current.take() {
            return Some(flow);
        }
        if let Some(flow) = self.beginner(now) {
            return Some(flow);
        }
        let ack = self.acks.pop_front()?;
        if let Some(sender) = self.flows.get_mut(ack.flow as usize) {
            sender.acknowledged(ack.number, now);
        }
        Some(ack.flow)
    }

    /// Returns the next sender to start, if its start is due.
    fn beginner(&mut self, now: Nanos) -> Option<u32> {
        let flow = *self.order.get(self.begun)?;
        let start = *self.start.get_or_insert(now);
        let share = self.begun as u64 * self.spread.as_nanos() / self.order.len() as u64;
        if start.saturating_add(Nanos::from_nanos(share)) > now {
            return None;
        }
        self.begun += 1;
        self.flows[flow as usize].heard = now;
        Some(flow)
    }

    /// Checks one sender for a timeout. There are far more calls per second than senders, so each
    /// sender is checked often enough.
    fn watch(&mut self, now: Nanos) {
        self.watched = (self.watched + 1) % self.flows.len().max(1);
        if self.current.is_some() {
            return;
        }
        if let Some(sender) = self.flows.get_mut(self.watched)
            && sender.on_the_way() > 0
            && now.saturating_sub(sender.heard) > self.timeout
        {
            sender.given_up(now);
            self.current = Some(self.watched as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: Nanos = Nanos::from_secs(1_000);

    fn sent(flows: &mut Flows, now: Nanos, max: usize) -> Vec<(u32, u32)> {
        let mut frames = Vec::new();
        flows.send(now, max, |flow, number| frames.push((flow, number)));
        frames
    }

    #[test]
    fn the_window_opens_with_acknowledgements_and_halves_once_a_window() {
        let mut flows = Flows::new(1, Nanos::ZERO, NEVER);
        let first = sent(&mut flows, Nanos::ZERO, 64);
        assert_eq!(first, (0..10).map(|number| (0, number)).collect::<Vec<_>>());
        assert_eq!(sent(&mut flows, Nanos::ZERO, 64), []);
        // Slow start: each acknowledgement allows two frames.
        let ack = |number| Ack { flow: 0, number };
        flows.hear([ack(0), ack(1)]);
        assert_eq!(sent(&mut flows, Nanos::ZERO, 64).len(), 4);
        // Frames 2 and 5 are lost in the same window of 12, which is halved once.
        flows.hear([ack(3), ack(4), ack(6)]);
        assert_eq!(sent(&mut flows, Nanos::ZERO, 64).len(), 0);
        let window = flows.flows[0].window;
        assert!((6.0..6.5).contains(&window), "{window}");
        assert_eq!(flows.flows[0].on_the_way(), 7);
        // After six further acknowledgements, each one allows one frame.
        flows.hear([ack(7), ack(8)]);
        assert_eq!(sent(&mut flows, Nanos::ZERO, 64), [(0, 14)]);
        // The loss of a frame sent after the detected loss counts again.
        flows.hear((9..14).map(ack));
        assert!(sent(&mut flows, Nanos::ZERO, 64).len() >= 5);
        assert!(flows.flows[0].window > window);
        flows.hear([ack(15)]);
        sent(&mut flows, Nanos::ZERO, 64);
        assert!(flows.flows[0].window < 4.0, "halved again");
    }

    #[test]
    fn silence_starts_a_sender_again() {
        let timeout = Nanos::from_secs(1);
        let mut flows = Flows::new(1, Nanos::ZERO, timeout);
        assert_eq!(sent(&mut flows, Nanos::ZERO, 64).len(), 10);
        assert_eq!(sent(&mut flows, timeout, 64), []);
        let later = Nanos::from_millis(1_001);
        assert_eq!(sent(&mut flows, later, 64), [(0, 10)]);
        // An old acknowledgement has no effect.
        flows.hear([Ack { flow: 0, number: 3 }]);
        assert_eq!(sent(&mut flows, later, 64), []);
        flows.hear([Ack {
            flow: 0,
            number: 10,
        }]);
        assert_eq!(sent(&mut flows, later, 64), [(0, 11), (0, 12)]);
    }

    #[test]
    fn senders_begin_one_after_the_other_and_are_interrupted() {
        let mut flows = Flows::new(100, Nanos::from_secs(1), NEVER);
        let begin = Nanos::from_secs(5);
        assert_eq!(sent(&mut flows, begin, 64).len(), 10);
        let half = begin.saturating_add(Nanos::from_millis(500));
        let mut frames = Vec::new();
        while let more @ [_, ..] = &sent(&mut flows, half, 7)[..] {
            assert!(more.len() <= 7);
            frames.extend_from_slice(more);
        }
        assert_eq!(frames.len(), 500);
        let mut begun: Vec<u32> = frames.iter().map(|(flow, _)| *flow).collect();
        assert!(!begun.is_sorted(), "in random order");
        begun.sort_unstable();
        begun.dedup();
        assert_eq!(begun.len(), 50);
    }
}
