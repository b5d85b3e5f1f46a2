//! Closed readers of stderr or stdout: the run continues, with the same file and exit
//! code.

use std::io::pipe;
use std::process::{Command, Stdio};

use crate::common::{pcap, write};
use crate::exec::User;
use longwire_testbed::support::Folder;

/// Returns the exit code of a command whose outputs have no reader.
fn code_unread(mut command: Command, stdout_too: bool) -> Option<i32> {
    let closed = || Stdio::from(pipe().expect("a pipe").1);
    command.stderr(closed());
    command.stdout(if stdout_too { closed() } else { Stdio::null() });
    command.status().expect("it starts").code()
}

#[test]
fn a_closed_stderr_changes_no_exit_code() {
    for user in User::all() {
        let forms: [&[&str]; 4] = [
            &["--delay", "5ms"],
            &["-q"],
            &["--json"],
            &["--control", "closed.sock"],
        ];
        for form in forms {
            let code = |own: &[&str]| {
                let command = user.exec_command(&[form, own].concat());
                code_unread(command, false)
            };
            let failing = ["--", "sh", "-c", "sleep 0.2; exit 7"];
            assert_eq!(code(&failing), Some(7), "{form:?}");
            let require = ["--require", "packets_in>=1000000", "--report", "r.json"];
            let _ = std::fs::remove_file(user.dir.file("r.json"));
            assert_eq!(
                code(&[&require[..], &["--", "true"]].concat()),
                Some(3),
                "{form:?}"
            );
            assert!(user.read("r.json").contains("\"links\""), "{form:?}");
            assert_eq!(code(&["--", "longwire-no-such-command"]), Some(127));
            let late = ["--peer-wait", "100ms", "--peer", "sleep 60"];
            let late = [&late[..], &["--", "sh", "-c", "exit 8"]].concat();
            assert_eq!(code(&late), Some(8), "{form:?}");
        }
    }
}

#[test]
fn closed_outputs_change_no_exit_code_of_the_probe() {
    for user in User::all() {
        let require = ["--delay", "1ms", "--require", "packets_in>=1000000000"];
        let command = user.exec_command(&require);
        assert_eq!(code_unread(command, true), Some(3));
        assert_eq!(code_unread(user.exec_command(&[]), true), Some(0));
    }
}

#[test]
fn closed_outputs_change_no_exit_code_of_a_simulation() {
    let dir = Folder::new();
    let frames: Vec<_> = (0..100).map(|at| (1_000_000 * (at + 1), 100)).collect();
    write(&dir.file("in.pcap"), &pcap(&frames));
    for quiet in [&[][..], &["-q"], &["--json"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
        command.current_dir(dir.path());
        command.args(["simulate", "in.pcap", "out.pcap", "--loss", "50%"]);
        command.args(["--require", "drops=0", "--report", "r.json"]);
        command.args(quiet);
        let _ = std::fs::remove_file(dir.file("r.json"));
        assert_eq!(code_unread(command, true), Some(3), "{quiet:?}");
        assert!(std::fs::read_to_string(dir.file("r.json")).is_ok());
    }
}

#[test]
fn a_full_stderr_changes_neither_the_command_nor_its_code() {
    for user in User::all() {
        let line =
            "$LONGWIRE exec --delay 1ms --report r.json -- sh -c 'touch ran; exit 5' 2>/dev/full";
        let ended = user.shell(line);
        assert_eq!(ended.code, 5, "{ended:?}");
        assert!(user.exists("ran") && user.exists("r.json"));
    }
}
