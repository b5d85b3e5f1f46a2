//! Floyd and Jacobson 1993, figure 2; Floyd 2000 (gentle); Floyd, Gummadi and
//! Shenker 2001, section 4 (adaptive).

use std::collections::VecDeque;

use longwire_engine::DropReason;
use longwire_units::random::Stream;

use super::{Limit, Oracle, Stored, bytes, drop_packet};
use crate::queues::link::Fate;
use crate::queues::traffic::Packet;

#[derive(Clone, Copy, Debug)]
pub struct RedParams {
    pub min_th: f64,
    pub max_th: f64,
    pub max_p: f64,
    pub w_q: f64,
    pub gentle: bool,
    pub adaptive: bool,
    pub in_bytes: bool,
    pub mean_packet: f64,
    /// Mean packets per second.
    pub packets_per_sec: f64,
    pub ecn: bool,
}

pub struct Red {
    pub limit: Limit,
    pub params: RedParams,
    queue: VecDeque<Stored>,
    stream: Stream,
    avg: f64,
    count: i64,
    q_time: u64,
    max_p: f64,
}

impl Red {
    pub fn new(limit: Limit, params: RedParams, stream: Stream) -> Red {
        Red {
            limit,
            params,
            queue: VecDeque::new(),
            stream,
            avg: 0.0,
            count: -1,
            q_time: 0,
            max_p: params.max_p,
        }
    }

    fn q(&self) -> f64 {
        if self.params.in_bytes {
            bytes(&self.queue) as f64
        } else {
            self.queue.len() as f64
        }
    }

    /// Returns (1 - w_q)^m avg, where m is the number of packets that could have been sent since
    /// q_time. m ln(1 - w_q) equals the elapsed time multiplied by the decay per nanosecond.
    fn decayed(&self, now: u64) -> f64 {
        if now == self.q_time {
            return self.avg;
        }
        let a_nanosecond = libm::log1p(-self.params.w_q) * self.params.packets_per_sec / 1e9;
        self.avg * libm::exp((now - self.q_time) as f64 * a_nanosecond)
    }

    /// Returns p_b, or `None` if the drop is certain.
    fn p_b(&self, len: u32) -> Option<f64> {
        let RedParams { min_th, max_th, .. } = self.params;
        let mut p_b = if self.avg < max_th {
            self.max_p * (self.avg - min_th) / (max_th - min_th)
        } else if self.params.gentle && self.avg < 2.0 * max_th {
            self.max_p + (1.0 - self.max_p) * (self.avg - max_th) / max_th
        } else {
            return None;
        };
        if self.params.in_bytes {
            p_b = p_b * f64::from(len) / self.params.mean_packet;
        }
        Some(p_b)
    }

    /// Returns whether to signal congestion, and whether the signal must be a drop.
    fn decide(&mut self, len: u32) -> (bool, bool) {
        if self.avg < self.params.min_th {
            self.count = -1;
            return (false, false);
        }
        let Some(p_b) = self.p_b(len) else {
            self.count = 0;
            return (true, true);
        };
        self.count += 1;
        let spread = 1.0 - self.count as f64 * p_b;
        let p_a = if spread > 0.0 { p_b / spread } else { 1.0 };
        let u = self.stream.unit();
        if u <= p_a {
            self.count = 0;
            return (true, false);
        }
        (false, false)
    }
}

impl Oracle for Red {
    fn tick_period(&self) -> Option<u64> {
        self.params.adaptive.then_some(500_000_000)
    }

    fn tick(&mut self, now: u64) {
        let RedParams { min_th, max_th, .. } = self.params;
        let avg = if self.queue.is_empty() {
            self.decayed(now)
        } else {
            self.avg
        };
        let (low, high) = (
            min_th + 0.4 * (max_th - min_th),
            min_th + 0.6 * (max_th - min_th),
        );
        if avg > high && self.max_p <= 0.5 {
            self.max_p += (self.max_p / 4.0).min(0.01);
        } else if avg < low && self.max_p >= 0.01 {
            self.max_p *= 0.9;
        }
    }

    fn enqueue(&mut self, now: u64, packet: Packet, fates: &mut [Option<Fate>]) {
        if self.queue.is_empty() {
            self.avg = self.decayed(now);
            self.q_time = now;
        } else {
            self.avg += self.params.w_q * (self.q() - self.avg);
        }
        let mut stored = Stored::new(packet, now);
        let (signal, must_drop) = self.decide(stored.packet.len);
        if signal {
            if must_drop || !self.params.ecn || stored.ecn() == 0 {
                return drop_packet(fates, &stored.packet, DropReason::Aqm);
            }
            stored.mark = true;
        }
        if self.limit.fits(self.queue.iter(), stored.packet.len) {
            self.queue.push_back(stored);
        } else {
            self.count = 0;
            drop_packet(fates, &stored.packet, DropReason::QueueFull);
        }
    }

    fn dequeue(&mut self, now: u64, _fates: &mut [Option<Fate>]) -> Option<Stored> {
        let stored = self.queue.pop_front()?;
        if self.queue.is_empty() {
            self.q_time = now;
        }
        Some(stored)
    }

    fn len(&self) -> usize {
        self.queue.len()
    }
}
