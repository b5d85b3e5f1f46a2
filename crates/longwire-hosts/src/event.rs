//! Events in the exchange with other hosts, and the message about hosts that delay a start.

use std::fmt;

use longwire_runtime::report::HostsReport;

/// An event to report to users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerEvent {
    /// Frames can be sent to the host.
    Connected {
        /// Whether the host has restarted since the last connection.
        restarted: bool,
    },
    /// The host stopped responding.
    Silent,
    /// The host runs a different network.
    OtherNetwork,
    /// The host's wall clock was stepped by this number of nanoseconds.
    ClockSet(i64),
    /// The host's monotonic clock jumped by this number of nanoseconds: the machine was suspended
    /// or migrated.
    ClockJumped(i64),
}

impl fmt::Display for PeerEvent {
    /// Formats the predicate of a sentence about the host.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = |by: i64| by as f64 / 1e6;
        let text = match self {
            PeerEvent::Connected { restarted: false } => "is connected",
            PeerEvent::Connected { restarted: true } => {
                "was restarted: its links start in their initial state"
            }
            PeerEvent::Silent => "is not responding: links drop frames to its ports (port_lost)",
            PeerEvent::OtherNetwork => "has a different file, seed or scenario, and is ignored",
            PeerEvent::ClockSet(by) => &format!(
                "stepped its wall clock by {:+.3} ms; frames are not affected",
                millis(*by)
            ),
            PeerEvent::ClockJumped(by) => &format!(
                "jumped by {:+.3} ms on its monotonic clock; frames released around then were \
                 mistimed",
                millis(*by)
            ),
        };
        out.write_str(text)
    }
}

/// Returns a message about the hosts that delay the start of a run.
pub fn waiting(report: &HostsReport) -> String {
    let silent = report.peers.iter().filter(|peer| !peer.connected);
    let silent = silent.map(|peer| match &peer.send_error {
        Some(error) => format!("{} (sending: {error})", peer.name),
        None if peer.foreign > 0 => {
            format!(
                "{} (reachable, but has a different key or version)",
                peer.name
            )
        }
        None => peer.name.clone(),
    });
    let silent: Vec<String> = silent.collect();
    if silent.is_empty() {
        return "waiting for the first host in the file to set the start time".to_owned();
    }
    let at_peers: u64 = report.peers.iter().map(|peer| peer.foreign).sum();
    let elsewhere = match report.foreign.saturating_sub(at_peers) {
        0 => String::new(),
        count => format!("; {count} datagrams from other addresses"),
    };
    format!("waiting for hosts: {}{elsewhere}", silent.join(", "))
}

#[cfg(test)]
mod tests {
    use longwire_runtime::report::PeerReport;

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
            waiting(&report),
            "waiting for hosts: b (reachable, but has a different key or version), c (sending: Network is \
             unreachable); 2 datagrams from other addresses"
        );
        report.peers.truncate(1);
        assert!(waiting(&report).contains("waiting for the first host"));
    }
}
