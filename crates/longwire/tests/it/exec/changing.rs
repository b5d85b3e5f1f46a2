//! `exec` with a changing link (`--control`, `--scenario` or a topology file), and `--time`.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::common::program::{Ran, RunningProgram, eventually, status_of};
use crate::common::recording::delivered;
use crate::common::{number, set_mode};
use crate::exec::User;

/// Parses the RTTs printed by `ping`, in milliseconds.
pub(super) fn times(text: &str) -> Vec<f64> {
    let times = text.lines().filter_map(|line| line.split("time=").nth(1));
    let times = times.filter_map(|rest| rest.split(' ').next()?.parse().ok());
    times.collect()
}

/// Checks decisions in the log, because a busy machine delays replies.
#[test]
fn a_command_controls_its_own_link() {
    for user in User::with(["ping"]) {
        let line = "ping -c 5 -i 0.2 far; $LONGWIRE ctl --control x.sock set link delay=100ms >&2; \
                    ping -c 1 far";
        let options = "--delay 20ms --control x.sock --json --log x.csv";
        let ended = user
            .shell(format!("$LONGWIRE exec {options} -- sh -c '{line}'"))
            .well();
        let times = times(&ended.stdout);
        let early = times[..5].iter().any(|time| *time < 40.0) || times[5] < 200.0;
        assert!(times.len() == 6 && !early, "{ended:?}");
        let report = ended.json_on_stderr();
        assert_eq!(report["links"][0]["name"], "link.up", "{report}");
        assert!(!user.exists("x.sock"), "the socket is removed");
        for link in ["link.up", "link.down"] {
            let frames = delivered(&user.dir.file("x.csv"), link).into_iter();
            let mut delays: Vec<i64> = frames.map(|frame| frame.delay / 1_000_000).collect();
            assert_eq!(delays.len(), 6, "{link}");
            delays.dedup();
            assert_eq!(delays, [20, 100], "{link}");
        }
    }
}

#[test]
fn ctl_finds_the_run_of_its_command() {
    for user in User::all() {
        let line = "echo $LONGWIRE_CONTROL; cd /; $LONGWIRE ctl get link";
        let outer = "LONGWIRE_CONTROL=/outer.sock $LONGWIRE exec -q --control ./y.sock";
        let ended = user
            .shell(format!("{outer} -- sh -c '{line}'"))
            .well()
            .prints("link");
        let first = ended.stdout.lines().next().unwrap_or_default();
        assert!(first.starts_with('/') && first.ends_with("/y.sock"));
        let token = "(umask 077; echo 0123456789abcdef0123456789abcdef > t)";
        // A command gets the address of a Unix socket, if any, because a socket needs no network.
        for (more, begin) in [("", "tcp:127.0.0.1:"), ("--control z.sock", "/")] {
            let form = format!("--control tcp:127.0.0.1:0 --control-token-file t {more}");
            let line = format!("$LONGWIRE exec -q {form} -- sh -c 'echo $LONGWIRE_CONTROL'");
            let ended = user.shell(format!("{token}; {line}")).well();
            assert!(ended.stdout.starts_with(begin), "{ended:?}");
            assert!(!ended.stdout.ends_with(":0\n"), "{ended:?}");
        }
    }
}

#[test]
fn a_socket_in_a_closed_directory_is_refused_with_advice() {
    for user in User::all().iter().filter(|user| !user.is_root()) {
        for folder in ["/run/longwire", "/run", ""] {
            let mut command = user.exec_command(format!("--control {folder}/me.sock -- true"));
            let advice = "fix: use a socket in a writable directory: --control ./me.sock, or \
                          --control $XDG_RUNTIME_DIR/longwire/me.sock\n";
            let command = command.env("XDG_RUNTIME_DIR", user.dir.path());
            Ran::of(command).exits(1).says(advice);
        }
    }
}

/// A network of two links between two ports.
const NETWORK: &str = "[ports]\nfar = \"packet:eth7\"\nnear = \"packet:eth8\"\n\n\
    [[link]]\nname = \"slow\"\nmatch = \"proto=icmp,in-port=near\"\ndelay = \"50ms\"\n\n\
    [[link]]\nname = \"six\"\nmatch = \"ethertype=ipv6,in-port=near\"\ndelay = \"100ms\"\n";

#[test]
fn a_file_with_two_ends_is_a_link() {
    for user in User::with(["ping"]) {
        user.write("n.toml", NETWORK);
        let line = "ping -4 -c 1 far; ping -6 -c 1 far; echo $LONGWIRE_FAR";
        let ended = user
            .exec(format!("n.toml --report r.json -- sh -c '{line}'"))
            .well();
        let times = times(&ended.stdout);
        let late = times[0] >= 100.0 && times[1] >= 200.0;
        assert!(times.len() == 2 && late, "{ended:?}");
        assert!(ended.stdout.ends_with("10.77.0.2\n"), "{ended:?}");
        assert!(user.read("r.json").contains("\"slow.up\""));
    }
}

#[test]
fn options_that_a_file_excludes_are_refused() {
    for user in User::all() {
        user.write("n.toml", NETWORK);
        user.write("s.toml", "");
        let refused = user.exec("--delay 1ms n.toml -- true");
        refused.exits(2).says("do not apply to a topology");
        for (option, why) in [
            ("n.toml", "a topology cannot be probed"),
            ("--time 1s", "--time cannot limit"),
            ("--scenario s.toml", "--scenario cannot be probed"),
        ] {
            user.exec(option).exits(2).says(why).says("-- bash");
        }
    }
}

