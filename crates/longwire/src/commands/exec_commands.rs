//! The two commands of `exec`: started, watched, and stopped in time.

use std::ffi::OsString;
use std::process::{ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use longwire_engine::Nanos;
use longwire_testbed::{Environment, Event, PeerOutput, describe, exit_code_of};

use super::exec_args::ExecArgs;
use crate::error::EXIT_FAILED;
use crate::report::stderr::print_line;
use crate::{Error, Globals};

/// Interval between checks for signals during the probe.
pub(super) const LOOK: Duration = Duration::from_millis(100);

/// Time between SIGTERM and SIGKILL for a command whose time is over.
const GRACE: Duration = Duration::from_secs(2);

/// The end of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommandEnd {
    /// It ended by itself, or by a signal of another process.
    Exited(ExitStatus),
    /// It was stopped after the time of --time, as planned.
    TimeOver,
}

impl CommandEnd {
    /// Returns the exit code of a run whose report yields `report`. The success
    /// of a command does not imply that of the link. `None` is a link that
    /// ended before its command.
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

/// A command at a host other than near.
#[derive(Debug)]
pub(super) struct NodeCommand {
    /// The host's place in the environment.
    pub host: usize,
    /// The name of its port.
    pub name: String,
    /// The command, for the shell.
    pub command: OsString,
}

/// The commands of a run.
pub(super) struct Commands<'a> {
    environment: &'a mut Environment,
    command: &'a [OsString],
    nodes: &'a [NodeCommand],
    args: &'a ExecArgs,
    globals: &'a Globals,
    /// Time at which the command is stopped.
    deadline: Option<Instant>,
    /// Time at which the command is killed, after it was stopped at its
    /// deadline.
    kill_at: Option<Instant>,
    notes: CommandNotes,
}

/// Notes about the commands, for the report.
#[derive(Debug, Default)]
pub(super) struct CommandNotes {
    /// Notes that were printed at once.
    pub printed: Vec<String>,
    /// Notes for the end.
    pub closing: Vec<String>,
}

impl<'a> Commands<'a> {
    pub fn new(
        environment: &'a mut Environment,
        command: &'a [OsString],
        args: &'a ExecArgs,
        globals: &'a Globals,
    ) -> Commands<'a> {
        Commands {
            environment,
            command,
            nodes: &[],
            args,
            globals,
            deadline: None,
            kill_at: None,
            notes: CommandNotes::default(),
        }
    }

    /// Adds commands at hosts other than near.
    pub fn with_nodes(self, nodes: &'a [NodeCommand]) -> Commands<'a> {
        Commands { nodes, ..self }
    }

    /// Starts the peer's command and those of other hosts, and waits until they listen. Call
    /// before a link with a schedule is up, because that counts from its start, and after
    /// any other: peers may use it.
    ///
    /// # Errors
    /// If one of them cannot be started, or fails at once.
    pub fn start_peers(&mut self) -> Result<(), Error> {
        let peer = &self.args.peer;
        let wait = Duration::from_nanos(peer.peer_wait.as_nanos());
        if let Some(command) = &peer.peer {
            let listens = self.environment.spawn_far(command, peer.output()?, wait)?;
            self.note_silence("the peer", listens);
        }
        for node in self.nodes {
            let prefix = format!("{}: ", node.name);
            let place = (node.host, prefix.as_str());
            let output = PeerOutput::Prefixed;
            let listens = self
                .environment
                .spawn_at(place, &node.command, output, wait)?;
            self.note_silence(&format!("the command of {}", node.name), listens);
        }
        Ok(())
    }

    /// Returns where the commands run.
    pub fn environment(&mut self) -> &mut Environment {
        self.environment
    }

    /// Starts the command. Call once the link is up.
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
                "{subject} does not listen after {}; the command starts now (--peer-wait waits \
                 longer)",
                self.args.peer.peer_wait
            ));
        }
    }

    /// Waits until the command ends, but no longer than `pause`.
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
                let node = self.nodes.iter().find(|node| node.host == host);
                let subject = node.map_or_else(
                    || "the peer's command".to_owned(),
                    |node| format!("the command of {}", node.name),
                );
                self.remark(format!("{subject} ended: {}", describe(status)));
            }
            // Signals were passed on: the command decides.
            _ => {}
        }
        self.stop_in_time();
        None
    }

    /// Returns the time to wait: until the end of `pause` or an earlier
    /// deadline.
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
            self.notes
                .closing
                .push(format!("the command was stopped after {time} (--time)"));
        } else if over(self.kill_at) {
            self.environment.children().kill_command();
            self.kill_at = Some(now + GRACE);
        }
    }

    /// Keeps a remark for the report, and prints it at once, also with
    /// --quiet; not with --json, so that stderr stays machine-readable.
    fn remark(&mut self, remark: String) {
        if !self.globals.json {
            print_line(format_args!("{remark}"));
        }
        self.notes.printed.push(remark);
    }

    /// Ends the command if it still runs, and returns notes for the report.
    pub fn finish(self) -> CommandNotes {
        if self.environment.children().command_runs() {
            self.environment.end_commands();
        }
        self.notes
    }
}
