//! Reports on the exchange with other hosts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ledger::{Artifact, NamedCounts};

/// Report on the exchange with other hosts.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Hosts")]
pub struct HostsReport {
    /// The name of this host.
    pub name: String,
    /// Datagrams from unknown senders, and datagrams from known ones that match no session
    /// or handshake.
    pub foreign: u64,
    /// Buffers of one or more datagrams dropped by the kernel at this host's socket,
    /// because its receive buffer was full or, rarely, a checksum was wrong. Their frames
    /// are resent, or count as lost.
    #[serde(default)]
    pub receive_overflows: u64,
    /// The other hosts.
    pub peers: Vec<PeerReport>,
}

/// Report on the exchange with one host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Peer")]
pub struct PeerReport {
    /// Its name.
    pub name: String,
    /// Whether it was responding at the end.
    pub connected: bool,
    /// Sessions established, each with separate keys.
    pub sessions: u64,
    /// How often it was silent for more than a second.
    pub outages: u64,
    /// Frames sent to it.
    pub frames_sent: u64,
    /// Frames not sent because it was not responding.
    pub frames_unsent: u64,
    /// Frames sent after it was last heard, until it was declared silent: lost, unless it
    /// resumes and counts them itself.
    #[serde(default)]
    pub frames_unconfirmed: u64,
    /// Frames received from it.
    pub frames_received: u64,
    /// Frames lost in transit from it, or at this host's socket (`receive_overflows`).
    pub frames_lost: u64,
    /// Frames to or from the peer that this host dropped because its buffers were full.
    #[serde(default)]
    pub frames_dropped: u64,
    /// Frames lost in transit from it that arrived when resent.
    #[serde(default)]
    pub frames_recovered: u64,
    /// Datagrams resent to it.
    #[serde(default)]
    pub datagrams_resent: u64,
    /// Frames received after their release.
    pub frames_late: u64,
    /// Maximum lateness of these frames in nanoseconds.
    pub late_max_ns: u64,
    /// Minimum time between arrival and release of a frame in nanoseconds; negative for a
    /// late one. Absent before the first frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spare_min_ns: Option<i64>,
    /// Datagrams sent to it, including those for sessions and clocks.
    pub datagrams_sent: u64,
    /// UDP payload sent to it in bytes.
    pub bytes_sent: u64,
    /// Datagrams from its address dropped as foreign.
    #[serde(default)]
    pub foreign: u64,
    /// Duplicate datagrams, and those of earlier sessions or handshakes.
    pub replayed: u64,
    /// Minimum round trip in nanoseconds.
    pub round_trip_ns: u64,
    /// Its wall clock minus ours in nanoseconds. Absent until estimated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_offset_ns: Option<i64>,
    /// Uncertainty of offsets in nanoseconds: half of the minimum round trip.
    pub clock_uncertainty_ns: u64,
    /// How much faster our clock is than its, in ppm.
    pub clock_skew_ppm: f64,
    /// Last error of sending to it.
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
