//! `--capture` and `--log` of a live run: captures of what came in and what
//! went out at both ends, and a row for each verdict.

use std::collections::HashMap;
use std::path::PathBuf;

use longwire_engine::{LinkId, Nanos, Verdict};
use longwire_io::port::pcap::CaptureWriter;
use longwire_runtime::Recorder;
use longwire_runtime::record::{Batch, Epoch, Event};

use crate::Error;
use crate::log::{Fate, LogWriter, Name, Row};

/// Writes what a run records.
pub struct RunRecorder {
    epoch: Epoch,
    links: Vec<LinkRecorder>,
    log: Option<LogWriter>,
}

/// What is written of one link.
struct LinkRecorder {
    name: Name,
    captures: Option<Captures>,
    /// Frames whose verdict has not come, by their numbers.
    undecided: HashMap<u64, Row>,
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
        let link = |name: &&str| {
            let create = |end: &str| match capture {
                Some(prefix) => {
                    CaptureWriter::create(&format!("{prefix}.{name}.{end}.pcapng")).map(Some)
                }
                None => Ok(None),
            };
            let captures = match (create("in")?, create("out")?) {
                (Some(entered), Some(left)) => Some(Captures { entered, left }),
                _ => None,
            };
            Ok::<_, Error>(LinkRecorder {
                name: Name::from(*name),
                captures,
                undecided: HashMap::new(),
            })
        };
        Ok(Some(RunRecorder {
            epoch: Epoch::now(),
            links: names.iter().map(link).collect::<Result<_, _>>()?,
            log,
        }))
    }

    fn event(&mut self, link: LinkId, event: &Event, all_bytes: &[u8]) -> Result<(), Error> {
        let Some(recorder) = self.links.get_mut(link.0 as usize) else {
            return Ok(());
        };
        match event {
            Event::Arrived {
                frame,
                arrival,
                len,
                queue,
                bytes,
            } => {
                let arrival = self.epoch.wall_time(*arrival);
                if let Some(captures) = &mut recorder.captures {
                    let bytes = &all_bytes[bytes.clone()];
                    captures.entered.write(arrival, bytes, *len)?;
                }
                if self.log.is_some() {
                    let row = Row {
                        frame: *frame,
                        link: recorder.name.clone(),
                        arrival_ns: signed(arrival),
                        length: *len,
                        verdict: Fate::Held,
                        departure_ns: None,
                        release_ns: None,
                        reason: None,
                        ecn_marked: false,
                        corrupted: false,
                        copy: 0,
                        queue_packets: u32::try_from(queue.0.0).unwrap_or(u32::MAX),
                        queue_bytes: queue.1.0,
                    };
                    recorder.undecided.insert(*frame, row);
                }
            }
            Event::Decided {
                frame,
                verdict,
                copy,
            } => {
                if let Some(log) = &mut self.log
                    && let Some(row) = recorder.decided(*frame, verdict, *copy, &self.epoch)
                {
                    log.write(&row)?;
                }
            }
            Event::Left { handover, bytes } => {
                if let Some(captures) = &mut recorder.captures {
                    let bytes = &all_bytes[bytes.clone()];
                    let handover = self.epoch.wall_time(*handover);
                    captures.left.write(handover, bytes, bytes.len() as u32)?;
                }
            }
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), Error> {
        if let Some(mut log) = self.log.take() {
            for link in &mut self.links {
                let mut held: Vec<Row> = link.undecided.drain().map(|(_, row)| row).collect();
                held.sort_by_key(|row| row.frame);
                for row in held {
                    log.write(&row)?;
                }
            }
            log.finish()?;
        }
        for link in &mut self.links {
            if let Some(Captures { entered, left }) = link.captures.take() {
                entered.finish()?;
                left.finish()?;
            }
        }
        Ok(())
    }
}

impl LinkRecorder {
    /// The row of a verdict; the frame's own is forgotten with its last one.
    fn decided(&mut self, frame: u64, verdict: &Verdict, copy: u16, epoch: &Epoch) -> Option<Row> {
        let known = self.undecided.get(&frame)?;
        let mut row = Row {
            copy,
            ..known.clone()
        };
        let mut more = false;
        match verdict {
            Verdict::Deliver(delivery) => {
                // What would leave at the end of time never does: its link
                // stands still, and the row stays one of a frame held.
                if delivery.release < Nanos::MAX {
                    row.verdict = Fate::Deliver;
                    row.departure_ns = Some(signed(epoch.wall_time(delivery.departure)));
                    row.release_ns = Some(signed(epoch.wall_time(delivery.release)));
                }
                row.ecn_marked = delivery.edits.mark;
                row.corrupted = delivery.edits.corrupt;
                more = delivery.more;
            }
            Verdict::Drop(reason) => {
                row.verdict = Fate::Drop;
                row.reason = Some(Name::from(reason.name()));
            }
            Verdict::Queued => return None,
        }
        if !more {
            self.undecided.remove(&frame);
        }
        Some(row)
    }
}

/// Times since 1970 fit until the year 2262.
fn signed(time: Nanos) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

impl Recorder for RunRecorder {
    fn start(&mut self, epoch: Epoch) {
        self.epoch = epoch;
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
