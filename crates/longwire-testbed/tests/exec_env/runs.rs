//! Commands behind the link: their environment, and how their exit codes are passed on.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use longwire_testbed::support::have;

use crate::role::{PEER, TAP, VARIABLE, exec, program, scratch, shell};
use crate::{Test, User};

pub const TESTS: &[Test] = &[
    ("names_and_variables", names_and_variables),
    ("ping_both_families", ping_both_families),
    ("commands_see_their_own_user", commands_see_their_own_user),
    ("devices_are_our_own", devices_are_our_own),
    ("exit_codes_are_passed_on", exit_codes_are_passed_on),
    ("the_peer_is_waited_for", the_peer_is_waited_for),
    ("a_failing_peer_is_reported", a_failing_peer_is_reported),
    ("the_peer_is_asked_to_end", the_peer_is_asked_to_end),
    ("signals_reach_the_command", signals_reach_the_command),
    ("a_tap_device_is_there", a_tap_device_is_there),
    ("an_idle_link_is_silent", an_idle_link_is_silent),
];

/// Runs a command and returns its output and exit code.
fn output(command: &mut Command) -> (String, i32) {
    let output = command.output().expect("starts");
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    (text, output.status.code().expect("an exit code"))
}

/// Runs a command that must succeed; returns its output.
fn passes(command: &mut Command) -> String {
    let (text, code) = output(command);
    assert_eq!(code, 0, "{text}");
    text
}

fn names_and_variables(user: User) {
    let line = "getent ahostsv4 far; getent ahostsv6 near; getent hosts localhost; \
                echo $LONGWIRE_NEAR $LONGWIRE_FAR $LONGWIRE_NEAR6 $LONGWIRE_FAR6; pwd";
    let text = passes(&mut shell(user, line));
    let variables = "10.77.0.1 10.77.0.2 fd77:4c57::1 fd77:4c57::2";
    // The working directory is kept.
    for found in [
        "10.77.0.2 ",
        "fd77:4c57::1 ",
        "localhost",
        variables,
        "\n/usr\n",
    ] {
        assert!(text.contains(found), "no {found}: {text}");
    }
    assert!(!text.contains("note:"), "something was left out: {text}");
}

fn ping_both_families(user: User) {
    if !have("ping") {
        return;
    }
    for family in ["-4", "-6"] {
        // A short interval, because ping also waits for one after its last request.
        let words = ["ping", family, "-c3", "-i0.5", "-W2", "far"];
        assert!(passes(&mut exec(user, &words)).contains("3 received"));
    }
    // A copy without file capabilities can only use the datagram socket.
    let copy = scratch().join("ping");
    let mut places = ["/usr/bin/ping", "/bin/ping"].iter();
    if places.any(|place| std::fs::copy(place, &copy).is_ok()) {
        let plain = copy.to_str().expect("text");
        passes(&mut exec(user, &[plain, "-c1", "-W2", "far"]));
    }
}

fn commands_see_their_own_user(user: User) {
    let (text, _) = output(&mut shell(user, "id -u; cat /proc/self/status"));
    // No signal is blocked, so Ctrl-C ends a command.
    assert!(text.contains("SigBlk:\t0000000000000000"), "{text}");
    match user {
        User::Root => assert!(text.starts_with("0\n"), "{text}"),
        User::Ordinary => {
            assert!(!text.starts_with("0\n"), "{text}");
            assert!(text.contains("CapEff:\t0000000000000000"), "{text}");
        }
    }
}

fn devices_are_our_own(user: User) {
    let line = "echo $(ls /sys/class/net); cat /sys/class/net/eth0/address; cat /proc/net/dev";
    let (text, _) = output(&mut shell(user, line));
    assert!(text.starts_with("eth0 lo\n02:4c:57:00:00:01\n"), "{text}");
    assert_eq!(text.matches(": ").count(), 2, "{text}");
}

fn exit_codes_are_passed_on(user: User) {
    assert_eq!(output(&mut shell(user, "exit 7")).1, 7);
    assert_eq!(output(&mut shell(user, "kill -9 $$")).1, 137);
    let (text, code) = output(&mut exec(user, &["longwire-no-such-command"]));
    assert_eq!(code, 127, "{text}");
    assert!(
        text.contains("command 'longwire-no-such-command' not found"),
        "{text}"
    );
    let (text, code) = output(&mut exec(user, &["/etc/passwd"]));
    assert_eq!(code, 126, "{text}");
}

