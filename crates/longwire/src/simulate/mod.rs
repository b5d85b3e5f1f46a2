//! A link in virtual time: captured frames in, the same frames out with the
//! stamps that the emulated link gives them.
//!
//! Nothing here waits or reads a clock: a capture's own stamps are the time,
//! so the same capture, link and seed give the same output to the byte.

mod store;

use std::collections::BTreeMap;

use longwire_engine::emulator::ItemBytes;
use longwire_engine::{
    Delivery, DropReason, Emulator, FrameMeta, Link, LinkConfig, LinkId, Nanos, Verdict,
};
use longwire_io::PortError;
use longwire_io::port::pcap::{CaptureWriter, Record};
use longwire_runtime::LinkReport;

use crate::report::artifacts::{ARTIFACTS, TIME_WENT_BACK};
use store::{FrameStore, Place};

/// A link's two directions differ in their random streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Direction {
    /// From near to far, or from A to B
    #[default]
    Up,
    /// From far to near, or from B to A
    Down,
}

impl Direction {
    /// As reports name it.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Up => "up",
            Direction::Down => "down",
        }
    }

    /// The number of the link in a live run, which decides its streams.
    fn link_id(self) -> LinkId {
        match self {
            Direction::Up => LinkId(0),
            Direction::Down => LinkId(1),
        }
    }
}

/// A frame that waits for its release.
#[derive(Clone, Copy, Debug)]
struct Held {
    place: Place,
    wire_len: u32,
}

/// One link in virtual time.
#[derive(Debug)]
pub struct Simulation {
    name: &'static str,
    config: Vec<(&'static str, String)>,
    emulator: Emulator<Held>,
    store: FrameStore,
    now: Nanos,
    counts: Counts,
}

impl ItemBytes<Held> for FrameStore {
    fn bytes<'a>(&'a self, held: &'a Held) -> &'a [u8] {
        self.get(held.place)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    packets_in: u64,
    bytes_in: u64,
    packets_out: u64,
    bytes_out: u64,
    drops: [u64; DropReason::ALL.len()],
    raised: u64,
    ecn_marked: u64,
    corrupted: u64,
    duplicated: u64,
    time_went_back: u64,
}

impl Counts {
    fn delivered(&mut self, delivery: &Delivery, copy: bool) {
        self.raised += u64::from(delivery.raised);
        if copy {
            self.duplicated += 1;
        } else {
            self.ecn_marked += u64::from(delivery.edits.mark);
            self.corrupted += u64::from(delivery.edits.corruption.is_some());
        }
    }
}

/// The emulator has this one link.
const ONLY: LinkId = LinkId(0);

impl Simulation {
    /// A fresh link.
    pub fn new(config: LinkConfig, seed: u64, direction: Direction) -> Simulation {
        let described = config.describe();
        let link = Link::new(config, seed, direction.link_id());
        Simulation {
            name: direction.name(),
            config: described,
            emulator: Emulator::new(vec![link]),
            store: FrameStore::new(),
            now: Nanos::ZERO,
            counts: Counts::default(),
        }
    }

    /// One captured frame: releases what is due before it, then offers it to
    /// the link with the length that it had on the wire, also if that is 0.
    ///
    /// A frame stamped before the one in front of it counts as simultaneous
    /// with that.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn frame(&mut self, record: Record<'_>, out: &mut CaptureWriter) -> Result<(), PortError> {
        if record.stamp < self.now {
            self.counts.time_went_back += 1;
        }
        self.now = self.now.max(record.stamp);
        self.release(self.now, out)?;
        if !self.in_fragments(&record) {
            self.offer(record.bytes, record.wire_len);
        }
        Ok(())
    }

    /// Whether the link cuts the frame into fragments, which then have been
    /// offered one by one.
    fn in_fragments(&mut self, record: &Record<'_>) -> bool {
        let Some(link) = self.emulator.link(ONLY).filter(|link| link.fragments()) else {
            return false;
        };
        let mut pieces: Vec<Vec<u8>> = Vec::new();
        let cut = link.fragment(record.bytes, &mut Vec::new(), |piece| {
            pieces.push(piece.to_vec());
        });
        for piece in &pieces {
            self.offer(piece, piece.len() as u32);
        }
        cut
    }

