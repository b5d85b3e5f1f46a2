//! The clocks of a host.

use longwire_engine::Nanos;
use longwire_runtime::clock::monotonic_now;
use nix::time::{ClockId, clock_gettime};

/// A wall clock that moves by more than this against the monotonic one between two readings,
/// in nanoseconds, was set: the kernel adjusts it by at most 500 ppm.
const WALL_STEP_MIN: u64 = 1_000_000;

/// A reading of both clocks at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// The clock of all times of a run ([`monotonic_now`]).
    pub monotonic: Nanos,
    /// Since the Unix epoch, by CLOCK_REALTIME.
    pub wall: Nanos,
}

impl Stamp {
    /// Returns by how much the wall clock is ahead of the monotonic one, in nanoseconds.
    pub fn wall_lead(&self) -> i64 {
        self.wall.as_nanos().wrapping_sub(self.monotonic.as_nanos()) as i64
    }
}

/// Notices that a wall clock is set.
#[derive(Clone, Copy, Debug, Default)]
pub struct WallClockWatch {
    lead: Option<i64>,
}

impl WallClockWatch {
    /// Returns by how much the wall clock was ahead of the monotonic one in the last
    /// reading, in nanoseconds.
    pub fn lead(&self) -> Option<i64> {
        self.lead
    }

    /// Takes a reading. Returns by how much the clock was set since the one before.
    pub fn step(&mut self, now: Stamp) -> Option<i64> {
        let lead = now.wall_lead();
        let before = self.lead.replace(lead)?;
        let step = lead.wrapping_sub(before);
        (step.unsigned_abs() > WALL_STEP_MIN).then_some(step)
    }
}

/// A shift of the wall clock for tests: machines of one box share that of the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockShift {
    /// Added to the wall clock, in nanoseconds.
    pub from_start: i64,
    /// Added besides after a time on the monotonic clock: a clock that is set.
    pub step: Option<(Nanos, i64)>,
}

impl ClockShift {
    /// Reads `MS` or `MS,MS@MS`: a shift, and a step after a time, all in milliseconds.
    pub fn parse(text: &str, now: Nanos) -> Option<ClockShift> {
        const MILLI: i64 = 1_000_000;
        let (shift, step) = match text.split_once(',') {
            Some((shift, step)) => (shift, Some(step)),
            None => (text, None),
        };
        let millis = |text: &str| text.parse::<i64>().ok()?.checked_mul(MILLI);
        let step = match step {
            Some(step) => {
                let (by, after) = step.split_once('@')?;
                let after = Nanos::from_nanos(u64::try_from(millis(after)?).ok()?);
                Some((now.saturating_add(after), millis(by)?))
            }
            None => None,
        };
        Some(ClockShift {
            from_start: millis(shift)?,
            step,
        })
    }

    /// Reads both clocks.
    pub fn now(&self) -> Stamp {
        let monotonic = monotonic_now();
        let wall = wall_now();
        let step = self.step.filter(|(at, _)| monotonic >= *at);
        let shift = self.from_start + step.map_or(0, |(_, by)| by);
        Stamp {
            monotonic,
            wall: Nanos::from_nanos(wall.as_nanos().wrapping_add_signed(shift)),
        }
    }
}

fn wall_now() -> Nanos {
    // Linux always has this clock.
    clock_gettime(ClockId::CLOCK_REALTIME).map_or(Nanos::ZERO, |time| {
        Nanos::from_nanos(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
    })
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
