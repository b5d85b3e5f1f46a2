//! Links in virtual time: captured frames in, the same frames out with the
//! stamps that the emulated links give them.
//!
//! Nothing here waits or reads a clock: a capture's own stamps are the time,
//! so the same capture, links and seed give the same output to the byte.

pub mod network;
mod replay;
mod sides;
mod store;

use std::collections::BTreeMap;

use longwire_capture::log::{LogError, LogWriter, Number, VerdictLog};
use longwire_capture::{CaptureWriter, Record};
use longwire_engine::emulator::ItemBytes;
use longwire_engine::models::mtu::Mtu;
use longwire_engine::{
    Delivery, Emulator, Fragments, FrameMeta, Link, LinkConfig, LinkId, Nanos, Verdict,
};
use longwire_runtime::ledger::{LinkCells, Memory, QueueLengths};
use longwire_runtime::{Artifact, Faults, LinkReport, LinkSetup};

pub use replay::{End, Replay, UnassignedFrames, Ways};
pub use sides::{Mac, Near, Sides};

use crate::Error;
use store::{FrameLocation, FrameStore};

/// A direction of a link, with its own random streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Direction {
    /// From near to far, or from A to B
    #[default]
    Up,
    /// From far to near, or from B to A
    Down,
}

impl Direction {
    /// Returns the name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Up => "up",
            Direction::Down => "down",
        }
    }

    /// Returns the number of the link in a live run, which decides its streams.
    fn link_id(self) -> LinkId {
        match self {
            Direction::Up => LinkId(0),
            Direction::Down => LinkId(1),
        }
    }
}

/// A frame that waits for its release.
#[derive(Clone, Copy, Debug)]
struct HeldFrame {
    link: LinkId,
    number: Number,
    place: FrameLocation,
    wire_len: u32,
}

/// One link or two in virtual time.
#[derive(Debug)]
pub struct Simulation {
    seed: u64,
    /// The start of the links' schedules: with the first frame, if `None`.
    epoch: Option<Nanos>,
    /// The links until the first frame arrives.
    configs: Vec<(LinkId, LinkConfig)>,
    links: Vec<SimulatedLink>,
    /// The engine; its links have the numbers of [`Simulation::links`].
    emulator: Emulator<HeldFrame>,
    stores: Stores,
    now: Nanos,
    log: Option<VerdictLog>,
    fragments: Fragments,
}

/// A link's description and counts, without its state.
#[derive(Debug)]
struct SimulatedLink {
    direction: Direction,
    /// Its name in reports and logs.
    name: String,
    config: Vec<(&'static str, String)>,
    cells: LinkCells,
    time_went_back: u64,
}

/// The bytes of each link's frames.
#[derive(Debug)]
struct Stores(Vec<FrameStore>);

impl Stores {
    fn of(&mut self, held: &HeldFrame) -> &mut FrameStore {
        &mut self.0[held.link.0 as usize]
    }
}

impl ItemBytes<HeldFrame> for Stores {
    fn bytes<'a>(&'a self, held: &'a HeldFrame) -> &'a [u8] {
        self.0[held.link.0 as usize].get(held.place)
    }
}

impl Simulation {
    /// Returns links without frames, with the streams of their directions.
    /// Schedules and traces count from `epoch`, or from the first frame.
    pub fn new(links: Vec<(Direction, LinkSetup)>, seed: u64, epoch: Option<Nanos>) -> Simulation {
        let simulated = links.iter().map(|(direction, link)| SimulatedLink {
            direction: *direction,
            name: link.name.clone(),
            config: link.config.describe(),
            cells: LinkCells::default(),
            time_went_back: 0,
        });
        let stores = links.iter().map(|_| FrameStore::new());
        Simulation {
            seed,
            epoch,
            links: simulated.collect(),
            emulator: Emulator::new(Vec::new()),
            stores: Stores(stores.collect()),
            now: Nanos::ZERO,
            log: None,
            fragments: Fragments::default(),
            configs: links
                .into_iter()
                .map(|(direction, link)| (direction.link_id(), link.config))
                .collect(),
        }
    }

    /// Writes every verdict into a log.
    pub fn write_log(&mut self, writer: LogWriter) {
        let names = self.links.iter().map(|link| link.name.as_str());
        self.log = Some(VerdictLog::new(writer, names));
    }

    /// Processes one captured frame: releases the frames that are due before
    /// it, then offers it to the link of its direction with the length that it
    /// had on the wire, also if that is 0.
    ///
    /// A frame stamped before its predecessor counts as simultaneous with it.
    ///
    /// # Errors
    /// If the output or the log cannot be written.
    ///
    /// # Panics
    /// If there is no link of that direction.
    pub fn frame(
        &mut self,
        direction: Direction,
        record: Record<'_>,
        out: &mut CaptureWriter,
    ) -> Result<(), Error> {
        if !self.configs.is_empty() {
            self.begin(record.stamp);
        }
        let position = self.links.iter().position(|l| l.direction == direction);
        let link = position.unwrap_or_else(|| panic!("no link {}", direction.name()));
        if record.stamp < self.now {
            self.links[link].time_went_back += 1;
        }
        self.now = self.now.max(record.stamp);
        self.release(self.now, out)?;
        let link = LinkId(link as u32);
        if !self.in_fragments(link, &record)? {
            self.offer(link, record.bytes, record.wire_len)?;
        }
        Ok(())
    }

    fn begin(&mut self, first: Nanos) {
        let epoch = *self.epoch.get_or_insert(first);
        if let Some(log) = &mut self.log {
            log.set_epoch(epoch);
        }
        let links = self.configs.drain(..).map(|(id, config)| {
            let config = LinkConfig { epoch, ..config };
            Link::new(config, self.seed, id)
        });
        self.emulator = Emulator::new(links.collect());
    }

