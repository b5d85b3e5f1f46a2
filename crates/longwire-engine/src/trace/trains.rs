//! CellReplay packet trains (Sentosa et al., NSDI 2025). Each line has a time, the base delay of a
//! lone packet at that time, and the arrivals of a short burst's packets relative to the first:
//! `time_ms base_delay_ms pdo_ms …`.

use alloc::sync::Arc;

use longwire_units::Nanos;

use super::series::{Series, SeriesBuilder};
use crate::prelude::*;

const NANOS_PER_MILLI: u64 = 1_000_000;

/// Maximum base delay: one day, as for all delays.
const DELAY_MILLIS_MAX: u64 = 86_400_000;

/// CellReplay's minimum number of trains.
const TRAINS_MIN: usize = 3;

/// Recorded packet trains, in time order; clones share them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trains {
    trains: Arc<[Train]>,
    /// Opportunities of all trains, in milliseconds after each train's first packet.
    opportunities: Arc<[u32]>,
}

/// A packet train; times are in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Train {
    /// Sending time.
    pub time: u32,
    /// Delay of the first packet.
    pub base_delay: u32,
    /// Index of the first opportunity.
    first: usize,
}

/// Reads trains line by line.
#[derive(Clone, Debug, Default)]
pub struct TrainsReader {
    trains: Vec<Train>,
    opportunities: Vec<u32>,
}

impl TrainsReader {
    /// Reads the next line.
    ///
    /// # Errors
    /// If the line is invalid.
    pub fn line(&mut self, text: &str) -> Result<(), String> {
        let mut numbers = text.split_whitespace().map(milliseconds);
        let (Some(time), Some(base_delay)) = (numbers.next(), numbers.next()) else {
            return Err("expected time, base delay and opportunities in milliseconds".to_string());
        };
        let (time, base_delay) = (time?, base_delay?);
        if self.trains.last().is_some_and(|last| time < last.time) {
            return Err("time is before the previous line's; sort the lines".to_string());
        }
        if u64::from(base_delay) > DELAY_MILLIS_MAX {
            return Err(format!("a base delay of {base_delay} ms is above 24h"));
        }
        let first = self.opportunities.len();
        for opportunity in numbers {
            let opportunity = opportunity?;
            let before = self.opportunities[first..].last();
            if before.is_some_and(|before| opportunity < *before) {
                return Err(format!(
                    "opportunity {opportunity} is before its predecessor; sort the opportunities"
                ));
            }
            self.opportunities.push(opportunity);
        }
        if self.opportunities.len() == first {
            return Err("no opportunity after the base delay; add one".to_string());
        }
        self.trains.push(Train {
            time,
            base_delay,
            first,
        });
        Ok(())
    }

    /// Returns all trains.
    ///
    /// # Errors
    /// If there are fewer than three, or all have the same time.
    pub fn finish(self) -> Result<Trains, String> {
        if self.trains.len() < TRAINS_MIN {
            return Err(format!("fewer than {TRAINS_MIN} lines"));
        }
        let last = self.trains[self.trains.len() - 1].time;
        if last == self.trains[0].time {
            return Err("all lines have the same time".to_string());
        }
        Ok(Trains {
            trains: self.trains.into(),
            opportunities: self.opportunities.into(),
        })
    }
}

fn milliseconds(word: &str) -> Result<u32, String> {
    let plain = word.bytes().all(|byte| byte.is_ascii_digit());
    let number = word.parse::<u32>().ok().filter(|_| plain);
    number.ok_or_else(|| {
        let shown: String = word.chars().take(40).collect();
        format!("'{shown}' is not a whole number of milliseconds below 2^32")
    })
}

impl Trains {
    /// Returns the time of the last train, after which the first repeats.
    pub fn length(&self) -> Nanos {
        let last = self.trains[self.trains.len() - 1];
        Nanos::from_nanos(u64::from(last.time) * NANOS_PER_MILLI)
    }

    /// Returns the train at `index` and the next one, if both exist.
    pub fn pair(&self, index: usize) -> Option<(Train, Train)> {
        Some((*self.trains.get(index)?, *self.trains.get(index + 1)?))
    }

