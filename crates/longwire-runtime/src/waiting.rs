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
use crate::witness::{Pauses, Witness};

/// How long before a release a thread wakes at first; then it learns.
const MARGIN_START: Nanos = Nanos::from_micros(60);
const MARGIN_MIN: Nanos = Nanos::from_micros(10);
/// Beyond this the machine was paused or busy, and no margin would help.
const MARGIN_MAX: Nanos = Nanos::from_micros(250);

/// After traffic a thread polls on for so long before it sleeps: the next
/// frame of a burst or of a conversation is often close.
const LINGER: Nanos = Nanos::from_micros(50);

/// Where others want the cores, a thread spins for at most this share of
/// each window.
const CROWDED_SHARE: u64 = 5;
const WINDOW: Nanos = Nanos::from_millis(10);

/// Where others want the cores and frames come thick, a thread sleeps for so
/// long before it looks for more, as a network card moderates its interrupts:
/// being woken for every frame would cost the programs under test more than
/// the frames do. Arrivals are stamped by the kernel, so a delay longer than
/// this is as exact as ever.
const MODERATION: Nanos = Nanos::from_micros(50);

/// Frames come thick when they wake a thread so often in a window.
const WAKES_MANY: u32 = 50;

/// Without a release to wait for, a thread still looks up this often, so
/// that a port's losses and a stop are seen.
const IDLE: Nanos = Nanos::from_millis(250);

/// An input port that cannot be waited for is asked this often.
pub(crate) const POLL: Nanos = Nanos::from_millis(1);

/// How long a spinning thread does nothing but look at the clock before it
/// looks for frames again: meanwhile it witnesses pauses of the machine.
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

/// What a thread has done in the present stretch of time.
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
    /// One more pause.
    pub fn add(&mut self, length: Nanos) {
        self.count += 1;
        self.max = self.max.max(length);
        self.total = self.total.saturating_add(length);
    }
}

impl Waiter {
    /// Waits for the calling thread, which publishes its pauses.
    pub fn new(mode: WaitMode, pauses: Arc<Pauses>) -> Waiter {
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

    /// The stages of this thread have just handled frames.
    pub fn active(&mut self) {
        self.last_active = monotonic_now();
        self.spinning_since = None;
    }

    /// Takes one turn of waiting. If the thread should sleep: until when.
    /// The caller then announces its sleep, looks once more, and calls
    /// [`Waiter::sleep`].
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

    /// Sees whether others want the cores, and whether there is spinning time
    /// left in this window: where the programs under test wait for a core, a
    /// spinning emulator slows down what it is there to measure; a few exact
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

    /// Whether to let frames gather rather than be woken by each.
    fn moderates(&self) -> bool {
        self.crowded && self.window.wakes.max(self.window.wakes_before) >= WAKES_MANY
    }

    /// How long before a release to wake.
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
        // A time that had passed when the wait began ends it at once. What
        // came before is the emulator's own lateness: neither a pause of the
        // machine nor a slow wake-up.
        let due = until.max(start);
        self.witness.slept(start, due, now);
        match woken {
            Woken::Timer if until > start => self.learn(now.saturating_sub(due)),
            Woken::Timer => {}
            Woken::Frames => self.window.wakes += 1,
            Woken::Bell => {}
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

/// What ended a sleep.
enum Woken {
    Timer,
    Frames,
    Bell,
}

fn wait_for(until: Nanos, sources: &[BorrowedFd<'_>], bell: &Event) -> Woken {
    let mut polled: Vec<PollFd<'_>> = sources
        .iter()
        .chain([&bell.as_fd()])
        .map(|fd| PollFd::new(*fd, PollFlags::POLLIN))
        .collect();
    let timeout = until.saturating_sub(monotonic_now());
    let timeout = TimeSpec::from(Duration::from_nanos(timeout.as_nanos()));
    // An interrupted wait is a wait that is over.
    let ready = ppoll(&mut polled, Some(timeout), None).unwrap_or(1);
    if polled.last().and_then(PollFd::any).unwrap_or(false) {
        bell.clear();
        return Woken::Bell;
    }
    match ready {
        0 => Woken::Timer,
        _ => Woken::Frames,
    }
}

#[cfg(test)]
#[path = "waiting_tests.rs"]
mod tests;
