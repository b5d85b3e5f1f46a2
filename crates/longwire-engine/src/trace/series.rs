//! A quantity over time, as recorded in traces: each value holds until the next.

use alloc::sync::Arc;

use longwire_units::Nanos;

use crate::prelude::*;
use crate::spec::{Arguments, Param, SpecError, Unit};

/// Behaviour after the end of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// The trace repeats.
    #[default]
    Loop,
    /// The last value holds forever.
    Hold,
    /// There is no value.
    Stop,
}

impl End {
    /// Reads the parameter [`END`].
    ///
    /// # Errors
    /// If the value is not one of the keywords.
    pub fn read(arguments: &Arguments<'_>) -> Result<End, SpecError> {
        Ok([End::Loop, End::Hold, End::Stop][arguments.choice(END.name)?])
    }
}

/// Behaviour after the end; common to all models that follow a trace.
pub const END: Param = Param::with_default("end", Unit::Choice(&["loop", "hold", "stop"]), "loop")
    .help("after the end: repeat, hold the last value, or stop");

/// A quantity over time. Times are nanoseconds from its start; the caller defines the unit of
/// values.
///
/// Equal neighbours are merged. Entries take 16 bytes and are shared by clones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// Start of each value in nanoseconds, strictly increasing from 0.
    starts: Arc<[u64]>,
    values: Arc<[u64]>,
    /// End of the last value in nanoseconds; `u64::MAX` if unspecified.
    length: u64,
}

/// Position in a series. Lookups try the next value before searching.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor {
    index: usize,
    /// Start of the current period.
    lap: u64,
}

/// A value and its validity period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Start.
    pub start: Nanos,
    /// End; [`Nanos::MAX`] means never.
    pub end: Nanos,
    /// Value; `None` after the end of a series that stops.
    pub value: Option<u64>,
}

impl Series {
    /// Returns the end of the last value; [`Nanos::MAX`] if unspecified.
    pub fn length(&self) -> Nanos {
        Nanos::from_nanos(self.length)
    }

    /// Whether the series never changes and never ends.
    pub fn is_constant(&self) -> bool {
        self.values.len() == 1 && self.length == u64::MAX
    }

    /// Returns all values, in order of time.
    pub fn values(&self) -> &[u64] {
        &self.values
    }

    /// Returns each value with its duration in nanoseconds.
    pub fn stretches(&self) -> impl Iterator<Item = (u64, u64)> {
        let ends = self.starts[1..]
            .iter()
            .chain(core::iter::once(&self.length));
        let stretches = self.starts.iter().zip(ends).zip(&*self.values);
        stretches.map(|((start, end), value)| (*value, end - start))
    }

    /// Returns the sum of value times duration in nanoseconds, over one period.
    pub fn integral(&self) -> u128 {
        let terms = self.stretches();
        terms
            .map(|(value, time)| u128::from(value) * u128::from(time))
            .sum()
    }

    /// Returns the long-term mean under `end`, rounded to nearest.
    pub fn mean(&self, end: End) -> u64 {
        if end == End::Hold || self.length == u64::MAX {
            return self.values[self.values.len() - 1];
        }
        let sum = self.integral();
        ((sum + u128::from(self.length / 2)) / u128::from(self.length)) as u64
    }

    /// Returns the value at `since`, relative to the start, and its validity period.
    #[inline]
    pub fn at(&self, cursor: &mut Cursor, since: Nanos, end: End) -> Stretch {
        let since = since.as_nanos();
        let inside = since.wrapping_sub(cursor.lap);
        if since >= cursor.lap && inside < self.length {
            let next = self.starts.get(cursor.index + 1);
            if self.starts[cursor.index] <= inside && next.is_none_or(|next| inside < *next) {
                return self.stretch(cursor);
            }
        }
        self.seek(cursor, since, end)
    }

    /// Returns the value after the cursor's under `end`; `None` after the last one.
    pub fn next_value(&self, cursor: &Cursor, end: End) -> Option<u64> {
        let next = self.values.get(cursor.index + 1).copied();
        next.or_else(|| (end == End::Loop).then(|| self.values[0]))
    }

