//! Carriers of TAP devices that follow links: effects on the kernel's routing, and
//! links that are added and removed.

use std::thread;
use std::time::{Duration, Instant};

use crate::common::process::TIMEOUT;
use crate::common::site::{run_in, well};
use crate::control::ControlledRun;

/// Two networks of one machine, with other hosts nowhere.
const NETWORK: &str = r#"
[ports]
first = { opens = "tap:lw0", carrier = "one*.down" }
second = { opens = "tap:lw1", carrier = "two.down" }
third = "null"
fourth = "null"

[switching]
pairs = [["first", "third"], ["second", "fourth"]]

[[link]]
name = "one"
match = "in-port=first"

[[link]]
name = "two"
match = "in-port=second"
"#;

/// Runs `ip` in the network's namespace.
fn ip(run: &ControlledRun, words: &str) -> String {
    let program: Vec<&str> = std::iter::once("ip").chain(words.split(' ')).collect();
    well(&program, run_in(&run.site.middle, &program))
}

/// Waits until `ip` prints this: it reports a TAP device's state up to a second late.
fn wait_for(run: &ControlledRun, words: &str, expected: &str) {
    let begun = Instant::now();
    loop {
        let text = ip(run, words);
        if text.contains(expected) {
            return;
        }
        assert!(begun.elapsed() < TIMEOUT, "{words}: {text}");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn routes_fail_over_to_an_interface_with_a_carrier() {
    let Some(run) = ControlledRun::new(1, NETWORK) else {
        return;
    };
    ip(&run, "address add 10.1.0.1/24 dev lw0");
    ip(&run, "address add 10.2.0.1/24 dev lw1");
    let ignore = "echo 1 > /proc/sys/net/ipv4/conf/all/ignore_routes_with_linkdown";
    let program = ["sh", "-c", ignore];
    well(&program, run_in(&run.site.middle, &program));
    ip(&run, "route add 192.0.2.0/24 via 10.1.0.2 metric 10");
    ip(&run, "route add 192.0.2.0/24 via 10.2.0.2 metric 20");
    const ROUTE: &str = "route get 192.0.2.9";
    wait_for(&run, ROUTE, "dev lw0");
    run.well("off one.up");
    run.well("off one.down");
    wait_for(&run, ROUTE, "dev lw1");
    wait_for(&run, "link show lw0", "NO-CARRIER");
    run.well("on one.down");
    wait_for(&run, ROUTE, "dev lw0");
    assert!(!ip(&run, "link show lw1").contains("NO-CARRIER"));
    let (report, _) = run.network.stop_with_words();
    let notes = report["notes"].to_string();
    assert!(notes.contains("port first: carrier lost 1 time"), "{notes}");
    assert!(!notes.contains("port second: carrier"), "{notes}");
}

#[test]
fn added_and_removed_links_are_followed() {
    let Some(run) = ControlledRun::new(1, NETWORK) else {
        return;
    };
    let wait_for = |expected| wait_for(&run, "link show lw0", expected);
    wait_for("LOWER_UP");
    run.well("off one");
    wait_for("NO-CARRIER");
    run.well("add one-more --match in-port=first,proto=udp");
    wait_for("LOWER_UP");
    run.well("off one-more.down");
    wait_for("NO-CARRIER");
    run.well("on one-more");
    wait_for("LOWER_UP");
    run.well("remove one-more");
    wait_for("NO-CARRIER");
    let (report, _) = run.network.stop_with_words();
    let notes = report["notes"].to_string();
    assert!(
        notes.contains("port first: carrier lost 3 times"),
        "{notes}"
    );
}

#[test]
fn interfaces_of_others_keep_their_carrier() {
    let network = NETWORK.replace("tap:lw0", "packet:p0");
    let Some(site) = crate::common::site::Site::new(1) else {
        return;
    };
    let dir = longwire_testbed::support::Folder::new();
    let file = dir.file("network.toml");
    crate::common::write(&file, network.as_bytes());
    let program = [env!("CARGO_BIN_EXE_longwire"), "run", &file];
    let ended = run_in(&site.middle, &program);
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.stderr.contains("existing interface"), "{ended:?}");
}
