//! A scenario, command by command: it may have no end.

use std::iter::Peekable;

use longwire_engine::Nanos;

use longwire_topology::{Command, Timeline};

/// The commands of a scenario that are still to come.
pub struct Scenario<'a> {
    commands: Peekable<Box<dyn Iterator<Item = Command> + 'a>>,
}

impl<'a> Scenario<'a> {
    /// All of it.
    pub fn new(timeline: &'a Timeline) -> Scenario<'a> {
        let commands: Box<dyn Iterator<Item = Command>> = Box::new(timeline.commands());
        Scenario {
            commands: commands.peekable(),
        }
    }

    /// Returns the time of the next command after the start.
    pub fn next_at(&mut self) -> Option<Nanos> {
        let command = self.commands.peek()?;
        Some(command.at.unwrap_or(Nanos::ZERO))
    }

    /// The next command, if its time is `until` at the latest.
    pub fn next_due(&mut self, until: Nanos) -> Option<Command> {
        let due = |command: &Command| command.at.is_none_or(|at| at <= until);
        self.commands.next_if(due)
    }
}
