//! Waiting until a frame arrives or a release is due.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use longwire_engine::Nanos;
use longwire_io::Event;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use crate::clock::monotonic_now;
use crate::config::WaitMode;
use crate::host::Crowd;
use crate::witness::{PauseHistory, Witness};

/// The initial wake margin; the thread then learns.
const MARGIN_START: Nanos = Nanos::from_micros(60);
const MARGIN_MIN: Nanos = Nanos::from_micros(10);
/// Beyond this the machine was paused or busy, and no margin would help.
const MARGIN_MAX: Nanos = Nanos::from_micros(250);

/// How long a thread polls after traffic before it sleeps: the next frame of a
/// burst or of a conversation is often close.
const LINGER: Nanos = Nanos::from_micros(50);

/// The maximum share of each window, as 1/n, that a thread spins when others
/// need the cores.
const CROWDED_SHARE: u64 = 5;
const WINDOW: Nanos = Nanos::from_millis(10);

/// When others need the cores and frames are frequent, a thread sleeps for this
/// long before it looks for more, as a network card moderates its interrupts:
/// waking for every frame would cost the programs under test more than the
/// frames do. Arrivals are stamped by the kernel, so a delay longer than this
/// stays exact.
const MODERATION: Nanos = Nanos::from_micros(50);

/// Wakes per window above which wake-ups are moderated.
const WAKES_MANY: u32 = 50;

/// Without a release to wait for, a thread still wakes at this interval, so
/// that a port's losses and a stop are noticed.
const IDLE: Nanos = Nanos::from_millis(250);

/// Interval at which an input port is polled that has no descriptor to wait
/// for.
pub(crate) const POLL: Nanos = Nanos::from_millis(1);

/// How long a spinning thread only reads the clock before it looks for frames
/// again: in this time it witnesses pauses of the machine.
const SPIN_TURN: Nanos = Nanos::from_nanos(250);

/// Waits for one thread, and learns how late the kernel wakes it.
#[derive(Debug)]
pub(crate) struct Waiter {
    mode: WaitMode,
    crowd: Crowd,
    margin: Nanos,
    may_spin: bool,
    window: Window,
    crowded: bool,
    last_active: Nanos,
    /// The last turn of the spinning loop, if it has been spinning since.
    spinning_since: Option<Nanos>,
    pub witness: Witness,
}

/// A thread's activity in the present window.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    start: Nanos,
    spun: Nanos,
    /// How often frames woke it.
    wakes: u32,
    /// The same in the window before.
    wakes_before: u32,
}

/// Pauses of the machine that a thread has seen.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PauseLog {
    pub count: u64,
    pub max: Nanos,
    pub total: Nanos,
}

impl PauseLog {
    /// Adds a pause.
    pub fn add(&mut self, length: Nanos) {
        self.count += 1;
        self.max = self.max.max(length);
        self.total = self.total.saturating_add(length);
    }
}

impl Waiter {
    /// Waits for the calling thread, which publishes its pauses.
    pub fn new(mode: WaitMode, pauses: Arc<PauseHistory>) -> Waiter {
        Waiter {
            mode,
            crowd: Crowd::new(),
            margin: MARGIN_START,
            may_spin: mode != WaitMode::Block,
            window: Window::default(),
            crowded: false,
            last_active: Nanos::ZERO,
            spinning_since: None,
            witness: Witness::new(pauses),
        }
    }

    /// Notes that the stages of this thread have just processed frames.
    pub fn active(&mut self) {
        self.last_active = monotonic_now();
        self.spinning_since = None;
    }

    /// Takes one turn of waiting. Returns until when the thread should sleep,
    /// if it should. The caller then announces its sleep, looks once more, and
    /// calls [`Waiter::sleep`].
    pub fn plan(&mut self, next_at: Option<Nanos>) -> Option<Nanos> {
        let now = monotonic_now();
        self.look_around(now);
        let wake_at = next_at.map(|next| next.saturating_sub(self.margin_now()));
        let lingers = self.mode == WaitMode::Adaptive
            && !self.crowded
            && now.saturating_sub(self.last_active) < LINGER;
        if self.mode == WaitMode::Spin || lingers || wake_at.is_some_and(|at| at <= now) {
            self.spin(now, next_at);
            return None;
        }
        self.spinning_since = None;
        Some(wake_at.unwrap_or(Nanos::MAX).min(now.saturating_add(IDLE)))
    }

