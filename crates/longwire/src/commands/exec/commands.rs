//! Starts, watches and stops the commands of `exec`.

use std::ffi::OsString;
use std::process::{ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use longwire_engine::Nanos;
use longwire_testbed::{Environment, Event, PeerOutput, describe, exit_code_of};

use super::args::ExecArgs;
use crate::error::EXIT_FAILED;
use crate::report::output::print_line;
use crate::{Error, Globals};

/// Interval between signal checks during the probe.
pub(super) const LOOK: Duration = Duration::from_millis(100);

/// Time from SIGTERM to SIGKILL after --time has elapsed.
const GRACE: Duration = Duration::from_secs(2);

/// Outcome of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommandEnd {
    /// Exited, or was ended by an external signal.
    Exited(ExitStatus),
    /// Stopped after --time, as planned.
    TimeOver,
}

impl CommandEnd {
    /// Returns the exit code of a run; `report` is the report's code, because a successful command
    /// does not imply a faithful link. `ended` is `None` if the link ended before the command.
    pub fn exit_code(ended: Option<CommandEnd>, report: ExitCode) -> ExitCode {
        let own = match ended {
            Some(CommandEnd::Exited(status)) => exit_code_of(status),
            Some(CommandEnd::TimeOver) => 0,
            None => EXIT_FAILED,
        };
        match own {
            0 => report,
            own => ExitCode::from(own),
        }
    }
}

/// A command on a host other than `near`.
#[derive(Debug)]
pub(super) struct NodeCommand {
    /// Host index in the environment.
    pub host: usize,
    /// Name of the host's port.
    pub name: String,
    /// The shell command.
    pub command: OsString,
}

pub(super) struct Commands<'a> {
    pub environment: &'a mut Environment,
    command: &'a [OsString],
    nodes: &'a [NodeCommand],
    args: &'a ExecArgs,
    globals: &'a Globals,
    /// Time to stop the command.
    deadline: Option<Instant>,
    /// Time to kill the command after stopping it.
    kill_at: Option<Instant>,
    notes: CommandNotes,
}

/// Notes about the commands, for the report.
#[derive(Debug, Default)]
pub(super) struct CommandNotes {
    /// Notes already printed.
    pub printed: Vec<String>,
    /// Notes for the end of the report.
    pub closing: Vec<String>,
}

impl<'a> Commands<'a> {
    pub fn new(
        environment: &'a mut Environment,
        (command, nodes): (&'a [OsString], &'a [NodeCommand]),
        args: &'a ExecArgs,
        globals: &'a Globals,
    ) -> Commands<'a> {
        Commands {
            environment,
            command,
            nodes,
            args,
            globals,
            deadline: None,
            kill_at: None,
            notes: CommandNotes::default(),
        }
    }

    /// Starts the commands of the peer and of other hosts, and waits until they listen. A link's
    /// schedule starts with the link, so call this before starting a link with a schedule.
    /// Otherwise call it afterwards, because peers may use the link.
    ///
    /// # Errors
    /// If a command cannot be started, or fails immediately.
    pub fn start_peers(&mut self) -> Result<(), Error> {
        let peer = &self.args.peer;
        let wait = Duration::from_nanos(peer.peer_wait.as_nanos());
        if let Some(command) = &peer.peer {
            let listens = self.environment.spawn_far(command, peer.output()?, wait)?;
            self.note_silence("the peer", listens);
        }
        for node in self.nodes {
            let prefix = format!("{}: ", node.name);
            let (place, command) = ((node.host, prefix.as_str()), &node.command);
            let output = PeerOutput::Prefixed;
            let listens = self.environment.spawn_at(place, command, output, wait)?;
            self.note_silence(&format!("the command of {}", node.name), listens);
        }
        Ok(())
    }

    /// Starts the command; call this once the link is up.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(&mut self) -> Result<(), Error> {
        self.environment.spawn_near(self.command)?;
        let time = self.args.time;
        self.deadline = time.map(|time| Instant::now() + Duration::from_nanos(time.as_nanos()));
        Ok(())
    }

    fn note_silence(&mut self, subject: &str, listens: bool) {
        if !listens {
            self.remark(format!(
                "{subject} is not listening after {}; starting CMD anyway (see --peer-wait)",
                self.args.peer.peer_wait
            ));
        }
    }

    /// Waits at most `pause`; returns the command's end, if it has ended.
    pub fn wait(&mut self, pause: Duration) -> Option<CommandEnd> {
        let pause = self.pause(pause);
        let event = self.environment.children().next(pause);
        match event {
            Some(Event::CommandEnded(status)) => {
                return Some(match self.kill_at {
                    None => CommandEnd::Exited(status),
                    Some(_) => CommandEnd::TimeOver,
                });
            }
            Some(Event::PeerEnded(host, status)) if !status.success() => {
                let subject = match self.nodes.iter().find(|node| node.host == host) {
                    Some(node) => format!("the command of {}", node.name),
                    None => "the peer's command".to_owned(),
                };
                self.remark(format!("{subject} ended: {}", describe(status)));
            }
            // Signals were forwarded; the command decides when to exit.
            _ => {}
        }
        self.stop_in_time();
        None
    }

    /// Returns the time to wait: `pause`, or less if a deadline comes first.
    fn pause(&self, pause: Duration) -> Duration {
        let until = self.kill_at.or(self.deadline);
        let left = until.map(|at| at.saturating_duration_since(Instant::now()));
        left.map_or(pause, |left| left.min(pause))
    }

    fn stop_in_time(&mut self) {
        let now = Instant::now();
        let over = |at: Option<Instant>| at.is_some_and(|at| now >= at);
        if self.kill_at.is_none() && over(self.deadline) {
            self.environment.children().stop_command();
            self.kill_at = Some(now + GRACE);
            let time = self.args.time.unwrap_or(Nanos::ZERO);
            let note = format!("the command was stopped after {time} (--time)");
            self.notes.closing.push(note);
        } else if over(self.kill_at) {
            self.environment.children().kill_command();
            self.kill_at = Some(now + GRACE);
        }
    }

    /// Keeps a remark for the report. Prints it immediately, even with --quiet, but not with
    /// --json, which requires a machine-readable stderr.
    fn remark(&mut self, remark: String) {
        if !self.globals.json {
            print_line(format_args!("{remark}"));
        }
        self.notes.printed.push(remark);
    }

    /// Ends the command if it is still running, and returns notes for the report.
    pub fn finish(self) -> CommandNotes {
        if self.environment.children().command_runs() {
            self.environment.end_commands();
        }
        self.notes
    }
}
