//! A line-by-line implementation of RFC 8289, section 5.

use std::collections::VecDeque;

use longwire_engine::DropReason;

use super::{Limit, Oracle, Stored, bytes, drop_packet};
use crate::queues::link::Fate;
use crate::queues::traffic::Packet;

#[derive(Clone, Copy, Debug, Default)]
pub struct CodelParams {
    pub target: i128,
    pub interval: i128,
    pub maxpacket: u64,
    pub ecn: bool,
}

/// `codel_queue_t`.
#[derive(Clone, Debug, Default)]
pub struct CodelQueue {
    pub params: CodelParams,
    pub queue: VecDeque<Stored>,
    /// 0 means "no time set"; times are offset by one, so that no time is 0.
    first_above_time: i128,
    drop_next: i128,
    count: u32,
    lastcount: u32,
    dropping: bool,
}

struct DodequeueResult {
    p: Option<Stored>,
    ok_to_drop: bool,
}

impl CodelQueue {
    pub fn new(params: CodelParams) -> CodelQueue {
        CodelQueue {
            params,
            ..CodelQueue::default()
        }
    }

    fn control_law(&self, t: i128, count: u32) -> i128 {
        t + (self.params.interval as f64 / f64::from(count).sqrt()) as i128
    }

    fn dodequeue(&mut self, now: i128) -> DodequeueResult {
        let mut r = DodequeueResult {
            p: self.queue.pop_front(),
            ok_to_drop: false,
        };
        let Some(p) = &r.p else {
            self.first_above_time = 0;
            return r;
        };
        let sojourn_time = now - (i128::from(p.tstamp) + 1);
        if sojourn_time < self.params.target || bytes(&self.queue) <= self.params.maxpacket {
            self.first_above_time = 0;
        } else if self.first_above_time == 0 {
            self.first_above_time = now + self.params.interval;
        } else if now >= self.first_above_time {
            r.ok_to_drop = true;
        }
        r
    }

    /// Marks the packet if possible, otherwise drops it; returns whether it was marked.
    fn drop_or_mark(&self, r: &mut DodequeueResult, fates: &mut [Option<Fate>]) -> bool {
        let Some(p) = &mut r.p else { return false };
        if self.params.ecn && p.ecn() != 0 {
            p.mark = true;
            return true;
        }
        drop_packet(fates, &p.packet, DropReason::Aqm);
        false
    }

    pub fn dequeue(&mut self, now: u64, fates: &mut [Option<Fate>]) -> Option<Stored> {
        let now = i128::from(now) + 1;
        let mut r = self.dodequeue(now);
        if self.dropping {
            if !r.ok_to_drop {
                self.dropping = false;
            }
            while now >= self.drop_next && self.dropping {
                let marked = self.drop_or_mark(&mut r, fates);
                self.count += 1;
                if marked {
                    self.drop_next = self.control_law(self.drop_next, self.count);
                    return r.p;
                }
                r = self.dodequeue(now);
                if !r.ok_to_drop {
                    self.dropping = false;
                } else {
                    self.drop_next = self.control_law(self.drop_next, self.count);
                }
            }
        } else if r.ok_to_drop {
            if !self.drop_or_mark(&mut r, fates) {
                r = self.dodequeue(now);
            }
            self.dropping = true;
            let delta = self.count - self.lastcount;
            self.count = 1;
            if delta > 1 && now - self.drop_next < 16 * self.params.interval {
                self.count = delta;
            }
            self.drop_next = self.control_law(now, self.count);
            self.lastcount = self.count;
        }
        r.p
    }
}

/// One CoDel queue with a limit.
pub struct Codel {
    pub limit: Limit,
    pub codel: CodelQueue,
}

impl Oracle for Codel {
    fn enqueue(&mut self, now: u64, packet: Packet, fates: &mut [Option<Fate>]) {
        if self.limit.fits(self.codel.queue.iter(), packet.len) {
            self.codel.queue.push_back(Stored::new(packet, now));
        } else {
            drop_packet(fates, &packet, DropReason::QueueFull);
        }
    }

    fn dequeue(&mut self, now: u64, fates: &mut [Option<Fate>]) -> Option<Stored> {
        self.codel.dequeue(now, fates)
    }

    fn len(&self) -> usize {
        self.codel.queue.len()
    }
}
