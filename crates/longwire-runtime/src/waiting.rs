//! Waiting for a frame or a release.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use longwire_engine::Nanos;
use longwire_io::Event;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use crate::clock::monotonic_now;
use crate::config::WaitMode;
use crate::host::{self, CoreContention};
use crate::witness::{PauseHistory, Witness};

/// Initial wake margin.
pub(crate) const MARGIN_START: Nanos = Nanos::from_micros(60);
pub(crate) const MARGIN_MIN: Nanos = Nanos::from_micros(2);
/// Maximum wake margin. A longer latency means that the machine paused or was busy, and no margin
/// helps.
pub(crate) const MARGIN_MAX: Nanos = Nanos::from_micros(250);
/// Steps of the margin after a wake-up slower than it, and after a faster one. Their ratio makes
/// the margin converge to the 0.75-quantile; more spinning would improve few releases. Because
/// steps are fixed, a pause of any length counts as one slow wake-up.
const MARGIN_UP: Nanos = Nanos::from_nanos(900);
const MARGIN_DOWN: Nanos = Nanos::from_nanos(300);

/// Polling time after traffic before a thread sleeps. The next frame of a burst or conversation
/// often follows soon.
const LINGER: Nanos = Nanos::from_micros(50);

/// Number of consecutive lingers without a frame after which a thread stops lingering.
const LINGERS_UNPAID: u32 = 8;

/// Number of traffic events after which a thread tries lingering again.
const LINGER_RETRY: u32 = 64;

/// Limits of the batching time at ports that stamp arrivals, for links with delay. Within the upper
/// limit, the highest arrival rate fills a quarter of a packet port's ring; batching for less than
/// the lower limit saves nothing.
const GATHER_MAX: Nanos = Nanos::from_millis(1);
const GATHER_MIN: Nanos = Nanos::from_micros(100);

/// Maximum spinning share of each window on a contended machine, as 1/n.
const CONTENDED_SHARE: u64 = 5;
const WINDOW: Nanos = Nanos::from_millis(10);

/// Sleep between polls for frequent frames on a contended machine, like a network card's interrupt
/// moderation. Waking for each frame would cost the programs under test more than processing the
/// frames. The kernel stamps arrivals, so longer delays stay exact.
const MODERATION: Nanos = Nanos::from_micros(50);

/// Wake-ups per window above which wake-ups are moderated.
const WAKES_MANY: u32 = 50;

/// Number of buffers per window (150,000/s) that counts as a flood: small frames as fast as a
/// program can send. A thread with raised priority would then preempt the receiving programs so
/// often that their sockets drop frames.
const FLOOD: u64 = 1_500;

/// Time after a flood until the priority is raised again.
const FLOOD_ENDS: Nanos = Nanos::from_millis(50);

/// Maximum sleep, after which the thread checks for port losses and stops.
const IDLE: Nanos = Nanos::from_millis(250);

/// Polling interval of an input port without a descriptor.
pub(crate) const POLL: Nanos = Nanos::from_millis(1);

/// Interval between polls in which a spinning thread only reads the clock, to detect machine
/// pauses.
const SPIN_TURN: Nanos = Nanos::from_nanos(250);

/// Plans the waits of one thread, and learns the kernel's wake-up latency.
#[derive(Debug)]
pub(crate) struct Waiter {
    mode: WaitMode,
    /// Whether the thread requests a raised priority.
    realtime: bool,
    contention: CoreContention,
    margins: Margins,
    /// End of the last planned sleep, and its class unless it is long.
    planned: (Nanos, Option<usize>),
    may_spin: bool,
    window: Window,
    contended: bool,
    priority: FloodPriority,
    last_active: Nanos,
    linger: Linger,
    /// Batching time for frames at the ports; zero to read each frame immediately.
    gather: Nanos,
    /// Start of the last spinning turn; `None` after other work.
    spinning_since: Option<Nanos>,
    pub witness: Witness,
}

/// Wake margins by length of sleep. A core that was idle for longer wakes more slowly.
#[derive(Clone, Copy, Debug)]
struct Margins([Nanos; CLASSES]);

/// Number of length classes: up to 32 us, up to 64 us and so on, and from 1 ms.
const CLASSES: usize = 7;

/// Minimum length of a long sleep, which is split: after a short sleep, a core wakes faster and
/// with less jitter. In a virtual machine, the median latency after a sleep of 100 ms is 100 us,
/// but 40 us if the thread wakes 400 us earlier and sleeps again.
const LONG: Nanos = Nanos::from_millis(2);

/// Time before the release at which a long sleep ends.
const LONG_ENDS_BEFORE: Nanos = Nanos::from_micros(400);

