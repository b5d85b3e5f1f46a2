//! Read-only commands, and missing runs.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use longwire_io::net::{NetNamespace, link_up};
use longwire_testbed::support::Folder;
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::common::process::RunningProgram;
use crate::common::site::Site;
use crate::common::wire::inside;
use crate::common::{longwire, ran, write};
use crate::control::ControlledRun;

/// More links than fit one response.
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
    // All pages together list each link once.
    let links = controlled.json("get");
    let links = links.as_array().expect("links");
    assert_eq!(links.len(), LINKS + 2);
    let names = links
        .iter()
        .map(|link| link["name"].as_str().expect("a name"));
    let names: Vec<&str> = names.collect();
    assert!(names.windows(2).all(|pair| pair[0] < pair[1]), "in order");
    let lines = controlled.well("get idle*.down");
    assert_eq!(lines.lines().count(), LINKS + 1);
    assert!(
        lines.contains("idle2500.down") && !lines.contains(".up"),
        "one direction"
    );
    let none = controlled.ctl("get nothing*");
    assert_eq!(none.code, 2, "{none:?}");
    let one = controlled.well("get ab");
    assert!(one.contains("match dst=10.9.0.2,in-port=a"), "{one}");
    assert!(one.contains("queue maximum"), "{one}");
    let pings = ["ping", "-c", "4", "-i", "0.2", "-q", "10.9.0.2"];
    controlled.site.said(0, &pings);
    let stats = controlled.json("stats ab.up");
    assert!(stats["totals"]["packets_in"].as_u64() >= Some(4), "{stats}");
    assert_eq!(stats["links"], 1);
    assert_eq!(controlled.json("status")["links"], LINKS + 2);
    assert_eq!(controlled.json("ports")["ports"][1]["name"], "b");
    assert_eq!(controlled.json("paths")["paths"][0]["via"][1], "far.down");
    // Two rules per link with a matcher, and per path.
    assert_eq!(
        controlled.json("rules").as_array().map(Vec::len),
        Some(2 * LINKS + 4)
    );
    for words in [
        "status", "stats", "ports", "paths", "rules", "report", "changes",
    ] {
        controlled.well(words);
    }
    watched(&controlled);
    controlled.stop();
}

/// Streams end by count, by Ctrl-C and with the run.
fn watched(controlled: &ControlledRun) {
    let from = controlled.elapsed();
    let lines = controlled.well("watch ab* --every 200ms --count 3 --json");
    let events = lines.lines().map(serde_json::from_str);
    let events: Vec<Value> = events.collect::<Result<_, _>>().expect("JSON a line");
    assert_eq!(events.len(), 3);
    assert_eq!(events[0]["rates"], Value::Null, "there was no time before");
    assert_eq!(events[2]["each"][1]["name"], "ab.up");
    // An event may be late and the next one on time, so only the time since the start
    // is never early.
    let seconds = |at: usize, field: &str| events[at][field].as_f64().expect("seconds");
    assert!(seconds(2, "elapsed_s") - from >= 0.4, "{from}: {lines}");
    let apart = seconds(2, "elapsed_s") - seconds(1, "elapsed_s");
    let interval = seconds(2, "interval_s");
    assert!(interval > 0.0 && (interval - apart).abs() < 1e-6, "{lines}");
    let lines = controlled.well("watch --every 100ms --count 2");
    assert_eq!(lines.lines().count(), 2, "{lines}");
    let refused = controlled.ctl("watch --every 1ms");
    assert_eq!(refused.code, 2, "{refused:?}");
    let here = NetNamespace::current().expect("a namespace");
    let mut watch = Command::new(env!("CARGO_BIN_EXE_longwire"));
    watch.args([
        "ctl",
        "--control",
        &controlled.socket,
        "watch",
        "--every",
        "50ms",
    ]);
    watch.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut watch = RunningProgram::start(&here, &mut watch);
    // The pipe stays open: later lines have a reader.
    let stdout = watch.child().stdout.take().expect("a pipe");
    let mut lines = BufReader::new(stdout).lines();
    for _ in 0..2 {
        let line = lines.next().expect("an event").expect("text");
        assert!(line.contains(" s  *: "), "{line}");
    }
    watch.signal(Signal::SIGINT);
    let ended = watch.end();
    assert_eq!(ended.code, 0, "{ended:?}");
}

#[test]
fn tokens_determine_the_rights_over_tcp() {
    const TCP: &str = "tcp:127.0.0.1:9470";
    let Some(site) = Site::new(2) else { return };
    let up = site.middle.run(|| link_up("lo"));
    up.expect("it is entered").expect("a loopback device");
    let dir = Folder::new();
    let token = |name: &str, token: &str| {
        let file = dir.file(name);
        write(&file, token.as_bytes());
        let own = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(&file, own).expect("its mode is set");
        file
    };
    let full = token("full", "0123456789abcdef-full\n");
    let read = token("read", "0123456789abcdef-read\n");
    let wrong = token("wrong", "0123456789abcdef-none\n");
    let files = [
        "--control-token-file",
        &full,
        "--control-read-token-file",
        &read,
    ];
    let ports = ["packet:p0", "packet:p1", "--control", TCP];
    let controlled = ControlledRun::of(site, dir, &[&ports[..], &files].concat());
    let ctl = |token: &str, words: &[&str]| {
        let own = ["ctl", "--control", TCP, "--token-file", token];
        inside(&controlled.site.middle, &[&own, words].concat())
    };
    let set = ["set", "link", "delay=5ms"];
    assert_eq!(ctl(&read, &["get"]).code, 0);
    let refused = ctl(&read, &set);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("read-only token"), "{refused:?}");
    assert_eq!(ctl(&wrong, &["get"]).code, 2);
    let changed = ctl(&full, &set);
    assert_eq!(changed.code, 0, "{changed:?}");
    let response = ctl(&read, &["get", "link.up", "--json"]).json();
    assert_eq!(response["options"]["delay"], "5ms");
    controlled.stop();
}

#[test]
fn without_a_run_the_error_shows_how_to_start_one() {
    let dir = Folder::new();
    let nowhere = dir.file("nothing.sock");
    let ended = longwire(&["ctl", "--control", &nowhere, "get"]);
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.stderr.contains("longwire run"), "{ended:?}");
    let ctl = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
        command.arg("ctl").args(arguments);
        command.env_remove("LONGWIRE_CONTROL");
        command.env("XDG_RUNTIME_DIR", dir.path());
        ran(command.output().expect("it starts"))
    };
    let ended = ctl(&["--control", "tcp:127.0.0.1:1", "get"]);
    assert_eq!(ended.code, 2, "{ended:?}");
    assert!(ended.stderr.contains("token"), "{ended:?}");
    for wrong in [
        &["set", "x"][..],
        &["set", "x", "rate"],
        &["up"],
        &["move", "x"],
    ] {
        assert_eq!(ctl(wrong).code, 2, "{wrong:?}");
    }
}
