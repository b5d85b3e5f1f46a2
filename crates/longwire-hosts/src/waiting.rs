//! Message about hosts that delay the start.

use longwire_runtime::report::HostsReport;

/// Returns a sentence about the hosts that delay the start of a run.
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
        return "waiting for the first host of the file to set the start time".to_owned();
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