fn the_peer_is_waited_for(user: User) {
    let file = scratch().join(format!("listening-{user:?}"));
    let listener = format!(
        "{VARIABLE}=listen exec {} {}",
        program().display(),
        file.display()
    );
    let line = format!("cat {}", file.display());
    let text = passes(shell(user, &line).env(PEER, listener));
    for said in ["peer ready: true", "listening"] {
        assert!(text.contains(said), "{text}");
    }
}

fn a_failing_peer_is_reported(user: User) {
    let (text, code) = output(shell(user, "echo ran").env(PEER, "longwire-no-such-command"));
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("exit code 127"), "{text}");
    assert!(
        !text.contains("ran\n"),
        "the command was not started: {text}"
    );
    // A peer that ends later is reported, and the command continues.
    let (text, code) = output(shell(user, "sleep 2.5; exit 3").env(PEER, "sleep 2; exit 4"));
    assert_eq!(code, 3, "{text}");
    assert!(text.contains("PeerEnded"), "{text}");
}

fn the_peer_is_asked_to_end(user: User) {
    let file = scratch().join(format!("ended-{user:?}"));
    let peer = format!(
        "trap 'echo asked > {}; exit' TERM; while :; do sleep 0.05; done",
        file.display()
    );
    passes(shell(user, "exit 0").env(PEER, peer));
    assert_eq!(std::fs::read_to_string(&file).expect("written"), "asked\n");
    // A peer that does not end is killed after two seconds. Otherwise, this would wait forever.
    let begun = Instant::now();
    let deaf = "trap '' TERM; while :; do sleep 0.05; done";
    passes(shell(user, "exit 0").env(PEER, deaf));
    let took = begun.elapsed();
    assert!(took > Duration::from_secs(3), "{took:?}");
}

/// Starts a command that reports when it is ready.
pub fn start_ready(command: &mut Command) -> (Child, BufReader<impl Read + use<>>) {
    let mut child = command.stdout(Stdio::piped()).spawn().expect("starts");
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    out.read_line(&mut line).expect("a line");
    assert_eq!(line, "ready\n");
    (child, out)
}

pub fn send(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id().cast_signed()), signal).expect("sent");
}

fn signals_reach_the_command(user: User) {
    let wait = "echo ready; while :; do sleep 0.02; done";
    for (signal, name) in [(Signal::SIGINT, "INT"), (Signal::SIGTERM, "TERM")] {
        let line = format!("trap 'exit 9' {name}; {wait}");
        let (mut child, _out) = start_ready(&mut shell(user, &line));
        send(&child, signal);
        assert_eq!(child.wait().expect("ends").code(), Some(9));
    }
    // A second signal ends a command that ignores the first.
    let (mut child, _out) = start_ready(&mut shell(user, &format!("trap '' TERM; {wait}")));
    send(&child, Signal::SIGTERM);
    std::thread::sleep(Duration::from_millis(200));
    assert!(child.try_wait().expect("runs").is_none());
    send(&child, Signal::SIGTERM);
    assert_eq!(child.wait().expect("ends").code(), Some(137));
}

fn an_idle_link_is_silent(user: User) {
    let line = "sleep 0.3; a=$(cat /sys/class/net/eth0/statistics/tx_packets); sleep 3; \
                b=$(cat /sys/class/net/eth0/statistics/tx_packets); echo sent $((b - a))";
    let (text, _) = output(&mut shell(user, line));
    assert!(text.contains("sent 0"), "{text}");
}

fn a_tap_device_is_there(user: User) {
    let line = "cat /sys/class/net/eth0/address /sys/class/net/eth0/tun_flags; getent hosts far";
    let (text, code) = output(shell(user, line).env(TAP, "1"));
    if user == User::Ordinary && code == 1 {
        assert!(text.contains("cannot open /dev/net/tun"), "{text}");
        return;
    }
    assert_eq!(code, 0, "{text}");
    assert!(text.starts_with("02:4c:57:00:00:01\n0x"), "{text}");
}
