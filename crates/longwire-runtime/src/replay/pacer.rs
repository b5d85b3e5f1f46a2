//! Waits for a replay's next departure, accurately and cheaply.
//!
//! A replay knows its departures ahead of time and has no other work in between. The thread
//! therefore sleeps until shortly before the next departure, then spins. The margin is learnt from
//! the kernel's wake-up latency and bounded by the cost of spinning. Decision 0016 has the
//! measurements.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use longwire_engine::Nanos;
use longwire_io::Event;
use longwire_io::clock::to_kernel;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use crate::clock::monotonic_now;
use crate::config::WaitMode;
use crate::waiting::{MARGIN_MAX, MARGIN_MIN, MARGIN_START};
use crate::witness::{PauseHistory, Witness};

/// Permitted wake-ups slower than the margin, per thousand.
const LATE_PER_MILLE: u64 = 4;

/// Divisors that give the learning steps of the margin and of the median.
const STEP: u64 = 1_024;
const STEP_USUAL: u64 = 256;

/// Maximum spinning before a departure: 1/n of the time between departures, and an absolute limit.
const SPIN_PART: u64 = 16;
const SPIN_MAX: Nanos = Nanos::from_micros(40);

/// Time allowed for arming an alarm before a departure.
const ARMING: Nanos = Nanos::from_micros(2);

/// Minimum length of a sleep. Shorter sleeps cost more than spinning.
const SLEEP_MIN: Nanos = Nanos::from_micros(5);

/// Wake-up interval while there is no departure.
const IDLE: Nanos = Nanos::from_millis(100);

/// Sleeps and spins until each departure, for one thread.
#[derive(Debug)]
pub(crate) struct Pacer {
    mode: WaitMode,
    alarms: Alarms,
    /// A high quantile of the wake-up latency.
    margin: Nanos,
    /// Median wake-up latency.
    usual: Nanos,
    /// Mean time between departures for which the thread slept.
    between: Nanos,
    slept_for: Option<Nanos>,
    /// Whether the thread has slept since the last departure.
    slept: bool,
    share: Share,
    disturbance: Disturbance,
    pub witness: Witness,
}

/// The share of time that a thread is awake.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    window: Nanos,
    asleep: Nanos,
    /// The share in the previous window, from 0 to 1.
    awake: f64,
}

/// Averaging window: a fraction of the second over which the kernel throttles real-time threads.
const WINDOW: Nanos = Nanos::from_millis(200);

impl Pacer {
    /// Returns a pacer for the calling thread, which publishes its pauses.
    pub fn new(mode: WaitMode, pauses: Arc<PauseHistory>) -> Result<Pacer, nix::Error> {
        Ok(Pacer {
            mode,
            alarms: Alarms::new()?,
            margin: MARGIN_START,
            usual: MARGIN_START,
            between: Nanos::ZERO,
            slept_for: None,
            slept: false,
            share: Share::default(),
            disturbance: Disturbance::default(),
            witness: Witness::new(pauses),
        })
    }

    /// Returns the thread's recent awake share, from 0 to 1.
    pub fn awake(&mut self, now: Nanos) -> f64 {
        let share = &mut self.share;
        let window = now.saturating_sub(share.window);
        if window >= WINDOW {
            share.awake = 1.0 - share.asleep.as_secs_f64() / window.as_secs_f64();
            share.window = now;
            share.asleep = Nanos::ZERO;
        }
        share.awake
    }

    /// Returns the current wake margin.
    pub fn margin(&self) -> Nanos {
        let spun = Nanos::from_nanos(self.between.as_nanos() / SPIN_PART).min(SPIN_MAX);
        match self.mode {
            WaitMode::Block => Nanos::ZERO,
            WaitMode::Spin | WaitMode::Adaptive => self
                .margin
                .min(self.usual.saturating_add(spun))
                .max(MARGIN_MIN),
        }
    }

