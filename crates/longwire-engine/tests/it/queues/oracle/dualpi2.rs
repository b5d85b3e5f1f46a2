//! RFC 9332, appendix A, figures 2, 3, 5, 7 and 8, with the schedulers described in its text.

use std::collections::VecDeque;

use longwire_engine::DropReason;

use super::{Oracle, Stored, bytes, drop_packet, seconds};
use crate::queues::link::Fate;
use crate::queues::traffic::Packet;

#[derive(Clone, Copy, Debug)]
pub enum Scheduler {
    /// L bytes per C byte while both are backlogged.
    Wrr(i64),
    TsFifo(u64),
}

#[derive(Clone, Copy, Debug)]
pub struct DualPi2Params {
    pub limit_packets: usize,
    pub limit_bytes: Option<u64>,
    pub mtu: u64,
    pub k: f64,
    pub target: u64,
    pub rtt_max: u64,
    pub tupdate: u64,
    pub min_th: u64,
    pub range: u64,
    pub th_len: usize,
    pub scheduler: Scheduler,
}

#[derive(Default)]
struct Queue {
    packets: VecDeque<Stored>,
    count: f64,
}

impl Queue {
    fn time(&self, now: u64) -> u64 {
        self.packets.front().map_or(0, |head| now - head.tstamp)
    }

    fn recur(&mut self, likelihood: f64) -> bool {
        self.count += likelihood;
        if self.count > 1.0 {
            self.count -= 1.0;
            return true;
        }
        false
    }
}

pub struct DualPi2 {
    params: DualPi2Params,
    lq: Queue,
    cq: Queue,
    p: f64,
    p_cl: f64,
    p_c: f64,
    prevq: u64,
    /// If positive, C is served next while both are backlogged.
    credit: i64,
}

impl DualPi2 {
    pub fn new(params: DualPi2Params) -> DualPi2 {
        DualPi2 {
            params,
            lq: Queue::default(),
            cq: Queue::default(),
            p: 0.0,
            p_cl: 0.0,
            p_c: 0.0,
            prevq: 0,
            credit: 0,
        }
    }

    fn laqm(&self, qdelay: u64) -> f64 {
        let DualPi2Params { min_th, range, .. } = self.params;
        if qdelay >= min_th + range {
            1.0
        } else if qdelay > min_th {
            (qdelay - min_th) as f64 / range as f64
        } else {
            0.0
        }
    }

    /// Returns whether lq is served next.
    fn scheduler(&self, now: u64) -> bool {
        if self.lq.packets.is_empty() {
            return false;
        }
        if self.cq.packets.is_empty() {
            return true;
        }
        match self.params.scheduler {
            Scheduler::Wrr(_) => self.credit <= 0,
            Scheduler::TsFifo(tshift) => self.lq.time(now) + tshift >= self.cq.time(now),
        }
    }

    /// Returns `None` if the packet was dropped.
    fn dequeue_l(&mut self, now: u64, fates: &mut [Option<Fate>]) -> Option<Stored> {
        let len = self.lq.packets.len();
        let mut pkt = self.lq.packets.pop_front()?;
        if self.p_cl < 1.0 {
            let p_native = if len > self.params.th_len {
                self.laqm(now - pkt.tstamp)
            } else {
                0.0
            };
            let p_l = p_native.max(self.p_cl);
            if self.lq.recur(p_l) {
                pkt.mark = true;
            }
        } else {
            if self.lq.recur(self.p_c) {
                drop_packet(fates, &pkt.packet, DropReason::Aqm);
                return None;
            }
            if self.lq.recur(self.p_cl) {
                pkt.mark = true;
            }
        }
        Some(pkt)
    }

    fn dequeue_c(&mut self, fates: &mut [Option<Fate>]) -> Option<Stored> {
        let p_cmax = (1.0 / (self.params.k * self.params.k)).min(1.0);
        let mut pkt = self.cq.packets.pop_front()?;
        if self.cq.recur(self.p_c) {
            if pkt.ecn() == 0 || self.p_c >= p_cmax {
                drop_packet(fates, &pkt.packet, DropReason::Aqm);
                return None;
            }
            pkt.mark = true;
        }
        Some(pkt)
    }
}

impl Oracle for DualPi2 {
    fn tick_period(&self) -> Option<u64> {
        Some(self.params.tupdate)
    }

    /// `dualpi2_update()`.
    fn tick(&mut self, now: u64) {
        let DualPi2Params {
            k,
            target,
            rtt_max,
            tupdate,
            ..
        } = self.params;
        let (tupdate, rtt_max) = (seconds(tupdate, 0), seconds(rtt_max, 0));
        let alpha = 0.1 * tupdate / (rtt_max * rtt_max);
        let beta = 0.3 / rtt_max;
        let curq = self.cq.time(now).max(self.lq.time(now));
        self.p += alpha * seconds(curq, target) + beta * seconds(curq, self.prevq);
        self.p = self.p.clamp(0.0, 1.0);
        self.p_cl = (self.p * k).min(1.0);
        self.p_c = self.p * self.p;
        self.prevq = curq;
    }

    fn enqueue(&mut self, now: u64, packet: Packet, fates: &mut [Option<Fate>]) {
        let room = self.params.mtu.max(u64::from(packet.len));
        let bytes = bytes(&self.lq.packets) + bytes(&self.cq.packets);
        if self.len() >= self.params.limit_packets
            || self
                .params
                .limit_bytes
                .is_some_and(|most| bytes + room > most)
        {
            return drop_packet(fates, &packet, DropReason::QueueFull);
        }
        let pkt = Stored::new(packet, now);
        match pkt.ecn() % 2 {
            1 => self.lq.packets.push_back(pkt),
            _ => self.cq.packets.push_back(pkt),
        }
    }

    fn dequeue(&mut self, now: u64, fates: &mut [Option<Fate>]) -> Option<Stored> {
        while self.len() > 0 {
            let contended = !self.lq.packets.is_empty() && !self.cq.packets.is_empty();
            let low_latency = self.scheduler(now);
            let taken = if low_latency {
                self.dequeue_l(now, fates)
            } else {
                self.dequeue_c(fates)
            };
            let Some(pkt) = taken else { continue };
            if contended && let Scheduler::Wrr(weight) = self.params.scheduler {
                let len = i64::from(pkt.packet.len);
                self.credit += if low_latency { len } else { -weight * len };
            }
            return Some(pkt);
        }
        // The link is idle.
        self.credit = 0;
        None
    }

    fn len(&self) -> usize {
        self.lq.packets.len() + self.cq.packets.len()
    }
}
