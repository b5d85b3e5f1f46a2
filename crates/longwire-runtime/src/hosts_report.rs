//! The report of the exchange with other hosts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ledger::{Artifact, NamedCounts};

/// The part of a report about other hosts.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Hosts")]
pub struct HostsReport {
    /// The name of this host.
    pub name: String,
    /// Datagrams from unknown senders, and those of known ones that are neither of a session
    /// nor of a handshake with the key.
    pub foreign: u64,
    /// Buffers of one or several datagrams that the kernel dropped at this host's socket: its
    /// receive buffer was full, or, rarely, a checksum was wrong. Their frames are sent again, or
    /// count as lost.
    #[serde(default)]
    pub receive_overflows: u64,
    /// The other hosts.
    pub peers: Vec<PeerReport>,
}

/// The report of the exchange with one host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Peer")]
pub struct PeerReport {
    /// Its name.
    pub name: String,
    /// Whether it answered at the end.
    pub connected: bool,
    /// Sessions that were established; each has its own keys.
    pub sessions: u64,
    /// How often the host was silent for longer than a second.
    pub outages: u64,
    /// Frames sent to it.
    pub frames_sent: u64,
    /// Frames for it that were not sent, because it did not answer.
    pub frames_unsent: u64,
    /// Frames sent to it after it was last heard, before it was taken as silent: lost, unless
    /// it comes back as it was and counts them itself.
    #[serde(default)]
    pub frames_unconfirmed: u64,
    /// Frames received from it.
    pub frames_received: u64,
    /// Frames that were lost on the way from it, or at this host's socket
    /// (`receive_overflows`).
    pub frames_lost: u64,
    /// Frames to it and from it that were dropped on this host, because they came faster than
    /// they were sent on and no memory was left.
    #[serde(default)]
    pub frames_dropped: u64,
    /// Frames that were lost on the way from it at first, and that came when they were sent
    /// again.
    #[serde(default)]
    pub frames_recovered: u64,
    /// Datagrams that it missed, and that were sent to it again.
    #[serde(default)]
    pub datagrams_resent: u64,
    /// Frames that came from it after their release.
    pub frames_late: u64,
    /// By how much the latest of them came late, in nanoseconds.
    pub late_max_ns: u64,
    /// The least time that was left until the release of a frame, in nanoseconds; negative
    /// for a late one. Absent before the first frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spare_min_ns: Option<i64>,
    /// Datagrams sent to it, with those of sessions and clocks.
    pub datagrams_sent: u64,
    /// UDP payload sent to it, in bytes.
    pub bytes_sent: u64,
    /// Datagrams from its address that were dropped as foreign.
    #[serde(default)]
    pub foreign: u64,
    /// Datagrams that had come before, and those of an earlier session or handshake.
    pub replayed: u64,
    /// The shortest round trip, in nanoseconds.
    pub round_trip_ns: u64,
    /// By how much its wall clock is ahead of ours, in nanoseconds. Absent before it was
    /// estimated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_offset_ns: Option<i64>,
    /// By how much estimated offsets may be wrong, in nanoseconds: half of the shortest
    /// round trip.
    pub clock_uncertainty_ns: u64,
    /// By how much our clock is faster than its, in parts per million.
    pub clock_skew_ppm: f64,
    /// The last error of sending to it. Absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_error: Option<String>,
}

impl PeerReport {
    /// Returns the artifacts of the exchange, by kind.
    pub fn artifacts(&self) -> NamedCounts {
        let lost = self.frames_lost + self.frames_unconfirmed;
        let kinds = [
            (Artifact::UnderlayLost, lost),
            (Artifact::Memory, self.frames_dropped),
        ];
        kinds.map(|(kind, count)| (kind.name(), count)).into()
    }
}
