//! A scenario's commands, which may repeat forever, and its clock, which clients can advance.

use std::iter::Peekable;

use longwire_engine::Nanos;
use longwire_runtime::sync::locked;
use longwire_topology::{Command, Timeline};

use crate::changes::SentChange;
use crate::controller::Controller;

/// A scenario's remaining commands.
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

    /// Returns the next command's time since the start.
    pub fn next_at(&mut self) -> Option<Nanos> {
        let command = self.commands.peek()?;
        Some(time_of(command))
    }

    /// Returns the next command if it is due no later than `until`.
    pub fn next_due(&mut self, until: Nanos) -> Option<Command> {
        let due = |command: &Command| command.at.is_none_or(|at| at <= until);
        self.commands.next_if(due)
    }
}

/// Delay between a skip and its event, because the scenario thread polls the clock.
const LEAD: Nanos = Nanos::from_millis(200);

/// Lead of the scenario over the run, and the time up to which commands are queued.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ScenarioTime {
    ahead: Nanos,
    given: Nanos,
}

/// A future scenario event.
#[derive(Clone, Debug)]
pub struct UpcomingEvent {
    /// Time since the run's start.
    pub at: Nanos,
    /// The change.
    pub change: SentChange,
}

/// Returns whether a command begins an event: all commands do, except the later steps of a ramp.
fn begins_event(command: &Command) -> bool {
    command.ramp.as_ref().is_none_or(|step| step.step == 0)
}

fn time_of(command: &Command) -> Nanos {
    command.at.unwrap_or(Nanos::ZERO)
}

/// Returns the commands that begin an event, after `given` in scenario time.
fn after(timeline: &Timeline, given: Nanos) -> impl Iterator<Item = Command> + '_ {
    let commands = timeline.commands();
    commands.filter(move |command| begins_event(command) && time_of(command) > given)
}

impl Controller {
    /// Returns the scenario's lead over the run.
    pub fn scenario_ahead(&self) -> Nanos {
        locked(&self.scenario).ahead
    }

    /// Records that all commands up to `given` in scenario time are queued.
    pub fn scenario_given(&self, given: Nanos) {
        let mut time = locked(&self.scenario);
        time.given = time.given.max(given);
    }

    /// Returns at most `limit` events that are not queued yet. [`Controller::changes`] returns the
    /// queued ones.
    pub fn upcoming(&self, limit: usize) -> Vec<UpcomingEvent> {
        let ScenarioTime { ahead, given } = *locked(&self.scenario);
        self.look(|network| {
            let events = after(&network.topology().timeline, given).take(limit);
            let upcoming = events.map(|command| UpcomingEvent {
                at: time_of(&command).saturating_sub(ahead),
                change: SentChange::of_command(&command),
            });
            upcoming.collect()
        })
    }

    /// Advances the scenario to the next event that is not queued. Returns the event's new time;
    /// `None` if no event remains.
    pub fn skip_to_next_event(&self) -> Option<Nanos> {
        let given = locked(&self.scenario).given;
        let next = self.look(|network| {
            let next = after(&network.topology().timeline, given).next();
            next.map(|command| time_of(&command))
        })?;
        let at = self.elapsed().saturating_add(LEAD);
        let mut time = locked(&self.scenario);
        time.ahead = time.ahead.max(next.saturating_sub(at));
        Some(next.saturating_sub(time.ahead))
    }
}
