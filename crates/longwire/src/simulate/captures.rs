//! Captures of a simulation: frames entering at a network's ports, merged by time, and frames
//! leaving.

use std::sync::atomic::{AtomicBool, Ordering};

use longwire_capture::{
    Batches, CAPTURED_MAX, CaptureReader, CaptureWriter, Record, RecordCounts, Step,
};
use longwire_engine::Nanos;
use longwire_io::rights;
use longwire_packet::bridge::PortIndex;
use longwire_packet::sides::{Heading, Sides};
use longwire_runtime::deciding::OutputFrame;
use longwire_topology::{PortPlan, Topology};
use serde::Serialize;

use super::Direction;
use crate::Error;

/// A capture named on the command line, with its port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortFile {
    /// Ingress or egress port of all frames; `None` if the capture's interfaces name the ports.
    pub port: Option<PortIndex>,
    /// Path of the capture.
    pub path: String,
}

impl PortFile {
    /// Parses `PORT=FILE`, or a file whose interfaces have the names of ports.
    ///
    /// # Errors
    /// If the port does not exist; the message names the option `option`.
    pub fn parse(text: &str, option: &str, topology: &Topology) -> Result<PortFile, Error> {
        let Some((port, path)) = text.split_once('=') else {
            let path = text.to_owned();
            return Ok(PortFile { port: None, path });
        };
        let Some(index) = topology.port_named(port) else {
            return Err(Error::usage(format!(
                "{option} {text}: no port named '{port}'; ports are {}",
                names(&topology.ports)
            )));
        };
        Ok(PortFile {
            port: Some(index),
            path: path.to_owned(),
        })
    }
}

fn names(ports: &[PortPlan]) -> String {
    let names: Vec<&str> = ports.iter().map(|port| port.name.as_str()).collect();
    names.join(", ")
}

/// Assignment of a pair's frames to directions.
#[derive(Debug)]
pub enum Ways {
    /// All frames have this direction.
    One(Direction),
    /// Addresses determine the direction.
    Two(Sides),
}

/// Frames of unknown direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UnassignedFrames {
    /// Number of frames.
    pub packets: u64,
    /// Bytes on the wire.
    pub bytes: u64,
}

/// The captures of all ports. Frames are returned in timestamp order; ties follow the order of
/// ports in the topology, and frames of one capture stay in order.
pub struct Inputs<'a> {
    sources: Vec<Source>,
    /// Source of the last returned frame.
    taken: Option<usize>,
    ports: Vec<PortPlan>,
    /// Set by a signal handler.
    stop: &'a AtomicBool,
}

/// Minimum size in bytes of an uncompressed capture that is read on a separate thread; reading a
/// smaller one takes less time than starting a thread. Pipes are read on the deciding thread.
const LONG: u64 = 2 << 20;

/// A capture, positioned at its next frame.
struct Source {
    reader: CaptureReader,
    entry: Entry,
    /// Timestamp and ingress port of the next frame; `None` at the end.
    next: Option<(Nanos, PortIndex)>,
}

/// Assignment of a capture's frames to ingress ports.
enum Entry {
    /// All frames enter at one port.
    Port(PortIndex),
    /// Ports by interface, with their names. Later sections of a file may define other interfaces.
    Interfaces(Vec<Option<(String, PortIndex)>>),
    /// Addresses select a port of the pair. Frames of unknown direction are skipped and counted.
    Sides(Sides, UnassignedFrames),
}