    fn offer(&mut self, bytes: &[u8], wire_len: u32) {
        self.counts.packets_in += 1;
        self.counts.bytes_in += u64::from(wire_len);
        let frame = FrameMeta {
            arrival: self.now,
            len: wire_len,
        };
        let place = self.store.insert(bytes);
        let held = Held { place, wire_len };
        let verdict = self.emulator.offer(ONLY, frame, bytes, held);
        if verdict != Verdict::Queued {
            self.decided(held, verdict, false);
            self.take_decisions();
        }
    }

    /// Accounts for a verdict, and gives the frame's bytes the form in which
    /// it is delivered.
    fn decided(&mut self, held: Held, verdict: Verdict, copy: bool) {
        match verdict {
            Verdict::Deliver(delivery) => {
                self.counts.delivered(&delivery, copy);
                if copy {
                    self.store.share(held.place);
                } else if delivery.edits.any()
                    && let Some(link) = self.emulator.link_mut(ONLY)
                {
                    link.edit(&delivery, self.store.get_mut(held.place));
                }
            }
            Verdict::Drop(reason) => {
                self.counts.drops[reason.index()] += 1;
                self.store.remove(held.place);
            }
            Verdict::Queued => {}
        }
    }

    fn take_decisions(&mut self) {
        while let Some(decided) = self.emulator.next_decided() {
            self.decided(decided.item, decided.verdict, decided.copy);
        }
    }

    /// Releases all that waits: the input has ended. What never departs, for
    /// its link stands still, stays.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn finish(&mut self, out: &mut CaptureWriter) -> Result<(), PortError> {
        self.release(Nanos::MAX, out)
    }

    fn release(&mut self, now: Nanos, out: &mut CaptureWriter) -> Result<(), PortError> {
        self.emulator.advance(now, &self.store);
        self.take_decisions();
        // A frame that never departs is never released either.
        let now = now.min(Nanos::from_nanos(u64::MAX - 1));
        while let Some((_, held, Delivery { release, .. })) = self.emulator.poll(now) {
            out.write(release, self.store.get(held.place), held.wire_len)?;
            self.store.remove(held.place);
            self.counts.packets_out += 1;
            self.counts.bytes_out += u64::from(held.wire_len);
        }
        Ok(())
    }

    /// What became of the frames so far.
    pub fn report(&self) -> LinkReport {
        let counts = &self.counts;
        let occupancy = self.emulator.link(ONLY).map(Link::occupancy_max);
        let (packets, bytes) = occupancy.unwrap_or_default();
        let drops = DropReason::ALL.map(|reason| (reason.name(), counts.drops[reason.index()]));
        let artifacts = ARTIFACTS.map(|kind| match kind.name {
            TIME_WENT_BACK => (TIME_WENT_BACK, counts.time_went_back),
            other => (other, 0),
        });
        LinkReport {
            name: self.name.to_owned(),
            config: by_name(&self.config),
            packets_in: counts.packets_in,
            packets_out: counts.packets_out,
            bytes_in: counts.bytes_in,
            bytes_out: counts.bytes_out,
            drops: drops.into(),
            artifacts: artifacts.into(),
            raised: counts.raised,
            ecn_marked: counts.ecn_marked,
            corrupted: counts.corrupted,
            duplicated: counts.duplicated,
            in_flight: (self.emulator.waiting() + self.emulator.queued()) as u64,
            queue_packets_max: packets.0,
            queue_bytes_max: bytes.0,
            memory_max: self.store.memory_max(),
            ..LinkReport::default()
        }
    }
}

/// A link's parts by their names; several losses become one text.
fn by_name(parts: &[(&'static str, String)]) -> BTreeMap<&'static str, String> {
    let mut named = BTreeMap::new();
    for (name, value) in parts {
        let text: &mut String = named.entry(*name).or_default();
        if !text.is_empty() {
            text.push_str(" + ");
        }
        text.push_str(value);
    }
    named
}
