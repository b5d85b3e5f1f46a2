//! Outputs of the command and of `exec`. If an output is closed, the run continues, with the same
//! file and exit code.

use std::io::pipe;
use std::process::{Command, Stdio};

use longwire_testbed::support::Folder;

use crate::common::program::command;
use crate::common::{number, pcap, write};
use crate::exec::User;

/// Returns the exit code of a command with closed outputs.
fn code_unread(command: &mut Command, stdout_too: bool) -> Option<i32> {
    let closed = || Stdio::from(pipe().expect("a pipe").1);
    command.stderr(closed());
    command.stdout(if stdout_too { closed() } else { Stdio::null() });
    command.status().expect("it starts").code()
}

#[test]
fn a_closed_stderr_changes_no_exit_code() {
    for user in User::all() {
        for form in ["--delay 5ms", "-q", "--json", "--control closed.sock"] {
            let _ = std::fs::remove_file(user.dir.file("r.json"));
            for (line, code) in [
                ("-- sh -c 'sleep 0.2; exit 7'", 7),
                ("--require packets_in>=1000000 --report r.json -- true", 3),
                ("-- longwire-no-such-command", 127),
                ("--peer-wait 100ms --peer 'sleep 60' -- sh -c 'exit 8'", 8),
            ] {
                let mut command = user.exec_command(format!("{form} {line}"));
                assert_eq!(code_unread(&mut command, false), Some(code), "{command:?}");
            }
            assert!(user.read("r.json").contains("\"links\""), "{form}");
        }
    }
}

#[test]
fn closed_outputs_change_no_exit_code_of_the_probe() {
    for user in User::all() {
        let require = "--delay 1ms --require packets_in>=1000000000";
        for (line, code) in [(require, 3), ("", 0)] {
            assert_eq!(
                code_unread(&mut user.exec_command(line), true),
                Some(code),
                "{line}"
            );
        }
    }
}

#[test]
fn closed_outputs_change_no_exit_code_of_a_simulation() {
    let dir = Folder::new();
    let frames: Vec<_> = (0..100).map(|at| (1_000_000 * (at + 1), 100)).collect();
    let [input, out, report] = ["in.pcap", "out.pcap", "r.json"].map(|name| dir.file(name));
    write(&input, pcap(&frames));
    for quiet in ["", "-q", "--json"] {
        let _ = std::fs::remove_file(&report);
        let require = format!("--loss 50% --require drops=0 --report {report} {quiet}");
        let mut command = command(format!("longwire simulate {input} {out} {require}"));
        assert_eq!(code_unread(&mut command, true), Some(3), "{quiet:?}");
        assert!(std::fs::read_to_string(&report).is_ok());
    }
}

#[test]
fn a_full_stderr_changes_neither_the_command_nor_its_code() {
    for user in User::all() {
        let line =
            "$LONGWIRE exec --delay 1ms --report r.json -- sh -c 'touch ran; exit 5' 2>/dev/full";
        user.shell(line).exits(5);
        assert!(user.exists("ran") && user.exists("r.json"));
    }
}

#[test]
fn json_leaves_stdout_to_the_command() {
    for user in User::all() {
        let ended = user.exec("--json --delay 1ms -- echo {}").well();
        assert_eq!(ended.stdout, "{}\n");
        let report: serde_json::Value = serde_json::from_str(&ended.stderr).expect("only JSON");
        assert_eq!(report["links"][0]["config"]["delay"], "1ms");

        // Stderr ends with the JSON, after lines about unmet conditions.
        let ended = user
            .exec("--json --require packets_in>=1000000 -- true")
            .exits(3);
        assert_eq!(ended.stdout, "", "{ended:?}");
        let json = ended.stderr.find('{').expect("a report");
        assert!(ended.stderr[..json].contains("not met: "), "{ended:?}");
        assert!(ended.json_on_stderr().is_object());

        // Without a command, `exec` probes the link, and its own report may use stdout.
        let probed = user
            .exec("--json --delay 10ms --up-rate 20mbit")
            .well()
            .json();
        // Replies must not be early; the benches measure lateness.
        assert!(number(&probed["probe"]["rtt_ms"]) >= 20.0, "{probed}");
        let [up, down] = [0, 1].map(|link: usize| &probed["links"][link]);
        assert!(number(&up["packets_out"]) > 100.0, "{probed}");
        assert_eq!(
            [&up["config"]["rate"], &down["config"]["rate"]],
            ["20mbit", "unlimited"]
        );
    }
}

#[test]
fn a_command_is_between_a_line_about_the_link_and_a_short_report() {
    for user in User::all() {
        let line = "--delay 1ms --rate 10mbit -- echo hello";
        let ended = user.exec(line).well();
        assert_eq!(ended.stdout, "hello\n");
        let lines: Vec<&str> = ended.stderr.lines().collect();
        let link = "link, each direction: rate 10mbit, queue 125000b (derived), delay 1ms";
        assert_eq!(lines[0], link, "{ended:?}");
        assert!(lines[1].starts_with("frames "), "{ended:?}");
        assert!(lines.len() <= 11, "{ended:?}");
        assert_eq!(user.exec(format!("-q {line}")).well().stderr, "");
        let verbose = user
            .exec(format!("-v {line}"))
            .well()
            .says("note: placement: ");
        assert!(verbose.stderr.lines().count() > 30, "{verbose:?}");
    }
}