#[test]
fn time_stops_the_command_and_ends_well() {
    for user in User::all() {
        for form in ["", "--control t.sock"] {
            let begun = Instant::now();
            user.exec(format!("{form} --time 700ms --report r.json -- sleep 600"))
                .well();
            assert!(begun.elapsed() >= Duration::from_millis(700));
            let report = user.read("r.json");
            assert!(report.contains("stopped after 700ms (--time)"), "{report}");
        }
        // A command that ignores SIGTERM is killed; one that exits earlier keeps its exit code.
        let deaf = "trap \"\" TERM; while :; do sleep 0.05; done";
        user.exec(format!("--time 200ms -- sh -c '{deaf}'")).well();
        user.exec("--time 60s -- sh -c 'exit 7'").exits(7);
    }
}

#[test]
fn a_signal_ends_the_preparation_of_a_network() {
    // Preparing this run is slow: each of 200,000 commands reads a long trace.
    const BUSY: &str = "[ports]\nnear = \"null\"\nfar = \"null\"\n\n\
        [[link]]\nname = \"x\"\n\n\
        [[at]]\ntime = \"0s\"\nevery = \"10us\"\n\
        set = { x = { rate = \"trace:rate.csv\" } }\n";
    for user in User::all() {
        let row = |second| format!("{second},{}\n", 10 + second % 7);
        let rows: String = (0..20_000).map(row).collect();
        user.write("rate.csv", format!("time_s,rate_mbps\n{rows}"));
        user.write("busy.toml", BUSY);
        let mut running = RunningProgram::spawn(&mut user.exec_piped("busy.toml -- sleep 600"));
        // Wait until the process blocks SIGINT and has used CPU time to prepare the run.
        eventually("it does not wait for SIGINT", || {
            let blocked = status_of(running.id(), "SigBlk");
            let blocked = u64::from_str_radix(&blocked, 16).expect("a mask");
            blocked & (1 << (Signal::SIGINT as u32 - 1)) != 0 && cpu_ticks(running.id()) > 50
        });
        assert!(running.child().try_wait().expect("a child").is_none());
        running.end_by(Signal::SIGINT).exits(1).says("interrupted");
    }
}

/// Returns the CPU time of a process, in hundredths of a second.
pub(super) fn cpu_ticks(process: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("it runs");
    let fields = stat.rsplit_once(')').expect("a name").1.split_whitespace();
    let times = fields.skip(11).take(2);
    times.map(|time| time.parse::<u64>().expect("a time")).sum()
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
        // The first change starts the threads that prepare changes, so apply one before reading
        // capabilities.
        let line = "$LONGWIRE ctl --control x.sock set link delay=1ms >&2; sleep 1; \
                    grep -H CapEff /proc/$PPID/task/*/status; grep -H Name /proc/$PPID/task/*/status";
        let line = format!("$LONGWIRE exec -q --control x.sock -- sh -c '{line}'");
        let ended = user.shell(&line).well().prints("longwire-ctl");
        let masks = ended.stdout.lines().filter(|line| line.contains("CapEff"));
        let mut masks = masks.filter_map(|line| line.split_whitespace().nth(1));
        let mask = |mask| u64::from_str_radix(mask, 16).expect("a mask");
        let given_up = masks.all(|text| mask(text) & !ALLOWED == 0);
        assert!(given_up, "{}", ended.stdout);
    }
}

#[test]
fn the_link_is_printed_at_the_start_as_without_control() {
    for user in User::all() {
        for more in ["", "--control a.sock"] {
            let exec = |verbosity: &str| {
                let link = "--rate 10mbps --delay 20ms --queue 3p";
                user.exec(format!("{verbosity} {link} {more} -- true"))
                    .well()
            };
            let ended = exec("");
            for wanted in [
                "link, each direction: rate 80mbit, queue 3p, delay 20ms",
                "warning: link, each direction: rate: 10mbps is 80mbit",
                "warning: link, each direction: a queue of 3p is too small",
            ] {
                let found = ended.stderr.lines().filter(|line| line.starts_with(wanted));
                assert_eq!(found.count(), 1, "{wanted}: {ended:?}");
            }
            for ended in [ended, exec("-q")] {
                assert_eq!(ended.stderr.matches("warning:").count(), 2, "{ended:?}");
            }
            let link = "rate 80mbit, framing none, queue 3p, loss none,";
            exec("-v")
                .says(format!("link.up: {link}"))
                .says(format!("link.down: {link}"));
        }
    }
}

#[test]
fn sockets_of_other_users_are_skipped() {
    for user in User::all().into_iter().filter(|user| user.id.is_some()) {
        let folder = user.dir.path().join("run/longwire");
        std::fs::create_dir_all(&folder).expect("a folder");
        set_mode(&folder, 0o777);
        let socket = folder.join("attach-1.sock");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
        set_mode(&socket, 0o600);
        let ctl = |line: &str| user.shell(format!("XDG_RUNTIME_DIR=$PWD/run $LONGWIRE {line}"));
        let ended = ctl("ctl status").exits(1);
        let ended = ended.says(format!(
            "error: no run of this user has a socket in {}",
            folder.display()
        ));
        ended.says("; give the socket, such as --control ./link.sock\n");
        // Without the variable, `ctl` finds the user's own run.
        let inside = "env -u LONGWIRE_CONTROL $LONGWIRE ctl --json status";
        let ended = ctl(&format!("exec --control run/longwire/own.sock -- {inside}")).well();
        assert!(number(&ended.json()["elapsed_s"]) > 0.0, "{ended:?}");
    }
}
