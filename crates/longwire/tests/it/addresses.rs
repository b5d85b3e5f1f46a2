//! ARP requests and neighbour solicitations through a port that get no reply, as counted in the
//! report of a live run. longwire-runtime tests the counts.
//!
//! Skipped without permission to create namespaces, except in CI.

use std::net::IpAddr;
use std::time::Duration;

use crate::common::list;
use crate::common::site::Site;
use longwire_io::net::addr_add;
use longwire_testbed::support::within;
use serde_json::Value;

/// Station 0 resolves station 1. It requests an unused address through port `p1`, by ARP and by
/// neighbour solicitation.
#[test]
fn a_link_reports_requests_without_an_answer() {
    let Some(site) = Site::new(2) else { return };
    for (number, station) in site.stations.iter().enumerate() {
        let address: IpAddr = format!("fd09::{}", number + 1).parse().expect("an address");
        within(station, || addr_add("eth0", address, 64));
    }
    let network = site.start("packet:p0 packet:p1 --delay 10ms");
    let found = ["10.9.0.2", "fd09::2"].map(|own| site.round_trip_to(0, own));
    assert!(found.iter().all(Option::is_some), "{found:?}");
    for missing in ["10.9.0.77", "fd09::77"] {
        assert_ne!(site.at(0, format!("ping -c 1 -W 1 {missing}")).code, 0);
    }
    // The last request still has a second to be answered.
    std::thread::sleep(Duration::from_millis(3500));
    let (report, text) = network.stop_with_text();
    let notes = list(&report["notes"]).iter().filter_map(Value::as_str);
    let notes: Vec<&str> = notes
        .filter(|note| note.contains("address request"))
        .collect();
    assert!(
        notes.len() == 1 && text.contains("did not answer"),
        "{text}"
    );
    let requests = notes[0].strip_prefix("the far side of packet:p1 did not answer ");
    let requests = requests.and_then(|rest| rest.split(' ').next()?.parse().ok());
    // The kernel sends up to three of each kind.
    let right = requests.is_some_and(|requests: u64| (2..=8).contains(&requests));
    assert!(right, "{notes:?}");
}
