//! Timers armed ahead of time.
//!
//! Arming the timer that expires next on a core makes the kernel program the hardware,
//! which costs microseconds on a virtual machine. While another timer expires sooner,
//! arming costs only a system call; when that one expires, the kernel programs the
//! hardware for the next before it wakes a thread. So a thread that knows its wake-ups
//! ahead keeps two timers armed.

use std::os::fd::{AsFd, BorrowedFd};

use longwire_engine::Nanos;
use longwire_io::clock::to_kernel;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

/// Two timers of the monotonic clock.
#[derive(Debug)]
pub(crate) struct Alarms {
    alarms: [Alarm; 2],
}

#[derive(Debug)]
struct Alarm {
    timer: TimerFd,
    /// The departure it is armed for.
    departure: Nanos,
    at: Nanos,
}

/// Maximum difference of equal alarms: the margin before a departure fluctuates slightly.
const NEAR: Nanos = Nanos::from_micros(2);

impl Alarms {
    pub fn new() -> Result<Alarms, nix::Error> {
        Ok(Alarms {
            alarms: [Alarm::new()?, Alarm::new()?],
        })
    }

    /// Returns the exact time and the descriptor of an alarm at about `at` for the next
    /// departure; arms it if necessary.
    pub fn get(
        &mut self,
        departure: Nanos,
        at: Nanos,
    ) -> Result<(Nanos, BorrowedFd<'_>), nix::Error> {
        let [first, second] = &self.alarms;
        // The alarm of the past departure, not the one armed ahead.
        let older = usize::from(second.departure < first.departure);
        let place = self.place_of(departure).unwrap_or(older);
        let alarm = &mut self.alarms[place];
        if !alarm.is_for(departure, at) {
            alarm.arm(departure, at)?;
        }
        Ok((alarm.at, alarm.timer.as_fd()))
    }

    /// Arms an alarm for the departure after `next`, whose alarm stays.
    pub fn arm_ahead(&mut self, next: Nanos, departure: Nanos, at: Nanos) {
        let beside = usize::from(self.alarms[0].departure == next);
        let place = self.place_of(departure).unwrap_or(beside);
        let alarm = &mut self.alarms[place];
        if !alarm.is_for(departure, at) {
            // Best effort: it is armed again when needed.
            let _ = alarm.arm(departure, at);
        }
    }

    /// Whether a departure has an alarm.
    pub fn has(&self, departure: Nanos) -> bool {
        self.place_of(departure).is_some()
    }

    fn place_of(&self, departure: Nanos) -> Option<usize> {
        let alarms = &self.alarms;
        alarms.iter().position(|alarm| alarm.departure == departure)
    }
}

impl Alarm {
    fn new() -> Result<Alarm, nix::Error> {
        let flags = TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK;
        Ok(Alarm {
            timer: TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?,
            departure: Nanos::ZERO,
            at: Nanos::ZERO,
        })
    }

    fn is_for(&self, departure: Nanos, at: Nanos) -> bool {
        let off_by = self.at.as_nanos().abs_diff(at.as_nanos());
        self.departure == departure && off_by <= NEAR.as_nanos()
    }

    /// Also clears an expiration.
    fn arm(&mut self, departure: Nanos, at: Nanos) -> Result<(), nix::Error> {
        // Zero would disarm it.
        let time = std::time::Duration::from_nanos(to_kernel(at).as_nanos().max(1));
        let once = Expiration::OneShot(TimeSpec::from(time));
        self.timer.set(once, TimerSetTimeFlags::TFD_TIMER_ABSTIME)?;
        (self.departure, self.at) = (departure, at);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    use super::*;
    use crate::clock::monotonic_now;

    fn times(alarms: &Alarms) -> [Nanos; 2] {
        [alarms.alarms[0].at, alarms.alarms[1].at]
    }

    #[test]
    fn an_alarm_armed_ahead_is_not_armed_again() {
        let mut alarms = Alarms::new().expect("timers");
        let far = |seconds: u64| Nanos::from_secs(1_000_000 + seconds);
        let at = |seconds: u64| far(seconds).saturating_sub(Nanos::from_micros(20));
        alarms.get(far(1), at(1)).expect("armed");
        alarms.arm_ahead(far(1), far(2), at(2));
        let armed = times(&alarms);
        assert!(
            armed.contains(&at(1)) && armed.contains(&at(2)),
            "{armed:?}"
        );
        // The margin has changed slightly.
        let later = at(2).saturating_add(Nanos::from_nanos(1_500));
        assert_eq!(alarms.get(far(2), later).expect("armed").0, at(2));
        // A larger change rearms the same alarm.
        let later = at(2).saturating_add(Nanos::from_micros(9));
        assert_eq!(alarms.get(far(2), later).expect("armed").0, later);
        assert!(times(&alarms).contains(&at(1)));
        // The alarm of a past departure is reused.
        alarms.arm_ahead(far(2), far(3), at(3));
        let armed = times(&alarms);
        assert!(
            armed.contains(&later) && armed.contains(&at(3)),
            "{armed:?}"
        );
    }

    #[test]
    fn alarms_go_off_in_turn() {
        let mut alarms = Alarms::new().expect("timers");
        let start = monotonic_now();
        let due = |number: u64| start.saturating_add(Nanos::from_millis(2 * number));
        for number in 1..20 {
            alarms.arm_ahead(due(number), due(number + 1), due(number + 1));
            let (at, timer) = alarms.get(due(number), due(number)).expect("armed");
            assert_eq!(at, due(number));
            let mut polled = [PollFd::new(timer, PollFlags::POLLIN)];
            assert_eq!(poll(&mut polled, PollTimeout::from(5_000u16)), Ok(1));
            assert!(monotonic_now() >= at);
        }
    }
}
