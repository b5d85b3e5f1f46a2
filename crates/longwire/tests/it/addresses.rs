//! ARP requests and neighbour solicitations without a reply from the far side of a
//! port, in the report of a live run.
//!
//! Without permission to create namespaces, the tests pass without running, except in
//! CI.

use std::net::IpAddr;
use std::time::Duration;

use crate::common::site::Site;
use crate::common::write;
use longwire_io::net::addr_add;
use longwire_testbed::support::{Folder, words};
use serde_json::Value;

/// Returns a report's notes about address requests.
fn notes(report: &Value) -> Vec<String> {
    let notes = report["notes"].as_array().expect("notes").iter();
    let notes = notes.filter_map(Value::as_str).map(str::to_owned);
    notes
        .filter(|note| note.contains("address request"))
        .collect()
}

/// Returns the number of requests in a note.
fn count(note: &str) -> u64 {
    let rest = note.split("did not answer ").nth(1).expect("a count");
    rest.split(' ')
        .next()
        .and_then(|count| count.parse().ok())
        .expect("a number")
}

/// Stations 0 and 1 resolve each other; an unused address is requested through port
/// `p1`, by ARP and by neighbour solicitation.
fn run(arguments: &[&str]) -> Option<(Vec<String>, String)> {
    let site = Site::new(2)?;
    for (number, station) in site.stations.iter().enumerate() {
        let address: IpAddr = format!("fd09::{}", number + 1).parse().expect("an address");
        let given = station.run(|| addr_add("eth0", address, 64));
        given.expect("it is entered").expect("an address");
    }
    let network = site.start_with(arguments);
    let found = ["10.9.0.2", "fd09::2"].map(|own| site.round_trip_to(0, own));
    assert!(found.iter().all(Option::is_some), "{found:?}");
    for missing in ["10.9.0.77", "fd09::77"] {
        let ping = site.at(0, &["ping", "-c", "1", "-W", "1", missing]);
        assert_ne!(ping.code, 0, "{ping:?}");
    }
    // The last request has a second to be answered.
    std::thread::sleep(Duration::from_millis(3500));
    let (report, text) = network.stop_with_words();
    Some((notes(&report), text))
}

fn assert_counted(notes: &[String], port: &str, text: &str) {
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(
        notes[0].starts_with(&format!("the far side of {port} did not")),
        "{notes:?}"
    );
    // Up to three of each kind, by the kernel's timers.
    assert!((2..=8).contains(&count(&notes[0])), "{notes:?}");
    assert!(text.contains("did not answer"), "{text}");
}

#[test]
fn a_link_reports_requests_without_an_answer() {
    let Some((notes, text)) = run(&["packet:p0", "packet:p1", "--delay", "10ms"]) else {
        return;
    };
    assert_counted(&notes, "packet:p1", &text);
    // Also with a queue that decides at dequeue.
    let queue = words("packet:p0 packet:p1 --rate 50mbit --queue codel");
    let (notes, text) = run(&queue).expect("it ran before");
    assert_counted(&notes, "packet:p1", &text);
}

#[test]
fn a_network_reports_requests_without_an_answer() {
    let dir = Folder::new();
    let file = dir.file("network.toml");
    let network = "[ports]\nhome = \"packet:p0\"\ncore = \"packet:p1\"\n\n\
                   [[link]]\nname = \"l\"\nmatch = \"in-port=home\"\ndelay = \"1500ms\"\n";
    write(&file, network.as_bytes());
    let Some(site) = Site::new(2) else { return };
    let network = site.start_with(&[&file]);
    // The reply is sent at once but arrives late: it still counts.
    let ping = site.at(0, &["ping", "-c", "2", "-W", "12", "10.9.0.2"]);
    let missing = site.at(0, &["ping", "-c", "1", "-W", "1", "10.9.0.77"]);
    assert_ne!(missing.code, 0, "{missing:?}");
    std::thread::sleep(Duration::from_millis(5500));
    let (report, text) = network.stop_with_words();
    let notes = notes(&report);
    assert_counted(&notes, "port core", &text);
    assert_eq!(ping.code, 0, "{ping:?}");
    // The kernel requests the missing address three times.
    assert_eq!(count(&notes[0]), 3, "{notes:?}, {ping:?}");
}