impl<'a> Inputs<'a> {
    /// Opens captures and reads their first frames; stops early when `stop` is set.
    ///
    /// # Errors
    /// If a capture cannot be read, or does not name the ports of its frames.
    pub fn open(
        files: &[PortFile],
        topology: &Topology,
        stop: &'a AtomicBool,
    ) -> Result<Inputs<'a>, Error> {
        let mut sources = Vec::new();
        for file in files {
            let entry = file.port.map_or(Entry::Interfaces(Vec::new()), Entry::Port);
            let mut source = Source::open(&file.path, None, entry, Batches::Small)?;
            source.advance(&topology.ports, stop)?;
            sources.push(source);
        }
        Ok(Inputs {
            sources,
            taken: None,
            ports: topology.ports.clone(),
            stop,
        })
    }

    /// Opens the capture of a pair; stops early when `stop` is set.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn of_pair(
        path: &str,
        interface: Option<&str>,
        ways: Ways,
        stop: &'a AtomicBool,
    ) -> Result<Inputs<'a>, Error> {
        let entry = match ways {
            Ways::One(direction) => Entry::Port(direction.port()),
            Ways::Two(sides) => Entry::Sides(sides, UnassignedFrames::default()),
        };
        Ok(Inputs {
            sources: vec![Source::open(path, interface, entry, Batches::Large)?],
            // Read the first frame on demand, because a pipe may block indefinitely.
            taken: Some(0),
            ports: Vec::new(),
            stop,
        })
    }

    /// Returns the earliest timestamp among the first frames.
    ///
    /// # Errors
    /// If a capture is corrupt. That capture has then ended; the others continue.
    pub fn first_stamp(&mut self) -> Result<Option<Nanos>, Error> {
        self.advance()?;
        let next = self.sources.iter().filter_map(|source| source.next);
        Ok(next.map(|(stamp, _)| stamp).min())
    }

    /// Advances the capture of the last returned frame.
    #[inline]
    fn advance(&mut self) -> Result<(), Error> {
        match self.taken.take() {
            Some(taken) => self.sources[taken].advance(&self.ports, self.stop),
            None => Ok(()),
        }
    }

    /// Returns the next frame and its ingress port; `None` when all captures have ended.
    ///
    /// # Errors
    /// If a capture is corrupt. That capture has then ended; the others continue.
    #[inline(always)]
    pub fn next_frame(&mut self) -> Result<Option<(PortIndex, Record<'_>)>, Error> {
        if let [only] = &self.sources[..]
            && let (Some(_), &Entry::Port(port)) = (self.taken, &only.entry)
        {
            // A single capture needs no merging.
            let record = self.sources[0].reader.next()?;
            return Ok(record.map(|record| (port, record)));
        }
        self.advance()?;
        let sources = self.sources.iter().enumerate();
        let next = sources.filter_map(|(index, source)| Some((source.next?, index)));
        let Some(((_, port), index)) = next.min() else {
            return Ok(None);
        };
        self.taken = Some(index);
        let record = self.sources[index].reader.current();
        Ok(record.map(|record| (port, record)))
    }

    /// Returns the frames of unknown direction, for a pair whose directions depend on addresses.
    pub fn unassigned(&self) -> Option<UnassignedFrames> {
        self.sources.iter().find_map(|source| match &source.entry {
            Entry::Sides(_, unassigned) => Some(*unassigned),
            Entry::Port(_) | Entry::Interfaces(_) => None,
        })
    }

    /// Returns the counts of records converted to Ethernet or skipped, and a note on each kind.
    pub fn records(&self) -> (RecordCounts, Vec<String>) {
        let (mut sum, mut notes) = (RecordCounts::default(), Vec::new());
        for reader in self.sources.iter().map(|source| &source.reader) {
            sum.add(reader.counts());
            let of_reader = reader.counts().notes().into_iter();
            notes.extend(of_reader.map(|note| format!("{}: {note}", reader.name())));
        }
        (sum, notes)
    }

    /// Returns the bytes read, and the total if known.
    pub fn progress(&self) -> (u64, Option<u64>) {
        let readers = || self.sources.iter().map(|source| &source.reader);
        let sizes: Option<Vec<u64>> = readers().map(CaptureReader::size).collect();
        let done = readers().map(CaptureReader::stored_offset).sum();
        (done, sizes.map(|sizes| sizes.into_iter().sum()))
    }
}

impl Source {
    /// Opens a capture, positioned before its first frame.
    fn open(
        path: &str,
        interface: Option<&str>,
        entry: Entry,
        batches: Batches,
    ) -> Result<Source, Error> {
        let mut reader = CaptureReader::open(path)?;
        if let Some(interface) = interface {
            reader.choose_interface(interface)?;
        }
        if reader.packing().is_some() {
            // Decompression takes as long as the rest of the simulation, so use a separate thread.
            reader.read_ahead(false, rights::give_up_all)?;
        } else if reader.size().is_some_and(|size| size >= LONG) {
            reader.read_in_thread(batches, rights::give_up_all)?;
        }
        Ok(Source {
            reader,
            entry,
            next: None,
        })
    }

    /// Advances to the next frame that has a port.
    #[inline]
    fn advance(&mut self, ports: &[PortPlan], stop: &AtomicBool) -> Result<(), Error> {
        self.next = None;
        while self.reader.advance()? == Step::Frame
            && let Some(record) = self.reader.current()
        {
            let port = match &mut self.entry {
                Entry::Port(port) => *port,
                Entry::Interfaces(known) => port_of(&self.reader, record.interface, known, ports)?,
                Entry::Sides(sides, unassigned) => {
                    let Some(heading) = sides.direction(record.bytes) else {
                        unassigned.packets += 1;
                        unassigned.bytes += u64::from(record.wire_len);
                        if stop.load(Ordering::Relaxed) {
                            break;
                        }
                        continue;
                    };
                    match heading {
                        Heading::Up => Direction::Up.port(),
                        Heading::Down => Direction::Down.port(),
                    }
                }
            };
            self.next = Some((record.stamp, port));
            break;
        }
        Ok(())
    }
}

