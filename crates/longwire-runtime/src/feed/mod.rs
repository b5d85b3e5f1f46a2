//! Feeds: frames in the order and at the times at which they are to be sent,
//! handed out ahead of time.
//!
//! A feed is the input of a replay: a trace or a generator, whose frames are
//! known before they are due. The reader thread takes them as fast as there is
//! space, offers them to the emulated link as of their times, and leaves the
//! waiting to the egress stage.

pub mod trace;

use std::os::fd::BorrowedFd;

use longwire_engine::Nanos;
use longwire_io::{PortError, ReceiveResult};

use crate::record::Epoch;

/// A frame of a feed.
#[derive(Clone, Copy, Debug)]
pub struct FeedFrame<'a> {
    /// From the destination MAC address to the end of the payload. Lent for
    /// the time of the call.
    pub bytes: &'a [u8],
    /// The frame's length on an emulated link, in bytes: more than `bytes`
    /// holds when a capture kept only its beginning.
    pub wire_len: u32,
    /// The time at which to send it, after the start of the replay; never less
    /// than that of the frame before.
    pub due: Nanos,
    /// The index of its output among the feed's, below [`Feed::outputs`].
    pub output: usize,
}

/// A source of frames in the order of their times.
pub trait Feed: Send {
    /// Hands out up to `max` frames. Fewer frames without an end mean that no
    /// more are available at the moment: a pipe whose writer is slow.
    ///
    /// # Errors
    /// The input cannot be read further. Frames before the fault have been
    /// handed out, by this call or by earlier ones.
    fn feed(
        &mut self,
        max: usize,
        take: &mut dyn FnMut(FeedFrame<'_>),
    ) -> Result<ReceiveResult, PortError>;

    /// Receives the start of the replay once, before the first frame is
    /// requested. Frames that carry the time of their sending need it.
    fn begin(&mut self, _start: Epoch) {}

    /// Returns the number of its outputs.
    fn outputs(&self) -> usize {
        1
    }

    /// Returns a descriptor that becomes readable when more frames are
    /// available, for inputs that can be slow.
    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Whether frames have times; frames without are sent as fast as the port
    /// accepts them.
    fn is_paced(&self) -> bool {
        true
    }

    /// Returns the length of the longest frame it hands out, in bytes.
    fn frame_max(&self) -> usize;

    /// Returns the progress, counts and notes of the feed.
    fn status(&self) -> FeedStatus;
}

/// Progress, counts and notes of a feed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FeedStatus {
    /// The name of the input: a file, or a description of what is generated.
    pub name: String,
    /// The part of the input that has been handed out, from 0 to 1; `None` if
    /// it is unknown, as of a pipe.
    pub fraction: Option<f64>,
    /// Counts by name: frames that a filter left out, stamps that went back,
    /// repaired checksums. In the order of the report; counts of zero may be
    /// left out of a report.
    pub counts: Vec<(&'static str, u64)>,
    /// Notes for the user, as sentences.
    pub notes: Vec<String>,
}
