//! `exec` with a link that changes: `--control`, `--scenario`, a topology
//! file; and `--time`.

use longwire_testbed::support::words;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::common::process::TIMEOUT;
use crate::common::{ran, write};
use crate::exec::{User, well};

/// Parses the round trips printed by `ping`, in milliseconds.
fn times(text: &str) -> Vec<f64> {
    let times = text.lines().filter_map(|line| line.split("time=").nth(1));
    let times = times.filter_map(|rest| rest.split(' ').next()?.parse().ok());
    times.collect()
}

#[test]
fn a_command_controls_its_own_link() {
    for user in User::all() {
        let line = "ping -c 5 -i 0.2 far; $LONGWIRE ctl --control x.sock set link delay=100ms >&2; \
                    ping -c 1 far";
        let line = format!("$LONGWIRE exec --delay 20ms --control x.sock --json -- sh -c '{line}'");
        let ended = well(user.shell(&line));
        let times = times(&ended.stdout);
        assert_eq!(times.len(), 6, "{ended:?}");
        // A busy machine delays some but not all.
        let least = times[..5].iter().copied().fold(f64::INFINITY, f64::min);
        assert!((40.0..200.0).contains(&least), "{ended:?}");
        assert!(times[5] >= 200.0, "{ended:?}");
        let json = ended.stderr.find("{\n").expect("a report");
        let report: serde_json::Value =
            serde_json::from_str(&ended.stderr[json..]).expect("it is JSON");
        assert_eq!(report["links"][0]["name"], "link.up", "{report}");
        assert!(!user.exists("x.sock"), "the socket is removed");
    }
}

#[test]
fn ctl_finds_the_run_of_its_command() {
    for user in User::all() {
        let line = "echo $LONGWIRE_CONTROL; cd /; $LONGWIRE ctl get link";
        let line = format!(
            "LONGWIRE_CONTROL=/outer.sock $LONGWIRE exec -q --control ./y.sock -- sh -c '{line}'"
        );
        let ended = well(user.shell(&line));
        assert!(ended.stdout.contains("link"), "{ended:?}");
        let first = ended.stdout.lines().next().unwrap_or_default();
        assert!(first.starts_with('/') && first.ends_with("/y.sock"));
        let forms = [
            (
                "--control tcp:127.0.0.1:0 --control-token-file t",
                "tcp:127.0.0.1:",
            ),
            // A Unix socket needs no network.
            (
                "--control tcp:127.0.0.1:0 --control-token-file t --control z.sock",
                "/",
            ),
        ];
        for (form, begin) in forms {
            let line = format!(
                "(umask 077; echo 0123456789abcdef0123456789abcdef > t); $LONGWIRE exec -q {form} -- sh -c 'echo $LONGWIRE_CONTROL'"
            );
            let ended = well(user.shell(&line));
            assert!(ended.stdout.starts_with(begin), "{ended:?}");
            assert!(!ended.stdout.ends_with(":0\n"), "{ended:?}");
        }
    }
}