/// Returns the port whose name or device matches an interface.
fn port_of(
    reader: &CaptureReader,
    interface: u32,
    seen: &mut Vec<Option<(String, PortIndex)>>,
    ports: &[PortPlan],
) -> Result<PortIndex, Error> {
    let Some(name) = reader.interface_name(interface) else {
        return Err(Error::usage(format!(
            "{} does not record the port of its frames; write PORT={0}, where PORT is one of {}",
            reader.name(),
            names(ports)
        )));
    };
    let index = interface as usize;
    if let Some(Some((known, port))) = seen.get(index)
        && known == name
    {
        return Ok(*port);
    }
    let device = |port: &PortPlan| port.opens.split_once(':').is_some_and(|(_, d)| d == name);
    let called = ports.iter().position(|port| port.name == name);
    let Some(found) = called.or_else(|| ports.iter().position(device)) else {
        return Err(Error::usage(format!(
            "{}: no port is named like its interface '{name}'; ports are {}",
            reader.name(),
            names(ports)
        )));
    };
    let port = PortIndex(found as u16);
    if seen.len() <= index {
        seen.resize(index + 1, None);
    }
    seen[index] = Some((name.to_owned(), port));
    Ok(port)
}

/// Output captures of all ports.
pub struct Outputs {
    writers: Vec<CaptureWriter>,
    /// Writers with their interfaces, by port.
    of: Vec<Vec<(usize, u32)>>,
}

impl Outputs {
    /// Creates captures, each for one port or with an interface per port.
    ///
    /// # Errors
    /// If a capture cannot be created.
    pub fn create(files: &[PortFile], topology: &Topology) -> Result<Outputs, Error> {
        let ports = topology.ports.iter();
        let names: Vec<&str> = ports.map(|port| port.name.as_str()).collect();
        let mut outputs = Outputs {
            writers: Vec::new(),
            of: vec![Vec::new(); names.len()],
        };
        for file in files {
            let writer = outputs.writers.len();
            let created = match file.port {
                Some(_) => CaptureWriter::create(&file.path)?,
                None => CaptureWriter::create_for(&file.path, &names, CAPTURED_MAX)?,
            };
            outputs.writers.push(behind(created, Batches::Small));
            match file.port {
                Some(port) => outputs.of[usize::from(port.0)].push((writer, 0)),
                None => {
                    for (interface, of) in (0..).zip(&mut outputs.of) {
                        of.push((writer, interface));
                    }
                }
            }
        }
        Ok(outputs)
    }

    /// Creates a pair's captures: one for both directions, or one for each.
    ///
    /// # Errors
    /// If a capture cannot be created.
    pub fn of_pair(paths: &[&str]) -> Result<Outputs, Error> {
        let create = |path: &&str| Ok(behind(CaptureWriter::create(path)?, Batches::Large));
        let writers: Vec<CaptureWriter> = paths.iter().map(create).collect::<Result<_, Error>>()?;
        // A frame leaves by the port at which frames of the opposite direction arrive.
        let down = writers.len() - 1;
        Ok(Outputs {
            writers,
            of: vec![vec![(down, 0)], vec![(0, 0)]],
        })
    }

    /// Writes a frame, timestamped with its release time.
    ///
    /// # Errors
    /// If the capture cannot be written.
    #[inline(always)]
    pub fn write(&mut self, leaving: OutputFrame<'_>) -> Result<(), Error> {
        let OutputFrame {
            port,
            release,
            bytes,
            wire_len,
        } = leaving;
        if let [(writer, interface)] = self.of[usize::from(port.0)][..] {
            return Ok(self.writers[writer].write_on(interface, release, bytes, wire_len)?);
        }
        for (writer, interface) in &self.of[usize::from(port.0)] {
            self.writers[*writer].write_on(*interface, release, bytes, wire_len)?;
        }
        Ok(())
    }

    /// Flushes and closes the captures.
    ///
    /// # Errors
    /// The first error of any capture.
    pub fn finish(self) -> Result<(), Error> {
        let finished = self.writers.into_iter().map(CaptureWriter::finish);
        Ok(finished.fold(Ok(()), Result::and)?)
    }
}

/// Writes a capture on a separate thread, which leaves this core's cache to the network's links.
fn behind(mut writer: CaptureWriter, batches: Batches) -> CaptureWriter {
    writer.write_behind(batches, rights::give_up_all);
    writer
}
