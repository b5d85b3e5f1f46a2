//! The time of a scenario, which clients may move forward.

use std::sync::{Mutex, PoisonError};

use longwire_engine::Nanos;
use longwire_topology::{Command, Timeline};

use crate::changes::SentChange;
use crate::controller::Controller;

/// A skipped event happens this long after the request: the thread that executes the
/// scenario looks at its time in intervals.
const LEAD: Nanos = Nanos::from_millis(200);

/// By how much a scenario is ahead of the run, and how much of it has been given to the
/// network.
#[derive(Debug, Default)]
pub(super) struct ScenarioClock(Mutex<ScenarioTime>);

#[derive(Clone, Copy, Debug, Default)]
struct ScenarioTime {
    ahead: Nanos,
    given: Nanos,
}

/// An event of a scenario that is still to come.
#[derive(Clone, Debug)]
pub struct UpcomingEvent {
    /// When it will happen, since the start of the run.
    pub at: Nanos,
    /// The change.
    pub change: SentChange,
}

impl ScenarioClock {
    fn read(&self) -> ScenarioTime {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut ScenarioTime)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Whether a command is an event that a person wrote: later steps of a ramp are not.
fn begins_event(command: &Command) -> bool {
    command.ramp.as_ref().is_none_or(|step| step.step == 0)
}

fn time_of(command: &Command) -> Nanos {
    command.at.unwrap_or(Nanos::ZERO)
}

/// Returns the events after `given` of the scenario's own time.
fn after(timeline: &Timeline, given: Nanos) -> impl Iterator<Item = Command> + '_ {
    let commands = timeline.commands();
    commands.filter(move |command| begins_event(command) && time_of(command) > given)
}

impl Controller {
    /// Returns by how much the scenario is ahead of the run: its events happen that much
    /// earlier.
    pub fn scenario_ahead(&self) -> Nanos {
        self.scenario.read().ahead
    }

    /// Notes that all commands up to `given` of the scenario's own time are with the network.
    pub fn scenario_given(&self, given: Nanos) {
        self.scenario
            .change(|time| time.given = time.given.max(given));
    }

    /// Returns the next events that have not been given to the network, at most `limit`.
    /// Those that have are among [`Controller::changes`].
    pub fn upcoming(&self, limit: usize) -> Vec<UpcomingEvent> {
        let ScenarioTime { ahead, given } = self.scenario.read();
        self.look(|network| {
            let events = after(&network.topology().timeline, given).take(limit);
            let upcoming = events.map(|command| UpcomingEvent {
                at: time_of(&command).saturating_sub(ahead),
                change: SentChange::of_command(&command),
            });
            upcoming.collect()
        })
    }

    /// Moves the scenario forward to its next event that has not been given to the network.
    /// Returns when it happens; `None` if there is none.
    pub fn skip_to_next_event(&self) -> Option<Nanos> {
        let given = self.scenario.read().given;
        let next = self.look(|network| {
            let next = after(&network.topology().timeline, given).next();
            next.map(|command| time_of(&command))
        })?;
        let at = self.elapsed().saturating_add(LEAD);
        self.scenario.change(|time| {
            time.ahead = time.ahead.max(next.saturating_sub(at));
        });
        Some(next.saturating_sub(self.scenario_ahead()))
    }
}
