//! Head drop, strict priority and deficit round robin.

use std::collections::VecDeque;

use longwire_engine::DropReason;

use super::{Limit, Oracle, Stored, bytes, drop_packet};
use crate::queues::link::Fate;
use crate::queues::traffic::Packet;

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

/// A class with its queue.
pub struct Class {
    pub points: Vec<u8>,
    pub weight: i64,
    /// Limit of this class, if any.
    pub limit: Option<Limit>,
    pub queue: VecDeque<Stored>,
    pub deficit: i64,
}

/// Classes; the last one takes all remaining code points.
pub struct ByClass {
    pub classes: Vec<Class>,
    /// Combined limit of all classes.
    pub total: Limit,
    /// Whether code points come from the VLAN tag.
    pub by_tag: bool,
}

impl ByClass {
    fn class_of(&self, packet: &Packet) -> usize {
        let point = if self.by_tag {
            packet.pcp()
        } else {
            packet.class().0
        };
        let mut classes = self.classes.iter();
        let found = classes.position(|class| class.points.contains(&point));
        found.unwrap_or(self.classes.len() - 1)
    }

    /// Whether the packet fits in the class's limit.
    fn own_fits(&self, index: usize, len: u32) -> bool {
        let class = &self.classes[index];
        let fits = |limit: Limit| limit.fits(class.queue.iter(), len);
        class.limit.is_none_or(fits)
    }

    /// Whether the packet fits together with the first `classes` classes.
    fn fits_with(&self, classes: usize, len: u32) -> bool {
        let classes = self.classes[..classes].iter();
        self.total
            .fits(classes.flat_map(|class| class.queue.iter()), len)
    }

    fn all_fits(&self, len: u32) -> bool {
        self.fits_with(self.classes.len(), len)
    }

    fn push_out(&mut self, index: usize, fates: &mut [Option<Fate>]) {
        let latest = self.classes[index].queue.pop_back();
        let latest = latest.expect("a class with packets");
        drop_packet(fates, &latest.packet, DropReason::QueueFull);
    }

    fn len(&self) -> usize {
        self.classes.iter().map(|class| class.queue.len()).sum()
    }
}

pub struct Priority(pub ByClass);

impl Oracle for Priority {
    /// Drops the newest packets of the lowest classes if that frees enough space.
    fn enqueue(&mut self, now: u64, packet: Packet, fates: &mut [Option<Fate>]) {
        let index = self.0.class_of(&packet);
        let helps = self.0.fits_with(index + 1, packet.len);
        if !self.0.own_fits(index, packet.len) || !helps {
            return drop_packet(fates, &packet, DropReason::QueueFull);
        }
        while !self.0.all_fits(packet.len) {
            let mut lowest = self.0.classes.iter();
            let lowest = lowest.rposition(|class| !class.queue.is_empty());
            self.0.push_out(lowest.expect("it fits alone"), fates);
        }
        let class = &mut self.0.classes[index];
        class.queue.push_back(Stored::new(packet, now));
    }

    fn dequeue(&mut self, _now: u64, _fates: &mut [Option<Fate>]) -> Option<Stored> {
        let mut classes = self.0.classes.iter_mut();
        classes.find_map(|class| class.queue.pop_front())
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

/// Shreedhar and Varghese 1996, figure 2: the class at the head of the list receives a quantum and
/// sends the packets covered by its deficit.
pub struct Drr {
    pub classes: ByClass,
    pub quantum: i64,
    pub active: VecDeque<usize>,
    /// Class being served; its deficit is its remaining allowance.
    pub serving: Option<usize>,
}

impl Drr {
    /// Returns the class with the most bytes per weight, including a packet arriving in `own`. Ties
    /// go to `own`, then to the first class.
    fn longest(&self, own: usize, len: u32) -> usize {
        let share = |index: usize| {
            let class = &self.classes.classes[index];
            let more = if index == own { u64::from(len) } else { 0 };
            (bytes(&class.queue) + more, class.weight as u64)
        };
        let mut longest = own;
        for index in 0..self.classes.classes.len() {
            let (one, other) = (share(index), share(longest));
            if one.0 * other.1 > other.0 * one.1 {
                longest = index;
            }
        }
        longest
    }
}

impl Oracle for Drr {
    fn enqueue(&mut self, now: u64, packet: Packet, fates: &mut [Option<Fate>]) {
        let index = self.classes.class_of(&packet);
        if !self.classes.own_fits(index, packet.len) {
            return drop_packet(fates, &packet, DropReason::QueueFull);
        }
        while !self.classes.all_fits(packet.len) {
            let longest = self.longest(index, packet.len);
            if longest == index {
                return drop_packet(fates, &packet, DropReason::QueueFull);
            }
            self.classes.push_out(longest, fates);
            if self.classes.classes[longest].queue.is_empty() {
                self.classes.classes[longest].deficit = 0;
                self.active.retain(|active| *active != longest);
                self.serving = self.serving.filter(|serving| *serving != longest);
            }
        }
        if !self.active.contains(&index) && self.serving != Some(index) {
            self.classes.classes[index].deficit = 0;
            self.active.push_back(index);
        }
        let class = &mut self.classes.classes[index];
        class.queue.push_back(Stored::new(packet, now));
    }

    fn dequeue(&mut self, _now: u64, _fates: &mut [Option<Fate>]) -> Option<Stored> {
        loop {
            let index = match self.serving {
                Some(index) => index,
                None => {
                    let index = self.active.pop_front()?;
                    let class = &mut self.classes.classes[index];
                    class.deficit += self.quantum * class.weight;
                    self.serving = Some(index);
                    index
                }
            };
            let class = &mut self.classes.classes[index];
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
