//! Read-only commands, and commands without a run.

use std::io::{BufRead, BufReader};

use longwire_io::net::link_up;
use longwire_testbed::support::{Folder, within};
use serde_json::Value;

use crate::common::program::{Ran, command, longwire, run_in, start};
use crate::common::site::Site;
use crate::common::{count, list, number, write_private};
use crate::control::ControlledRun;

/// More links than fit in one response.
const LINKS: usize = 2_500;

const NETWORK: &str = r#"
[ports]
a = "packet:p0"
b = "packet:p1"

[[link]]
name = "ab"
match = "in-port=a,dst=10.9.0.2"
delay = "1ms"

[[link]]
name = "idle{n}"
count = 2500
between = ["10.64.0.0/18"]
match = "in-port=a,src={a}"
rate = "1mbit"

[[link]]
name = "far"
rate = "5mbit"

[[path]]
name = "long"
via = ["ab", "far.down"]
match = "src=10.9.0.1,dst=10.9.0.77"
"#;

#[test]
fn all_that_runs_can_be_read() {
    let Some(controlled) = ControlledRun::new(2, NETWORK) else {
        return;
    };
    controlled.site.wait_for_answer(0, 1);
    // All pages together contain each link once.
    let links = controlled.json("get");
    let links = list(&links).iter();
    let names: Vec<&str> = links.filter_map(|link| link["name"].as_str()).collect();
    assert_eq!(names.len(), LINKS + 2);
    assert!(names.windows(2).all(|pair| pair[0] < pair[1]), "in order");
    let lines = controlled.well("get idle*.down");
    assert_eq!(lines.lines().count(), LINKS + 1);
    let one_way = lines.contains("idle2500.down") && !lines.contains(".up");
    assert!(one_way, "one direction");
    controlled.ctl("get nothing*").exits(2);
    let one = controlled
        .ctl("get ab")
        .well()
        .prints("match dst=10.9.0.2,in-port=a");
    one.prints("queue maximum");
    controlled.site.said(0, "ping -c 4 -i 0.2 -q 10.9.0.2");
    let stats = controlled.json("stats ab.up");
    assert!(count(&stats["totals"]["packets_in"]) >= 4, "{stats}");
    assert_eq!(stats["links"], 1);
    assert_eq!(controlled.json("status")["links"], LINKS + 2);
    assert_eq!(controlled.json("ports")["ports"][1]["name"], "b");
    assert_eq!(controlled.json("paths")["paths"][0]["via"][1], "far.down");
    // Two rules per link with a matcher, and two per path.
    assert_eq!(list(&controlled.json("rules")).len(), 2 * LINKS + 4);
    for words in [
        "status", "stats", "ports", "paths", "rules", "report", "changes",
    ] {
        controlled.well(words);
    }
    watched(&controlled);
    controlled.stop();
}

/// Checks that streams end by count, by Ctrl-C, or with the run.
fn watched(controlled: &ControlledRun) {
    let from = controlled.elapsed();
    let lines = controlled.well("watch ab* --every 200ms --count 3 --json");
    let events = lines.lines().map(serde_json::from_str);
    let events: Vec<Value> = events.collect::<Result<_, _>>().expect("JSON a line");
    assert_eq!(events.len(), 3);
    assert_eq!(events[0]["rates"], Value::Null, "there was no time before");
    assert_eq!(events[2]["each"][1]["name"], "ab.up");
    // One event may be late and the next on time, so only the time since the start has a lower
    // bound.
    let seconds = |at: usize, field: &str| number(&events[at][field]);
    assert!(seconds(2, "elapsed_s") - from >= 0.4, "{from}: {lines}");
    let apart = seconds(2, "elapsed_s") - seconds(1, "elapsed_s");
    let interval = seconds(2, "interval_s");
    assert!(interval > 0.0 && (interval - apart).abs() < 1e-6, "{lines}");
    let lines = controlled.well("watch --every 100ms --count 2");
    assert_eq!(lines.lines().count(), 2, "{lines}");
    controlled.ctl("watch --every 1ms").exits(2);
    let socket = &controlled.socket;
    let mut watch = start(format!(
        "longwire ctl --control {socket} watch --every 50ms"
    ));
    // Keep the pipe open: later lines need a reader.
    let stdout = watch.child().stdout.take().expect("a pipe");
    let mut lines = BufReader::new(stdout).lines();
    for _ in 0..2 {
        let line = lines.next().expect("an event").expect("text");
        assert!(line.contains(" s  *: "), "{line}");
    }
    watch.stop();
}

#[test]
fn tokens_determine_the_rights_over_tcp() {
    const TCP: &str = "tcp:127.0.0.1:9470";
    let Some(site) = Site::new(2) else { return };
    within(&site.middle, || link_up("lo"));
    let dir = Folder::new();
    let token = |name: &str| {
        let file = dir.file(name);
        write_private(&file, format!("0123456789abcdef-{name}\n"));
        file
    };
    let [full, read, wrong] = ["full", "read", "none"].map(token);
    let files = format!("--control-token-file {full} --control-read-token-file {read}");
    let ports = format!("packet:p0 packet:p1 --control {TCP}");
    let controlled = ControlledRun::of(site, dir, &format!("{ports} {files}"));
    let ctl = |token: &str, words: &str| -> Ran {
        let line = format!("longwire ctl --control {TCP} --token-file {token} {words}");
        run_in(&controlled.site.middle, line)
    };
    ctl(&read, "get").well();
    ctl(&read, "set link delay=5ms")
        .exits(2)
        .says("read-only token");
    ctl(&wrong, "get").exits(2);
    ctl(&full, "set link delay=5ms").well();
    let response = ctl(&read, "get link.up --json").json();
    assert_eq!(response["options"]["delay"], "5ms");
    controlled.stop();
}

#[test]
fn without_a_run_the_error_shows_how_to_start_one() {
    let dir = Folder::new();
    let nowhere = dir.file("nothing.sock");
    longwire(format!("ctl --control {nowhere} get"))
        .exits(1)
        .says("longwire run");
    let ctl = |words: &str| {
        let mut command = command(format!("longwire ctl {words}"));
        command.env_remove("LONGWIRE_CONTROL");
        Ran::of(command.env("XDG_RUNTIME_DIR", dir.path()))
    };
    ctl("--control tcp:127.0.0.1:1 get").exits(2).says("token");
    for wrong in ["set x", "set x rate", "up", "move x"] {
        ctl(wrong).exits(2);
    }
}
