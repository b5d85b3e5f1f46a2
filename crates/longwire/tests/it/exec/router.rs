//! Links as router hops, as seen by the kernels at both ends.

use super::User;
use crate::common::{count, have, named};

/// Script that queries a host's kernel.
const SCRIPT: &str = include_str!("router.py");

/// Runs the script's `commands` on near, with these link options; returns the output.
fn learnt(user: &User, link: &str, commands: &str) -> String {
    user.write("router.py", SCRIPT);
    let commands = commands
        .split(", ")
        .map(|command| format!("python3 router.py {command}; "));
    let line = commands.collect::<String>();
    let options = "-q --report r.json --peer 'python3 router.py serve'";
    user.exec(format!("{options} {link} -- sh -c '{line}'"))
        .well()
        .stdout
}

/// Returns a direction's counter in the report.
fn counted(user: &User, link: &str, counter: &str) -> u64 {
    count(&named(&user.report()["links"], link)[counter])
}

#[test]
fn hosts_see_a_hop_and_learn_the_mtu() {
    if !have("python3") {
        return;
    }
    let hops = "1 10.77.0.254 11/0 0\n2 10.77.0.2 3/3 0\n\
                1 fd77:4c57::fe 3/0 0\n2 fd77:4c57::2 1/4 0\n";
    let mtus = "10.77.0.254 3/4 1300\nroute 1300\nfd77:4c57::fe 2/0 1300\nroute 1300\n";
    for user in User::all() {
        // The link decides at arrival, at dequeue, or in a network.
        for more in ["", "--queue codel", "--control ./s"] {
            let link = format!("--mtu 1300 --router hop --delay 2ms {more}");
            assert_eq!(
                learnt(&user, &link, "hops 2, mtu"),
                [hops, mtus].concat(),
                "{more}"
            );
            let counters = ["icmp_sent", "packets_in", "packets_out"];
            let counters = counters.map(|counter| counted(&user, "link.up", counter));
            assert_eq!(counters, [4, 6, 2], "{more}");
        }
    }
}

/// Sends super-packets whose segments exceed the MTU.
#[test]
fn tcp_finds_the_mtu_of_its_path() {
    for user in User::with(["python3"]) {
        for placement in ["together", "per-stage"] {
            let link = format!("--mtu 1300 --router hop --delay 2ms --placement {placement}");
            let found = learnt(&user, &link, "tcp");
            assert_eq!(
                found,
                "received 1000000 mtu 1300\n".repeat(2),
                "{placement}"
            );
            let sent = counted(&user, "link.up", "icmp_sent");
            assert!((2..=100).contains(&sent), "{placement}: {sent}");
        }
    }
}

#[test]
fn a_router_that_sends_no_errors_is_a_black_hole() {
    for user in User::with(["python3"]).into_iter().take(1) {
        let found = learnt(&user, "--mtu 1300 --router hop:limit=0", "hops 1, mtu");
        assert_eq!(
            found,
            "1 no error\n1 no error\nno error\nroute 1500\nno error\nroute 1500\n"
        );
        assert_eq!(counted(&user, "link.up", "icmp_sent"), 0);
    }
}

/// Each link of a path is a hop with a separate address.
#[test]
fn routers_of_a_network_are_hops_of_their_own() {
    if !have("python3") {
        return;
    }
    let network = r#"
[ports]
near = "null"
far = "null"
[[link]]
name = "first"
router = "hop"
delay = "3ms"
[[link]]
name = "second"
router = "hop:address6=2001:db8::7"
mtu = 1300
delay = "3ms"
[[path]]
name = "way"
via = ["first", "second"]
match = "in-port=near"
"#;
    for user in User::all() {
        user.write("n.toml", network);
        let found = learnt(&user, "n.toml", "hops 3, mtu");
        let hops = "1 10.77.0.254 11/0 0\n2 10.77.0.253 11/0 0\n3 10.77.0.2 3/3 0\n\
                    1 fd77:4c57::fe 3/0 0\n2 2001:db8::7 3/0 0\n3 fd77:4c57::2 1/4 0\n";
        let mtus = "10.77.0.253 3/4 1300\nroute 1300\n2001:db8::7 2/0 1300\nroute 1300\n";
        assert_eq!(found, [hops, mtus].concat());
        assert_eq!(counted(&user, "first.up", "icmp_sent"), 2);
        assert_eq!(counted(&user, "second.up", "icmp_sent"), 4);
    }
}

/// Hosts also accept errors from a router that a change adds.
#[test]
fn a_change_brings_a_router_and_takes_it_away() {
    if !have("python3") {
        return;
    }
    let hops = "1 192.0.0.8 11/0 0\n1 fe80::8 3/0 0\n\
                1 10.77.0.2 3/3 0\n2 10.77.0.2 3/3 0\n\
                1 fd77:4c57::2 1/4 0\n2 fd77:4c57::2 1/4 0\n";
    for user in User::all() {
        user.write("router.py", SCRIPT);
        let line = "$LONGWIRE ctl set link router=hop >&2 && python3 router.py hops 1 && \
                    $LONGWIRE ctl set link router=none >&2 && python3 router.py hops 2";
        let ended = user.shell(format!("$LONGWIRE exec -q --control ./s -- sh -c '{line}'"));
        assert_eq!(ended.well().stdout, hops);
    }
}
