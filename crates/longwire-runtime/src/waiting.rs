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
use crate::host::{self, Crowd};
use crate::witness::{PauseHistory, Witness};

/// The initial wake margin; the thread then learns.
const MARGIN_START: Nanos = Nanos::from_micros(60);
const MARGIN_MIN: Nanos = Nanos::from_micros(2);
/// Beyond this the machine was paused or busy, and no margin would help.
const MARGIN_MAX: Nanos = Nanos::from_micros(250);
/// Steps of the margin after a wake-up that took longer than it, and after one that did
/// not. Their ratio makes it settle where three of four wake-ups are in time: beyond that,
/// much spinning improves few releases. Steps of a fixed size let a pause of the machine
/// count as one late wake-up, however long it was.
const MARGIN_UP: Nanos = Nanos::from_nanos(900);
const MARGIN_DOWN: Nanos = Nanos::from_nanos(300);

/// How long a thread polls after traffic before it sleeps: the next frame of a
/// burst or of a conversation is often close.
const LINGER: Nanos = Nanos::from_micros(50);

/// The number of times in a row that lingering brings no frame before a thread ceases to
/// linger.
const LINGERS_UNPAID: u32 = 8;

/// A thread that has ceased to linger tries again after traffic this many times.
const LINGER_RETRY: u32 = 64;

/// Limits of the time for which frames are left to gather at ports that stamp arrivals, on
/// links with a delay. The upper one is a quarter of what a packet port's ring holds of the
/// fastest arrivals; below the lower one, gathering saves nothing.
const GATHER_MAX: Nanos = Nanos::from_millis(1);
const GATHER_MIN: Nanos = Nanos::from_micros(100);

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

/// Buffers per window, 150,000 a second, from which arrivals are a flood: small frames as fast
/// as a program can send them. A thread of raised priority then preempts the programs that
/// receive them so often that they lose frames in their sockets.
const FLOOD: u64 = 1_500;

/// The time after a flood until the thread has its priority again.
const FLOOD_ENDS: Nanos = Nanos::from_millis(50);

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
    /// The thread has a raised priority, where it has the right to one.
    realtime: bool,
    crowd: Crowd,
    margins: Margins,
    /// The last sleep that was planned: its end, and the class of its length, unless it is long.
    planned: (Nanos, Option<usize>),
    may_spin: bool,
    window: Window,
    crowded: bool,
    priority: FloodPriority,
    last_active: Nanos,
    linger: Linger,
    /// How long frames may gather at the ports; zero if each must be read at once.
    gather: Nanos,
    /// The last turn of the spinning loop, if it has been spinning since.
    spinning_since: Option<Nanos>,
    pub witness: Witness,
}

/// Wake margins by the length of the sleep: a core that has been idle for longer takes
/// longer to wake.
#[derive(Clone, Copy, Debug)]
struct Margins([Nanos; CLASSES]);

/// Classes of lengths: up to 32 us, up to 64 us and so on, and from 1 ms.
const CLASSES: usize = 7;

/// A sleep of this length or more is long. It ends early, and the thread sleeps again: after
/// a short sleep, a core wakes faster and by a steadier latency. In a virtual machine, the
/// median latency after 100 ms is 100 us, and 40 us with a wake-up 400 us before.
const LONG: Nanos = Nanos::from_millis(2);

/// How long before its release a thread wakes from a long sleep.
const LONG_ENDS_BEFORE: Nanos = Nanos::from_micros(400);

/// Returns the class of a sleep by its length, the margin included; `None` if it is long.
fn class_of(length: Nanos) -> Option<usize> {
    let units = length.as_nanos() / 32_768;
    let class = units.checked_ilog2().map_or(0, |log| log as usize + 1);
    (length < LONG).then(|| class.min(CLASSES - 1))
}

impl Margins {
    /// Moves a margin towards a percentile of the wake-up latency: up when a wake-up came
    /// later than it, down when not.
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

/// A thread's activity in the present window.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    start: Nanos,
    spun: Nanos,
    /// How often frames woke it.
    wakes: u32,
    /// The same in the window before.
    wakes_before: u32,
    /// Frames that arrived.
    arrivals: usize,
    /// The same in the window before.
    arrivals_before: usize,
}

/// Whether a thread has given up its raised priority for a flood.
#[derive(Clone, Copy, Debug, Default)]
struct FloodPriority {
    is_normal: bool,
    /// The last window with a flood.
    seen: Nanos,
}

