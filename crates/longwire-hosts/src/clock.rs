//! A host's clocks.

use longwire_engine::Nanos;
use longwire_io::clock::{monotonic_now, read_clock};
use nix::time::ClockId;

/// Minimum step of the wall clock relative to the monotonic clock, in nanoseconds. Smaller changes
/// are kernel adjustments, at most 500 ppm.
const WALL_STEP_MIN: u64 = 1_000_000;

/// A simultaneous reading of a host's two clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// CLOCK_MONOTONIC, the time base of a run ([`monotonic_now`]).
    pub monotonic: Nanos,
    /// CLOCK_REALTIME, since the Unix epoch.
    pub wall: Nanos,
}

impl Stamp {
    /// Returns the wall clock minus the monotonic clock, in nanoseconds.
    pub fn wall_lead(&self) -> i64 {
        self.wall.as_nanos().wrapping_sub(self.monotonic.as_nanos()) as i64
    }
}

/// Detects steps of a wall clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct WallClockWatch {
    lead: Option<i64>,
}

impl WallClockWatch {
    /// Returns the last difference between wall and monotonic clock, in nanoseconds.
    pub fn lead(&self) -> Option<i64> {
        self.lead
    }

    /// Processes a reading. Returns the step since the previous reading, in nanoseconds.
    pub fn step(&mut self, now: Stamp) -> Option<i64> {
        let lead = now.wall_lead();
        let before = self.lead.replace(lead)?;
        let step = lead.wrapping_sub(before);
        (step.unsigned_abs() > WALL_STEP_MIN).then_some(step)
    }
}

/// Wall clock offset for tests, because hosts on one machine share the kernel's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockShift {
    /// Constant offset in nanoseconds.
    pub from_start: i64,
    /// A step: its time on the monotonic clock, and the additional offset.
    pub step: Option<(Nanos, i64)>,
}

impl ClockShift {
    /// Parses `MS` or `MS,MS@MS`: an offset, then a step and its time, in milliseconds.
    pub fn parse(text: &str, now: Nanos) -> Option<ClockShift> {
        const MILLI: i64 = 1_000_000;
        let millis = |text: &str| text.parse::<i64>().ok()?.checked_mul(MILLI);
        let mut parts = text.splitn(2, ',');
        let from_start = millis(parts.next()?)?;
        let step = match parts.next() {
            Some(step) => {
                let (by, after) = step.split_once('@')?;
                let after = Nanos::from_nanos(u64::try_from(millis(after)?).ok()?);
                Some((now.saturating_add(after), millis(by)?))
            }
            None => None,
        };
        Some(ClockShift { from_start, step })
    }

    /// Reads both clocks, and adds this offset to the wall clock.
    pub fn now(&self) -> Stamp {
        let monotonic = monotonic_now();
        let wall = read_clock(ClockId::CLOCK_REALTIME);
        let step = self.step.filter(|(at, _)| monotonic >= *at);
        let shift = self.from_start + step.map_or(0, |(_, by)| by);
        Stamp {
            monotonic,
            wall: Nanos::from_nanos(wall.wrapping_add_signed(shift)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_is_noticed_once() {
        let mut watch = WallClockWatch::default();
        let stamp = |at: u64, ahead: u64| Stamp {
            monotonic: Nanos::from_nanos(at),
            wall: Nanos::from_nanos(at + ahead),
        };
        assert_eq!(watch.step(stamp(5, 70_000_000)), None);
        assert_eq!(watch.step(stamp(9, 70_900_000)), None, "adjusted");
        assert_eq!(watch.step(stamp(11, 10_000_000)), Some(-60_900_000));
        assert_eq!(watch.step(stamp(15, 10_000_000)), None);
    }

    #[test]
    fn shifts_are_read() {
        let now = Nanos::from_secs(5);
        let shift = ClockShift::parse("-100", now).expect("a shift");
        assert_eq!((shift.from_start, shift.step), (-100_000_000, None));
        let shift = ClockShift::parse("100,50@2000", now).expect("a shift");
        assert_eq!(shift.step, Some((Nanos::from_secs(7), 50_000_000)));
        for wrong in ["", "x", "1,2", "1,2@-3", "1,x@2"] {
            assert_eq!(ClockShift::parse(wrong, now), None, "{wrong}");
        }
        let (shifted, plain) = (shift.now(), ClockShift::default().now());
        let apart = shifted.wall_lead() - plain.wall_lead();
        assert!((apart - 150_000_000).abs() < 50_000_000, "{apart}");
    }
}
