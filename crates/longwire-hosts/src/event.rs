//! Events of the exchange with another host.

use std::fmt;

/// An event that a user should know of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerEvent {
    /// Frames can be sent to it.
    Connected {
        /// It was started again since it was last connected.
        restarted: bool,
    },
    /// It does not answer any more.
    Silent,
    /// It runs another network.
    OtherNetwork,
    /// Its wall clock was set, by these nanoseconds.
    ClockSet(i64),
    /// Its monotonic clock jumped, by these nanoseconds: the machine was suspended or moved.
    ClockJumped(i64),
}

impl fmt::Display for PeerEvent {
    /// Writes the end of a sentence whose subject is the host.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = |by: i64| by as f64 / 1e6;
        out.write_str(match self {
            PeerEvent::Connected { restarted: false } => "is connected",
            PeerEvent::Connected { restarted: true } => {
                "was started again: its links start in their first state"
            }
            PeerEvent::Silent => "does not answer: links drop frames to its ports (port_lost)",
            PeerEvent::OtherNetwork => "runs another file, seed or scenario, and is ignored",
            PeerEvent::ClockSet(by) => {
                let by = millis(*by);
                return write!(
                    out,
                    "had its wall clock set by {by:+.3} ms; frames do not depend on it"
                );
            }
            PeerEvent::ClockJumped(by) => {
                let by = millis(*by);
                return write!(
                    out,
                    "had a jump of its monotonic clock by {by:+.3} ms: frames of that moment \
                     left at wrong times"
                );
            }
        })
    }
}
