//! Changes to a running network, as a sequence of commands.
//!
//! [`Timeline::commands`] expands ramps and repetitions lazily, so even an infinite scenario takes
//! no more memory than its text.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use longwire_engine::{LinkSpec, Nanos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ramp::Ramp;

/// Actions that apply atomically.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Time since the start of the run; `None` means now.
    pub at: Option<Nanos>,
    /// Actions in order.
    pub actions: Vec<Action>,
    /// The ramp step that this command performs, if any.
    pub ramp: Option<RampStep>,
}

/// A step of a ramp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RampStep {
    /// The ramp.
    pub of: Arc<Ramp>,
    /// Index of the event, index of the ramp within it, and round of the event.
    pub id: (usize, usize, u64),
    /// Step number, from 0 to [`Ramp::steps`].
    pub step: u64,
}

/// A change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Sets link options; other options are unchanged.
    Set {
        /// Link pattern ([`fits`](super::glob::fits)); a suffix `.up` or `.down` selects one
        /// direction.
        pattern: String,
        /// The options.
        options: Box<LinkSpec>,
        /// Names of options that are reset to their defaults.
        resets: Vec<&'static str>,
    },
    /// Sets the state of links.
    State {
        /// Link pattern, as in [`Action::Set`].
        pattern: String,
        /// The new state.
        state: State,
    },
    /// Moves frames to another link or path.
    Move {
        /// Link or path whose rules select the frames.
        class: String,
        /// Link or path that the frames cross from now on.
        to: String,
        /// Duration for which frames are lost during the move.
        outage: Nanos,
    },
}

/// State of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum State {
    /// Carries frames.
    On,
    /// Drops queued and arriving frames.
    Off,
    /// Queues frames and sends none.
    Paused,
}

impl State {
    /// Returns the state's name in files.
    pub fn name(self) -> &'static str {
        match self {
            State::On => "on",
            State::Off => "off",
            State::Paused => "paused",
        }
    }
}

/// An `[[at]]` table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Time of the first round.
    pub time: Nanos,
    /// Immediate actions.
    pub actions: Vec<Action>,
    /// Ramps that start at the event's time.
    pub ramps: Vec<Arc<Ramp>>,
    /// Repetition period.
    pub every: Option<Nanos>,
    /// Number of rounds; `None` means unlimited.
    pub times: Option<u64>,
}

/// A scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// Events in file order, which must be sorted by time.
    pub events: Vec<Event>,
}

/// A command's time and origin: event, ramp (0 for immediate actions), round, step.
type Due = (Nanos, usize, usize, u64, u64);

impl Timeline {
    /// Returns all commands in time order; ties are in file order.
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

    /// Iterates over the immediate actions of all events.
    pub(super) fn actions(&self) -> impl Iterator<Item = &Action> {
        self.events.iter().flat_map(|event| &event.actions)
    }

    /// Returns the time of the last command; `None` if the scenario never ends.
    pub fn end(&self) -> Option<Nanos> {
        let mut ends = self.events.iter().map(Event::end);
        ends.try_fold(Nanos::ZERO, |last, end| Some(last.max(end?)))
    }
}

impl Event {
    /// Returns the next command of the same ramp or of the immediate actions; `None` after the last
    /// command, or if the time reaches [`Nanos::MAX`].
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

    /// Returns the time of the event's last command; `None` if the event repeats forever.
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
