//! Receiver: compares frames that arrive at a port with the frames sent.
//!
//! A [`Receiver`] is a thread at a port with kernel timestamps; a [`CaptureReceiver`] reads a
//! capture. Both collect the same statistics: rates and gaps; comparison with an expected gap, with
//! a trace ([`AgainstTrace`]), with frames sent by the same process ([`longwire_runtime::sent`]),
//! or with the times in probes ([`longwire_packet::probe`]); and lost, duplicated, reordered and
//! changed frames. The statistics depend only on bytes and times, not on ports or clocks.

mod account;
mod comparison;
mod drift;
mod live;
mod matching;
mod offline;
mod rates;
mod report;
mod require;
mod sequence;
mod spread;
mod streams;
mod thread;
mod timing;
mod witness;

use longwire_engine::Nanos;
use longwire_io::PortError;
use longwire_packet::filter::Filter;

pub use comparison::AgainstTrace;
pub use offline::CaptureReceiver;
pub use report::ReceivedByLink;
pub use report::{
    DelayReport, Drift, Rates, ReceiveReport, SequenceReport, StreamReport, Timing, TraceReport,
    Unseen, WitnessReport,
};
pub use require::ReceiveRequirement;
pub use thread::{Receiver, open_options};

/// Configuration of a receiver.
#[derive(Clone, Debug, Default)]
pub struct ReceiveConfig {
    /// Expected gap between frames. Only for lossless paths, because a lost frame makes all later
    /// ones late by one gap.
    pub expect_gap: Option<Nanos>,
    /// Trace that is being sent.
    pub against: Option<AgainstTrace>,
    /// Counts only matching frames, if set.
    pub filter: Option<Filter>,
    /// Ends after this number of frames.
    pub count: Option<u64>,
    /// Ends after this time without a frame, once one has arrived.
    pub idle: Option<Nanos>,
    /// Capture file to write.
    pub capture: Option<String>,
    /// Detects machine pauses with a thread that spins while its core is otherwise idle.
    pub witness: bool,
    /// Core for the receiving and witness threads.
    pub core: Option<usize>,
}

/// Error from starting a receiver.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ReceiveError {
    #[error(transparent)]
    Port(#[from] PortError),
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}
