//! Captures of arrived and departed frames, and the verdict log.

use longwire_capture::log::{LogError, RowSink, VerdictLog};
use longwire_capture::{CaptureError, CaptureWriter};
use longwire_engine::{FrameMeta, LinkId};

use crate::record::{Batch, Epoch, Event, Recorder};

/// Writes the recording of a live or virtual-time run.
pub struct FileRecorder {
    epoch: Epoch,
    captures: Option<BothEnds>,
    log: Option<VerdictLog>,
}

/// Captures of arrived and departed frames, with an interface per port.
struct BothEnds {
    entered: CaptureWriter,
    left: CaptureWriter,
}

/// Why a file of a recording cannot be created or written.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum RecordError {
    #[error(transparent)]
    Capture(#[from] CaptureError),
    #[error(transparent)]
    Log(#[from] LogError),
}

impl BothEnds {
    fn create(prefix: &str, interfaces: &[&str]) -> Result<BothEnds, CaptureError> {
        let create =
            |end: &str| CaptureWriter::create_for(&format!("{prefix}.{end}.pcapng"), interfaces);
        Ok(BothEnds {
            entered: create("in")?,
            left: create("out")?,
        })
    }
}

impl FileRecorder {
    /// Creates the captures `PREFIX.in.pcapng` and `PREFIX.out.pcapng` with an interface
    /// per port, and writes rows about these links to each of `log`. Returns `None`
    /// without prefix and log.
    ///
    /// # Errors
    /// If a file cannot be created.
    pub fn create<'a>(
        prefix: Option<&str>,
        log: Vec<Box<dyn RowSink>>,
        ports: &[&str],
        links: impl IntoIterator<Item = &'a str>,
    ) -> Result<Option<Box<dyn Recorder>>, RecordError> {
        let log = (!log.is_empty()).then(|| VerdictLog::new(log, links));
        let captures = prefix.map(|prefix| BothEnds::create(prefix, ports));
        let captures = captures.transpose()?;
        if log.is_none() && captures.is_none() {
            return Ok(None);
        }
        Ok(Some(Box::new(FileRecorder {
            epoch: Epoch::now(),
            captures,
            log,
        })))
    }

    /// Writes an event of link or output port `of`.
    fn write(&mut self, of: LinkId, event: &Event, all_bytes: &[u8]) -> Result<(), RecordError> {
        match event {
            Event::Entered {
                port,
                arrival,
                wire_len,
                bytes,
            } => {
                if let Some(BothEnds { entered, .. }) = &mut self.captures {
                    let arrival = self.epoch.wall_time(*arrival);
                    let bytes = &all_bytes[bytes.clone()];
                    entered.write_on(port.0.into(), arrival, bytes, *wire_len)?;
                }
            }
            Event::Arrived {
                link,
                frame,
                arrival,
                len,
                queue,
            } => {
                if let Some(log) = &mut self.log {
                    let meta = FrameMeta::new(self.epoch.wall_time(*arrival), *len);
                    log.offered(link.0 as usize, *frame, meta, *queue);
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
                if let Some(BothEnds { left, .. }) = &mut self.captures {
                    let bytes = &all_bytes[bytes.clone()];
                    let handover = self.epoch.wall_time(*handover);
                    left.write_on(of.0, handover, bytes, bytes.len() as u32)?;
                }
            }
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), RecordError> {
        if let Some(log) = self.log.take() {
            log.finish()?;
        }
        if let Some(BothEnds { entered, left }) = self.captures.take() {
            entered.finish()?;
            left.finish()?;
        }
        Ok(())
    }
}

impl Recorder for FileRecorder {
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
            self.write(batch.link, event, &batch.bytes)
                .map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), String> {
        self.end().map_err(|error| error.to_string())
    }
}
