//! TAP devices whose carriers follow links: effects on the kernel's routing, with links added and
//! removed.

use crate::common::program::{change, wait_for};
use crate::control::ControlledRun;

/// Two pairs of ports; the carrier of each TAP device follows the links toward it.
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

impl ControlledRun {
    /// Runs `ip` in the network's namespace.
    fn ip(&self, words: &str) -> String {
        change(&self.site.middle, format!("ip {words}"))
    }

    /// Waits until `ip` prints this text: the kernel may report a TAP device's state up to a second
    /// late.
    #[track_caller]
    fn wait_for(&self, words: &str, expected: &str) {
        wait_for(expected, || {
            let text = self.ip(words);
            if text.contains(expected) {
                Ok(())
            } else {
                Err(text)
            }
        });
    }

    /// Stops the run; returns its notes.
    fn notes(self) -> String {
        self.network.stop()["notes"].to_string()
    }
}

#[test]
fn routes_fail_over_to_an_interface_with_a_carrier() {
    let Some(run) = ControlledRun::new(1, NETWORK) else {
        return;
    };
    run.ip("address add 10.1.0.1/24 dev lw0");
    run.ip("address add 10.2.0.1/24 dev lw1");
    let ignore = "echo 1 > /proc/sys/net/ipv4/conf/all/ignore_routes_with_linkdown";
    change(&run.site.middle, format!("sh -c '{ignore}'"));
    run.ip("route add 192.0.2.0/24 via 10.1.0.2 metric 10");
    run.ip("route add 192.0.2.0/24 via 10.2.0.2 metric 20");
    const ROUTE: &str = "route get 192.0.2.9";
    run.wait_for(ROUTE, "dev lw0");
    run.well("off one.up");
    run.well("off one.down");
    run.wait_for(ROUTE, "dev lw1");
    run.wait_for("link show lw0", "NO-CARRIER");
    run.well("on one.down");
    run.wait_for(ROUTE, "dev lw0");
    assert!(!run.ip("link show lw1").contains("NO-CARRIER"));
    let notes = run.notes();
    assert!(notes.contains("port first: carrier lost 1 time"), "{notes}");
    assert!(!notes.contains("port second: carrier"), "{notes}");
}

#[test]
fn added_and_removed_links_are_followed() {
    let Some(run) = ControlledRun::new(1, NETWORK) else {
        return;
    };
    run.wait_for("link show lw0", "LOWER_UP");
    for (change, expected) in [
        ("off one", "NO-CARRIER"),
        ("add one-more --match in-port=first,proto=udp", "LOWER_UP"),
        ("off one-more.down", "NO-CARRIER"),
        ("on one-more", "LOWER_UP"),
        ("remove one-more", "NO-CARRIER"),
    ] {
        run.well(change);
        run.wait_for("link show lw0", expected);
    }
    let notes = run.notes();
    assert!(
        notes.contains("port first: carrier lost 3 times"),
        "{notes}"
    );
}
