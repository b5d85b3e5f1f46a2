//! An in-memory cable: frames pushed at one end arrive at the other, which may be on another
//! thread.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use longwire_engine::{Bytes, Nanos};

use crate::Bell;
use crate::delay_line::{
    ArenaError, DelayLineConfig, DelayLineReader, DelayLineWriter, Note, delay_line,
};
use crate::port::{
    PortError, PushResult, ReceiveResult, Received, RxFrame, RxPort, TxFrame, TxPort,
};

/// Reported free slots; with less free memory, a push may find the pipe full.
const ROOM: usize = 64;

/// Creates a cable for frames of up to `capacity` bytes in total.
///
/// # Errors
/// The memory cannot be allocated.
pub fn pipe(capacity: Bytes) -> Result<(PipeTx, PipeRx), ArenaError> {
    let (writer, reader) = delay_line(&DelayLineConfig {
        budget: capacity,
        huge_pages: false,
    })?;
    let bell = Arc::new(Bell::new()?);
    bell.asleep();
    let tx = PipeTx {
        writer,
        bell: Arc::clone(&bell),
        pushed: 0,
    };
    let rx = PipeRx {
        reader,
        bell,
        waits: true,
    };
    Ok((tx, rx))
}

/// The sending end.
pub struct PipeTx {
    writer: DelayLineWriter,
    bell: Arc<Bell>,
    pushed: usize,
}

/// The receiving end.
pub struct PipeRx {
    reader: DelayLineReader,
    bell: Arc<Bell>,
    /// Whether the pipe was empty and the bell is armed for the next frame.
    waits: bool,
}

impl PipeRx {
    /// Arms the bell if the pipe is empty, and returns whether it is.
    fn settle_wait(&mut self) -> bool {
        if self.waits {
            // The next check sees the frames that rang the bell.
            self.bell.event().clear();
        } else if self.reader.front().is_none() {
            self.bell.asleep();
            self.waits = true;
        }
        let empty = self.reader.front().is_none();
        if self.waits && !empty {
            self.bell.awake();
            self.waits = false;
        }
        empty
    }
}

impl TxPort for PipeTx {
    fn push(&mut self, frame: TxFrame<'_>) -> PushResult {
        if frame.bytes.len() > self.writer.frame_max() {
            return PushResult::Refused;
        }
        let note = Note {
            release: frame.release,
            tag: 0,
            offload: frame.offload,
            part: None,
            wire_len: frame.wire_len,
        };
        match self.writer.push(frame.bytes, note) {
            Ok(()) => {
                self.pushed += 1;
                PushResult::Taken
            }
            Err(_) => PushResult::Full,
        }
    }

    fn flush(&mut self) -> Result<usize, PortError> {
        self.writer.publish();
        self.bell.ring_if_asleep();
        Ok(std::mem::take(&mut self.pushed))
    }

    fn free_slots(&self) -> usize {
        ROOM
    }

    fn unsent(&self) -> usize {
        self.pushed
    }

    fn takes_offload(&self) -> bool {
        true
    }
}

impl RxPort for PipeRx {
    fn receive(&mut self, now: Nanos, max: usize, take: &mut impl FnMut(RxFrame<'_>)) -> Received {
        let mut frames = 0;
        if self.settle_wait() {
            return Ok(ReceiveResult::default());
        }
        while frames < max
            && let Some(front) = self.reader.front()
        {
            take(RxFrame {
                bytes: self.reader.front_bytes(),
                // `now` may precede the push, because the caller may have been preempted after
                // reading the clock.
                arrival: now.max(front.release()),
                offload: front.offload(),
                wire_len: front.wire_len(),
                lent: None,
            });
            self.reader.advance();
            frames += 1;
        }
        self.reader.settle();
        Ok(ReceiveResult { frames, end: false })
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        Some(self.bell.event().as_fd())
    }

    fn frame_max(&self) -> usize {
        65_536 + 64
    }
}
