//! Commands behind the link: what they see, and how they are started and ended.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::common::program::RunningProgram;
use crate::exec::User;

#[test]
fn names_and_variables_are_those_of_the_ends() {
    for user in User::all() {
        let line = "getent ahostsv4 far; getent ahostsv6 near; getent hosts localhost; \
                    echo $LONGWIRE_NEAR $LONGWIRE_FAR $LONGWIRE_NEAR6 $LONGWIRE_FAR6; pwd";
        let mut ended = user.exec(format!("-- sh -c '{line}'")).well();
        let variables = "10.77.0.1 10.77.0.2 fd77:4c57::1 fd77:4c57::2";
        let folder = format!("\n{}\n", user.dir.path().display());
        for found in [
            "10.77.0.2 ",
            "fd77:4c57::1 ",
            "localhost",
            variables,
            &folder,
        ] {
            ended = ended.prints(found);
        }
        let is_whole = !ended.stderr.contains("note:");
        assert!(is_whole, "something was left out: {ended:?}");
    }
}

#[test]
fn ping_needs_no_capabilities() {
    for user in User::all() {
        // A copy without file capabilities can only use an ICMP datagram socket.
        let copy = user.dir.file("ping");
        let mut places = ["/usr/bin/ping", "/bin/ping"].iter();
        if places.any(|place| std::fs::copy(place, &copy).is_ok()) {
            user.exec("-- ./ping -c 1 -W 2 far").well();
        }
    }
}

#[test]
fn commands_see_their_own_user_and_devices() {
    for user in User::all() {
        let ended = user.exec("-- sh -c 'id -u; cat /proc/self/status'").well();
        // No signal is blocked, so Ctrl-C ends a command.
        let ended = ended.prints("SigBlk:\t0000000000000000");
        assert_eq!(ended.stdout.starts_with("0\n"), user.is_root(), "{ended:?}");
        if !user.is_root() {
            ended.prints("CapEff:\t0000000000000000");
        }
        let line = "echo $(ls /sys/class/net); cat /sys/class/net/eth0/address; cat /proc/net/dev";
        let text = user.exec(format!("-- sh -c '{line}'")).well().stdout;
        assert!(text.starts_with("eth0 lo\n02:4c:57:00:00:01\n"), "{text}");
        assert_eq!(text.matches(": ").count(), 2, "{text}");
    }
}

#[test]
fn exit_codes_are_passed_on() {
    let missing = "command 'longwire-no-such-command' not found in PATH; install its package";
    for user in User::all() {
        let script = user.dir.path().join("script");
        fs::write(&script, "#!/no/such/shell\n").expect("it is written");
        fs::set_permissions(&script, Permissions::from_mode(0o755)).expect("it is executable");
        for (command, code, said) in [
            ("sh -c 'exit 7'", 7, ""),
            ("sh -c 'kill -9 $$'", 137, ""),
            ("longwire-no-such-command", 127, missing),
            ("./none", 127, "command './none' not found: no such file"),
            ("./script", 127, "command './script' lacks its interpreter"),
            ("/etc/passwd", 126, ""),
        ] {
            user.exec(format!("-- {command}")).exits(code).says(said);
        }
    }
}

#[test]
fn a_failing_peer_is_reported() {
    for user in User::all() {
        let ended = user.exec("--peer longwire-no-such-command -- echo ran");
        let ended = ended.exits(1).says("exit code 127");
        assert_eq!(ended.stdout, "", "the command was not started: {ended:?}");
        // A peer that ends later is reported, and the command continues.
        let peer = "--peer-wait 100ms --peer 'sleep 1; exit 4'";
        let ended = user.exec(format!("{peer} -- sh -c 'sleep 1.5; exit 3'"));
        ended.exits(3).says("the peer's command ended: exit code 4");
    }
}

#[test]
fn a_peer_that_does_not_end_is_killed() {
    for user in User::all() {
        let begun = Instant::now();
        let deaf = "trap \"\" TERM; while :; do sleep 0.05; done";
        user.exec(format!("--peer-wait 100ms --peer '{deaf}' -- true"))
            .well();
        let took = begun.elapsed();
        assert!(took > Duration::from_secs(2), "{took:?}");
    }
}

#[test]
fn signals_reach_the_command() {
    for user in User::all() {
        let start = |trap: &str, name: &str| {
            let line =
                format!("trap \"{trap}\" {name}; touch {name}; while :; do sleep 0.02; done");
            let _ = std::fs::remove_file(user.dir.file(name));
            // A shell cannot handle a signal that was ignored at its start.
            let line = format!("-q -- env --default-signal sh -c '{line}'");
            let running = RunningProgram::spawn(&mut user.exec_piped(line));
            user.wait_for_file(name);
            running
        };
        for (signal, name) in [(Signal::SIGINT, "INT"), (Signal::SIGTERM, "TERM")] {
            start("exit 9", name).end_by(signal).exits(9);
        }
        // A second signal ends a command that ignores the first.
        let mut running = start("", "TERM");
        running.signal(Signal::SIGTERM);
        std::thread::sleep(Duration::from_millis(200));
        assert!(running.child().try_wait().expect("a child").is_none());
        running.end_by(Signal::SIGTERM).exits(137);
    }
}

#[test]
fn an_idle_link_is_silent() {
    for user in User::all() {
        let line = "sleep 0.3; a=$(cat /sys/class/net/eth0/statistics/tx_packets); sleep 3; \
                    b=$(cat /sys/class/net/eth0/statistics/tx_packets); echo sent $((b - a))";
        user.exec(format!("-- sh -c '{line}'")).prints("sent 0\n");
    }
}

#[test]
fn a_tap_device_is_there() {
    for user in User::all() {
        let line =
            "cat /sys/class/net/eth0/address /sys/class/net/eth0/tun_flags; getent hosts far";
        let ended = user.exec(format!("--port tap -- sh -c '{line}'"));
        if !user.is_root() && ended.code == 1 {
            ended.says("cannot open /dev/net/tun");
            continue;
        }
        let text = ended.well().stdout;
        assert!(text.starts_with("02:4c:57:00:00:01\n0x"), "{text}");
    }
}
