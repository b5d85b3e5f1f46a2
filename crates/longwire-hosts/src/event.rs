//! Events of the exchange with another host.

use std::fmt;

/// An event of interest to users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerEvent {
    /// Frames can be sent to the host.
    Connected {
        /// Whether it restarted since the last connection.
        restarted: bool,
    },
    /// The host stopped responding.
    Silent,
    /// The host runs a different network.
    OtherNetwork,
    /// Its wall clock was stepped, in nanoseconds.
    ClockSet(i64),
    /// Its monotonic clock jumped, in nanoseconds: the machine was suspended or migrated.
    ClockJumped(i64),
}

impl fmt::Display for PeerEvent {
    /// Formats the predicate of a sentence about the host.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = |by: i64| by as f64 / 1e6;
        out.write_str(match self {
            PeerEvent::Connected { restarted: false } => "is connected",
            PeerEvent::Connected { restarted: true } => {
                "was restarted: its links start in their initial state"
            }
            PeerEvent::Silent => "does not respond: links drop frames to its ports (port_lost)",
            PeerEvent::OtherNetwork => "runs a different file, seed or scenario, and is ignored",
            PeerEvent::ClockSet(by) => {
                let by = millis(*by);
                return write!(
                    out,
                    "stepped its wall clock by {by:+.3} ms; frames are not affected"
                );
            }
            PeerEvent::ClockJumped(by) => {
                let by = millis(*by);
                return write!(
                    out,
                    "had its monotonic clock jump by {by:+.3} ms; frames at that time were released \
                     at wrong times"
                );
            }
        })
    }
}
