//! The captures that enter at the ports of a network, merged in order of time.

use longwire_capture::{CaptureReader, Record, Step};
use longwire_engine::Nanos;
use longwire_io::rights;
use longwire_packet::bridge::PortIndex;

use crate::Error;
use longwire_topology::{PortPlan, Topology};

/// A capture of the command line, and its port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortFile {
    /// The port; `None` if the file's interfaces name it.
    pub port: Option<PortIndex>,
    /// The file.
    pub path: String,
}

impl PortFile {
    /// Parses `PORT=FILE`, or a file alone whose interfaces are named like the
    /// ports.
    ///
    /// # Errors
    /// If there is no such port; `option` is where it was written.
    pub fn parse(text: &str, option: &str, topology: &Topology) -> Result<PortFile, Error> {
        let Some((port, path)) = text.split_once('=') else {
            let path = text.to_owned();
            return Ok(PortFile { port: None, path });
        };
        let Some(index) = topology.port_named(port) else {
            return Err(Error::Usage(format!(
                "{option} {text}: there is no port '{port}'; there are {}",
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

/// The captures of all ports. Frames are returned in the order of their stamps;
/// with equal stamps, in the order of the ports in the topology, and frames of
/// one capture in its order.
pub struct Inputs {
    sources: Vec<Source>,
    /// The source whose frame was handed out last.
    taken: Option<usize>,
    ports: Vec<PortPlan>,
}

/// One capture, moved to its next frame.
struct Source {
    reader: CaptureReader,
    port: Option<PortIndex>,
    /// The stamp of the next frame and the port at which it enters; `None` at
    /// the end.
    next: Option<(Nanos, PortIndex)>,
    /// The ports of the interfaces seen so far, with their names: another
    /// section of a file may have others.
    known: Vec<Option<(String, PortIndex)>>,
}

impl Inputs {
    /// Opens captures and reads their first frames.
    ///
    /// # Errors
    /// If one cannot be read, or does not name the port of its frames.
    pub fn open(files: &[PortFile], topology: &Topology) -> Result<Inputs, Error> {
        let mut sources = Vec::new();
        for file in files {
            let mut reader = CaptureReader::open(&file.path)?;
            if reader.packing().is_some() {
                // Decompression takes as much time as everything else.
                reader.read_ahead(false, rights::give_up_all)?;
            }
            let mut source = Source {
                reader,
                port: file.port,
                next: None,
                known: Vec::new(),
            };
            source.advance(&topology.ports)?;
            sources.push(source);
        }
        Ok(Inputs {
            sources,
            taken: None,
            ports: topology.ports.clone(),
        })
    }

    /// Returns the earliest stamp of the first frames.
    pub fn first_stamp(&self) -> Option<Nanos> {
        let next = self.sources.iter().filter_map(|source| source.next);
        next.map(|(stamp, _)| stamp).min()
    }

    /// Returns the next frame and the port at which it enters; `None` when all
    /// captures have ended.
    ///
    /// # Errors
    /// If a capture is damaged; it has then ended, and the others go on.
    pub fn next_frame(&mut self) -> Result<Option<(PortIndex, Record<'_>)>, Error> {
        if let Some(taken) = self.taken.take() {
            self.sources[taken].advance(&self.ports)?;
        }
        let sources = self.sources.iter().enumerate();
        let next = sources.filter_map(|(index, source)| Some((source.next?, index)));
        let Some(((_, port), index)) = next.min() else {
            return Ok(None);
        };
        self.taken = Some(index);
        let record = self.sources[index].reader.current();
        Ok(record.map(|record| (port, record)))
    }

    /// Returns the number of bytes read, and the total, if that is known.
    pub fn progress(&self) -> (u64, Option<u64>) {
        let readers = || self.sources.iter().map(|source| &source.reader);
        let sizes: Option<Vec<u64>> = readers().map(CaptureReader::size).collect();
        let done = readers().map(CaptureReader::stored_offset).sum();
        (done, sizes.map(|sizes| sizes.into_iter().sum()))
    }
}

impl Source {
    /// Advances to the next frame.
    fn advance(&mut self, ports: &[PortPlan]) -> Result<(), Error> {
        self.next = None;
        if self.reader.advance()? != Step::Frame {
            return Ok(());
        }
        let Some(record) = self.reader.current() else {
            return Ok(());
        };
        let (stamp, interface) = (record.stamp, record.interface);
        let port = match self.port {
            Some(port) => port,
            None => self.port_of(interface, ports)?,
        };
        self.next = Some((stamp, port));
        Ok(())
    }

    /// Returns the port that has the name of an interface, or whose device has.
    fn port_of(&mut self, interface: u32, ports: &[PortPlan]) -> Result<PortIndex, Error> {
        let Some(name) = self.reader.interface_name(interface) else {
            return Err(Error::Usage(format!(
                "{} does not say at which port its frames came in; write PORT={0}, where PORT is \
                 one of {}",
                self.reader.name(),
                names(ports)
            )));
        };
        let index = interface as usize;
        if let Some(Some((known, port))) = self.known.get(index)
            && known == name
        {
            return Ok(*port);
        }
        let device = |port: &PortPlan| port.opens.split_once(':').is_some_and(|(_, d)| d == name);
        let called = ports.iter().position(|port| port.name == name);
        let Some(found) = called.or_else(|| ports.iter().position(device)) else {
            return Err(Error::Usage(format!(
                "{}: its interface '{name}' is no port; there are {}",
                self.reader.name(),
                names(ports)
            )));
        };
        let port = PortIndex(found as u16);
        if self.known.len() <= index {
            self.known.resize(index + 1, None);
        }
        self.known[index] = Some((name.to_owned(), port));
        Ok(port)
    }
}
