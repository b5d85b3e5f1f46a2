//! The port `pcap:FILE`. Frames of an input capture arrive with the captured spacing; frames for an
//! output capture are stored with their releases as timestamps.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use longwire_capture::{CAPTURED_MAX, CaptureReader, CaptureWriter, Step};
use longwire_engine::Nanos;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use super::{
    Offload, PortError, PortLosses, PushResult, ReceiveResult, Received, RxFrame, RxPort, TxFrame,
    TxPort,
};
use crate::clock::to_kernel;
use crate::rights;

/// The receiving port `pcap:FILE`.
///
/// The first frame arrives at the first call of [`RxPort::receive`], and later frames follow with
/// the spacing of their timestamps. A frame stamped before its predecessor arrives together with
/// it.
pub struct PcapRx {
    reader: CaptureReader,
    /// Expires when the next frame is due, so that no thread needs to poll.
    timer: TimerFd,
    /// Arrival and timestamp of the first frame.
    origin: Option<(Nanos, Nanos)>,
    last: Nanos,
    /// Whether the reader's current frame has not been delivered.
    held: bool,
    waits: WaitReason,
    /// An error to report once the frames before it are delivered.
    error: Option<PortError>,
}

/// The reason why the next frame waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaitReason {
    Time,
    Input,
    Nothing,
}

impl PcapRx {
    /// Opens the capture `path` for playback; `-` is standard input.
    ///
    /// # Errors
    /// As for [`CaptureReader::open`].
    pub fn open(path: &str) -> Result<PcapRx, PortError> {
        let mut reader = CaptureReader::open(path)?;
        reader.read_ahead(false, rights::give_up_all)?;
        reader.never_wait();
        let timer = TimerFd::new(
            ClockId::CLOCK_MONOTONIC,
            TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC,
        )
        .map_err(|error| failed(path, "creating a timer", error))?;
        let mut port = PcapRx {
            reader,
            timer,
            origin: None,
            last: Nanos::ZERO,
            held: false,
            waits: WaitReason::Time,
            error: None,
        };
        // The first frame is due immediately.
        port.wake_at(Nanos::from_nanos(1))?;
        Ok(port)
    }

    /// Advances to the next frame and returns its arrival; `None` if there is none yet or the file
    /// has ended.
    fn next_arrival(&mut self, now: Nanos) -> Result<Option<Nanos>, PortError> {
        if !self.held {
            let waits = match self.reader.advance()? {
                Step::Frame => None,
                Step::End => Some(WaitReason::Nothing),
                Step::Later => Some(WaitReason::Input),
            };
            if let Some(waits) = waits {
                self.waits = waits;
                return Ok(None);
            }
            self.held = true;
        }
        let stamp = self.reader.current().map_or(Nanos::ZERO, |r| r.stamp);
        let (start, first) = *self.origin.get_or_insert((now, stamp));
        Ok(Some(start.saturating_add(stamp.saturating_sub(first))))
    }

    fn wake_at(&mut self, time: Nanos) -> Result<(), PortError> {
        // Zero would disarm the timer.
        let time = Duration::from_nanos(to_kernel(time).as_nanos().max(1)).into();
        self.timer
            .set(
                Expiration::OneShot(time),
                TimerSetTimeFlags::TFD_TIMER_ABSTIME,
            )
            .map_err(|error| failed(self.reader.name(), "setting a timer", error))
    }

