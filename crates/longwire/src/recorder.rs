//! `--capture` and `--log` of a live run: captures of the frames that entered
//! and left at both ends, and a row for each verdict.

use std::path::PathBuf;

use longwire_capture::CaptureWriter;
use longwire_capture::log::{LogWriter, VerdictLog};
use longwire_engine::{FrameMeta, LinkId};
use longwire_runtime::Recorder;
use longwire_runtime::record::{Batch, Epoch, Event};

use crate::Error;

/// Writes what a run records.
pub struct RunRecorder {
    epoch: Epoch,
    /// One item per link, if captures are written.
    captures: Vec<Captures>,
    log: Option<VerdictLog>,
}

/// The two ends of a link.
struct Captures {
    entered: CaptureWriter,
    left: CaptureWriter,
}

impl RunRecorder {
    /// Creates the files for links of these names: `PREFIX.NAME.in.pcapng` and
    /// `PREFIX.NAME.out.pcapng`, and the log. `None` if nothing is to be
    /// recorded.
    ///
    /// # Errors
    /// If a file cannot be created.
    pub fn create(
        capture: Option<&str>,
        log: Option<&PathBuf>,
        names: &[&str],
    ) -> Result<Option<RunRecorder>, Error> {
        if capture.is_none() && log.is_none() {
            return Ok(None);
        }
        let log = log.map(LogWriter::create).transpose()?;
        let mut captures = Vec::new();
        if let Some(prefix) = capture {
            for name in names {
                let create =
                    |end: &str| CaptureWriter::create(&format!("{prefix}.{name}.{end}.pcapng"));
                captures.push(Captures {
                    entered: create("in")?,
                    left: create("out")?,
                });
            }
        }
        Ok(Some(RunRecorder {
            epoch: Epoch::now(),
            captures,
            log: log.map(|writer| VerdictLog::new(writer, names.iter().copied())),
        }))
    }

    fn event(&mut self, of: LinkId, event: &Event, all_bytes: &[u8]) -> Result<(), Error> {
        match event {
            // Events of networks.
            Event::Entered { .. } => {}
            Event::Arrived {
                link,
                frame,
                arrival,
                len,
                queue,
                bytes,
            } => {
                let arrival = self.epoch.wall_time(*arrival);
                let link = link.0 as usize;
                if let Some(captures) = self.captures.get_mut(link) {
                    let bytes = &all_bytes[bytes.clone()];
                    captures.entered.write(arrival, bytes, *len)?;
                }
                if let Some(log) = &mut self.log {
                    let meta = FrameMeta { arrival, len: *len };
                    log.offered(link, *frame, meta, *queue);
                }
            }
            Event::Decided {
                link,
                frame,
                verdict,
            } => {
                if let Some(log) = &mut self.log {
                    log.decided(link.0 as usize, *frame, &self.epoch.wall_verdict(verdict))?;
                }
            }
            Event::Left { handover, bytes } => {
                if let Some(captures) = self.captures.get_mut(of.0 as usize) {
                    let bytes = &all_bytes[bytes.clone()];
                    let handover = self.epoch.wall_time(*handover);
                    captures.left.write(handover, bytes, bytes.len() as u32)?;
                }
            }
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), Error> {
        if let Some(log) = self.log.take() {
            log.finish()?;
        }
        for Captures { entered, left } in self.captures.drain(..) {
            entered.finish()?;
            left.finish()?;
        }
        Ok(())
    }
}

impl Recorder for RunRecorder {
    fn start(&mut self, epoch: Epoch) {
        self.epoch = epoch;
        if let Some(log) = &mut self.log {
            log.set_epoch(epoch.wall);
        }
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