/// Returns the class of a sleep, including its margin; `None` if it is long.
fn class_of(length: Nanos) -> Option<usize> {
    let units = length.as_nanos() / 32_768;
    let class = units.checked_ilog2().map_or(0, |log| log as usize + 1);
    (length < LONG).then(|| class.min(CLASSES - 1))
}

impl Margins {
    /// Moves a margin toward the 0.75-quantile of the wake-up latency.
    fn learn(&mut self, class: usize, latency: Nanos) {
        let margin = &mut self.0[class];
        let next = if latency > *margin {
            margin.saturating_add(MARGIN_UP)
        } else {
            margin.saturating_sub(MARGIN_DOWN)
        };
        *margin = next.clamp(MARGIN_MIN, MARGIN_MAX);
    }
}

/// A thread's activity in the current window.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    start: Nanos,
    spun: Nanos,
    /// Wake-ups caused by frames.
    wakes: u32,
    /// Wake-ups caused by frames in the previous window.
    wakes_before: u32,
    /// Arrived frames.
    arrivals: usize,
    /// Arrived frames in the previous window.
    arrivals_before: usize,
}

/// A thread's priority state during floods.
#[derive(Clone, Copy, Debug, Default)]
struct FloodPriority {
    is_normal: bool,
    /// Time of the last window that had a flood.
    seen: Nanos,
}

impl FloodPriority {
    /// Records at `now` whether frames flood a contended machine. Returns whether to use normal
    /// priority from now on; `None` if that stays the same.
    fn note(&mut self, now: Nanos, floods: bool) -> Option<bool> {
        if floods {
            self.seen = now;
        }
        let is_normal = floods || self.is_normal && now.saturating_sub(self.seen) < FLOOD_ENDS;
        let changes = is_normal != self.is_normal;
        self.is_normal = is_normal;
        changes.then_some(is_normal)
    }
}

/// Decides, from past success, whether to linger after traffic.
#[derive(Clone, Copy, Debug, Default)]
struct Linger {
    /// Whether the thread is lingering.
    now: bool,
    /// Consecutive lingers without a frame.
    unpaid: u32,
    /// Traffic events without lingering since the last linger.
    skipped: u32,
}

impl Linger {
    /// Returns whether to linger after the current traffic.
    fn pays(self) -> bool {
        self.unpaid < LINGERS_UNPAID || self.skipped >= LINGER_RETRY
    }

    /// Records traffic. Lingering has paid off if frames `arrived`.
    fn traffic(&mut self, arrived: bool) {
        if !self.now {
            self.skipped = self.skipped.saturating_add(1);
        } else if arrived {
            *self = Linger::default();
        }
    }

    /// Records that the thread sleeps.
    fn sleeps(&mut self) {
        if self.now {
            self.now = false;
            self.skipped = 0;
            self.unpaid = self.unpaid.saturating_add(1);
        }
    }
}