impl FloodPriority {
    /// Notes at `now` whether frames flood the machine while others need its cores. Returns
    /// whether the priority is to be normal, if it changes.
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

/// Decides whether to poll on after traffic, from what that brought before.
#[derive(Clone, Copy, Debug, Default)]
struct Linger {
    /// The thread lingers now.
    now: bool,
    /// The number of times in a row that it brought nothing.
    unpaid: u32,
    /// How often traffic was not followed by lingering since the last time that it was.
    skipped: u32,
}

impl Linger {
    /// Whether to linger after the present traffic.
    fn pays(self) -> bool {
        self.unpaid < LINGERS_UNPAID || self.skipped >= LINGER_RETRY
    }

    /// Notes traffic; if frames `arrived`, lingering has paid.
    fn traffic(&mut self, arrived: bool) {
        if !self.now {
            self.skipped = self.skipped.saturating_add(1);
        } else if arrived {
            *self = Linger::default();
        }
    }

    /// Notes that the thread sleeps.
    fn sleeps(&mut self) {
        if self.now {
            self.now = false;
            self.skipped = 0;
            self.unpaid = self.unpaid.saturating_add(1);
        }
    }
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
    /// Waits for the calling thread, which publishes its pauses. If `realtime`, the thread
    /// has a raised priority, and gives it up during floods.
    pub fn new(mode: WaitMode, realtime: bool, pauses: Arc<PauseHistory>) -> Waiter {
        Waiter {
            mode,
            realtime,
            crowd: Crowd::new(),
            margins: Margins([MARGIN_START; CLASSES]),
            planned: (Nanos::ZERO, None),
            may_spin: mode != WaitMode::Block,
            window: Window::default(),
            crowded: false,
            priority: FloodPriority::default(),
            last_active: Nanos::ZERO,
            linger: Linger::default(),
            gather: Nanos::ZERO,
            spinning_since: None,
            witness: Witness::new(pauses),
        }
    }

    /// Lets frames gather at the ports, all of which stamp arrivals. No frame has its
    /// release earlier than `slack` after its arrival.
    pub fn gather_within(self, slack: Nanos) -> Waiter {
        // A managed queue needs a part of it for its decisions.
        let gather = Nanos::from_nanos(slack.as_nanos() / 4).min(GATHER_MAX);
        let worth_it = gather >= GATHER_MIN && self.mode != WaitMode::Spin;
        Waiter {
            gather: if worth_it { gather } else { Nanos::ZERO },
            ..self
        }
    }

    /// Notes that the stages of this thread have just processed frames.
    pub fn active(&mut self) {
        self.last_active = monotonic_now();
        self.spinning_since = None;
    }

    /// Notes that `frames` have just arrived.
    pub fn arrived(&mut self, frames: usize) {
        self.window.arrivals += frames;
        self.linger.traffic(frames > 0);
    }

    /// Returns how long to sleep without watching the ports, if frames are so frequent that
    /// waking for each would cost more.
    pub fn gathering(&self) -> Option<Nanos> {
        let arrivals = self.window.arrivals.max(self.window.arrivals_before) as u64;
        let frequent = self.gather.saturating_mul(arrivals) >= WINDOW;
        frequent.then_some(self.gather)
    }

    /// Takes one turn of waiting. Returns until when the thread should sleep,
    /// if it should. The caller then announces its sleep, looks once more, and
    /// calls [`Waiter::sleep`].
    pub fn plan(&mut self, next_at: Option<Nanos>) -> Option<Nanos> {
        let now = monotonic_now();
        self.look_around(now);
        let wake_at = next_at.map(|next| self.wake_at(now, next));
        let lingers = self.mode == WaitMode::Adaptive
            && !self.crowded
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

    /// Checks whether others need the cores, and whether there is spinning time
    /// left in this window: where the programs under test wait for a core, a
    /// spinning emulator slows down the system that it measures; a few exact
    /// releases are worth a little of it.
    fn look_around(&mut self, now: Nanos) {
        let age = now.saturating_sub(self.window.start);
        if age >= WINDOW {
            let recent = age < WINDOW.saturating_mul(2);
            let arrivals = (self.window.arrivals as u64).saturating_mul(WINDOW.as_nanos());
            let many = arrivals >= FLOOD.saturating_mul(age.as_nanos());
            let floods = self.crowded && recent && many;
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

    /// Returns when to wake for a release at `next`, and plans a sleep until then.
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

    /// Returns the longest wake margin.
    pub fn margin_max(&self) -> Nanos {
        let margins = self.margins.0.into_iter().max();
        margins.filter(|_| self.may_spin).unwrap_or(Nanos::ZERO)
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
        // A deadline that had passed when the wait began ends it at once.
        // Earlier time is the emulator's own lateness: neither a pause of the
        // machine nor a slow wake-up.
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
    // An error, as a rule an interruption, ends the wait as a frame does.
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
