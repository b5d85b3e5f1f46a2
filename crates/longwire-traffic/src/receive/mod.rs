//! The receiver: frames that arrive at a port, and how true they are to the frames sent.
//!
//! A [`Receiver`] is a thread at a port with the kernel's stamps; a [`CaptureReceiver`]
//! reads a capture instead. Both keep the same account: rates and gaps; each frame
//! compared with an expected gap, with a trace ([`AgainstTrace`]), with the frames that
//! the same process sends ([`longwire_runtime::sent`]), or with the times in probes
//! ([`longwire_packet::probe`]); frames lost, duplicated, reordered or changed. The
//! accounting takes bytes and times, and knows neither port nor clock.

mod account;
mod comparison;
mod drift;
mod jitter;
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

/// Configuration of a receiver: the frames that count, and what they are compared with.
#[derive(Clone, Debug, Default)]
pub struct ReceiveConfig {
    /// The gap expected between each frame and the next. Each frame that is lost makes
    /// all later ones late by that gap, so this is for paths without loss.
    pub expect_gap: Option<Nanos>,
    /// The trace that is being sent.
    pub against: Option<AgainstTrace>,
    /// Only frames that match count.
    pub filter: Option<Filter>,
    /// End after this many frames.
    pub count: Option<u64>,
    /// End after this time without a frame, once there was one.
    pub idle: Option<Nanos>,
    /// Write the frames that arrive to this capture.
    pub capture: Option<String>,
    /// Watch for pauses of the machine, with a thread that spins while no other
    /// thread wants the core.
    pub witness: bool,
    /// Receive, and watch, on this core.
    pub core: Option<usize>,
}

/// The error of a receiver that cannot be started.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ReceiveError {
    #[error(transparent)]
    Port(#[from] PortError),
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}