    /// Delivers due frames. Records their number and the end of the file in `received`.
    fn hand_in(
        &mut self,
        now: Nanos,
        max: usize,
        received: &mut ReceiveResult,
        take: &mut impl FnMut(RxFrame<'_>),
    ) -> Result<(), PortError> {
        while received.frames < max {
            let Some(arrival) = self.next_arrival(now)? else {
                received.end = self.waits == WaitReason::Nothing;
                return Ok(());
            };
            if arrival > now {
                self.waits = WaitReason::Time;
                return self.wake_at(arrival);
            }
            self.last = arrival.max(self.last);
            self.held = false;
            if let Some(record) = self.reader.current() {
                take(RxFrame {
                    bytes: record.bytes,
                    arrival: self.last,
                    offload: Offload::NONE,
                    wire_len: record.wire_len,
                    lent: None,
                });
                received.frames += 1;
            }
        }
        Ok(())
    }
}

fn failed(path: &str, action: &'static str, source: nix::Error) -> PortError {
    PortError::Failed {
        port: path.to_owned(),
        action,
        source: source.into(),
    }
}

impl RxPort for PcapRx {
    fn receive(&mut self, now: Nanos, max: usize, take: &mut impl FnMut(RxFrame<'_>)) -> Received {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let mut received = ReceiveResult::default();
        match self.hand_in(now, max, &mut received, take) {
            Ok(()) => Ok(received),
            Err(error) if received.frames == 0 => Err(error),
            Err(error) => {
                self.error = Some(error);
                Ok(received)
            }
        }
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        match self.waits {
            WaitReason::Input => self.reader.readable(),
            WaitReason::Time | WaitReason::Nothing => Some(self.timer.as_fd()),
        }
    }

    /// Returns whether frames of a file are still being read. A pipe may stay silent, so its frames
    /// are late instead.
    fn is_behind(&self) -> bool {
        self.waits == WaitReason::Input && self.reader.size().is_some()
    }

    /// Counts skipped records: too long or unusable.
    fn losses(&mut self) -> PortLosses {
        let counts = self.reader.counts();
        PortLosses {
            too_long: counts.too_long(),
            unusable: counts.unusable(),
            ..PortLosses::default()
        }
    }

    fn frame_max(&self) -> usize {
        self.reader.frame_max()
    }
}

/// Maximum bytes queued for a slow pipe.
const WAITING_MAX: usize = 4 * 1024 * 1024;
/// Maximum bytes of a record in addition to the frame, those of a pcapng block.
const RECORD_OVERHEAD: usize = 36;

/// The sending port `pcap:FILE`.
pub struct PcapTx {
    writer: CaptureWriter,
    /// Unix time at which the clock of the releases was zero.
    epoch: Nanos,
    unsent: usize,
}

impl PcapTx {
    /// Creates `path` (see [`CaptureWriter::create`]). `epoch` is the Unix time at which the clock
    /// of the releases was zero.
    ///
    /// # Errors
    /// As for [`CaptureWriter::create`].
    pub fn create(path: &str, epoch: Nanos) -> Result<PcapTx, PortError> {
        Ok(PcapTx {
            writer: CaptureWriter::create(path)?,
            epoch,
            unsent: 0,
        })
    }
}

impl TxPort for PcapTx {
    #[inline]
    fn push(&mut self, frame: TxFrame<'_>) -> PushResult {
        if frame.bytes.is_empty() || frame.bytes.len() > CAPTURED_MAX as usize {
            return PushResult::Refused;
        }
        if self.writer.gathered() + frame.bytes.len() + RECORD_OVERHEAD > WAITING_MAX {
            return PushResult::Full;
        }
        let stamp = self.epoch.saturating_add(frame.release);
        let wire_len = frame.wire_len.max(frame.bytes.len() as u32);
        let gathered = self.writer.gather(0, stamp, frame.bytes, wire_len);
        if gathered.is_err() {
            return PushResult::Refused;
        }
        self.unsent += 1;
        PushResult::Taken
    }

    /// Frames count as departed once all of them are written, although a slow pipe may have
    /// accepted some earlier.
    fn flush(&mut self) -> Result<usize, PortError> {
        let gone = if self.writer.drain()? { self.unsent } else { 0 };
        self.unsent -= gone;
        Ok(gone)
    }

    fn free_slots(&self) -> usize {
        let free = WAITING_MAX - self.writer.gathered();
        free / (CAPTURED_MAX as usize + RECORD_OVERHEAD)
    }

    fn unsent(&self) -> usize {
        self.unsent
    }
}
