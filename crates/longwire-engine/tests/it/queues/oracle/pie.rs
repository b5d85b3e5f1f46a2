//! RFC 8033, appendix A, with sections 5.1, 5.4 and 5.5 following appendix B.

use std::collections::VecDeque;

use longwire_engine::DropReason;
use longwire_units::random::Stream;

use super::{Limit, Oracle, Stored, bytes, drop_packet, seconds};
use crate::queues::link::Fate;
use crate::queues::traffic::Packet;

#[derive(Clone, Copy, Debug)]
pub struct PieParams {
    pub qdelay_ref: u64,
    pub t_update: u64,
    pub alpha: f64,
    pub beta: f64,
    pub max_burst: u64,
    pub mean_pktsize: u64,
    pub ecn: bool,
    pub mark_ecnth: f64,
}

pub struct Pie {
    pub limit: Limit,
    pub params: PieParams,
    queue: VecDeque<Stored>,
    stream: Stream,
    current_qdelay: u64,
    burst_allowance: u64,
    drop_prob: f64,
    accu_prob: f64,
    qdelay_old: u64,
}

impl Pie {
    pub fn new(limit: Limit, params: PieParams, stream: Stream) -> Pie {
        Pie {
            limit,
            params,
            queue: VecDeque::new(),
            stream,
            current_qdelay: 0,
            burst_allowance: params.max_burst,
            drop_prob: 0.0,
            accu_prob: 0.0,
            qdelay_old: 0,
        }
    }

    fn below_half(&self, qdelay: u64) -> bool {
        (qdelay as f64) < self.params.qdelay_ref as f64 / 2.0
    }

    fn drop_early(&mut self) -> bool {
        if self.below_half(self.qdelay_old) && self.drop_prob < 0.2
            || bytes(&self.queue) <= 2 * self.params.mean_pktsize
        {
            return false;
        }
        if self.drop_prob == 0.0 {
            self.accu_prob = 0.0;
        }
        self.accu_prob += self.drop_prob;
        if self.accu_prob < 0.85 {
            return false;
        }
        if self.accu_prob >= 8.5 {
            return true;
        }
        let u = self.stream.unit();
        u <= self.drop_prob
    }
}

impl Oracle for Pie {
    fn tick_period(&self) -> Option<u64> {
        Some(self.params.t_update)
    }

    /// `calculate_drop_prob()`.
    fn tick(&mut self, _now: u64) {
        let PieParams {
            qdelay_ref,
            t_update,
            alpha,
            beta,
            ..
        } = self.params;
        let mut p = alpha * seconds(self.current_qdelay, qdelay_ref)
            + beta * seconds(self.current_qdelay, self.qdelay_old);
        if self.drop_prob < 0.000001 {
            p /= 2048.0;
        } else if self.drop_prob < 0.00001 {
            p /= 512.0;
        } else if self.drop_prob < 0.0001 {
            p /= 128.0;
        } else if self.drop_prob < 0.001 {
            p /= 32.0;
        } else if self.drop_prob < 0.01 {
            p /= 8.0;
        } else if self.drop_prob < 0.1 {
            p /= 2.0;
        }
        if self.drop_prob >= 0.1 && p > 0.02 {
            p = 0.02;
        }
        self.drop_prob += p;
        if self.current_qdelay == 0 && self.qdelay_old == 0 {
            self.drop_prob *= 0.98;
        }
        self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
        self.qdelay_old = self.current_qdelay;
        self.burst_allowance = self.burst_allowance.saturating_sub(t_update);
    }

    fn enqueue(&mut self, now: u64, packet: Packet, fates: &mut [Option<Fate>]) {
        if !self.limit.fits(self.queue.iter(), packet.len) {
            self.accu_prob = 0.0;
            return drop_packet(fates, &packet, DropReason::QueueFull);
        }
        let short = self.below_half(self.current_qdelay) && self.below_half(self.qdelay_old);
        if self.drop_prob == 0.0 && short {
            self.burst_allowance = self.params.max_burst;
        }
        let mut stored = Stored::new(packet, now);
        if self.burst_allowance == 0 && self.drop_early() {
            self.accu_prob = 0.0;
            let low = self.drop_prob < self.params.mark_ecnth;
            if self.params.ecn && low && stored.ecn() != 0 {
                stored.mark = true;
            } else {
                return drop_packet(fates, &stored.packet, DropReason::Aqm);
            }
        }
        self.queue.push_back(stored);
    }

    fn dequeue(&mut self, now: u64, _fates: &mut [Option<Fate>]) -> Option<Stored> {
        let stored = self.queue.pop_front()?;
        self.current_qdelay = now - stored.tstamp;
        if self.queue.is_empty() {
            self.current_qdelay = 0;
        }
        Some(stored)
    }

    fn len(&self) -> usize {
        self.queue.len()
    }
}
