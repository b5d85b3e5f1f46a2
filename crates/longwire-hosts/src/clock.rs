//! The clocks of a host.

use longwire_engine::Nanos;
use nix::time::{ClockId, clock_gettime};

/// A reading of both clocks at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// CLOCK_MONOTONIC, the scale of all times of a run.
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
        let monotonic = read(ClockId::CLOCK_MONOTONIC);
        let wall = read(ClockId::CLOCK_REALTIME);
        let step = self.step.filter(|(at, _)| monotonic >= *at);
        let shift = self.from_start + step.map_or(0, |(_, by)| by);
        Stamp {
            monotonic,
            wall: Nanos::from_nanos(wall.as_nanos().wrapping_add_signed(shift)),
        }
    }
}

fn read(clock: ClockId) -> Nanos {
    // Linux has had both clocks since 2.5: reading them cannot fail.
    clock_gettime(clock).map_or(Nanos::ZERO, |time| {
        Nanos::from_nanos(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
