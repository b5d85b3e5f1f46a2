//! RFC 8290, section 4.

use std::collections::VecDeque;

use longwire_engine::DropReason;
use longwire_packet::flow_hash::flow_hash;

use super::codel::{CodelParams, CodelQueue};
use super::{Limit, Oracle, Stored, bytes, drop_packet};
use crate::queues::link::Fate;
use crate::queues::traffic::Packet;

pub struct FqCodel {
    pub limit: Limit,
    pub quantum: i64,
    pub ce_threshold: Option<u64>,
    perturbation: u64,
    flows: Vec<CodelQueue>,
    credits: Vec<i64>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
}

impl FqCodel {
    pub fn new(
        limit: Limit,
        codel: CodelParams,
        flows: usize,
        quantum: i64,
        ce_threshold: Option<u64>,
        perturbation: u64,
    ) -> FqCodel {
        FqCodel {
            limit,
            quantum,
            ce_threshold,
            perturbation,
            flows: vec![CodelQueue::new(codel); flows],
            credits: vec![0; flows],
            new: VecDeque::new(),
            old: VecDeque::new(),
        }
    }

    fn classify(&self, packet: &Packet) -> usize {
        let bytes = packet.bytes();
        let hash = flow_hash(&bytes, self.perturbation);
        (hash % self.flows.len() as u64) as usize
    }

    fn bytes(&self) -> u64 {
        self.flows.iter().map(|flow| bytes(&flow.queue)).sum()
    }

    /// Drops half of the largest queue's packets from its head, at least one and at most 64.
    fn drop_from_largest(&mut self, fates: &mut [Option<Fate>]) {
        let backlogs: Vec<u64> = self.flows.iter().map(|flow| bytes(&flow.queue)).collect();
        let most = backlogs.iter().max().copied().unwrap_or(0);
        let largest = backlogs
            .iter()
            .position(|bytes| *bytes == most)
            .unwrap_or(0);
        let queue = &mut self.flows[largest].queue;
        let half = (queue.len() / 2).clamp(1, 64);
        for stored in queue.drain(..half) {
            drop_packet(fates, &stored.packet, DropReason::QueueFull);
        }
    }
}

impl Oracle for FqCodel {
    fn enqueue(&mut self, now: u64, packet: Packet, fates: &mut [Option<Fate>]) {
        let index = self.classify(&packet);
        self.flows[index].queue.push_back(Stored::new(packet, now));
        if !self.new.contains(&index) && !self.old.contains(&index) {
            self.new.push_back(index);
            self.credits[index] = self.quantum;
        }
        while self.len() as u64 > self.limit.packets
            || self.limit.bytes.is_some_and(|most| self.bytes() > most)
        {
            self.drop_from_largest(fates);
        }
    }

    fn dequeue(&mut self, now: u64, fates: &mut [Option<Fate>]) -> Option<Stored> {
        loop {
            let (index, is_new) = match (self.new.front(), self.old.front()) {
                (Some(index), _) => (*index, true),
                (None, Some(index)) => (*index, false),
                (None, None) => return None,
            };
            if self.credits[index] <= 0 {
                self.credits[index] += self.quantum;
                if is_new {
                    self.new.pop_front()
                } else {
                    self.old.pop_front()
                };
                self.old.push_back(index);
                continue;
            }
            if let Some(mut stored) = self.flows[index].dequeue(now, fates) {
                self.credits[index] -= i64::from(stored.packet.len);
                let waited = now - stored.tstamp;
                if self.ce_threshold.is_some_and(|most| waited > most) && stored.ecn() != 0 {
                    stored.mark = true;
                }
                return Some(stored);
            }
            if is_new {
                self.new.pop_front();
                self.old.push_back(index);
            } else {
                self.old.pop_front();
            }
        }
    }

    fn len(&self) -> usize {
        self.flows.iter().map(|flow| flow.queue.len()).sum()
    }
}
