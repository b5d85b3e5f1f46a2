//! The report of the exchange with other hosts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

impl HostsReport {
    /// Returns the hosts for which the start of a run waits, as a sentence.
    pub fn waiting(&self) -> String {
        let silent = self.peers.iter().filter(|peer| !peer.connected);
        let silent = silent.map(|peer| match &peer.send_error {
            Some(error) => format!("{} (sending: {error})", peer.name),
            None if peer.foreign > 0 => {
                format!(
                    "{} (it is heard, but has another key or version)",
                    peer.name
                )
            }
            None => peer.name.clone(),
        });
        let silent: Vec<String> = silent.collect();
        if silent.is_empty() {
            return "waiting for the start, which the first host of the file chooses".to_owned();
        }
        let at_peers: u64 = self.peers.iter().map(|peer| peer.foreign).sum();
        let elsewhere = match self.foreign.saturating_sub(at_peers) {
            0 => String::new(),
            count => format!("; {count} datagrams came from other addresses"),
        };
        format!("waiting for hosts: {}{elsewhere}", silent.join(", "))
    }

    /// Returns a hint if the kernel dropped datagrams at the socket.
    pub fn overflow_hint(&self) -> Option<String> {
        let buffers = match self.receive_overflows {
            0 => return None,
            1 => "a buffer".to_owned(),
            count => format!("{count} buffers"),
        };
        Some(format!(
            "receive_overflows: the kernel dropped {buffers} at the socket for other hosts, usually \
             because this host receives too slowly: stop other programs, add cores, or lower the \
             rates"
        ))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_names_hosts_with_causes() {
        let peer = |name: &str, connected| PeerReport {
            name: name.to_owned(),
            connected,
            ..PeerReport::default()
        };
        let mut report = HostsReport {
            foreign: 5,
            peers: vec![peer("a", true), peer("b", false), peer("c", false)],
            ..HostsReport::default()
        };
        report.peers[1].foreign = 3;
        report.peers[2].send_error = Some("Network is unreachable".to_owned());
        assert_eq!(
            report.waiting(),
            "waiting for hosts: b (it is heard, but has another key or version), c (sending: Network is \
             unreachable); 2 datagrams came from other addresses"
        );
        report.peers.truncate(1);
        assert!(report.waiting().contains("waiting for the start"));
    }
}