/// Number, maximum and total length of machine pauses or process stops.
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
    /// Returns a waiter for the calling thread, which publishes its pauses. If `realtime`, the
    /// thread has a raised priority and drops it during floods.
    pub fn new(mode: WaitMode, realtime: bool, pauses: Arc<PauseHistory>) -> Waiter {
        Waiter {
            mode,
            realtime,
            contention: CoreContention::new(),
            margins: Margins([MARGIN_START; CLASSES]),
            planned: (Nanos::ZERO, None),
            may_spin: mode != WaitMode::Block,
            window: Window::default(),
            contended: false,
            priority: FloodPriority::default(),
            last_active: Nanos::ZERO,
            linger: Linger::default(),
            gather: Nanos::ZERO,
            spinning_since: None,
            witness: Witness::new(pauses),
        }
    }

    /// Enables batching at the ports, which must all stamp arrivals. `slack` is the minimum time
    /// from arrival to release.
    pub fn gather_within(mut self, slack: Nanos) -> Waiter {
        // A managed queue needs part of the slack for its decisions.
        let gather = Nanos::from_nanos(slack.as_nanos() / 4).min(GATHER_MAX);
        if gather >= GATHER_MIN && self.mode != WaitMode::Spin {
            self.gather = gather;
        }
        self
    }

    /// Records that the thread just processed frames.
    pub fn active(&mut self) {
        self.last_active = monotonic_now();
        self.spinning_since = None;
    }

    /// Records arrivals.
    pub fn arrived(&mut self, frames: usize) {
        self.window.arrivals += frames;
        self.linger.traffic(frames > 0);
    }

    /// Returns how long to sleep without watching the ports, if frames are so frequent that waking
    /// for each would cost more.
    pub fn gathering(&self) -> Option<Nanos> {
        let arrivals = self.window.arrivals.max(self.window.arrivals_before) as u64;
        let frequent = self.gather.saturating_mul(arrivals) >= WINDOW;
        frequent.then_some(self.gather)
    }

    /// Spins for one turn, or returns the time until which to sleep. In that case, the caller
    /// announces its sleep, checks once more and calls [`Waiter::sleep`].
    pub fn plan(&mut self, next_at: Option<Nanos>) -> Option<Nanos> {
        let now = monotonic_now();
        self.look_around(now);
        let wake_at = next_at.map(|next| self.wake_at(now, next));
        let lingers = self.mode == WaitMode::Adaptive
            && !self.contended
            && self.gather == Nanos::ZERO
            && now.saturating_sub(self.last_active) < LINGER
            && self.linger.pays();
        self.linger.now |= lingers;
        if self.mode == WaitMode::Spin || lingers || wake_at.is_some_and(|at| at <= now) {
            self.spin(now, next_at);
            return None;
        }
        self.linger.sleeps();
        self.spinning_since = None;
        Some(wake_at.unwrap_or(Nanos::MAX).min(now.saturating_add(IDLE)))
    }

    /// Starts a window if due, adapts the priority to floods, and updates whether the machine is
    /// contended and spinning is permitted. If programs under test wait for a core, a spinning
    /// emulator slows the system that it measures, so only a share of each window may be spent
    /// spinning for exact releases.
    fn look_around(&mut self, now: Nanos) {
        let age = now.saturating_sub(self.window.start);
        if age >= WINDOW {
            let recent = age < WINDOW.saturating_mul(2);
            let arrivals = (self.window.arrivals as u64).saturating_mul(WINDOW.as_nanos());
            let many = arrivals >= FLOOD.saturating_mul(age.as_nanos());
            let floods = self.contended && recent && many;
            match self.priority.note(now, floods) {
                Some(true) if self.realtime => host::normal_priority(),
                Some(false) if self.realtime => host::prompt_priority(),
                _ => {}
            }
            self.window = Window {
                start: now,
                wakes_before: self.window.wakes,
                arrivals_before: if recent { self.window.arrivals } else { 0 },
                ..Window::default()
            };
        }
        self.contended = self.mode == WaitMode::Adaptive && self.contention.is_contended(now);
        self.may_spin = match self.mode {
            WaitMode::Spin => true,
            WaitMode::Adaptive => {
                !self.contended || self.window.spun.saturating_mul(CONTENDED_SHARE) < WINDOW
            }
            WaitMode::Block => false,
        };
    }

    /// Returns whether to batch frames instead of waking for each.
    fn moderates(&self) -> bool {
        self.contended && self.window.wakes.max(self.window.wakes_before) >= WAKES_MANY
    }

    /// Plans a sleep until shortly before a release at `next` and returns its end.
    pub fn wake_at(&mut self, now: Nanos, next: Nanos) -> Nanos {
        let class = class_of(next.saturating_sub(now));
        let margin = match class {
            _ if !self.may_spin => Nanos::ZERO,
            Some(class) => self.margins.0[class],
            None => LONG_ENDS_BEFORE,
        };
        self.planned = (next.saturating_sub(margin), class);
        self.planned.0
    }

    /// Returns the maximum wake margin.
    pub fn margin_max(&self) -> Nanos {
        let margins = self.margins.0.into_iter().max();
        margins.filter(|_| self.may_spin).unwrap_or(Nanos::ZERO)
    }

    /// Takes one turn of the spinning loop.
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

    /// Sleeps until `until`, a readable source or the bell.
    pub fn sleep(&mut self, until: Nanos, sources: &[BorrowedFd<'_>], bell: &Event) {
        let start = monotonic_now();
        let moderated_until = start.saturating_add(MODERATION);
        self.witness.before_wait(start);
        if self.moderates() && !sources.is_empty() {
            self.window.wakes += 1;
            let until = until.min(moderated_until);
            wait_for(until, &[], bell);
            self.witness.slept(start, until.max(start), monotonic_now());
            return;
        }
        let woken = wait_for(until, sources, bell);
        let now = monotonic_now();
        // If the deadline precedes the wait, the wait ends immediately. The time between them is
        // the emulator's own lateness, neither a machine pause nor wake-up latency.
        let due = until.max(start);
        self.witness.slept(start, due, now);
        match woken {
            WakeCause::Timer if until > start => {
                let (planned, class) = self.planned;
                let class = match until {
                    until if until == planned => class,
                    until => class_of(until.saturating_sub(start)),
                };
                if let Some(class) = class {
                    self.margins.learn(class, now.saturating_sub(due));
                }
            }
            WakeCause::Timer => {}
            WakeCause::Frames => self.window.wakes += 1,
            WakeCause::Bell => {}
        }
    }
}

/// The cause of a wake-up.
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
    // An error, usually EINTR, ends the wait as a frame does.
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
