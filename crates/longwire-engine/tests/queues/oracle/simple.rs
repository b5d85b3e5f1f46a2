//! Head drop, strict priority and deficit round robin.

use std::collections::VecDeque;

use longwire_engine::DropReason;

use super::{Limit, Oracle, Stored, drop_packet};
use crate::link::Fate;
use crate::traffic::Packet;

pub struct HeadDrop {
    pub limit: Limit,
    pub queue: VecDeque<Stored>,
}

impl Oracle for HeadDrop {
    fn enqueue(&mut self, now: u64, packet: Packet, fates: &mut [Option<Fate>]) {
        if !self.limit.fits([].iter(), packet.len) {
            return drop_packet(fates, &packet, DropReason::QueueFull);
        }
        while !self.limit.fits(self.queue.iter(), packet.len) {
            let oldest = self.queue.pop_front().expect("the packet fits alone");
            drop_packet(fates, &oldest.packet, DropReason::QueueFull);
        }
        self.queue.push_back(Stored::new(packet, now));
    }

    fn dequeue(&mut self, _now: u64, _fates: &mut [Option<Fate>]) -> Option<Stored> {
        self.queue.pop_front()
    }

    fn len(&self) -> usize {
        self.queue.len()
    }
}

/// A class and what waits in it.
pub struct Class {
    pub dscps: Vec<u8>,
    pub weight: i64,
    pub limit: Limit,
    pub queue: VecDeque<Stored>,
    pub deficit: i64,
}

/// Classes of which the last has all code points that no other has.
pub struct ByClass(pub Vec<Class>);

impl ByClass {
    fn enqueue(&mut self, now: u64, packet: Packet, fates: &mut [Option<Fate>]) -> Option<usize> {
        let dscp = packet.class().0;
        let found = self.0.iter().position(|class| class.dscps.contains(&dscp));
        let index = found.unwrap_or(self.0.len() - 1);
        let class = &mut self.0[index];
        if !class.limit.fits(class.queue.iter(), packet.len) {
            drop_packet(fates, &packet, DropReason::QueueFull);
            return None;
        }
        class.queue.push_back(Stored::new(packet, now));
        Some(index)
    }

    fn len(&self) -> usize {
        self.0.iter().map(|class| class.queue.len()).sum()
    }
}

pub struct Priority(pub ByClass);

impl Oracle for Priority {
    fn enqueue(&mut self, now: u64, packet: Packet, fates: &mut [Option<Fate>]) {
        self.0.enqueue(now, packet, fates);
    }

    fn dequeue(&mut self, _now: u64, _fates: &mut [Option<Fate>]) -> Option<Stored> {
        let mut classes = self.0.0.iter_mut();
        classes.find_map(|class| class.queue.pop_front())
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

/// Shreedhar and Varghese 1996, figure 2: the class at the head of the list
/// gets a quantum and sends what its deficit covers.
pub struct Drr {
    pub classes: ByClass,
    pub quantum: i64,
    pub active: VecDeque<usize>,
    /// The class whose turn it is, and how much it may still send is its
    /// deficit.
    pub serving: Option<usize>,
}

impl Oracle for Drr {
    fn enqueue(&mut self, now: u64, packet: Packet, fates: &mut [Option<Fate>]) {
        if let Some(index) = self.classes.enqueue(now, packet, fates)
            && !self.active.contains(&index)
            && self.serving != Some(index)
        {
            self.classes.0[index].deficit = 0;
            self.active.push_back(index);
        }
    }

    fn dequeue(&mut self, _now: u64, _fates: &mut [Option<Fate>]) -> Option<Stored> {
        loop {
            let index = match self.serving {
                Some(index) => index,
                None => {
                    let index = self.active.pop_front()?;
                    let class = &mut self.classes.0[index];
                    class.deficit += self.quantum * class.weight;
                    self.serving = Some(index);
                    index
                }
            };
            let class = &mut self.classes.0[index];
            match class.queue.front() {
                Some(head) if i64::from(head.packet.len) <= class.deficit => {
                    class.deficit -= i64::from(head.packet.len);
                    let sent = class.queue.pop_front();
                    if class.queue.is_empty() {
                        class.deficit = 0;
                        self.serving = None;
                    }
                    return sent;
                }
                Some(_) => {
                    self.active.push_back(index);
                    self.serving = None;
                }
                None => self.serving = None,
            }
        }
    }

    fn len(&self) -> usize {
        self.classes.len()
    }
}
