//! The peer's command: its output, its end, and the wait for it.

use std::time::Duration;

use crate::common::have;
use crate::exec::{User, well};

/// A command that exits once the peer has created the file `up`.
const UNTIL_UP: &str = "until [ -e up ]; do sleep 0.05; done";

#[test]
fn the_peers_output_has_a_prefix_and_is_not_the_commands() {
    for user in User::all() {
        let peer = "echo one; echo two >&2; printf three; touch up; sleep 60";
        let arguments = ["-q", "--peer-wait", "100ms", "--peer", peer];
        let mine = ["--", "sh", "-c", &format!("{UNTIL_UP}; echo mine")];
        let ended = well(user.exec(&[&arguments[..], &mine].concat()));
        assert_eq!(ended.stdout, "mine\n");
        let mut lines: Vec<&str> = ended.stderr.lines().collect();
        lines.retain(|line| line.starts_with("peer: "));
        lines.sort_unstable();
        assert_eq!(
            lines,
            ["peer: one", "peer: three", "peer: two"],
            "{ended:?}"
        );
    }
}

#[test]
fn the_output_of_the_peer_is_written_to_a_file() {
    for user in User::all() {
        // A shell also reports a foreground command that is ended by a signal.
        let peer = "trap 'echo stopped >&2; exit' TERM; echo one; echo two >&2; touch up; \
                    sleep 60 & wait";
        let arguments = [
            "-q",
            "--peer-wait",
            "100ms",
            "--peer-output",
            "peer.txt",
            "--peer",
            peer,
            "--",
            "sh",
            "-c",
            UNTIL_UP,
        ];
        let ended = well(user.exec(&arguments));
        assert_eq!(user.read("peer.txt"), "one\ntwo\nstopped\n");
        assert!(!ended.stderr.contains("peer: "), "{ended:?}");
    }
}

#[test]
fn a_peer_that_is_stopped_causes_no_alarm() {
    for user in User::all() {
        // It prints its results at its end, together with its error.
        let peer = "trap 'echo result; echo interrupted >&2; exit 1' TERM; echo early >&2; \
                    touch up; while :; do sleep 0.05; done";
        let arguments = ["--peer-wait", "100ms", "--peer", peer];
        let ended = well(user.exec(&[&arguments[..], &["--", "sh", "-c", UNTIL_UP]].concat()));
        assert!(ended.stderr.contains("peer: early\n"), "{ended:?}");
        assert!(ended.stderr.contains("peer: result\n"), "{ended:?}");
        for word in ["interrupted", "peer's command ended", "SIGTERM"] {
            assert!(!ended.stderr.contains(word), "{ended:?}");
        }
    }
}

#[test]
fn results_of_iperf3_are_json() {
    if !have("iperf3") {
        return;
    }
    for user in User::all() {
        let arguments = [
            "--peer",
            "iperf3 -s",
            "--",
            "iperf3",
            "-J",
            "-t",
            "1",
            "-c",
            "far",
        ];
        let ended = well(user.exec(&[&["--rate", "50mbit"], &arguments[..]].concat()));
        let report = ended.json();
        assert!(report["end"]["sum_received"]["bytes"].as_u64() > Some(0));
        assert!(!ended.stderr.contains("terminated"), "{ended:?}");
        assert!(!ended.stderr.contains("interrupt"), "{ended:?}");
    }
}

#[test]
fn a_peer_that_listens_late_is_mentioned_even_when_quiet() {
    for user in User::all() {
        let wait = ["-q", "--peer-wait", "400ms", "--peer", "sleep 60", "--"];
        let ended = well(user.exec(&[&wait[..], &["echo", "ran"]].concat()));
        assert_eq!(ended.stdout, "ran\n");
        assert!(
            ended
                .stderr
                .contains("the peer does not listen after 400ms"),
            "{ended:?}"
        );
        assert!(ended.stderr.contains("--peer-wait"), "{ended:?}");
    }
}

/// Time spent waiting for the peer does not count in schedules.
#[test]
fn schedules_begin_with_the_command() {
    let wait = ["-q", "--peer-wait", "4s", "--peer", "sleep 60"];
    let links = [
        &["--control", "./s", "--rate", "steps:at=0s/1mbit;1s/2mbit"][..],
        &["--loss", "outages:schedule=1s/1s"],
    ];
    for (user, more) in User::all().into_iter().zip(links) {
        let command = ["--report", "r.json", "--", "date", "+%s%N"];
        let ended = well(user.exec(&[&wait[..], more, &command].concat()));
        let began: u64 = ended.stdout.trim().parse().expect("nanoseconds");
        let report: serde_json::Value = serde_json::from_str(&user.read("r.json")).expect("JSON");
        let epoch = report["epoch_ns"].as_u64().expect("an epoch");
        assert!(began - epoch < 4_000_000_000, "{}", began - epoch);
    }
}

#[test]
fn a_longer_wait_is_enough_for_a_slow_peer() {
    if !have("python3") {
        return;
    }
    for user in User::all() {
        let peer = "sleep 3; exec python3 -c 'import socket,time\n\
                    s=socket.socket()\ns.bind((\"\",7))\ns.listen()\nopen(\"up\",\"w\")\n\
                    time.sleep(60)'";
        let wait = ["-q", "--peer-wait", "60s", "--peer", peer, "--"];
        let ended = user.exec(&[&wait[..], &["ls", "up"]].concat());
        assert_eq!(well(ended).stdout, "up\n");
    }
}

/// Returns the CPU time of the calling process's children that have exited.
fn cpu_of_children() -> Duration {
    let usage = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_CHILDREN);
    let usage = usage.expect("it is known");
    let of = |time: nix::sys::time::TimeVal| {
        Duration::from_micros(time.tv_sec() as u64 * 1_000_000 + time.tv_usec() as u64)
    };
    of(usage.user_time()) + of(usage.system_time())
}

#[test]
fn waiting_for_a_peer_takes_no_cpu_time() {
    // In a separate process, because other tests have children too.
    const ALONE: &str = "LONGWIRE_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let own = std::env::current_exe().expect("its own path");
        let mut command = std::process::Command::new(own);
        command.args([
            "--exact",
            "exec::peer::waiting_for_a_peer_takes_no_cpu_time",
        ]);
        let output = command.env(ALONE, "1").output().expect("it starts");
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("1 passed"), "{text}");
        return;
    }
    for user in User::all() {
        let took = |wait, command: &[&str]| {
            let before = cpu_of_children();
            let peer = ["-q", "--no-realtime", "--wait", "block", "--peer-wait"];
            let rest = [wait, "--peer", "sleep 60", "--"];
            well(user.exec(&[&peer[..], &rest, command].concat()));
            cpu_of_children() - before
        };
        // Both runs last four seconds, and an idle link costs the same in each.
        let idle = took("100ms", &["sleep", "3.9"]);
        let waiting = took("4s", &["true"]);
        assert!(
            waiting.saturating_sub(idle) < Duration::from_millis(150),
            "waiting took {waiting:?}, an idle command {idle:?}"
        );
    }
}
