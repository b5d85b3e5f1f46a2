//! `exec` with a topology of more than two ports, and a host at each.

use crate::common::write;
use crate::exec::{User, well};

/// Two homes with a link each, and a server.
const NETWORK: &str = "[ports]\nhome1 = \"packet:eth7\"\nhome2 = \"packet:eth8\"\n\
    server = \"packet:eth9\"\n\n[defaults]\ndelay = \"10ms\"\n\n\
    [[link]]\nname = \"slow\"\nmatch = \"in-port=home1\"\n\
    down = { match = \"dst-mac=02:4c:57:00:00:01\" }\ndelay = \"40ms\"\n\n\
    [[link]]\nname = \"second\"\nmatch = \"src=10.5.0.1\"\n";

fn milliseconds(line: &str) -> Option<f64> {
    line.split("time=").nth(1)?.split(' ').next()?.parse().ok()
}

#[test]
fn a_file_with_three_ports_has_a_host_at_each() {
    for user in User::all() {
        write(&user.dir.file("n.toml"), NETWORK.as_bytes());
        let line = "ping -4 -c 2 -i 0.1 server; ping -c 1 home2; cat /sys/class/net/eth0/address";
        let second = "home2=ping -c 1 -q server >pinged 2>&1; sleep 600";
        let command = ["--address", "home2=10.5.0.1/24", "--", "sh", "-c", line];
        let options = ["n.toml", "--report", "r.json", "--peer-wait", "1s"];
        let nodes = ["--node", second, "--node", "server=echo ready; exec cat"];
        let ended = well(user.exec(&[&options[..], &nodes, &command].concat()));
        let times: Vec<f64> = ended.stdout.lines().filter_map(milliseconds).collect();
        let [first, second, other] = times[..] else {
            panic!("three answers: {ended:?}");
        };
        // The first packet is neither flooded nor delayed by address resolution. A busy
        // machine delays some but not all.
        assert!((80.0..160.0).contains(&first.min(second)), "{ended:?}");
        assert!(first >= 80.0 && other >= 80.0, "{ended:?}");
        assert!(ended.stdout.ends_with("02:4c:57:00:00:01\n"), "{ended:?}");
        assert!(ended.stderr.contains("server: ready\n"), "{ended:?}");
        assert!(user.read("pinged").contains(" 0% packet loss"), "{ended:?}");
        let report: serde_json::Value =
            serde_json::from_str(&user.read("r.json")).expect("it is JSON");
        let flooded = &report["switch"]["flooded"];
        assert_eq!(*flooded, serde_json::json!([0, 0, 0]), "{report}");
        assert_eq!(report["ports"][2]["name"], "server", "{report}");
    }
}

#[test]
fn processes_of_all_hosts_end_with_the_command() {
    for user in User::all() {
        write(&user.dir.file("n.toml"), NETWORK.as_bytes());
        let deaf = "server=trap '' TERM; echo $$ >pid; while :; do sleep 0.05; done";
        let wait = "until [ -s pid ]; do sleep 0.05; done";
        let nodes = [
            "--peer-wait",
            "0s",
            "--node",
            deaf,
            "--node",
            "home2=sleep 600",
        ];
        let ended = user.exec(&[&["-q", "n.toml"], &nodes[..], &["--", "sh", "-c", wait]].concat());
        well(ended);
        let pid = user.read("pid");
        let left = std::path::Path::new("/proc").join(pid.trim());
        assert!(!left.exists(), "{}", left.display());
    }
}

#[test]
fn a_command_of_a_host_that_fails_is_named() {
    for user in User::all() {
        write(&user.dir.file("n.toml"), NETWORK.as_bytes());
        let ended = user.exec(&[
            "n.toml",
            "--node",
            "server=echo why >&2; exit 5",
            "--",
            "true",
        ]);
        assert_eq!(ended.code, 1, "{ended:?}");
        assert!(ended.stderr.contains("server: why\n"), "{ended:?}");
        assert!(ended.stderr.contains("'echo why >&2; exit 5'"), "{ended:?}");
    }
}

#[test]
fn wrong_hosts_are_refused_with_their_names() {
    for user in User::all() {
        write(&user.dir.file("n.toml"), NETWORK.as_bytes());
        write(&user.dir.file("one.toml"), b"[ports]\na = \"null\"\n");
        let cases: [(&[&str], &str); 9] = [
            (&["n.toml", "--node", "home1=true"], "home1 is near"),
            (
                &["n.toml", "--node", "x=true"],
                "ports are home1, home2, server",
            ),
            (&["n.toml", "--node", "server"], "write core=iperf3 -s"),
            (
                &["n.toml", "--peer", "true", "--node", "home2=true"],
                "home2 is far",
            ),
            (
                &["n.toml", "--address", "x=10.0.0.1/8"],
                "no port named 'x'",
            ),
            (
                &["n.toml", "--address", "server=10.0.0.1"],
                "write core=10.2.0.1/24",
            ),
            (&["n.toml", "--address", "server=::1/129"], "above 128"),
            (&["--address", "far=10.0.0.1/8"], "need a topology file"),
            (&["one.toml"], "has 1 port:"),
        ];
        for (options, reason) in cases {
            let ended = user.exec(&[options, &["--", "true"]].concat());
            assert_eq!(ended.code, 2, "{options:?}: {ended:?}");
            assert!(ended.stderr.contains(reason), "{options:?}: {ended:?}");
        }
        let twice = [
            "--address",
            "home1=10.1.0.1/8",
            "--address",
            "server=10.1.0.1/24",
        ];
        let ended = user.exec(&[&["n.toml"], &twice[..], &["--", "true"]].concat());
        assert!(
            ended.stderr.contains("10.1.0.1 is given twice"),
            "{ended:?}"
        );
    }
}