    /// Returns the end of the sleep before a departure at `next_at`; `None` if the thread must spin
    /// because the departure is near or sleeping is inaccurate.
    pub fn sleeps_until(&self, next_at: Option<Nanos>, now: Nanos) -> Option<Nanos> {
        let Some(next) = next_at else {
            // No frame has been read yet, so nothing can be late: sleep in every mode.
            return Some(now.saturating_add(IDLE));
        };
        let until = next.saturating_sub(self.margin());
        let worth = until > now.saturating_add(SLEEP_MIN) || self.mode == WaitMode::Block;
        let spins = match self.mode {
            WaitMode::Spin => true,
            WaitMode::Adaptive => self.disturbance.spins_at(now),
            WaitMode::Block => false,
        };
        let sleeps = !spins && worth && until > now;
        sleeps.then(|| until.min(now.saturating_add(IDLE)))
    }

    /// Returns the earliest time after `next` at which a departure is worth a separate sleep.
    pub fn apart_from(&self, next: Nanos) -> Nanos {
        next.saturating_add(self.margin()).saturating_add(SLEEP_MIN)
    }

    /// Returns whether there is time to arm an alarm ahead, before a departure at `next` for which
    /// the thread slept.
    pub fn may_look_ahead(&self, next: Nanos, now: Nanos) -> bool {
        self.slept && next > now.saturating_add(ARMING)
    }

    /// Returns whether a departure has an alarm.
    pub fn is_armed(&self, departure: Nanos) -> bool {
        self.alarms.place_of(departure).is_some()
    }

    /// Arms the next departure's alarm unless it is armed.
    pub fn arm(&mut self, next: Nanos, at: Nanos) {
        // Best effort: `sleep` works without it.
        let _ = self.alarms.get(next, at);
    }

    /// Arms an alarm for `departure`, which follows `next`. The alarm of `next` stays armed.
    pub fn arm_ahead(&mut self, next: Nanos, departure: Nanos) {
        let at = departure.saturating_sub(self.margin());
        self.alarms.arm_ahead(next, departure, at);
    }

    /// Sleeps until `until`, which precedes the next departure if known, or until the bell rings.
    pub fn sleep(&mut self, departure: Option<Nanos>, until: Nanos, bell: &Event) {
        let start = monotonic_now();
        self.witness.before_wait(start);
        let alarm = departure.and_then(|departure| self.alarms.get(departure, until).ok());
        let (until, woken) = match alarm {
            // The alarm has already expired.
            Some((at, _)) if at <= start => return,
            Some((at, timer)) => (at, sleep_for_alarm(timer, bell)),
            None => (until, sleep_for(until.saturating_sub(start), bell)),
        };
        let end = monotonic_now();
        self.witness.slept(start, until.max(start), end);
        self.slept = true;
        self.share.asleep = self.share.asleep.saturating_add(end.saturating_sub(start));
        if !woken {
            // The sleep was interrupted, or the bell ended it.
            bell.clear();
            return;
        }
        let latency = end.saturating_sub(until);
        self.learn(latency);
        self.learn_usual(latency);
        let beyond = latency.saturating_sub(self.usual);
        self.disturbance.note(beyond, end);
        self.take_interval(departure);
    }

    /// Tracks the median wake-up latency.
    fn learn_usual(&mut self, latency: Nanos) {
        let step = Nanos::from_nanos(self.usual.as_nanos() / STEP_USUAL + 1);
        let next = if latency > self.usual {
            self.usual.saturating_add(step)
        } else {
            self.usual.saturating_sub(step)
        };
        self.usual = next.clamp(MARGIN_MIN, MARGIN_MAX);
    }

    /// Tracks the mean time between departures for which the thread sleeps.
    fn take_interval(&mut self, departure: Option<Nanos>) {
        let Some(departure) = departure else { return };
        if let Some(last) = self.slept_for.replace(departure) {
            let between = departure.saturating_sub(last).as_nanos();
            let mean = self.between.as_nanos();
            self.between = Nanos::from_nanos(mean - mean / 8 + between / 8);
        }
    }

    /// Returns how long the thread spun because other work delayed its wake-ups; `None`
    /// if it never did.
    pub fn spun_for_others(&self) -> Option<Nanos> {
        Some(self.disturbance.total).filter(|total| *total > Nanos::ZERO)
    }

