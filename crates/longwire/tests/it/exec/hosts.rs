//! `exec` with a topology of more than two ports, each with a host.

use super::changing::times;
use crate::common::recording::assert_delays;
use crate::exec::User;

/// Two homes with a link each, and a server.
const NETWORK: &str = "[ports]\nhome1 = \"packet:eth7\"\nhome2 = \"packet:eth8\"\n\
    server = \"packet:eth9\"\n\n[defaults]\ndelay = \"10ms\"\n\n\
    [[link]]\nname = \"slow\"\nmatch = \"in-port=home1\"\n\
    down = { match = \"dst-mac=02:4c:57:00:00:01\" }\ndelay = \"40ms\"\n\n\
    [[link]]\nname = \"second\"\nmatch = \"src=10.5.0.1\"\n";

#[test]
fn a_file_with_three_ports_has_a_host_at_each() {
    for user in User::with(["ping"]) {
        user.write("n.toml", NETWORK);
        // With a deadline, ping waits for two replies, even if they are late.
        let line = "ping -4 -c 2 -w 60 -i 0.1 server; ping -c 1 home2; \
                    cat /sys/class/net/eth0/address";
        let second = "home2=ping -c 1 -q server >pinged 2>&1; sleep 600";
        let nodes = format!("--node '{second}' --node 'server=echo ready; exec cat'");
        let options =
            "n.toml --report r.json --log l.csv --peer-wait 1s --address home2=10.5.0.1/24";
        let ended = user
            .exec(format!("{options} {nodes} -- sh -c '{line}'"))
            .well();
        // The first packet is neither flooded nor delayed by address resolution. The log shows the
        // decisions, because a busy machine delays replies.
        let times = times(&ended.stdout);
        let late = times.iter().all(|time| *time >= 80.0);
        assert!(times.len() == 3 && late, "{ended:?}");
        for link in ["slow.up", "slow.down"] {
            assert_delays(&user.dir.file("l.csv"), link, 3, 40);
        }
        assert!(ended.stdout.ends_with("02:4c:57:00:00:01\n"), "{ended:?}");
        let ended = ended.says("server: ready\n");
        assert!(user.read("pinged").contains(" 0% packet loss"), "{ended:?}");
        let report = user.report();
        assert_eq!(
            report["switch"]["flooded"],
            serde_json::json!([0, 0, 0]),
            "{report}"
        );
        assert_eq!(report["ports"][2]["name"], "server", "{report}");
    }
}

#[test]
fn processes_of_all_hosts_end_with_the_command() {
    for user in User::all() {
        user.write("n.toml", NETWORK);
        let deaf = "server=trap \"\" TERM; echo $$ >pid; while :; do sleep 0.05; done";
        let nodes = format!("--node '{deaf}' --node 'home2=sleep 600' --peer-wait 0s");
        let wait = "until [ -s pid ]; do sleep 0.05; done";
        user.exec(format!("-q n.toml {nodes} -- sh -c '{wait}'"))
            .well();
        let left = std::path::Path::new("/proc").join(user.read("pid").trim());
        assert!(!left.exists(), "{}", left.display());
    }
}

#[test]
fn a_command_of_a_host_that_fails_is_named() {
    for user in User::all() {
        user.write("n.toml", NETWORK);
        let failing = "echo why >&2; exit 5";
        let ended = user
            .exec(format!("n.toml --node 'server={failing}' -- true"))
            .exits(1);
        ended.says("server: why\n").says(format!("'{failing}'"));
        // The same applies to the peer of a single link.
        let ended = user
            .exec(format!("--control e.sock --peer '{failing}' -- true"))
            .exits(1);
        ended.says("peer: why\n").says("exit code 5");
        assert!(!user.exists("e.sock"));
    }
}

#[test]
fn wrong_hosts_are_refused_with_their_names() {
    for user in User::all() {
        user.write("n.toml", NETWORK);
        user.write("one.toml", "[ports]\na = \"null\"\n");
        let twice = "n.toml --address home1=10.1.0.1/8 --address server=10.1.0.1/24";
        for (options, reason) in [
            ("n.toml --node home1=true", "home1 is near"),
            ("n.toml --node x=true", "ports are home1, home2, server"),
            ("n.toml --node server", "write core=iperf3 -s"),
            ("n.toml --peer true --node home2=true", "home2 is far"),
            ("n.toml --address x=10.0.0.1/8", "no port named 'x'"),
            ("n.toml --address server=10.0.0.1", "write core=10.2.0.1/24"),
            ("n.toml --address server=::1/129", "above 128"),
            ("--address far=10.0.0.1/8", "need a topology file"),
            ("one.toml", "the file has 1;"),
            (twice, "10.1.0.1 is given twice"),
        ] {
            user.exec(format!("{options} -- true"))
                .exits(2)
                .says(reason);
        }
    }
}
