//! Packet delivery opportunities over time, as recorded by mahimahi.

use alloc::sync::Arc;

use longwire_units::Nanos;

use crate::prelude::*;

const NANOS_PER_MILLI: u64 = 1_000_000;

/// Times at which a link could deliver a packet. Takes eight bytes per millisecond that has
/// opportunities, regardless of their number. Clones share them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpportunitySchedule {
    groups: Arc<[Group]>,
    count: u64,
}

/// The opportunities within one millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Group {
    milli: u32,
    count: u32,
}

/// Parses a schedule line by line. Each line is the time of an opportunity in whole milliseconds
/// since the start; times do not decrease.
#[derive(Clone, Debug, Default)]
pub struct ScheduleReader {
    groups: Vec<Group>,
    count: u64,
}

impl ScheduleReader {
    /// Reads the next line.
    ///
    /// # Errors
    /// If the line is invalid.
    pub fn line(&mut self, text: &str) -> Result<(), String> {
        let text = text.trim();
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            let shown: String = text.chars().take(40).collect();
            return Err(format!("'{shown}' is not a whole number of milliseconds"));
        }
        let milli = text.parse::<u32>();
        let milli =
            milli.map_err(|_| format!("'{text}' is too large; the maximum is {}", u32::MAX))?;
        self.push(milli)
    }

    /// Adds an opportunity.
    ///
    /// # Errors
    /// If it precedes the last one.
    pub fn push(&mut self, milli: u32) -> Result<(), String> {
        self.count += 1;
        match self.groups.last_mut() {
            Some(last) if milli < last.milli => {
                let last = last.milli;
                return Err(format!(
                    "{milli} ms is before the previous line's {last} ms; sort the lines"
                ));
            }
            Some(last) if milli == last.milli && last.count < u32::MAX => last.count += 1,
            _ => self.groups.push(Group { milli, count: 1 }),
        }
        Ok(())
    }

    /// Returns the schedule.
    ///
    /// # Errors
    /// If there are no opportunities, or the last one, which determines the length, is at 0 ms.
    pub fn finish(mut self) -> Result<OpportunitySchedule, String> {
        match self.groups.last() {
            None => return Err("no opportunities".to_string()),
            Some(Group { milli: 0, .. }) => {
                return Err(
                    "the trace has no duration: its last opportunity is at 0 ms".to_string()
                );
            }
            Some(_) => {}
        }
        self.groups.shrink_to_fit();
        Ok(OpportunitySchedule {
            groups: self.groups.into(),
            count: self.count,
        })
    }
}

/// Position of the next unused opportunity.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpportunityCursor {
    /// Start of the current period in nanoseconds; `u64::MAX` after the end.
    lap: u64,
    group: usize,
    /// Number of used opportunities in the group.
    used: u32,
}

impl OpportunitySchedule {
    /// Returns the time of the last opportunity, after which the schedule repeats.
    pub fn length(&self) -> Nanos {
        let last = self.groups[self.groups.len() - 1];
        Nanos::from_nanos(u64::from(last.milli) * NANOS_PER_MILLI)
    }

    /// Returns the number of opportunities.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the time of the opportunity at `place`, in nanoseconds; `None` after the end.
    #[inline]
    pub fn time(&self, place: &OpportunityCursor) -> Option<u64> {
        let inside = u64::from(self.groups[place.group].milli) * NANOS_PER_MILLI;
        // A period beyond representable time has no opportunities.
        place.lap.checked_add(inside)
    }

    /// Skips opportunities before `least`.
    #[inline]
    pub fn skip(&self, place: &mut OpportunityCursor, least: u64, repeats: bool) {
        if self.time(place).is_some_and(|time| time < least) {
            self.seek(place, least, repeats);
        }
    }

    fn seek(&self, place: &mut OpportunityCursor, least: u64, repeats: bool) {
        let length = self.length().as_nanos();
        let beyond = (least - place.lap).saturating_sub(length);
        if beyond > 0 {
            // A period's last opportunity is also the start of the next period.
            self.lap(place, beyond.div_ceil(length), repeats);
        }
        let Some(inside) = least.checked_sub(place.lap) else {
            return;
        };
        let milli = inside.div_ceil(NANOS_PER_MILLI);
        let early = |group: &Group| u64::from(group.milli) < milli;
        // Usually one of the next groups.
        let near = (place.group + 1).min(self.groups.len());
        let from = if self.groups[..near].last().is_some_and(early) {
            near
        } else {
            0
        };
        let reach = (from + 8).min(self.groups.len());
        let group = match self.groups[from..reach]
            .iter()
            .position(|group| !early(group))
        {
            Some(step) => from + step,
            None => reach + self.groups[reach..].partition_point(early),
        };
        if group > place.group {
            place.group = group;
            place.used = 0;
        }
    }

    /// Uses `count` successive opportunities and returns the time of the last one; `None` if the
    /// schedule ends earlier.
    pub fn take(
        &self,
        place: &mut OpportunityCursor,
        mut count: u64,
        repeats: bool,
    ) -> Option<u64> {
        if count > self.count && repeats {
            // Whole periods return to the same position.
            let laps = (count - 1) / self.count;
            let later = laps.saturating_mul(self.length().as_nanos());
            place.lap = place.lap.saturating_add(later);
            count -= laps * self.count;
        }
        loop {
            let time = self.time(place)?;
            let group = &self.groups[place.group];
            let there = u64::from(group.count - place.used);
            if count < there {
                place.used += count as u32;
                return Some(time);
            }
            place.used = 0;
            place.group += 1;
            if place.group == self.groups.len() {
                self.lap(place, 1, repeats);
            }
            if count == there {
                return Some(time);
            }
            count -= there;
        }
    }

    /// Advances to the start of a later period, or to the end.
    fn lap(&self, place: &mut OpportunityCursor, laps: u64, repeats: bool) {
        let later = laps.saturating_mul(self.length().as_nanos());
        *place = OpportunityCursor {
            lap: if repeats {
                place.lap.saturating_add(later)
            } else {
                u64::MAX
            },
            group: 0,
            used: 0,
        };
        // The last group's time is not representable after this start, so no opportunity is left.
        if place.lap == u64::MAX {
            place.group = self.groups.len() - 1;
        }
    }
}
