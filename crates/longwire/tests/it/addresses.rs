//! ARP requests and neighbour solicitations through a port that get no reply, as counted in the
//! report of a live run.
//!
//! Skipped without permission to create namespaces, except in CI.

use std::net::IpAddr;
use std::time::Duration;

use crate::common::list;
use crate::common::site::Site;
use longwire_io::net::addr_add;
use longwire_testbed::support::{Folder, within};
use serde_json::Value;

/// Returns the report's only note about address requests, and the number of requests in it.
fn note(report: &Value, port: &str, text: &str) -> u64 {
    let mut notes: Vec<&str> = list(&report["notes"])
        .iter()
        .filter_map(Value::as_str)
        .collect();
    notes.retain(|note| note.contains("address request"));
    let begin = format!("the far side of {port} did not answer ");
    let [rest] = notes[..]
        .iter()
        .filter_map(|note| note.strip_prefix(&begin))
        .collect::<Vec<_>>()[..]
    else {
        panic!("{notes:?}");
    };
    assert!(
        notes.len() == 1 && text.contains("did not answer"),
        "{notes:?}: {text}"
    );
    let requests = rest.split(' ').next().and_then(|count| count.parse().ok());
    requests.expect("a number")
}

/// Makes stations 0 and 1 resolve each other, then requests an unused address through port `p1` by
/// ARP and neighbour solicitation. Asserts that the report counts these requests.
fn assert_reported(options: &str) {
    let Some(site) = Site::new(2) else { return };
    for (number, station) in site.stations.iter().enumerate() {
        let address: IpAddr = format!("fd09::{}", number + 1).parse().expect("an address");
        within(station, || addr_add("eth0", address, 64));
    }
    let network = site.start(&format!("packet:p0 packet:p1 {options}"));
    let found = ["10.9.0.2", "fd09::2"].map(|own| site.round_trip_to(0, own));
    assert!(found.iter().all(Option::is_some), "{found:?}");
    for missing in ["10.9.0.77", "fd09::77"] {
        assert_ne!(site.at(0, format!("ping -c 1 -W 1 {missing}")).code, 0);
    }
    // A request counts as unanswered after a second; wait for the last one.
    std::thread::sleep(Duration::from_millis(3500));
    let (report, text) = network.stop_with_text();
    // The kernel sends up to three ARP requests and three neighbour solicitations.
    let requests = note(&report, "packet:p1", &text);
    assert!((2..=8).contains(&requests), "{report}");
}

#[test]
fn a_link_reports_requests_without_an_answer() {
    assert_reported("--delay 10ms");
    // CoDel decides at dequeue.
    assert_reported("--rate 50mbit --queue codel");
}

#[test]
fn a_network_reports_requests_without_an_answer() {
    let network = "[ports]\nhome = \"packet:p0\"\ncore = \"packet:p1\"\n\n\
                   [[link]]\nname = \"l\"\nmatch = \"in-port=home\"\ndelay = \"1500ms\"\n";
    let Some(site) = Site::new(2) else { return };
    let network = site.start_network(&Folder::new(), network, "");
    // Replies that cross a slow link are late, but not missing.
    let ping = site.at(0, "ping -c 2 -W 12 10.9.0.2");
    assert_ne!(site.at(0, "ping -c 1 -W 1 10.9.0.77").code, 0);
    std::thread::sleep(Duration::from_millis(5500));
    let (report, text) = network.stop_with_text();
    let ping = ping.well();
    // The kernel requests the missing address three times.
    assert_eq!(note(&report, "port core", &text), 3, "{report}, {ping:?}");
}
