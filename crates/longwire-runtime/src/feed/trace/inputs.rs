//! A feed's traces, concatenated or merged by time.

use std::os::fd::BorrowedFd;

use longwire_capture::{CaptureReader, Record, RecordCounts, Step};
use longwire_engine::Nanos;
use longwire_io::{PortError, rights};
use nix::poll::{PollFd, PollFlags, poll};

use super::TraceConfig;

/// The traces in the order given.
pub(super) struct Inputs {
    traces: Vec<Trace>,
    merged: bool,
    /// Whether the traces are read more than once.
    repeated: bool,
    /// Index of the last frame's trace, or of the trace to read next.
    current: usize,
}

struct Trace {
    reader: CaptureReader,
    /// Timestamp of the trace's next frame, while merging.
    head: Option<Nanos>,
    /// Timestamp of the trace's first frame.
    first: Option<Nanos>,
    over: bool,
}

/// Maximum wait for data in milliseconds. It bounds the delay of a stop.
const WAIT_MAX: u8 = 50;

/// Result of advancing to the next frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A frame, which [`Inputs::record`] returns.
    Frame,
    /// No frame yet.
    Later,
    /// End of a trace that another trace follows.
    Another,
    /// The end of all traces.
    End,
}

impl Inputs {
    pub(super) fn open(config: &TraceConfig, repeated: bool) -> Result<Inputs, PortError> {
        let names = &config.traces;
        let refused = |port: &str, reason: &str| PortError::Unsupported {
            port: port.into(),
            reason: reason.into(),
        };
        if names.is_empty() {
            return Err(refused("replay", "no trace is given"));
        }
        if names.iter().filter(|name| *name == "-").count() > 1 {
            return Err(refused(
                "-",
                "standard input can be read only once; give it once",
            ));
        }
        let open = |name: &String| {
            let mut reader = CaptureReader::open(name)?;
            if let Some(interface) = &config.interface {
                reader.choose_interface(interface)?;
            }
            if repeated && !reader.is_repeatable() {
                let reason = "a pipe can be read only once; save it to a file to repeat it";
                return Err(refused(name, reason));
            }
            reader.never_wait();
            Ok(Trace {
                reader,
                head: None,
                first: None,
                over: false,
            })
        };
        let mut inputs = Inputs {
            traces: names.iter().map(open).collect::<Result<_, _>>()?,
            merged: (config.merge || config.apart) && names.len() > 1,
            repeated,
            current: 0,
        };
        inputs.read_ahead()?;
        Ok(inputs)
    }

    /// Advances to the next frame.
    #[inline]
    pub(super) fn advance(&mut self) -> Result<Next, PortError> {
        if self.merged {
            return self.advance_merged();
        }
        let trace = &mut self.traces[self.current];
        if trace.over {
            return self.end_trace();
        }
        match trace.reader.advance()? {
            Step::Frame => Ok(Next::Frame),
            Step::Later => Ok(Next::Later),
            Step::End => self.end_trace(),
        }
    }

    /// Skips the rest of the current trace.
    pub(super) fn pass_over(&mut self) {
        self.traces[self.current].over = true;
    }

    /// Returns the index of the current frame's trace.
    pub(super) fn current(&self) -> usize {
        self.current
    }