    /// Spins until `time`, but for at most [`MARGIN_MAX`].
    pub fn spin_until(&mut self, time: Nanos) {
        if !std::mem::take(&mut self.slept) {
            // A thread that never sleeps learns nothing, and a margin as long as the gaps would
            // never shrink.
            self.learn(Nanos::ZERO);
        }
        let mut last = monotonic_now();
        let enough = last.saturating_add(MARGIN_MAX);
        while last < time && last < enough {
            std::hint::spin_loop();
            let now = monotonic_now();
            self.witness.spun(last, now);
            last = now;
        }
    }

    /// Tracks a high quantile of the wake-up latency, with steps up and down in proportion to the
    /// odds. A late wake-up counts once, however late, so a machine pause does not raise the margin
    /// for long.
    fn learn(&mut self, latency: Nanos) {
        let step = self.margin.as_nanos() / STEP + 1;
        let next = if latency > self.margin {
            let odds = (1_000 - LATE_PER_MILLE) / LATE_PER_MILLE;
            self.margin.saturating_add(Nanos::from_nanos(step * odds))
        } else {
            self.margin.saturating_sub(Nanos::from_nanos(step))
        };
        self.margin = next.clamp(MARGIN_MIN, MARGIN_MAX);
    }
}

/// Sleeps until the alarm or the bell. Returns whether the alarm expired.
fn sleep_for_alarm(alarm: BorrowedFd<'_>, bell: &Event) -> bool {
    let mut polled = [
        PollFd::new(alarm, PollFlags::POLLIN),
        PollFd::new(bell.as_fd(), PollFlags::POLLIN),
    ];
    // The caller checks again, regardless of the cause.
    let _ = ppoll(&mut polled, None, None);
    polled[0].any() == Some(true)
}

/// Sleeps for `time` or until the bell rings. Returns whether the time elapsed.
fn sleep_for(time: Nanos, bell: &Event) -> bool {
    let mut polled = [PollFd::new(bell.as_fd(), PollFlags::POLLIN)];
    let timeout = TimeSpec::from(Duration::from_nanos(time.as_nanos()));
    ppoll(&mut polled, Some(timeout), None) == Ok(0)
}

/// Two timers on the monotonic clock.
#[derive(Debug)]
pub(crate) struct Alarms {
    alarms: [Alarm; 2],
}

#[derive(Debug)]
struct Alarm {
    timer: TimerFd,
    /// The departure for which it is armed.
    departure: Nanos,
    at: Nanos,
}

/// Maximum difference between alarms that count as equal, because the margin before a departure
/// fluctuates slightly.
const NEAR: Nanos = Nanos::from_micros(2);

impl Alarms {
    pub fn new() -> Result<Alarms, nix::Error> {
        Ok(Alarms {
            alarms: [Alarm::new()?, Alarm::new()?],
        })
    }

    /// Returns the exact time and the descriptor of an alarm at about `at` for the next departure.
    /// Arms it if necessary.
    pub fn get(
        &mut self,
        departure: Nanos,
        at: Nanos,
    ) -> Result<(Nanos, BorrowedFd<'_>), nix::Error> {
        let [first, second] = &self.alarms;
        // Reuse the past departure's alarm, not the one armed ahead.
        let older = usize::from(second.departure < first.departure);
        let place = self.place_of(departure).unwrap_or(older);
        let alarm = &mut self.alarms[place];
        alarm.arm(departure, at)?;
        Ok((alarm.at, alarm.timer.as_fd()))
    }

