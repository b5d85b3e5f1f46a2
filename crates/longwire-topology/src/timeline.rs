//! The changes of a running network: commands in order of time.
//!
//! Ramps and repetitions are not written out: [`Timeline::commands`] makes
//! their commands one after the other, so that a scenario without end takes
//! no more memory than one of a line.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use longwire_engine::{LinkSpec, Nanos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ramp::Ramp;

/// Actions at one time: all of them are done or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Since the start of the run; `None` is now.
    pub at: Option<Nanos>,
    /// The actions, in this order.
    pub actions: Vec<Action>,
    /// The step of a ramp that it is.
    pub ramp: Option<RampStep>,
}

/// A step of a ramp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RampStep {
    /// The ramp.
    pub of: Arc<Ramp>,
    /// Its event and its place there, and which time the event happens.
    pub id: (usize, usize, u64),
    /// From 0 to [`Ramp::steps`].
    pub step: u64,
}

/// A change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Options are given to links; what is left out stays as it is.
    Set {
        /// Names of links ([`fits`](super::glob::fits)), with `.up` or
        /// `.down` behind for one direction.
        pattern: String,
        /// The options.
        options: Box<LinkSpec>,
        /// The names of those among them that are defaults: the links are then as if these
        /// had not been given.
        resets: Vec<&'static str>,
    },
    /// Links go down, come up, or hold what they have.
    State {
        /// Names of links, as above.
        pattern: String,
        /// Their state from now on.
        state: State,
    },
    /// Frames take another way.
    Move {
        /// Whose frames: the name of the link or path whose rules they are.
        class: String,
        /// The name of the link or path that they take from now on.
        to: String,
        /// The time for which they are lost meanwhile.
        outage: Nanos,
    },
}

/// Whether a link works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum State {
    /// It does.
    Up,
    /// It loses what arrives.
    Down,
    /// It holds what it has, and sends nothing.
    Paused,
}

impl State {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            State::Up => "up",
            State::Down => "down",
            State::Paused => "paused",
        }
    }
}

/// One `[[at]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The time of its first round.
    pub time: Nanos,
    /// The actions at that time.
    pub actions: Vec<Action>,
    /// The ramps that begin at that time.
    pub ramps: Vec<Arc<Ramp>>,
    /// The period after which it is repeated.
    pub every: Option<Nanos>,
    /// The number of rounds; `None` is without end.
    pub times: Option<u64>,
}

/// A scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// In the order of the file, which is that of their times.
    pub events: Vec<Event>,
}

/// The time of a command and its origin: event, ramp (0 for the actions that the
/// event does at once), round, step.
type Due = (Nanos, usize, usize, u64, u64);

impl Timeline {
    /// All commands in order of time; those of one time in the order of the
    /// file.
    pub fn commands(&self) -> impl Iterator<Item = Command> + '_ {
        let mut due: BinaryHeap<Reverse<Due>> = BinaryHeap::new();
        for (index, event) in self.events.iter().enumerate() {
            if !event.actions.is_empty() {
                due.push(Reverse((event.time, index, 0, 0, 0)));
            }
            for ramp in 0..event.ramps.len() {
                due.push(Reverse((event.time, index, ramp + 1, 0, 0)));
            }
        }
        std::iter::from_fn(move || {
            let Reverse(now) = due.pop()?;
            let (at, index, part, round, step) = now;
            let event = &self.events[index];
            due.extend(event.next(now).map(Reverse));
            let actions = match part.checked_sub(1) {
                None => event.actions.clone(),
                Some(ramp) => vec![event.ramps[ramp].step(step)],
            };
            debug_assert!(event.times.is_none_or(|times| round < times));
            let ramp = part.checked_sub(1).map(|ramp| RampStep {
                of: Arc::clone(&event.ramps[ramp]),
                id: (index, ramp, round),
                step,
            });
            Some(Command {
                at: Some(at),
                actions,
                ramp,
            })
        })
    }

    /// Returns the time of the last command; `None` without an end.
    pub fn end(&self) -> Option<Nanos> {
        let ends = self.events.iter().map(Event::end);
        ends.into_iter()
            .try_fold(Nanos::ZERO, |last, end| Some(last.max(end?)))
    }
}

impl Event {
    /// Returns the command after one of its commands. A time after the end of the clock
    /// never comes.
    fn next(&self, (_, index, part, round, step): Due) -> Option<Due> {
        let ramp = part.checked_sub(1).map(|ramp| &self.ramps[ramp]);
        let (round, step) = match ramp {
            Some(ramp) if step < ramp.steps => (round, step + 1),
            _ => (round + 1, 0),
        };
        if round > 0 && self.times.is_some_and(|times| round >= times) {
            return None;
        }
        let begins = match round {
            0 => self.time,
            round => self.time.saturating_add(self.every?.saturating_mul(round)),
        };
        let at = match ramp {
            Some(ramp) => begins.saturating_add(ramp.after(step)),
            None => begins,
        };
        (at < Nanos::MAX).then_some((at, index, part, round, step))
    }

    /// Returns the time of its last command.
    fn end(&self) -> Option<Nanos> {
        let last = match self.every {
            Some(every) => every.saturating_mul(self.times? - 1),
            None => Nanos::ZERO,
        };
        let ramps = self.ramps.iter().map(|ramp| ramp.time).max();
        let last = self.time.saturating_add(last);
        Some(last.saturating_add(ramps.unwrap_or(Nanos::ZERO)))
    }
}
