//! Iterates over the commands of a scenario, which may be infinite.

use std::iter::Peekable;

use longwire_engine::Nanos;

use longwire_topology::{Command, Timeline};

/// The remaining commands of a scenario.
pub struct Scenario<'a> {
    commands: Peekable<Box<dyn Iterator<Item = Command> + 'a>>,
}

impl<'a> Scenario<'a> {
    /// Starts at the first command.
    pub fn new(timeline: &'a Timeline) -> Scenario<'a> {
        let commands: Box<dyn Iterator<Item = Command>> = Box::new(timeline.commands());
        Scenario {
            commands: commands.peekable(),
        }
    }

    /// Returns the time of the next command since the start.
    pub fn next_at(&mut self) -> Option<Nanos> {
        let command = self.commands.peek()?;
        Some(command.at.unwrap_or(Nanos::ZERO))
    }

    /// Returns the next command if it is due by `until`.
    pub fn next_due(&mut self, until: Nanos) -> Option<Command> {
        let due = |command: &Command| command.at.is_none_or(|at| at <= until);
        self.commands.next_if(due)
    }
}
