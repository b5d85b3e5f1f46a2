//! `exec` with a link that changes: `--control`, `--scenario`, a topology
//! file; and `--time`.

use std::time::{Duration, Instant};

use crate::common::write;
use crate::{User, well};

/// Round trips in milliseconds, as `ping` printed them.
fn times(text: &str) -> Vec<f64> {
    let times = text.lines().filter_map(|line| line.split("time=").nth(1));
    let times = times.filter_map(|rest| rest.split(' ').next()?.parse().ok());
    times.collect()
}

#[test]
fn a_command_controls_its_own_link() {
    for user in User::all() {
        let line = "ping -c 1 far; $LONGWIRE ctl --control x.sock set link delay=100ms >&2; \
                    ping -c 1 far";
        let line = format!("$LONGWIRE exec --delay 20ms --control x.sock --json -- sh -c '{line}'");
        let ended = well(user.shell(&line));
        let times = times(&ended.stdout);
        assert!(
            times.len() == 2 && times[0] < 200.0 && times[0] >= 40.0 && times[1] >= 200.0,
            "{ended:?}"
        );
        let json = ended.stderr.find("{\n").expect("a report");
        let report: serde_json::Value =
            serde_json::from_str(&ended.stderr[json..]).expect("it is JSON");
        assert_eq!(report["links"][0]["name"], "link.up", "{report}");
        assert!(!user.exists("x.sock"), "the socket is removed");
    }
}

#[test]
fn a_scenario_changes_the_link() {
    for user in User::all() {
        let scenario = "[[at]]\ntime = \"1s\"\nset = { link = { delay = \"100ms\" } }\n";
        write(&user.dir.file("s.toml"), scenario.as_bytes());
        let line = "ping -c 1 far; sleep 1.2; ping -c 1 far";
        let arguments = [
            "--delay",
            "20ms",
            "--scenario",
            "s.toml",
            "--",
            "sh",
            "-c",
            line,
        ];
        let ended = well(user.exec(&arguments));
        let times = times(&ended.stdout);
        assert!(times.len() == 2 && times[1] >= 200.0, "{ended:?}");
        assert!(times[0] >= 40.0, "{ended:?}");
    }
}

/// A network of two links between two ports.
const NETWORK: &str = "[ports]\nfar = \"packet:eth7\"\nnear = \"packet:eth8\"\n\n\
    [[link]]\nname = \"slow\"\nmatch = \"proto=icmp,in-port=near\"\ndelay = \"50ms\"\n\n\
    [[link]]\nname = \"six\"\nmatch = \"ethertype=ipv6,in-port=near\"\ndelay = \"100ms\"\n";

#[test]
fn a_file_with_two_ends_is_a_link() {
    for user in User::all() {
        write(&user.dir.file("n.toml"), NETWORK.as_bytes());
        let line = "ping -4 -c 1 far; ping -6 -c 1 far; echo $LONGWIRE_FAR";
        let command = ["--", "sh", "-c", line];
        let ended = user.exec(&[&["n.toml", "--report", "r.json"], &command[..]].concat());
        let ended = well(ended);
        let times = times(&ended.stdout);
        assert!(
            times.len() == 2 && times[0] >= 100.0 && times[1] >= 200.0,
            "{ended:?}"
        );
        assert!(ended.stdout.ends_with("10.77.0.2\n"), "{ended:?}");
        assert!(user.read("r.json").contains("\"slow.up\""));
    }
}

#[test]
fn a_file_without_two_ends_is_refused() {
    for user in User::all() {
        let three = "[ports]\na = \"null\"\nb = \"null\"\nc = \"null\"\n";
        write(&user.dir.file("three.toml"), three.as_bytes());
        let ended = user.exec(&["three.toml", "--", "true"]);
        assert_eq!(ended.code, 2, "{ended:?}");
        assert!(ended.stderr.contains("3 ports (a, b, c)"), "{ended:?}");
        write(&user.dir.file("n.toml"), NETWORK.as_bytes());
        let ended = user.exec(&["--delay", "1ms", "n.toml", "--", "true"]);
        assert_eq!(ended.code, 2, "{ended:?}");
        assert!(ended.stderr.contains("written in the file"), "{ended:?}");
        for option in [&["n.toml"][..], &["--time", "1s"], &["--control", "x.sock"]] {
            let ended = user.exec(option);
            assert_eq!(ended.code, 2, "{option:?}: {ended:?}");
            assert!(ended.stderr.contains("-- bash"), "{ended:?}");
        }
    }
}

#[test]
fn time_stops_the_command_and_ends_well() {
    for user in User::all() {
        let forms: [&[&str]; 2] = [&[], &["--control", "t.sock"]];
        for form in forms {
            let own = [
                "--time", "700ms", "--report", "r.json", "--", "sleep", "600",
            ];
            let begun = Instant::now();
            well(user.exec(&[form, &own].concat()));
            assert!(begun.elapsed() >= Duration::from_millis(700));
            let report = user.read("r.json");
            assert!(report.contains("stopped after 700ms (--time)"), "{report}");
        }
        // One that ignores SIGTERM is killed; one that ends before is itself.
        let deaf = "trap '' TERM; while :; do sleep 0.05; done";
        well(user.exec(&["--time", "200ms", "--", "sh", "-c", deaf]));
        let ended = user.exec(&["--time", "60s", "--", "sh", "-c", "exit 7"]);
        assert_eq!(ended.code, 7, "{ended:?}");
    }
}

#[test]
fn a_changing_link_ends_like_a_plain_one() {
    for user in User::all() {
        let form = ["--control", "e.sock"];
        let exec = |own: &[&str]| user.exec(&[&form[..], own].concat());
        assert_eq!(exec(&["-q", "--", "sh", "-c", "exit 9"]).code, 9);
        assert_eq!(exec(&["--", "longwire-no-such-command"]).code, 127);
        let failed = exec(&["--peer", "echo why >&2; exit 5", "--", "true"]);
        assert_eq!(failed.code, 1, "{failed:?}");
        assert!(failed.stderr.contains("peer: why\n"), "{failed:?}");
        assert!(failed.stderr.contains("exit code 5"), "{failed:?}");
        assert!(!user.exists("e.sock"));
    }
}
