//! Captures of the frames that entered and left, and the log of verdicts.

use longwire_capture::log::{LogError, RowSink, VerdictLog};
use longwire_capture::{CaptureError, CaptureWriter};
use longwire_engine::{FrameMeta, LinkId};

use crate::record::{Batch, Epoch, Event, Recorder};

/// Writes what a run records, live or in virtual time.
pub struct FileRecorder {
    epoch: Epoch,
    captures: Captures,
    log: Option<VerdictLog>,
}

/// The captures of a run.
enum Captures {
    None,
    /// One item per link.
    OfLinks(Vec<BothEnds>),
    /// With an interface for each port.
    OfPorts(BothEnds),
}

/// Captures of the frames that entered, and of those that left.
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

    fn finish(self) -> Result<(), CaptureError> {
        self.entered.finish()?;
        self.left.finish()
    }
}

impl FileRecorder {
    /// Creates the files of a run of these links. With a prefix, each link has
    /// the captures `PREFIX.LINK.in.pcapng` and `PREFIX.LINK.out.pcapng`. The
    /// rows of the log go to each of `log`. `None` if there is neither prefix nor log.
    ///
    /// # Errors
    /// If a file cannot be created.
    pub fn of_links(
        prefix: Option<&str>,
        log: Vec<Box<dyn RowSink>>,
        links: &[&str],
    ) -> Result<Option<Box<dyn Recorder>>, RecordError> {
        let log = create_log(log, links.iter().copied());
        let captures = match prefix {
            Some(prefix) => {
                let create = |link| BothEnds::create(&format!("{prefix}.{link}"), &[]);
                Captures::OfLinks(links.iter().map(create).collect::<Result<_, _>>()?)
            }
            None => Captures::None,
        };
        Ok(FileRecorder::boxed(captures, log))
    }

    /// Creates the files of a network of these ports and links. With a prefix,
    /// the captures are `PREFIX.in.pcapng` and `PREFIX.out.pcapng`, with an
    /// interface for each port. The rows of the log go to each of `log`. `None` if
    /// there is neither prefix nor log.
    ///
    /// # Errors
    /// If a file cannot be created.
    pub fn of_ports<'a>(
        prefix: Option<&str>,
        log: Vec<Box<dyn RowSink>>,
        ports: &[&str],
        links: impl IntoIterator<Item = &'a str>,
    ) -> Result<Option<Box<dyn Recorder>>, RecordError> {
        let log = create_log(log, links);
        let captures = match prefix {
            Some(prefix) => Captures::OfPorts(BothEnds::create(prefix, ports)?),
            None => Captures::None,
        };
        Ok(FileRecorder::boxed(captures, log))
    }

    fn boxed(captures: Captures, log: Option<VerdictLog>) -> Option<Box<dyn Recorder>> {
        if log.is_none() && matches!(captures, Captures::None) {
            return None;
        }
        Some(Box::new(FileRecorder {
            epoch: Epoch::now(),
            captures,
            log,
        }))
    }

    /// Writes an event of the stage of link `of`, or of output port `of`.
    fn write(&mut self, of: LinkId, event: &Event, all_bytes: &[u8]) -> Result<(), RecordError> {
        match event {
            Event::Entered {
                port,
                arrival,
                wire_len,
                bytes,
            } => {
                if let Captures::OfPorts(BothEnds { entered, .. }) = &mut self.captures {
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
                bytes,
            } => {
                let arrival = self.epoch.wall_time(*arrival);
                let link = link.0 as usize;
                if let Captures::OfLinks(links) = &mut self.captures
                    && let Some(captures) = links.get_mut(link)
                {
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
                let (captures, interface) = match &mut self.captures {
                    Captures::None => return Ok(()),
                    Captures::OfLinks(links) => (links.get_mut(of.0 as usize), 0),
                    Captures::OfPorts(captures) => (Some(captures), of.0),
                };
                if let Some(BothEnds { left, .. }) = captures {
                    let bytes = &all_bytes[bytes.clone()];
                    let handover = self.epoch.wall_time(*handover);
                    left.write_on(interface, handover, bytes, bytes.len() as u32)?;
                }
            }
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), RecordError> {
        if let Some(log) = self.log.take() {
            log.finish()?;
        }
        match std::mem::replace(&mut self.captures, Captures::None) {
            Captures::None => {}
            Captures::OfLinks(links) => links.into_iter().try_for_each(BothEnds::finish)?,
            Captures::OfPorts(captures) => captures.finish()?,
        }
        Ok(())
    }
}

fn create_log<'a>(
    sinks: Vec<Box<dyn RowSink>>,
    links: impl IntoIterator<Item = &'a str>,
) -> Option<VerdictLog> {
    (!sinks.is_empty()).then(|| VerdictLog::new(sinks, links))
}

impl Recorder for FileRecorder {
    fn start(&mut self, epoch: Epoch) {
        self.epoch = epoch;
        if let Some(log) = &mut self.log {
            log.set_epoch(epoch.wall);
        }
    }

    fn wants_frames(&self) -> bool {
        !matches!(self.captures, Captures::None)
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
