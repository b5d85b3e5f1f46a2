//! `longwire top` in an 80 × 24 terminal, provided by tmux.

use longwire_testbed::support::words;
use nix::sys::signal::Signal;

use crate::common::have;
use crate::common::program::{Ran, RunningProgram, eventually, wait_for};
use crate::exec::User;

/// A terminal on a separate tmux server, which ends on drop.
struct Terminal<'a> {
    user: &'a User,
}

impl Terminal<'_> {
    fn tmux(&self, arguments: &[&str]) -> String {
        let mut command = self.user.command("tmux");
        command.args(["-S", "tmux.sock"]).args(arguments);
        // Do not read the user's tmux configuration.
        command
            .env("TERM", "xterm-256color")
            .env("HOME", self.user.dir.path());
        Ran::of(&mut command).stdout
    }

    fn start<'a>(user: &'a User, line: &str) -> Terminal<'a> {
        let terminal = Terminal { user };
        let session = words("-f /dev/null new-session -d -x 80 -y 24");
        terminal.tmux(&[&session[..], &[line]].concat());
        terminal
    }

    fn keys(&self, keys: &str) {
        self.tmux(&[&["send-keys"], &words(keys)[..]].concat());
    }

    /// Waits until the screen contains a text, ignoring case; returns the screen.
    #[track_caller]
    fn wait_for(&self, text: &str) -> String {
        wait_for(text, || {
            let screen = self.tmux(&["capture-pane", "-p"]);
            let shown = screen.to_lowercase().contains(&text.to_lowercase());
            if shown { Ok(screen) } else { Err(screen) }
        })
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

#[test]
fn a_run_is_shown_and_changed_by_keys() {
    for user in User::with(["tmux", "ping"]) {
        let pings = "ping -q -i 0.05 far";
        let line = format!("-q --delay 20ms --control t.sock -- {pings}");
        let run = RunningProgram::spawn(&mut user.exec_piped(line));
        user.wait_for_file("t.sock");
        let line = format!(
            "{} top --control t.sock --every 200ms; echo ended $?; cat",
            user.program()
        );
        let terminal = Terminal::start(&user, &line);
        // There is no verdict before the first frame.
        let screen = terminal.wait_for("faithful");
        for wanted in ["link.up", "link.down", "2 directions", "live"] {
            assert!(screen.contains(wanted), "{wanted}: {screen}");
        }
        assert!(
            screen.lines().all(|line| line.chars().count() <= 80),
            "{screen}"
        );
        // Accept either order, because either direction may carry more bits.
        terminal.keys("/ l i n k . u p Enter");
        terminal.wait_for("'*link.up*': 1");
        terminal.keys("Enter");
        terminal.wait_for("delay p50");
        terminal.wait_for("delay=20ms");
        terminal.keys("e delay=80ms Enter");
        terminal.wait_for("z undoes it");
        let screen = terminal.wait_for("on  delay=80ms");
        assert!(screen.contains("link.up"), "{screen}");
        terminal.keys("z");
        terminal.wait_for("on  delay=20ms");
        terminal.keys("e delay=fast Enter");
        terminal.wait_for("refused: ");
        // After a refused change, the prompt stays open for correction.
        terminal.keys("Escape");
        terminal.wait_for("z undo");
        terminal.keys("p");
        terminal.wait_for("link.up  paused");
        // The screen reports the end of the run, and the terminal is restored.
        let _ = run.end_by(Signal::SIGINT);
        terminal.wait_for("THE RUN HAS ENDED");
        terminal.keys("q");
        let screen = terminal.wait_for("ended 0");
        assert!(!screen.contains("HAS ENDED"), "{screen}");
    }
}

#[test]
fn without_a_terminal_top_names_what_prints_lines() {
    let user = User::new(None);
    let ended = user.shell("$LONGWIRE top --control none.sock < /dev/null");
    ended.exits(2).says("longwire ctl watch");
}

#[test]
fn top_ends_with_its_terminal() {
    if !have("tmux") {
        return;
    }
    let Some(user) = User::all().into_iter().next() else {
        return;
    };
    let _run = RunningProgram::spawn(&mut user.exec_piped("-q --control h.sock -- sleep 60"));
    user.wait_for_file("h.sock");
    let line = format!("{} top --control h.sock", user.program());
    let terminal = Terminal::start(&user, &format!("exec {line}"));
    terminal.wait_for("live");
    let pid = terminal.tmux(&["display-message", "-p", "#{pane_pid}"]);
    let process = format!("/proc/{}", pid.trim());
    assert!(std::path::Path::new(&process).exists(), "{process}");
    drop(terminal);
    eventually("it ends", || !std::path::Path::new(&process).exists());
}
