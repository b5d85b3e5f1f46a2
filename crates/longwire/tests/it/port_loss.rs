//! A network of three ports, one of which goes away: by default the run ends; with
//! `on-port-loss = "continue"` the other ports continue.

use std::time::Duration;

use crate::common::site::{Site, link, run_in};
use crate::common::write;
use longwire_testbed::support::Folder;

const NETWORK: &str = r#"
[ports]
a = "packet:p0"
b = "packet:p1"
c = "packet:p2"

[[link]]
name = "ab"
match = "src=10.9.0.1,dst=10.9.0.2"

[[link]]
name = "ac"
match = "src=10.9.0.1,dst=10.9.0.3"
delay = "5ms"
"#;

#[test]
fn the_others_go_on_without_a_port_that_went_away() {
    let Some(site) = Site::new(3) else { return };
    let dir = Folder::new();
    let file = dir.file("network.toml");
    let text = format!("on-port-loss = \"continue\"\n{NETWORK}");
    write(&file, text.as_bytes());
    let running = site.start(&file);
    let answered = (0..5).find_map(|_| site.round_trip(0, 2));
    assert!(answered.is_some(), "no answer");
    let gone = run_in(&site.middle, &["ip", "link", "del", "dev", "p2"]);
    assert_eq!(gone.code, 0, "{gone:?}");
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(site.round_trip(0, 2), None, "the station is gone");
    let answered = (0..5).find_map(|_| site.round_trip(0, 1));
    assert!(answered.is_some(), "the others go on");
    let (report, text) = running.stop_with_words();
    let ports = report["ports"].as_array().expect("ports");
    let error = ports[2]["lost"]["error"].as_str().expect("it is lost");
    assert!(error.contains("is gone"), "{error}");
    assert!(ports[0]["lost"].is_null() && ports[1]["lost"].is_null());
    let lost = link(&report, "ac.up")["drops"]["port_lost"].as_u64();
    assert!(lost >= Some(3), "{report}");
    assert!(text.contains("not faithful: port c was lost"), "{text}");
}

#[test]
fn by_default_a_lost_port_ends_the_run() {
    let Some(site) = Site::new(3) else { return };
    let dir = Folder::new();
    let file = dir.file("network.toml");
    write(&file, NETWORK.as_bytes());
    let running = site.start(&file);
    let gone = run_in(&site.middle, &["ip", "link", "del", "dev", "p1"]);
    assert_eq!(gone.code, 0, "{gone:?}");
    let ended = running.end();
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.stdout.contains("p1 is gone"), "{ended:?}");
}