    /// Checks whether others need the cores, and whether there is spinning time
    /// left in this window: where the programs under test wait for a core, a
    /// spinning emulator slows down the system that it measures; a few exact
    /// releases are worth a little of it.
    fn look_around(&mut self, now: Nanos) {
        if now.saturating_sub(self.window.start) >= WINDOW {
            self.window = Window {
                start: now,
                wakes_before: self.window.wakes,
                ..Window::default()
            };
        }
        self.crowded = self.mode == WaitMode::Adaptive && self.crowd.is_crowded(now);
        self.may_spin = match self.mode {
            WaitMode::Spin => true,
            WaitMode::Adaptive => {
                !self.crowded || self.window.spun.saturating_mul(CROWDED_SHARE) < WINDOW
            }
            WaitMode::Block => false,
        };
    }

    /// Whether to let frames gather rather than wake for each.
    fn moderates(&self) -> bool {
        self.crowded && self.window.wakes.max(self.window.wakes_before) >= WAKES_MANY
    }

    /// Returns the present wake margin.
    pub fn margin_now(&self) -> Nanos {
        if self.may_spin {
            self.margin
        } else {
            Nanos::ZERO
        }
    }

    /// One turn of the spinning loop.
    fn spin(&mut self, now: Nanos, next_at: Option<Nanos>) {
        if let Some(last) = self.spinning_since {
            let gap = now.saturating_sub(last);
            self.window.spun = self.window.spun.saturating_add(gap);
        }
        self.spinning_since = Some(now);
        if next_at.is_none_or(|next| next > now.saturating_add(MARGIN_MIN)) {
            self.witness.before_wait(now);
        }
        let turn_ends = now.saturating_add(SPIN_TURN);
        let until = next_at.map_or(turn_ends, |next| next.min(turn_ends));
        let mut last = now;
        while last < until {
            std::hint::spin_loop();
            let now = monotonic_now();
            self.witness.spun(last, now);
            last = now;
        }
    }

    /// Sleeps until `until`, until one of `sources` is readable, or until
    /// the bell rings.
    pub fn sleep(&mut self, until: Nanos, sources: &[BorrowedFd<'_>], bell: &Event) {
        let start = monotonic_now();
        let gathered_at = start.saturating_add(MODERATION);
        self.witness.before_wait(start);
        if self.moderates() {
            self.window.wakes += 1;
            let until = until.min(gathered_at);
            wait_for(until, &[], bell);
            self.witness.slept(start, until.max(start), monotonic_now());
            return;
        }
        let woken = wait_for(until, sources, bell);
        let now = monotonic_now();
        // A deadline that had passed when the wait began ends it at once.
        // Earlier time is the emulator's own lateness: neither a pause of the
        // machine nor a slow wake-up.
        let due = until.max(start);
        self.witness.slept(start, due, now);
        match woken {
            WakeCause::Timer if until > start => self.learn(now.saturating_sub(due)),
            WakeCause::Timer => {}
            WakeCause::Frames => self.window.wakes += 1,
            WakeCause::Bell => {}
        }
    }

    /// Moves the margin towards a high percentile of the wake-up latency:
    /// quickly up when a wake-up came later than it, slowly down when not.
    fn learn(&mut self, latency: Nanos) {
        let (latency, margin) = (latency.as_nanos(), self.margin.as_nanos());
        let step = if latency > margin {
            (latency - margin) / 4
        } else {
            0
        };
        let eased = if latency <= margin {
            (margin - latency) / 256
        } else {
            0
        };
        let next = Nanos::from_nanos(margin + step - eased);
        self.margin = next.clamp(MARGIN_MIN, MARGIN_MAX);
    }
}

/// The cause of the end of a sleep.
enum WakeCause {
    Timer,
    Frames,
    Bell,
}

fn wait_for(until: Nanos, sources: &[BorrowedFd<'_>], bell: &Event) -> WakeCause {
    let mut polled: Vec<PollFd<'_>> = sources
        .iter()
        .chain([&bell.as_fd()])
        .map(|fd| PollFd::new(*fd, PollFlags::POLLIN))
        .collect();
    let timeout = until.saturating_sub(monotonic_now());
    let timeout = TimeSpec::from(Duration::from_nanos(timeout.as_nanos()));
    // An interrupted wait is over.
    let ready = ppoll(&mut polled, Some(timeout), None).unwrap_or(1);
    if polled.last().and_then(PollFd::any).unwrap_or(false) {
        bell.clear();
        return WakeCause::Bell;
    }
    match ready {
        0 => WakeCause::Timer,
        _ => WakeCause::Frames,
    }
}

#[cfg(test)]
#[path = "waiting_tests.rs"]
mod tests;
