//! Delays as a function of time, for steps and traces.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use longwire_units::Nanos;
use longwire_units::random::Stream;

use super::DelayModel;
use crate::frame_context::FrameContext;
use crate::spec::{Arguments, Param, SpecError, Unit};
use crate::trace::{Cursor, End, Series};

/// Transition between delays.
pub(super) const CHANGE: Param =
    Param::with_default("change", Unit::Choice(&["step", "linear"]), "step")
        .help("step: each delay holds until the next time; linear: delays are interpolated");

/// Transition between delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Immediate.
    Step,
    /// Interpolates linearly; the last entry wraps to the first of the next lap, or holds.
    Linear,
}

impl Change {
    /// Reads the parameter [`CHANGE`].
    pub fn read(arguments: &Arguments<'_>) -> Result<Change, SpecError> {
        Ok(match arguments.choice(CHANGE.name)? {
            0 => Change::Step,
            _ => Change::Linear,
        })
    }

    /// Returns the word for the parameter.
    pub fn word(self) -> &'static str {
        match self {
            Change::Step => "step",
            Change::Linear => "linear",
        }
    }
}

/// Delays as a function of time since an epoch.
#[derive(Clone, Debug)]
pub(super) struct DelaySchedule {
    pub series: Series,
    pub change: Change,
    pub end: End,
    pub epoch: Nanos,
    cursor: Cursor,
}

impl DelaySchedule {
    pub fn new(series: Series, change: Change, end: End) -> DelaySchedule {
        DelaySchedule {
            series,
            change,
            end,
            epoch: Nanos::ZERO,
            cursor: Cursor::default(),
        }
    }

    /// Returns the delay of a frame that enters the medium at `at`. Before the epoch, the
    /// first delay; after the end of a schedule that stops, zero.
    #[inline]
    pub fn at(&mut self, at: Nanos) -> Nanos {
        let since = at.saturating_sub(self.epoch);
        let stretch = self.series.at(&mut self.cursor, since, self.end);
        let Some(delay) = stretch.value else {
            return Nanos::ZERO;
        };
        if self.change == Change::Step || stretch.end == Nanos::MAX {
            return Nanos::from_nanos(delay);
        }
        let next = self.series.next_value(&self.cursor, self.end);
        let gone = since.saturating_sub(stretch.start).as_nanos();
        let whole = stretch.end.saturating_sub(stretch.start).as_nanos();
        Nanos::from_nanos(between(delay, next.unwrap_or(delay), gone, whole))
    }

    /// Returns a lower bound of all delays.
    pub fn least(&self) -> Nanos {
        let least = self.series.values().iter().min();
        match (self.end, least) {
            (End::Stop, _) | (_, None) => Nanos::ZERO,
            (_, Some(least)) => Nanos::from_nanos(*least),
        }
    }

    /// Returns the long-term mean; for a schedule that stops, the mean until then.
    pub fn mean(&self) -> Nanos {
        if self.change == Change::Step || self.end == End::Hold {
            return Nanos::from_nanos(self.series.mean(self.end));
        }
        if self.series.length() == Nanos::MAX {
            return Nanos::from_nanos(self.series.mean(End::Hold));
        }
        let values = self.series.values();
        let last = match self.end {
            End::Loop => values[0],
            _ => values[values.len() - 1],
        };
        let next = values[1..].iter().chain([&last]);
        // Twice the area of each stretch.
        let areas = self
            .series
            .stretches()
            .zip(next)
            .map(|((value, time), next)| {
                (u128::from(value) + u128::from(*next)) * u128::from(time)
            });
        let length = u128::from(self.series.length().as_nanos());
        Nanos::from_nanos(((areas.sum::<u128>() + length) / (2 * length)) as u64)
    }
}

/// A delay model that follows a schedule.
#[derive(Clone, Debug)]
pub(super) struct ScheduledDelay {
    /// Name and source parameter, in the user's notation.
    pub head: String,
    pub schedule: DelaySchedule,
    /// Other specified parameters.
    pub given: Vec<(&'static str, String)>,
}

impl DelayModel for ScheduledDelay {
    fn start(&mut self, epoch: Nanos) {
        self.schedule.epoch = epoch;
    }

    fn draw(&mut self, frame: &FrameContext<'_>, _stream: &mut Stream) -> Nanos {
        self.schedule.at(frame.at)
    }

    fn least(&self) -> Nanos {
        self.schedule.least()
    }

    /// Returns the long-term mean.
    fn mean(&self) -> Nanos {
        self.schedule.mean()
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DelaySchedule { change, end, .. } = &self.schedule;
        write!(f, "{},change={},end={end}", self.head, change.word())?;
        self.given
            .iter()
            .try_for_each(|(key, word)| write!(f, ",{key}={word}"))
    }
}

/// Interpolates to the nearest integer, at `gone` of `whole`.
fn between(from: u64, to: u64, gone: u64, whole: u64) -> u64 {
    let way = u128::from(from.abs_diff(to)) * u128::from(gone);
    let way = (way + u128::from(whole / 2)) / u128::from(whole);
    if from < to {
        from + way as u64
    } else {
        from - way as u64
    }
}