    /// Arms an alarm for `departure`, which follows `next`. The alarm of `next` stays armed.
    pub fn arm_ahead(&mut self, next: Nanos, departure: Nanos, at: Nanos) {
        let beside = usize::from(self.alarms[0].departure == next);
        let place = self.place_of(departure).unwrap_or(beside);
        // Best effort: it is armed again when needed.
        let _ = self.alarms[place].arm(departure, at);
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

    /// Arms the alarm and clears any expiration, unless it is armed for this departure at about
    /// this time.
    fn arm(&mut self, departure: Nanos, at: Nanos) -> Result<(), nix::Error> {
        let off_by = self.at.as_nanos().abs_diff(at.as_nanos());
        if self.departure == departure && off_by <= NEAR.as_nanos() {
            return Ok(());
        }
        // Zero would disarm it.
        let time = Duration::from_nanos(to_kernel(at).as_nanos().max(1));
        let once = Expiration::OneShot(TimeSpec::from(time));
        self.timer.set(once, TimerSetTimeFlags::TFD_TIMER_ABSTIME)?;
        (self.departure, self.at) = (departure, at);
        Ok(())
    }
}

/// Minimum excess latency of a wake-up that counts as delayed by other work or by the machine.
const KEPT_WAITING: Nanos = Nanos::from_micros(30);

/// Maximum share of delayed wake-ups. Above it, the thread spins for a while before it sleeps
/// again.
const KEPT_WAITING_MAX: f64 = 0.05;
/// Approximate number of wake-ups over which the share is averaged.
const KEPT_WAITING_OVER: f64 = 512.0;
const SPIN_FOR: Nanos = Nanos::from_millis(500);
const SPIN_FOR_MAX: Nanos = Nanos::from_secs(8);

/// A thread's delayed wake-ups, and its reaction to them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Disturbance {
    /// Share of delayed wake-ups among recent ones.
    share: f64,
    /// Time until which the thread spins.
    spins_until: Nanos,
    /// Last and total spinning time.
    last: Nanos,
    total: Nanos,
}

impl Disturbance {
    /// Returns whether the thread must spin at `now`.
    pub fn spins_at(&self, now: Nanos) -> bool {
        now < self.spins_until
    }

