//! `longwire top` in an 80 × 24 terminal, provided by tmux.

use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::have;
use crate::exec::User;

/// Maximum time until the screen shows a text, on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A terminal on a separate tmux server, which ends on drop.
struct Terminal<'a> {
    user: &'a User,
}

impl Terminal<'_> {
    fn tmux(&self, arguments: &[&str]) -> String {
        let mut command: Command = self.user.command("tmux");
        command.args(["-S", "tmux.sock"]).args(arguments);
        // Ignores the configuration of the machine's user.
        command
            .env("TERM", "xterm-256color")
            .env("HOME", self.user.dir.path());
        let output = command.output().expect("tmux starts");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn start<'a>(user: &'a User, line: &str) -> Terminal<'a> {
        let terminal = Terminal { user };
        let session = [
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            "80",
            "-y",
            "24",
            line,
        ];
        terminal.tmux(&session);
        terminal
    }

    fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    /// Waits until the screen contains a text, regardless of case; returns the screen.
    #[track_caller]
    fn wait_for(&self, text: &str) -> String {
        let start = Instant::now();
        loop {
            let screen = self.tmux(&["capture-pane", "-p"]);
            if screen.to_lowercase().contains(&text.to_lowercase()) {
                return screen;
            }
            assert!(start.elapsed() < TIMEOUT, "no '{text}': {screen}");
            sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

#[test]
fn a_run_is_shown_and_changed_by_keys() {
    if !have("tmux") {
        return;
    }
    for user in User::all() {
        let mut run = user.exec_command(&[
            "-q",
            "--delay",
            "20ms",
            "--control",
            "t.sock",
            "--",
            "ping",
            "-q",
            "-i",
            "0.05",
            "far",
        ]);
        let mut run = run
            .stdout(std::process::Stdio::null())
            .spawn()
            .expect("it starts");
        while !user.exists("t.sock") {
            sleep(Duration::from_millis(20));
        }
        let line = format!(
            "{} top --control t.sock --every 200ms; echo ended $?; cat",
            user.program()
        );
        let terminal = Terminal::start(&user, &line);
        // Before the first frame there is no verdict.
        let screen = terminal.wait_for("faithful");
        for wanted in ["link.up", "link.down", "2 directions", "live"] {
            assert!(screen.contains(wanted), "{wanted}: {screen}");
        }
        assert!(
            screen.lines().all(|line| line.chars().count() <= 80),
            "{screen}"
        );
        // Either direction may carry more bits.
        terminal.keys(&["/", "l", "i", "n", "k", ".", "u", "p", "Enter"]);
        terminal.wait_for("'*link.up*': 1");
        terminal.keys(&["Enter"]);
        terminal.wait_for("delay p50");
        terminal.wait_for("delay=20ms");
        terminal.keys(&["e", "delay=80ms", "Enter"]);
        terminal.wait_for("z undoes it");
        let screen = terminal.wait_for("on  delay=80ms");
        assert!(screen.contains("link.up"), "{screen}");
        terminal.keys(&["z"]);
        terminal.wait_for("on  delay=20ms");
        terminal.keys(&["e", "delay=fast", "Enter"]);
        terminal.wait_for("refused: ");
        // The prompt stays open for correction.
        terminal.keys(&["Escape"]);
        terminal.wait_for("z undo");
        terminal.keys(&["p"]);
        terminal.wait_for("link.up  paused");
        // The screen reports the end of the run, and the terminal is restored.
        let pid = nix::unistd::Pid::from_raw(run.id() as i32);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).expect("it runs");
        run.wait().expect("it ends");
        terminal.wait_for("THE RUN HAS ENDED");
        terminal.keys(&["q"]);
        let screen = terminal.wait_for("ended 0");
        assert!(!screen.contains("HAS ENDED"), "{screen}");
    }
}

#[test]
fn without_a_terminal_top_names_what_prints_lines() {
    let user = User::new(None);
    let ended = user.shell("$LONGWIRE top --control none.sock < /dev/null");
    assert_eq!(ended.code, 2, "{ended:?}");
    assert!(ended.stderr.contains("longwire ctl watch"), "{ended:?}");
}

#[test]
fn top_ends_with_its_terminal() {
    if !have("tmux") {
        return;
    }
    let Some(user) = User::all().into_iter().next() else {
        return;
    };
    let mut run = user.exec_command(&["-q", "--control", "h.sock", "--", "sleep", "60"]);
    let mut run = run.spawn().expect("it starts");
    while !user.exists("h.sock") {
        sleep(Duration::from_millis(20));
    }
    let line = format!("{} top --control h.sock", user.program());
    let terminal = Terminal::start(&user, &format!("exec {line}"));
    terminal.wait_for("live");
    let pid = terminal.tmux(&["display-message", "-p", "#{pane_pid}"]);
    let process = format!("/proc/{}", pid.trim());
    assert!(std::path::Path::new(&process).exists(), "{process}");
    drop(terminal);
    let start = Instant::now();
    while std::path::Path::new(&process).exists() {
        assert!(start.elapsed() < TIMEOUT, "top goes on without a terminal");
        sleep(Duration::from_millis(20));
    }
    let _ = run.kill();
    let _ = run.wait();
}
