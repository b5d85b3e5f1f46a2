//! The peer's command: its output, its end, and the wait until it listens.

use std::time::Duration;

use crate::common::count;
use crate::common::program::Ran;
use crate::exec::User;

/// A command that exits once the peer has created the file `up`.
const UNTIL_UP: &str = "until [ -e up ]; do sleep 0.05; done";

/// Runs a command with a peer; `options` and the command contain no single quotes.
fn with_peer(user: &User, options: &str, peer: &str, command: &str) -> Ran {
    let mut exec = user.exec_command(options);
    exec.args(["--peer", peer, "--", "sh", "-c", command]);
    Ran::of(&mut exec).well()
}

#[test]
fn the_peers_output_has_a_prefix_and_is_not_the_commands() {
    for user in User::all() {
        let peer = "echo one; echo two >&2; printf three; touch up; sleep 60";
        let mine = format!("{UNTIL_UP}; echo mine");
        let ended = with_peer(&user, "-q --peer-wait 100ms", peer, &mine);
        assert_eq!(ended.stdout, "mine\n");
        let lines = ended
            .stderr
            .lines()
            .filter(|line| line.starts_with("peer: "));
        let mut lines: Vec<&str> = lines.collect();
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
        // Wait for a background command: a shell would also report the signal that ends a
        // foreground one.
        let peer = "trap 'echo stopped >&2; exit' TERM; echo one; echo two >&2; touch up; \
                    sleep 60 & wait";
        let options = "-q --peer-wait 100ms --peer-output peer.txt";
        let ended = with_peer(&user, options, peer, UNTIL_UP);
        assert_eq!(user.read("peer.txt"), "one\ntwo\nstopped\n");
        assert!(!ended.stderr.contains("peer: "), "{ended:?}");
    }
}

#[test]
fn a_peer_that_is_stopped_causes_no_alarm() {
    for user in User::all() {
        // This peer prints results and an error when it ends.
        let peer = "trap 'echo result; echo interrupted >&2; exit 1' TERM; echo early >&2; \
                    touch up; while :; do sleep 0.05; done";
        let ended = with_peer(&user, "--peer-wait 100ms", peer, UNTIL_UP);
        let ended = ended.says("peer: early\n").says("peer: result\n");
        for word in ["interrupted", "peer's command ended", "SIGTERM"] {
            assert!(!ended.stderr.contains(word), "{ended:?}");
        }
    }
}

#[test]
fn results_of_iperf3_are_json() {
    for user in User::with(["iperf3"]) {
        let iperf3 = "--peer 'iperf3 -s' -- iperf3 -J -t 1 -c far";
        let ended = user.exec(format!("--rate 50mbit {iperf3}")).well();
        assert!(count(&ended.json()["end"]["sum_received"]["bytes"]) > 0);
        for word in ["terminated", "interrupt"] {
            assert!(!ended.stderr.contains(word), "{ended:?}");
        }
    }
}

#[test]
fn a_peer_that_listens_late_is_mentioned_even_when_quiet() {
    for user in User::all() {
        let ended = user
            .exec("-q --peer-wait 400ms --peer 'sleep 60' -- echo ran")
            .well();
        assert_eq!(ended.stdout, "ran\n");
        ended
            .says("the peer is not listening after 400ms")
            .says("--peer-wait");
    }
}

/// Time spent waiting for the peer does not count in a schedule.
#[test]
fn schedules_begin_with_the_command() {
    let links = [
        "--control ./s --rate steps:at=0s/1mbit;1s/2mbit",
        "--loss outages:schedule=1s/1s",
    ];
    for (user, link) in User::all().into_iter().zip(links) {
        let wait = "-q --peer-wait 4s --peer 'sleep 60' --report r.json";
        let ended = user.exec(format!("{wait} {link} -- date +%s%N")).well();
        let began: u64 = ended.stdout.trim().parse().expect("nanoseconds");
        let waited = began - count(&user.report()["epoch_ns"]);
        assert!(waited < 4_000_000_000, "{waited}");
    }
}

#[test]
fn a_longer_wait_is_enough_for_a_slow_peer() {
    for user in User::with(["python3"]) {
        let peer = "sleep 3; exec python3 -c 'import socket,time\n\
                    s=socket.socket()\ns.bind((\"\",7))\ns.listen()\nopen(\"up\",\"w\")\n\
                    time.sleep(60)'";
        let ended = with_peer(&user, "-q --peer-wait 60s", peer, "ls up");
        assert_eq!(ended.stdout, "up\n");
    }
}

/// Returns the CPU time of the calling process's exited children.
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
    // Measure in a separate process, because other tests have children too.
    const ALONE: &str = "LONGWIRE_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let own = std::env::current_exe().expect("its own path");
        let mut command = std::process::Command::new(own);
        command.args([
            "--exact",
            "exec::peer::waiting_for_a_peer_takes_no_cpu_time",
        ]);
        Ran::of(command.env(ALONE, "1")).well().prints("1 passed");
        return;
    }
    for user in User::all() {
        let took = |wait, command: &str| {
            let before = cpu_of_children();
            let peer = format!("--peer-wait {wait} --peer 'sleep 60'");
            user.exec(format!("-q --no-realtime --wait block {peer} -- {command}"))
                .well();
            cpu_of_children() - before
        };
        // Both runs last four seconds, so an idle link costs the same in each.
        let idle = took("100ms", "sleep 3.9");
        let waiting = took("4s", "true");
        let more = waiting.saturating_sub(idle);
        assert!(
            more < Duration::from_millis(150),
            "{waiting:?}, an idle command {idle:?}"
        );
    }
}
