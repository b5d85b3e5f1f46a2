//! Packet delivery opportunities over time, as mahimahi records them.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use longwire_units::Nanos;

const NANOS_PER_MILLI: u64 = 1_000_000;

/// Instants at which a link could deliver a packet: eight bytes for each
/// millisecond that has any, however many those are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    groups: Vec<Group>,
    count: u64,
}

/// The opportunities of one millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Group {
    milli: u32,
    count: u32,
}

/// Reads a schedule line by line: each is an opportunity, a whole number of
/// milliseconds since the beginning, never less than the one above.
#[derive(Debug, Default)]
pub struct ScheduleReader {
    groups: Vec<Group>,
    count: u64,
}

impl ScheduleReader {
    /// Takes the next line.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn line(&mut self, text: &str) -> Result<(), String> {
        let text = text.trim();
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            let shown: String = text.chars().take(40).collect();
            return Err(format!("'{shown}' is not a whole number of milliseconds"));
        }
        let milli = text.parse::<u32>();
        let milli =
            milli.map_err(|_| format!("'{text}' is too large; the most is {}", u32::MAX))?;
        self.push(milli)
    }

    /// Takes an opportunity.
    ///
    /// # Errors
    /// If it is before the last one.
    pub fn push(&mut self, milli: u32) -> Result<(), String> {
        self.count += 1;
        match self.groups.last_mut() {
            Some(last) if milli < last.milli => {
                let last = last.milli;
                return Err(format!(
                    "{milli} ms is before the {last} ms of the line above"
                ));
            }
            Some(last) if milli == last.milli && last.count < u32::MAX => last.count += 1,
            _ => self.groups.push(Group { milli, count: 1 }),
        }
        Ok(())
    }

    /// The schedule of all lines.
    ///
    /// # Errors
    /// If there were none, or the last one is at 0 ms, which is the length.
    pub fn finish(mut self) -> Result<Schedule, String> {
        match self.groups.last() {
            None => return Err("it holds no opportunity".to_string()),
            Some(Group { milli: 0, .. }) => {
                return Err("its last opportunity is at 0 ms, so it has no length".to_string());
            }
            Some(_) => {}
        }
        self.groups.shrink_to_fit();
        Ok(Schedule {
            groups: self.groups,
            count: self.count,
        })
    }
}

/// The next opportunity that is not used up.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    /// When the current lap began, in nanoseconds; `u64::MAX` after the end.
    lap: u64,
    group: usize,
    /// How many of the group's are used up.
    used: u32,
}

impl Schedule {
    /// The time of the last opportunity, after which the schedule begins
    /// again.
    pub fn length(&self) -> Nanos {
        let last = self.groups[self.groups.len() - 1];
        Nanos::from_nanos(u64::from(last.milli) * NANOS_PER_MILLI)
    }

    /// How many opportunities there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// When the opportunity at `place` comes; `None` after the end.
    #[inline]
    pub fn time(&self, place: &Place) -> Option<u64> {
        let inside = u64::from(self.groups[place.group].milli) * NANOS_PER_MILLI;
        // A lap at the end of the clock has no room for its opportunities.
        place.lap.checked_add(inside)
    }

    /// Leaves out every opportunity before `least`.
    #[inline]
    pub fn skip(&self, place: &mut Place, least: u64, repeats: bool) {
        if self.time(place).is_some_and(|time| time < least) {
            self.seek(place, least, repeats);
        }
    }

    fn seek(&self, place: &mut Place, least: u64, repeats: bool) {
        let length = self.length().as_nanos();
        let beyond = (least - place.lap).saturating_sub(length);
        if beyond > 0 {
            // The last opportunity of a lap is where the next lap begins.
            self.lap(place, beyond.div_ceil(length), repeats);
        }
        let Some(inside) = least.checked_sub(place.lap) else {
            return;
        };
        let milli = inside.div_ceil(NANOS_PER_MILLI);
        let early = |group: &Group| u64::from(group.milli) < milli;
        // Mostly one of the next.
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

    /// Uses up `count` opportunities, one after the other: when the last of
    /// them came. `None` if the schedule ends before.
    pub fn take(&self, place: &mut Place, mut count: u64, repeats: bool) -> Option<u64> {
        if count > self.count && repeats {
            // Whole laps come to the same place.
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

    /// Goes to the beginning of a later lap, or to the end.
    fn lap(&self, place: &mut Place, laps: u64, repeats: bool) {
        let later = laps.saturating_mul(self.length().as_nanos());
        *place = Place {
            lap: match repeats {
                true => place.lap.saturating_add(later),
                false => u64::MAX,
            },
            // At the end of the clock, the last group is one that never comes.
            group: 0,
            used: 0,
        };
        if place.lap == u64::MAX {
            place.group = self.groups.len() - 1;
        }
    }
}
