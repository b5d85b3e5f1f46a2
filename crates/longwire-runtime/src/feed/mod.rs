//! Feeds: frames in the order and at the times at which they are to be sent,
//! handed out ahead of time.
//!
//! A feed is what a trace or a generator is to a run: an input whose frames
//! are known before they are due. The reader thread takes them as fast as
//! there is room, offers them to the emulated link as of their times, and
//! leaves the waiting to the egress stage.

pub mod trace;

use std::os::fd::BorrowedFd;

use longwire_engine::Nanos;
use longwire_io::{PortError, Received};

use crate::record::Epoch;

/// A frame that is to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Fed<'a> {
    /// From the destination MAC address to the end of the payload. Lent for
    /// the time of the call.
    pub bytes: &'a [u8],
    /// How long the frame counts on an emulated link, in bytes: more than
    /// `bytes` holds when a capture kept only its beginning.
    pub wire_len: u32,
    /// When it is to be sent, after the start of the replay; never less than
    /// the frame before it.
    pub due: Nanos,
    /// Which of the feed's outputs it is for, below [`Feed::outputs`].
    pub output: usize,
}

/// Frames in the order of their times.
pub trait Feed: Send {
    /// Hands out up to `max` frames. Fewer than that, and no end, means that
    /// there is nothing more for the moment: a pipe whose writer is slow.
    ///
    /// # Errors
    /// When the input cannot be read on. Frames before the fault have been
    /// handed out, by this call or by earlier ones.
    fn feed(&mut self, max: usize, take: &mut dyn FnMut(Fed<'_>)) -> Result<Received, PortError>;

    /// When the replay starts; told once, before the first frame is asked
    /// for. Frames that carry the time of their sending need it.
    fn begin(&mut self, _start: Epoch) {}

    /// How many outputs its frames are for.
    fn outputs(&self) -> usize {
        1
    }

    /// Becomes readable when there is more, for inputs that can be slow.
    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Frames have times: they are not sent as fast as the port takes them.
    fn is_paced(&self) -> bool {
        true
    }

    /// The longest frame it hands out, in bytes.
    fn frame_max(&self) -> usize;

    /// How far it is, and what it has to say.
    fn status(&self) -> FeedStatus;
}

/// How far a feed is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FeedStatus {
    /// What it reads: a file's name, or what is generated.
    pub name: String,
    /// How much of the input has been handed out, from 0 to 1; `None` where
    /// nobody knows, as of a pipe.
    pub fraction: Option<f64>,
    /// What was counted on the way, by name: frames that a filter left out,
    /// stamps that went back, checksums made right. In the order in which they
    /// are to be reported; those at zero may be left out of a report.
    pub counts: Vec<(&'static str, u64)>,
    /// What its user should know, in sentences.
    pub notes: Vec<String>,
}