#[test]
fn a_socket_in_a_closed_directory_is_refused_with_advice() {
    for user in User::all().iter().filter(|user| !user.is_root()) {
        for folder in ["/run/longwire", "/run", "/"] {
            let socket = format!("{}/me.sock", folder.trim_end_matches('/'));
            let mut command = user.exec_command(&["--control", &socket, "--", "true"]);
            command.env("XDG_RUNTIME_DIR", user.dir.path());
            let ended = ran(command.output().expect("it starts"));
            assert_eq!(ended.code, 1, "{ended:?}");
            let advice = "fix: use a socket in a writable directory: --control ./me.sock, or \
                          --control $XDG_RUNTIME_DIR/longwire/me.sock\n";
            assert!(ended.stderr.contains(advice), "{ended:?}");
        }
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
fn options_that_a_file_excludes_are_refused() {
    for user in User::all() {
        write(&user.dir.file("n.toml"), NETWORK.as_bytes());
        let ended = user.exec(&["--delay", "1ms", "n.toml", "--", "true"]);
        assert_eq!(ended.code, 2, "{ended:?}");
        assert!(
            ended.stderr.contains("do not apply to a topology"),
            "{ended:?}"
        );
        write(&user.dir.file("s.toml"), b"");
        for (option, why) in [
            (&["n.toml"][..], "a topology cannot be probed"),
            (&["--time", "1s"], "--time cannot limit"),
            (&["--scenario", "s.toml"], "--scenario cannot be probed"),
        ] {
            let ended = user.exec(option);
            assert_eq!(ended.code, 2, "{option:?}: {ended:?}");
            assert!(ended.stderr.contains(why), "{ended:?}");
            assert!(ended.stderr.contains("-- bash"), "{ended:?}");
        }
    }
}

#[test]
fn time_stops_the_command_and_ends_well() {
    for user in User::all() {
        let forms: [&[&str]; 2] = [&[], &["--control", "t.sock"]];
        for form in forms {
            let own = words("--time 700ms --report r.json -- sleep 600");
            let begun = Instant::now();
            well(user.exec(&[form, &own].concat()));
            assert!(begun.elapsed() >= Duration::from_millis(700));
            let report = user.read("r.json");
            assert!(report.contains("stopped after 700ms (--time)"), "{report}");
        }
        // A command that ignores SIGTERM is killed; one that exits earlier keeps its
        // own exit code.
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

/// Returns whether a process has blocked a signal, in order to wait for it.
fn waits_for(id: u32, signal: Signal) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).expect("it runs");
    let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
    let blocked = blocked.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    blocked.expect("a mask") & (1 << (signal as u32 - 1)) != 0
}

#[test]
fn a_signal_ends_the_preparation_of_a_network() {
    // Before the start, each of 200,000 commands reads a long trace.
    const BUSY: &str = "[ports]\nnear = \"null\"\nfar = \"null\"\n\n\
        [[link]]\nname = \"x\"\n\n\
        [[at]]\ntime = \"0s\"\nevery = \"10us\"\n\
        set = { x = { rate = \"trace:rate.csv\" } }\n";
    for user in User::all() {
        let row = |second| format!("{second},{}\n", 10 + second % 7);
        let rows: String = (0..20_000).map(row).collect();
        write(
            &user.dir.file("rate.csv"),
            format!("time_s,rate_mbps\n{rows}").as_bytes(),
        );
        write(&user.dir.file("busy.toml"), BUSY.as_bytes());
        let mut command = user.exec_command(&["busy.toml", "--", "sleep", "600"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let begun = Instant::now();
        while !waits_for(child.id(), Signal::SIGINT) {
            assert!(begun.elapsed() < TIMEOUT, "it does not wait for SIGINT");
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(Duration::from_millis(1_500));
        assert!(child.try_wait().expect("a child").is_none());
        let begun = Instant::now();
        kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).expect("it runs");
        while child.try_wait().expect("a child").is_none() {
            if begun.elapsed() > TIMEOUT {
                let _ = child.kill();
                panic!("it goes on preparing");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let ended = ran(child.wait_with_output().expect("a child"));
        assert_eq!(ended.code, 1, "{ended:?}");
        assert!(ended.stderr.contains("interrupted"), "{ended:?}");
    }
}

#[test]
fn a_link_that_changes_keeps_no_more_rights() {
    const DAC_OVERRIDE: u64 = 1 << 1;
    const DAC_READ_SEARCH: u64 = 1 << 2;
    const KILL: u64 = 1 << 5;
    const NET_ADMIN: u64 = 1 << 12;
    const IPC_LOCK: u64 = 1 << 14;
    const SYS_NICE: u64 = 1 << 23;
    const ALLOWED: u64 = SYS_NICE | IPC_LOCK | NET_ADMIN | DAC_READ_SEARCH | KILL | DAC_OVERRIDE;
    for user in User::all() {
        // The first change starts the threads that prepare changes.
        let line = "$LONGWIRE ctl --control x.sock set link delay=1ms >&2; sleep 1; \
                    grep -H CapEff /proc/$PPID/task/*/status; grep -H Name /proc/$PPID/task/*/status";
        let line = format!("$LONGWIRE exec -q --control x.sock -- sh -c '{line}'");
        let ended = well(user.shell(&line));
        let masks = ended.stdout.lines().filter(|line| line.contains("CapEff"));
        let masks = masks.filter_map(|line| line.split_whitespace().nth(1));
        let masks: Vec<u64> = masks
            .map(|mask| u64::from_str_radix(mask, 16).expect("a mask"))
            .collect();
        assert!(ended.stdout.contains("longwire-ctl"), "{ended:?}");
        let given_up = masks.iter().all(|mask| mask & !ALLOWED == 0);
        assert!(given_up, "{}", ended.stdout);
    }
}

#[test]
fn the_link_is_printed_at_the_start_as_without_control() {
    for user in User::all() {
        let options = "--rate 10mbps --delay 20ms --queue 3p";
        for more in ["", "--control a.sock"] {
            let line = format!("$LONGWIRE exec {options} {more} -- true");
            let ended = well(user.shell(&line));
            let link = "link, each direction: rate 80mbit, queue 3p, delay 20ms";
            let warnings = [
                "warning: link, each direction: rate: 10mbps is 80mbit",
                "warning: link, each direction: a queue of 3p is too small",
            ];
            for wanted in warnings.into_iter().chain([link]) {
                let found = ended.stderr.lines().filter(|line| line.starts_with(wanted));
                assert_eq!(found.count(), 1, "{wanted}: {ended:?}");
            }
            assert_eq!(ended.stderr.matches("warning:").count(), 2, "{ended:?}");
            let line = format!("$LONGWIRE exec -q {options} {more} -- true");
            let quiet = well(user.shell(&line));
            assert_eq!(quiet.stderr.matches("warning:").count(), 2, "{quiet:?}");
            let line = format!("$LONGWIRE exec -v {options} {more} -- true");
            let ended = well(user.shell(&line));
            for name in ["link.up", "link.down"] {
                let whole = format!("{name}: rate 80mbit, framing none, queue 3p, loss none,");
                assert!(ended.stderr.contains(&whole), "{whole}: {ended:?}");
            }
        }
    }
}

#[test]
fn sockets_of_other_users_are_skipped() {
    for user in User::all().into_iter().filter(|user| user.id.is_some()) {
        let folder = user.dir.path().join("run/longwire");
        std::fs::create_dir_all(&folder).expect("a folder");
        let set_mode = |path: &Path, mode| {
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(path, mode).expect("the tests' own");
        };
        set_mode(&folder, 0o777);
        let socket = folder.join("attach-1.sock");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
        set_mode(&socket, 0o600);
        let ctl = |line: &str| user.shell(&format!("XDG_RUNTIME_DIR=$PWD/run $LONGWIRE {line}"));
        let ended = ctl("ctl status");
        assert_eq!(ended.code, 1, "{ended:?}");
        let folder = folder.display();
        for said in [
            format!("error: no run of this user in {folder}"),
            "; give its socket, such as --control ./link.sock\n".to_owned(),
        ] {
            assert!(ended.stderr.contains(&said), "{said}: {ended:?}");
        }
        // The user's own run is found as well.
        let inside = "env -u LONGWIRE_CONTROL $LONGWIRE ctl --json status";
        let line = format!("exec --control run/longwire/own.sock -- {inside}");
        let ended = well(ctl(&line));
        assert!(ended.json()["elapsed_s"].is_number(), "{ended:?}");
    }
}
