//! The wait for other hosts, in words.

use longwire_runtime::report::HostsReport;

/// Returns the hosts for which the start of a run waits, as a sentence.
pub fn waiting(report: &HostsReport) -> String {
    let silent = report.peers.iter().filter(|peer| !peer.connected);
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
    let at_peers: u64 = report.peers.iter().map(|peer| peer.foreign).sum();
    let elsewhere = match report.foreign.saturating_sub(at_peers) {
        0 => String::new(),
        count => format!("; {count} datagrams came from other addresses"),
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
            "waiting for hosts: b (it is heard, but has another key or version), c (sending: Network is \
             unreachable); 2 datagrams came from other addresses"
        );
        report.peers.truncate(1);
        assert!(waiting(&report).contains("waiting for the start"));
    }
}
