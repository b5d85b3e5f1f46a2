//! Feeds: sources of frames with send times, read ahead of time.
//!
//! A feed is a replay's input: a trace or a generator, whose frames are known before they are due.
//! The reading thread takes frames while the delay line has room, and offers each to the emulated
//! link at its send time. Only the egress stage waits for the clock.

pub mod trace;

use std::os::fd::BorrowedFd;

use longwire_engine::Nanos;
use longwire_io::{PortError, ReceiveResult};

use crate::record::Epoch;

/// A frame from a feed.
#[derive(Clone, Copy, Debug)]
pub struct FeedFrame<'a> {
    /// Bytes from the destination MAC address to the end of the payload, borrowed for the call.
    pub bytes: &'a [u8],
    /// Length on an emulated link, in bytes; exceeds the length of `bytes` if a capture truncated
    /// the frame.
    pub wire_len: u32,
    /// Send time relative to the replay's start. Never decreases.
    pub due: Nanos,
    /// Index of the output, below [`Feed::outputs`].
    pub output: usize,
}

/// A source of frames in order of time.
pub trait Feed: Send {
    /// Passes up to `max` frames to `take`. Fewer frames without `end` mean that no more are
    /// available yet, for example from a slow pipe.
    ///
    /// # Errors
    /// The input cannot be read further. All frames before the fault have been returned.
    fn feed(
        &mut self,
        max: usize,
        take: &mut dyn FnMut(FeedFrame<'_>),
    ) -> Result<ReceiveResult, PortError>;

    /// Receives the start of the replay, once, before the first [`Feed::feed`]. Needed by feeds
    /// that write send times into their frames.
    fn begin(&mut self, _start: Epoch) {}

    /// Returns the number of outputs.
    fn outputs(&self) -> usize {
        1
    }

    /// Returns a descriptor that becomes readable when a slow input has more frames.
    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Returns whether frames have times. If not, they are sent as fast as the port accepts them.
    fn is_paced(&self) -> bool {
        true
    }

    /// Returns the maximum frame length in bytes.
    fn frame_max(&self) -> usize;

    /// Returns the feed's progress, counts and notes.
    fn status(&self) -> FeedStatus;
}

/// A feed's progress, counts and notes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FeedStatus {
    /// Name of the input: a file, or a description of the generator.
    pub name: String,
    /// Share of the input returned, from 0 to 1; `None` if unknown, such as for a pipe.
    pub fraction: Option<f64>,
    /// Counts by name, in report order, such as filtered frames, decreasing timestamps and repaired
    /// checksums. Reports may omit zeros.
    pub counts: Vec<(&'static str, u64)>,
    /// Notes for the user, as sentences.
    pub notes: Vec<String>,
}