    fn seek(&self, cursor: &mut Cursor, since: u64, end: End) -> Stretch {
        if end != End::Loop && since >= self.length {
            return Stretch {
                start: Nanos::from_nanos(self.length),
                end: Nanos::MAX,
                value: match end {
                    End::Hold => self.values.last().copied(),
                    _ => None,
                },
            };
        }
        let inside = since % self.length;
        cursor.lap = since - inside;
        // Usually the next value.
        let near = cursor.index + 1;
        let from = match self.starts.get(near) {
            Some(start) if *start <= inside => near,
            _ => 0,
        };
        cursor.index = match self.starts.get(from + 1) {
            Some(next) if inside < *next => from,
            _ => from + self.starts[from..].partition_point(|start| *start <= inside) - 1,
        };
        self.stretch(cursor)
    }

    #[inline]
    fn stretch(&self, cursor: &Cursor) -> Stretch {
        let end = self.starts.get(cursor.index + 1).unwrap_or(&self.length);
        Stretch {
            start: Nanos::from_nanos(cursor.lap + self.starts[cursor.index]),
            // A value whose end is not representable never ends.
            end: Nanos::from_nanos(cursor.lap.saturating_add(*end)),
            value: Some(self.values[cursor.index]),
        }
    }
}

/// Builds a series from a trace's rows.
#[derive(Clone, Debug, Default)]
pub struct SeriesBuilder {
    starts: Vec<u64>,
    values: Vec<u64>,
    /// Time of the first row, the origin of all times.
    origin: u64,
    /// Time of the last row, and the duration of the one before it.
    last: u64,
    gap: u64,
    /// Whether to keep the last of equal rows in addition to the first.
    for_ramps: bool,
}

impl SeriesBuilder {
    /// Creates a builder. `for_ramps` keeps the last of equal rows, which linear interpolation
    /// needs.
    pub fn new(for_ramps: bool) -> SeriesBuilder {
        SeriesBuilder {
            for_ramps,
            ..SeriesBuilder::default()
        }
    }

    /// Adds a row: the quantity is `value` from `time` on, on any clock. If several rows have the
    /// same time, the last one applies.
    ///
    /// # Errors
    /// If time decreases.
    pub fn push(&mut self, time: u64, value: u64) -> Result<(), String> {
        if self.starts.is_empty() {
            self.origin = time;
        } else if time < self.origin + self.last {
            return Err("time is before the previous row's; sort the rows".to_string());
        }
        let start = time - self.origin;
        if start > self.last {
            self.gap = start - self.last;
            self.last = start;
        }
        let repeats = match self.values.as_slice() {
            [.., before, last] if self.for_ramps => *before == value && *last == value,
            [.., last] => !self.for_ramps && *last == value,
            [] => false,
        };
        match (self.starts.last_mut(), self.values.last_mut()) {
            (Some(same), Some(last)) if *same == start => *last = value,
            (Some(last), _) if repeats && self.for_ramps => *last = start,
            _ if repeats => {}
            _ => {
                self.starts.push(start);
                self.values.push(value);
            }
        }
        Ok(())
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Returns a series in which each row holds until the next; the last holds as long as the one
    /// before it. A single row holds forever.
    ///
    /// # Errors
    /// If there are no rows, or the series overflows representable time.
    pub fn finish(self) -> Result<Series, String> {
        let length = match self.gap {
            0 => u64::MAX,
            gap => self.last.checked_add(gap).ok_or("times are too large")?,
        };
        self.finish_at(length)
    }

    /// Returns a series in which the last row ends at `length`, relative to the first.
    ///
    /// # Errors
    /// If there are no rows, or the last one starts at or after `length`.
    pub fn finish_at(mut self, length: u64) -> Result<Series, String> {
        if self.starts.is_empty() {
            return Err("no rows".to_string());
        }
        if self.last >= length {
            return Err("the last row has no duration".to_string());
        }
        self.starts.shrink_to_fit();
        self.values.shrink_to_fit();
        Ok(Series {
            starts: self.starts.into(),
            values: self.values.into(),
            length,
        })
    }
}
