//! `--capture` and `--log` of a network: what came in and what left, with an
//! interface for each port, and a row for each verdict of a link.

use std::path::PathBuf;

use longwire_capture::CaptureWriter;
use longwire_capture::log::{LogWriter, VerdictLog};
use longwire_engine::{FrameMeta, LinkId};
use longwire_runtime::Recorder;
use longwire_runtime::record::{Batch, Epoch, Event};

use super::Numbered;
use crate::NetworkError;

/// Writes what a network records.
pub struct NetworkRecorder {
    epoch: Epoch,
    /// The capture of frames that entered, and of those that left.
    captures: Option<(CaptureWriter, CaptureWriter)>,
    log: Option<VerdictLog>,
}

impl NetworkRecorder {
    /// Creates the files: `PREFIX.in.pcapng` and `PREFIX.out.pcapng`, and the
    /// log. `None` if nothing is to be recorded.
    ///
    /// # Errors
    /// If a file cannot be created.
    pub fn create(
        capture: Option<&str>,
        log: Option<&PathBuf>,
        network: &Numbered,
    ) -> Result<Option<Box<dyn Recorder>>, NetworkError> {
        if capture.is_none() && log.is_none() {
            return Ok(None);
        }
        let log = log.map(LogWriter::create).transpose()?;
        let ports = network.topology().ports.iter();
        let ports: Vec<&str> = ports.map(|port| port.name.as_str()).collect();
        let create = |prefix: &str, end: &str| {
            CaptureWriter::create_for(&format!("{prefix}.{end}.pcapng"), &ports)
        };
        let captures = match capture {
            Some(prefix) => Some((create(prefix, "in")?, create(prefix, "out")?)),
            None => None,
        };
        let links = network.links().iter().map(|link| link.name.as_str());
        Ok(Some(Box::new(NetworkRecorder {
            epoch: Epoch::now(),
            captures,
            log: log.map(|writer| VerdictLog::new(writer, links)),
        })))
    }

    fn event(&mut self, of: LinkId, event: &Event, all_bytes: &[u8]) -> Result<(), NetworkError> {
        match event {
            Event::Entered {
                port,
                arrival,
                wire_len,
                bytes,
            } => {
                let arrival = self.epoch.wall_time(*arrival);
                if let Some((entered, _)) = &mut self.captures {
                    let bytes = &all_bytes[bytes.clone()];
                    entered.write_on(port.0.into(), arrival, bytes, *wire_len)?;
                }
            }
            Event::Left { handover, bytes } => {
                let handover = self.epoch.wall_time(*handover);
                if let Some((_, left)) = &mut self.captures {
                    let bytes = &all_bytes[bytes.clone()];
                    left.write_on(of.0, handover, bytes, bytes.len() as u32)?;
                }
            }
            Event::Arrived {
                link,
                frame,
                arrival,
                len,
                queue,
                ..
            } => {
                let arrival = self.epoch.wall_time(*arrival);
                if let Some(log) = &mut self.log {
                    let meta = FrameMeta { arrival, len: *len };
                    log.offered(link.0 as usize, *frame, meta, *queue);
                }
            }
            Event::Decided {
                link,
                frame,
                verdict,
            } => {
                if let Some(log) = &mut self.log {
                    let verdict = self.epoch.wall_verdict(verdict);
                    log.decided(link.0 as usize, *frame, &verdict)?;
                }
            }
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), NetworkError> {
        if let Some(log) = self.log.take() {
            log.finish()?;
        }
        if let Some((entered, left)) = self.captures.take() {
            entered.finish()?;
            left.finish()?;
        }
        Ok(())
    }
}

impl Recorder for NetworkRecorder {
    fn start(&mut self, epoch: Epoch) {
        self.epoch = epoch;
        if let Some(log) = &mut self.log {
            log.set_epoch(epoch.wall);
        }
    }

    fn wants_frames(&self) -> bool {
        self.captures.is_some()
    }

    fn record(&mut self, batch: &Batch) -> Result<(), String> {
        for event in &batch.events {
            self.event(batch.link, event, &batch.bytes)
                .map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), String> {
        self.end().map_err(|error| error.to_string())
    }
}