    /// Returns the current frame.
    #[inline]
    pub(super) fn record(&self) -> Option<Record<'_>> {
        self.traces[self.current].reader.current()
    }

    /// Returns the timestamp of the first frame in the current trace, or in all merged traces.
    /// Requires a current frame.
    #[inline]
    pub(super) fn first(&mut self) -> Nanos {
        let stamp = self.record().map_or(Nanos::ZERO, |record| record.stamp);
        // The first merged frame is the earliest.
        let at = if self.merged { 0 } else { self.current };
        *self.traces[at].first.get_or_insert(stamp)
    }

    /// Rewinds all traces.
    pub(super) fn rewind(&mut self) -> Result<(), PortError> {
        for trace in &mut self.traces {
            trace.reader.rewind()?;
            (trace.head, trace.over) = (None, false);
        }
        self.current = 0;
        self.read_ahead()
    }

    /// Returns a descriptor that becomes readable when more data arrives after [`Next::Later`].
    pub(super) fn readable(&self) -> Option<BorrowedFd<'_>> {
        self.traces[self.current].reader.readable()
    }

    /// Makes the descriptor of [`Inputs::readable`] readable.
    pub(super) fn ring(&self) {
        self.traces[self.current].reader.ring();
    }

    /// Waits a limited time for more data after [`Next::Later`].
    pub(super) fn wait(&self) {
        if let Some(readable) = self.readable() {
            let mut wait = [PollFd::new(readable, PollFlags::POLLIN)];
            // The caller checks again.
            let _ = poll(&mut wait, WAIT_MAX);
        }
    }

    /// Returns the maximum frame length.
    pub(super) fn frame_max(&self) -> usize {
        let lengths = self.traces.iter().map(|trace| trace.reader.frame_max());
        lengths.max().unwrap_or(0)
    }

    /// Returns the share of this round that was read, from 0 to 1; `None` for pipes.
    pub(super) fn fraction(&self) -> Option<f64> {
        let (mut read, mut size) = (0, 0);
        for (at, trace) in self.traces.iter().enumerate() {
            let whole = trace.reader.size()?;
            size += whole;
            read += match (self.merged, trace.over || at < self.current) {
                (true, _) if trace.over => whole,
                (false, true) => whole,
                (false, false) if at > self.current => 0,
                _ => trace.reader.stored_offset().min(whole),
            };
        }
        Some(if size == 0 {
            1.0
        } else {
            read as f64 / size as f64
        })
    }

    /// Returns the counts of records converted to Ethernet and of skipped records.
    pub(super) fn record_counts(&self) -> RecordCounts {
        let mut sum = RecordCounts::default();
        for trace in &self.traces {
            sum.add(trace.reader.counts());
        }
        sum
    }

    fn end_trace(&mut self) -> Result<Next, PortError> {
        self.traces[self.current].over = true;
        if self.current + 1 == self.traces.len() {
            return Ok(Next::End);
        }
        if self.repeated {
            // Rewind without a read-ahead thread until the trace's turn.
            self.traces[self.current].reader.rewind()?;
        }
        self.current += 1;
        self.read_ahead()?;
        Ok(Next::Another)
    }

    /// Starts read-ahead threads: for all traces if merged, otherwise for the current trace and the
    /// next. The thread of a single trace continues across rounds, so rewinding causes no pause.
    fn read_ahead(&mut self) -> Result<(), PortError> {
        if self.merged || self.traces.len() == 1 {
            let repeated = self.repeated;
            for trace in &mut self.traces {
                trace.reader.read_ahead(repeated, rights::give_up_all)?;
            }
            return Ok(());
        }
        for trace in self.traces.iter_mut().skip(self.current).take(2) {
            trace.reader.read_ahead(false, rights::give_up_all)?;
        }
        Ok(())
    }

    /// Advances to the earliest next frame. Ties go to the first trace.
    fn advance_merged(&mut self) -> Result<Next, PortError> {
        let mut earliest: Option<(Nanos, usize)> = None;
        for at in 0..self.traces.len() {
            let trace = &mut self.traces[at];
            // This trace's next frame is not known yet.
            if trace.head.is_none() && !trace.over {
                match trace.reader.advance()? {
                    Step::Frame => trace.head = trace.reader.current().map(|r| r.stamp),
                    Step::End => trace.over = true,
                    Step::Later => {
                        self.current = at;
                        return Ok(Next::Later);
                    }
                }
            }
            if let Some(head) = trace.head
                && earliest.is_none_or(|(stamp, _)| head < stamp)
            {
                earliest = Some((head, at));
            }
        }
        let Some((_, at)) = earliest else {
            return Ok(Next::End);
        };
        self.traces[at].head = None;
        self.current = at;
        Ok(Next::Frame)
    }
}
