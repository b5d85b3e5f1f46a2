//! Errors at a run's start.

use longwire_io::delay_line::ArenaError;
use longwire_packet::bridge::BridgeError;

/// Failure to start a run.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum StartError {
    #[error("cannot reserve memory for queued frames: {0}")]
    Memory(#[from] ArenaError),
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
    #[error("cannot create an event descriptor: {0}")]
    Event(#[from] nix::Error),
    #[error("the traces need {needed} ports, but {given} are given")]
    Outputs { needed: usize, given: usize },
    #[error("switch: {0}")]
    Switch(#[from] BridgeError),
    #[error("path {0} has no links, or refers to a missing link")]
    Path(usize),
}