    /// Whether the link cuts the frame into fragments; they have then been
    /// offered one by one.
    fn in_fragments(&mut self, id: LinkId, record: &Record<'_>) -> Result<bool, LogError> {
        let mut fragments = std::mem::take(&mut self.fragments);
        let mtu = self.emulator.link(id).map_or(Mtu::None, Link::mtu);
        let cut = fragments.cut(mtu, record.bytes);
        if cut {
            for fragment in fragments.iter() {
                self.offer(id, fragment, fragment.len() as u32)?;
            }
        }
        self.fragments = fragments;
        Ok(cut)
    }

    fn offer(&mut self, id: LinkId, bytes: &[u8], wire_len: u32) -> Result<(), LogError> {
        let index = id.0 as usize;
        let cells = &self.links[index].cells;
        let number = cells.arrivals();
        cells.arrived(wire_len);
        let frame = FrameMeta {
            arrival: self.now,
            len: wire_len,
        };
        let held = HeldFrame {
            link: id,
            number,
            place: self.stores.0[index].insert(bytes),
            wire_len,
        };
        let verdict = self.emulator.offer(id, frame, bytes, held);
        if let Some(log) = &mut self.log {
            let queue = self.emulator.link(id).map(Link::occupancy);
            log.offered(index, number, frame, queue.unwrap_or_default());
        }
        if verdict != Verdict::Queued {
            self.decided(held, verdict, false)?;
            self.take_decisions()?;
        }
        Ok(())
    }

    /// Accounts for a verdict, and changes the frame's bytes to those that are
    /// delivered.
    fn decided(&mut self, held: HeldFrame, verdict: Verdict, copy: bool) -> Result<(), LogError> {
        let index = held.link.0 as usize;
        if let Some(log) = &mut self.log {
            log.decided(index, held.number, &verdict)?;
        }
        self.links[index].cells.decided(&verdict, copy);
        match verdict {
            Verdict::Deliver(delivery) => {
                if copy {
                    self.stores.of(&held).share(held.place);
                } else if delivery.edits.any()
                    && let Some(link) = self.emulator.link_mut(held.link)
                {
                    link.edit(&delivery, self.stores.of(&held).get_mut(held.place));
                }
            }
            Verdict::Drop(_) => self.stores.of(&held).remove(held.place),
            Verdict::Queued => {}
        }
        Ok(())
    }

    fn take_decisions(&mut self) -> Result<(), LogError> {
        while let Some(decided) = self.emulator.next_decided() {
            self.decided(decided.item, decided.verdict, decided.copy)?;
        }
        Ok(())
    }

    /// Releases all waiting frames after the end of the input. Frames of a link
    /// that stands still never depart, and stay.
    ///
    /// # Errors
    /// If the output or the log cannot be written.
    pub fn finish(&mut self, out: &mut CaptureWriter) -> Result<(), Error> {
        self.release(Nanos::MAX, out)
    }

    /// Finishes the log, if there is one, with the frames that are held.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish_log(&mut self) -> Result<(), Error> {
        match self.log.take() {
            Some(log) => Ok(log.finish()?),
            None => Ok(()),
        }
    }

    fn release(&mut self, now: Nanos, out: &mut CaptureWriter) -> Result<(), Error> {
        self.emulator.advance(now, &self.stores);
        self.take_decisions()?;
        // A frame that never departs is never released either.
        let now = now.min(Nanos::from_nanos(u64::MAX - 1));
        while let Some((_, held, Delivery { release, .. })) = self.emulator.poll(now) {
            let store = self.stores.of(&held);
            out.write(release, store.get(held.place), held.wire_len)?;
            store.remove(held.place);
            self.links[held.link.0 as usize].cells.left(held.wire_len);
        }
        Ok(())
    }

    /// Returns the start of the links' schedules, once a frame has arrived.
    pub fn epoch(&self) -> Option<Nanos> {
        self.epoch
    }

    /// Returns the reports of the links so far.
    pub fn reports(&self) -> Vec<LinkReport> {
        (0..self.links.len())
            .map(|index| self.report(index))
            .collect()
    }

    fn report(&self, index: usize) -> LinkReport {
        let link = &self.links[index];
        let totals = link.cells.totals();
        let occupancy = self.emulator.link(LinkId(index as u32));
        let (packets, bytes) = occupancy.map(Link::occupancy_max).unwrap_or_default();
        let artifacts = Artifact::ALL.map(|kind| match kind {
            Artifact::TimeWentBack => (kind.name(), link.time_went_back),
            kind => (kind.name(), 0),
        });
        LinkReport {
            name: link.name.clone(),
            config: by_name(&link.config),
            traffic: totals.traffic,
            drops: totals.drops.iter().collect(),
            artifacts: artifacts.into(),
            effects: totals.effects,
            in_flight: totals.held(),
            queue: QueueLengths {
                queue_packets_max: packets.0,
                queue_bytes_max: bytes.0,
            },
            memory: Memory {
                memory_max: self.stores.0[index].memory_max(),
            },
            ..LinkReport::default()
        }
    }
}

/// Checks that no plugin has failed: decisions of a plugin after its failure
/// have no meaning.
///
/// # Errors
/// The first fault, if there is one.
pub fn check_faults(faults: &Faults) -> Result<(), Error> {
    if faults.any() {
        Err(Error::Failed(faults.first().unwrap_or_default()))
    } else {
        Ok(())
    }
}

/// Returns a link's parts by their names; several losses become one text.
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
