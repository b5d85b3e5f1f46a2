//! Receiving: what arrives at a port, and how true it is to what was sent.
//!
//! A [`Receiving`] is a thread at a port with the kernel's stamps; a
//! [`Judging`] reads a capture instead. Both keep the same account: rates and
//! gaps; each frame against an expected gap, against a trace
//! ([`AgainstTrace`]), against what this process sends ([`sent_log`]), or against the times that probes carry
//! ([`longwire_packet::probe`]); what is lost, double, out of order or
//! changed. The accounting takes bytes and times, and knows no port and no
//! clock.

mod account;
mod comparison;
mod digest;
mod drift;
mod jitter;
mod live;
mod matching;
mod offline;
mod rates;
mod report;
mod sent;
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
pub use digest::{Ignored, UnknownField};
pub use offline::Judging;
pub use report::{
    DelayReport, Drift, Rates, ReceiveReport, SequenceReport, Spread, StreamReport, Timing,
    TraceReport, Unseen, Witnessed,
};
pub use sent::{Sent, SentLog, sent_log};
pub use thread::{Receiving, open_options};

/// What is to be received, and what it is to be judged by.
#[derive(Clone, Debug, Default)]
pub struct ReceiveConfig {
    /// Frames are to be so far apart, the first from the second and so on.
    /// Each frame that is lost makes all later ones come that much too late,
    /// so this is for paths that lose nothing.
    pub expect_gap: Option<Nanos>,
    /// The trace that is being sent.
    pub against: Option<AgainstTrace>,
    /// Only frames that match count.
    pub filter: Option<Filter>,
    /// End after so many frames.
    pub count: Option<u64>,
    /// End after so long without a frame, once there was one.
    pub idle: Option<Nanos>,
    /// Write what arrives to this capture.
    pub capture: Option<String>,
    /// Watch for pauses of the machine, with a thread that spins where nobody
    /// else wants the core.
    pub witness: bool,
    /// Receive, and watch, on this core.
    pub core: Option<usize>,
}

/// Why nothing can be received.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ReceiveError {
    #[error(transparent)]
    Port(#[from] PortError),
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}