    /// Records a wake-up at `now` with latency `beyond` the usual.
    pub fn note(&mut self, beyond: Nanos, now: Nanos) {
        let one = f64::from(u8::from(beyond > KEPT_WAITING));
        self.share += (one - self.share) / KEPT_WAITING_OVER;
        if self.share > KEPT_WAITING_MAX {
            let next = self.last.saturating_mul(2).clamp(SPIN_FOR, SPIN_FOR_MAX);
            self.spins_until = now.saturating_add(next);
            self.total = self.total.saturating_add(next);
            self.last = next;
            // A few more wake-ups show whether the disturbance continues.
            self.share = KEPT_WAITING_MAX * 0.75;
        } else if self.share < KEPT_WAITING_MAX / 8.0 {
            self.last = Nanos::ZERO;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use nix::poll::{PollTimeout, poll};

    use super::*;

    fn new_pacer(mode: WaitMode) -> Pacer {
        Pacer::new(mode, Arc::default()).expect("timers")
    }

    /// Returns the margin learnt from 1,009 latencies, given by rank from 0.
    fn learnt(latency_of: impl Fn(u64) -> Nanos) -> Nanos {
        let mut pacer = new_pacer(WaitMode::Adaptive);
        for number in 0..200_000u64 {
            // A permutation of 0..1009, so that latencies are shuffled.
            pacer.learn(latency_of(number * 401 % 1_009));
        }
        pacer.margin()
    }

    #[test]
    fn the_margin_is_a_high_quantile_of_the_wake_up_latency() {
        // Uniform from 10 to 20 us: the 0.996-quantile is 19.96 us.
        let margin = learnt(|n| Nanos::from_nanos(10_000 + n * 10_000 / 1_009));
        let expected = 19_600..21_500;
        assert!(expected.contains(&margin.as_nanos()), "{margin}");
    }

    #[test]
    fn spinning_is_bounded_by_a_part_of_the_gaps() {
        let mut pacer = new_pacer(WaitMode::Adaptive);
        let margin_at = |pacer: &mut Pacer, gap: u64| {
            for number in 1..20_000u64 {
                // 2 % of the wake-ups are very late.
                let latency = if number % 50 == 0 { 200 } else { 14 };
                pacer.learn(Nanos::from_micros(latency));
                pacer.learn_usual(Nanos::from_micros(latency));
                pacer.take_interval(Some(Nanos::from_micros(number * gap)));
            }
            pacer.slept_for = None;
            pacer.margin()
        };
        let near = |margin: Nanos, micros: u64| {
            let off = margin.as_nanos().abs_diff(micros * 1_000);
            assert!(off < 500, "{margin}, not {micros} us");
        };
        near(margin_at(&mut pacer, 64), 14 + 4);
        near(margin_at(&mut pacer, 320), 14 + 20);
        near(margin_at(&mut pacer, 10_000), 14 + 40);
    }

    #[test]
    fn pauses_of_the_machine_do_not_keep_the_thread_spinning() {
        // 0.1 % are 3 ms late.
        let margin = learnt(|n| match n {
            0 => Nanos::from_millis(3),
            _ => Nanos::from_micros(10),
        });
        assert!(margin < Nanos::from_micros(15), "{margin}");
    }

    #[test]
    fn spin_never_sleeps_and_block_sleeps_to_the_departure_itself() {
        let now = Nanos::from_secs(1);
        let next = now.saturating_add(Nanos::from_millis(1));
        let until = |mode| {
            let pacer = new_pacer(mode);
            pacer.sleeps_until(Some(next), now)
        };
        assert_eq!(until(WaitMode::Spin), None);
        assert_eq!(until(WaitMode::Block), Some(next));
        assert_eq!(
            until(WaitMode::Adaptive),
            Some(next.saturating_sub(MARGIN_START))
        );
    }

    #[test]
    fn a_near_departure_is_spun_for() {
        let now = Nanos::from_secs(1);
        let near = now.saturating_add(MARGIN_START).saturating_add(SLEEP_MIN);
        let pacer = new_pacer(WaitMode::Adaptive);
        assert_eq!(pacer.sleeps_until(Some(near), now), None);
        let mut pacer = new_pacer(WaitMode::Adaptive);
        let soon = monotonic_now().saturating_add(Nanos::from_micros(20));
        pacer.spin_until(soon);
        assert!(monotonic_now() >= soon);
    }

    fn times(alarms: &Alarms) -> BTreeSet<Nanos> {
        alarms.alarms.iter().map(|alarm| alarm.at).collect()
    }

    #[test]
    fn an_alarm_armed_ahead_is_not_armed_again() {
        let mut alarms = Alarms::new().expect("timers");
        let far = |seconds: u64| Nanos::from_secs(1_000_000 + seconds);
        let at = |seconds: u64| far(seconds).saturating_sub(Nanos::from_micros(20));
        alarms.get(far(1), at(1)).expect("armed");
        alarms.arm_ahead(far(1), far(2), at(2));
        assert_eq!(times(&alarms), BTreeSet::from([at(1), at(2)]));
        // The margin has changed slightly.
        let later = at(2).saturating_add(Nanos::from_nanos(1_500));
        assert_eq!(alarms.get(far(2), later).expect("armed").0, at(2));
        // A larger change rearms the same alarm.
        let later = at(2).saturating_add(Nanos::from_micros(9));
        assert_eq!(alarms.get(far(2), later).expect("armed").0, later);
        assert!(times(&alarms).contains(&at(1)));
        // A past departure's alarm is reused.
        alarms.arm_ahead(far(2), far(3), at(3));
        assert_eq!(times(&alarms), BTreeSet::from([later, at(3)]));
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

    /// Delays one wake-up in `one_in`, with gaps of 100 us, for a second. Skips gaps in which the
    /// thread spins.
    fn disturbed(one_in: u64) -> Disturbance {
        let mut disturbance = Disturbance::default();
        for number in 1..=10_000u64 {
            let now = Nanos::from_micros(100 * number);
            if !disturbance.spins_at(now) {
                let late = if number % one_in == 0 { 100 } else { 0 };
                disturbance.note(Nanos::from_micros(late), now);
            }
        }
        disturbance
    }

    #[test]
    fn a_thread_that_is_kept_from_waking_stops_sleeping() {
        assert_eq!(disturbed(50).total, Nanos::ZERO);
        let total = disturbed(8).total;
        assert!(total >= SPIN_FOR, "{total}");
    }
}
