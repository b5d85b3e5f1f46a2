//! Independent implementations of the disciplines, simple and slow, each written from its paper.

use longwire_engine::DropReason;
use longwire_units::random::{Purpose, Stream};

use crate::queues::link::{Fate, decide};
use crate::queues::traffic::Packet;

pub mod codel;
pub mod dualpi2;
pub mod fq_codel;
pub mod pie;
pub mod red;
pub mod simple;

/// A queue discipline, as called by a device driver.
pub trait Oracle {
    /// Returns the period of [`Oracle::tick`] in nanoseconds.
    fn tick_period(&self) -> Option<u64> {
        None
    }

    fn tick(&mut self, _now: u64) {}

    fn enqueue(&mut self, now: u64, packet: Packet, fates: &mut [Option<Fate>]);

    /// Requests a packet for the link, even if the queue is empty.
    fn dequeue(&mut self, now: u64, fates: &mut [Option<Fate>]) -> Option<Stored>;

    /// Returns the number of queued packets.
    fn len(&self) -> usize;
}

/// A queued packet.
#[derive(Clone, Debug)]
pub struct Stored {
    pub packet: Packet,
    pub tstamp: u64,
    pub mark: bool,
}

impl Stored {
    pub fn new(packet: Packet, now: u64) -> Stored {
        Stored {
            packet,
            tstamp: now,
            mark: false,
        }
    }

    pub fn ecn(&self) -> u8 {
        self.packet.class().1
    }
}

/// A limit in packets and bytes.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    pub packets: u64,
    pub bytes: Option<u64>,
}

impl Limit {
    pub fn fits<'a>(&self, held: impl Iterator<Item = &'a Stored> + Clone, len: u32) -> bool {
        let packets = held.clone().count() as u64;
        let fits_bytes = |most| bytes(held) + u64::from(len) <= most;
        packets < self.packets && self.bytes.is_none_or(fits_bytes)
    }

    pub fn text(&self) -> String {
        let packets = format!("limit={}p", self.packets);
        match self.bytes {
            Some(bytes) => format!("{packets},limit-bytes={bytes}b"),
            None => packets,
        }
    }
}

/// Returns the total length of these packets in bytes.
pub fn bytes<'a>(packets: impl IntoIterator<Item = &'a Stored>) -> u64 {
    packets
        .into_iter()
        .map(|stored| u64::from(stored.packet.len))
        .sum()
}

pub fn drop_packet(fates: &mut [Option<Fate>], packet: &Packet, reason: DropReason) {
    decide(fates, packet.number, Fate::Dropped(reason));
}

/// Returns the stream that the engine uses for link 0's queue with this seed, and the stream's
/// first number, which perturbs hashes.
pub fn queue_stream(seed: u64) -> (u64, Stream) {
    let mut stream = Stream::new(seed, 0, Purpose::Queue);
    let perturbation = stream.next_u64();
    (perturbation, stream)
}

/// Returns `a - b` in seconds: the exact difference, rounded once.
pub fn seconds(a: u64, b: u64) -> f64 {
    (i128::from(a) - i128::from(b)) as f64 / 1e9
}
