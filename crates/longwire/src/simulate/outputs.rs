//! The captures of frames that leave a network.

use longwire_capture::{Batches, CaptureWriter};
use longwire_io::rights;
use longwire_runtime::fabric::OutputFrame;

use super::inputs::PortFile;
use crate::Error;
use longwire_topology::Topology;

/// The captures of all ports.
pub struct Outputs {
    writers: Vec<CaptureWriter>,
    /// For each port, the writers of its frames, each with its interface.
    of: Vec<Vec<(usize, u32)>>,
}

impl Outputs {
    /// Creates captures, each of one port or with an interface per port.
    ///
    /// # Errors
    /// If one cannot be created.
    pub fn create(files: &[PortFile], topology: &Topology) -> Result<Outputs, Error> {
        let ports = topology.ports.iter();
        let names: Vec<&str> = ports.map(|port| port.name.as_str()).collect();
        let mut outputs = Outputs {
            writers: Vec::new(),
            of: vec![Vec::new(); names.len()],
        };
        for file in files {
            let writer = outputs.writers.len();
            match file.port {
                Some(port) => {
                    outputs
                        .writers
                        .push(behind(CaptureWriter::create(&file.path)?, Batches::Small));
                    outputs.of[usize::from(port.0)].push((writer, 0));
                }
                None => {
                    let created = CaptureWriter::create_for(&file.path, &names)?;
                    outputs.writers.push(behind(created, Batches::Small));
                    for (interface, of) in outputs.of.iter_mut().enumerate() {
                        of.push((writer, interface as u32));
                    }
                }
            }
        }
        Ok(outputs)
    }

    /// Creates a pair's captures: one of both directions, or one for each.
    ///
    /// # Errors
    /// If one cannot be created.
    pub fn of_pair(paths: &[&str]) -> Result<Outputs, Error> {
        let create = |path: &&str| Ok(behind(CaptureWriter::create(path)?, Batches::Large));
        let writers: Vec<CaptureWriter> = paths.iter().map(create).collect::<Result<_, Error>>()?;
        // Frames leave by the port at which those of the other direction arrive.
        let down = writers.len() - 1;
        Ok(Outputs {
            writers,
            of: vec![vec![(down, 0)], vec![(0, 0)]],
        })
    }

    /// Writes a frame with its release time as its timestamp.
    ///
    /// # Errors
    /// If the capture cannot be written.
    #[inline]
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
    /// The first error of a capture.
    pub fn finish(self) -> Result<(), Error> {
        let mut outcome = Ok(());
        for writer in self.writers {
            outcome = outcome.and(writer.finish().map_err(Error::from));
        }
        outcome
    }
}

/// Moves the writing of a capture to a separate thread. A network of many links needs
/// the cache for itself.
fn behind(mut writer: CaptureWriter, batches: Batches) -> CaptureWriter {
    writer.write_behind(batches, rights::give_up_all);
    writer
}