    /// Returns the index of the last train at or before `milli`, searching from `index`. Returns
    /// the first train if all are later, and never the last train.
    pub fn find(&self, index: usize, milli: u32) -> usize {
        let count = self.trains[index..].partition_point(|train| train.time <= milli);
        (index + count).saturating_sub(1).min(self.trains.len() - 2)
    }

    /// Returns a train's opportunities, in milliseconds after its first packet; never
    /// empty.
    pub fn opportunities(&self, index: usize) -> &[u32] {
        let first = self.trains[index].first;
        let end = self.trains.get(index + 1).map(|train| train.first);
        &self.opportunities[first..end.unwrap_or(self.opportunities.len())]
    }

    /// Returns the base delay for each millisecond, interpolated linearly between trains and
    /// truncated like CellReplay's.
    ///
    /// # Errors
    /// Never for trains from [`TrainsReader`].
    pub fn base_delays(&self) -> Result<Series, String> {
        let mut rows = SeriesBuilder::default();
        for pair in self.trains.windows(2) {
            let (from, to) = (pair[0], pair[1]);
            let mut milli = from.time;
            while milli < to.time {
                let delay = interpolated(from, to, milli);
                rows.push(
                    u64::from(milli) * NANOS_PER_MILLI,
                    u64::from(delay) * NANOS_PER_MILLI,
                )?;
                milli = next_change(from, to, milli, delay);
            }
        }
        let (first, last) = (self.trains[0].time, self.trains[self.trains.len() - 1].time);
        rows.finish_at(u64::from(last - first) * NANOS_PER_MILLI)
    }
}

/// Returns the base delay at `milli`, between `from` and `to`.
pub fn interpolated(from: Train, to: Train, milli: u32) -> u32 {
    let (rise, span) = slope(from, to);
    let past = i64::from(milli - from.time);
    (i64::from(from.base_delay) * span + rise * past).div_euclid(span) as u32
}

/// Returns the next millisecond at which the truncated delay changes, up to the end of the
/// interval.
fn next_change(from: Train, to: Train, milli: u32, delay: u32) -> u32 {
    let (rise, span) = slope(from, to);
    let risen = i64::from(delay) - i64::from(from.base_delay);
    // rise * past / span, rounded down, first differs from `risen` when rise * past >= (risen + 1)
    // * span while rising, and when rise * past < risen * span while falling.
    let past = match rise.signum() {
        0 => span,
        1 => ((risen + 1) * span + rise - 1) / rise,
        _ => (-risen * span) / -rise + 1,
    };
    let later = i64::from(milli) + 1;
    (i64::from(from.time) + past).clamp(later, i64::from(to.time).max(later)) as u32
}

fn slope(from: Train, to: Train) -> (i64, i64) {
    let rise = i64::from(to.base_delay) - i64::from(from.base_delay);
    (rise, i64::from(to.time - from.time))
}

#[cfg(test)]
mod tests {

    use super::*;

    fn train(time: u32, base_delay: u32) -> Train {
        Train {
            time,
            base_delay,
            first: 0,
        }
    }

    /// Compares every millisecond with the computed steps.
    #[test]
    fn base_delays_change_where_the_straight_line_does() {
        for (rise_from, rise_to, span) in [(20, 20, 50), (20, 27, 50), (27, 20, 50), (5, 900, 7)] {
            let (from, to) = (train(100, rise_from), train(100 + span, rise_to));
            let trains = Trains {
                trains: [from, to, train(101 + span, rise_to)].into(),
                opportunities: Vec::new().into(),
            };
            let series = trains.base_delays().unwrap();
            let mut cursor = crate::trace::Cursor::default();
            for milli in 0..span {
                let since = Nanos::from_millis(u64::from(milli));
                let found = series.at(&mut cursor, since, crate::trace::End::Hold).value;
                let exact = f64::from(rise_from)
                    + (f64::from(rise_to) - f64::from(rise_from)) * f64::from(milli)
                        / f64::from(span);
                let expected = exact as u64 * NANOS_PER_MILLI;
                assert_eq!(found, Some(expected), "{rise_from} to {rise_to} at {milli}");
            }
        }
    }
}
