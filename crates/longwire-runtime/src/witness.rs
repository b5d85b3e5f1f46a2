//! Evidence that the machine paused while a thread only waited.
//!
//! A pause counts only if Longwire cannot be its cause: between two clock readings without work in
//! between, or between a timer's expiry and the thread's wake-up. The kernel's accounts of the
//! thread rule out other causes. Time spent waiting for a busy core (`run_delay` in schedstat) is
//! subtracted, and a context switch that the wait does not explain (a stopping signal, a debugger,
//! a freezer) voids the evidence. Each thread watches itself, so the evidence concerns its own
//! core.

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex};

use longwire_engine::Nanos;
use nix::sys::resource::{UsageWho, getrusage};

use crate::sync::locked;
use crate::waiting::PauseLog;

/// Minimum length of a pause. Shorter delays are normal wake-up latency.
pub(crate) const PAUSE_MIN: Nanos = Nanos::from_micros(100);

/// Maximum length of a pause that excuses lateness. Longer pauses mean that the run was disturbed.
const PAUSE_MAX: Nanos = Nanos::from_millis(100);

/// Age at which the kernel's accounts are read again before a wait.
const FRESH: Nanos = Nanos::from_millis(1);

/// Minimum duration of a voluntary context switch.
const SWITCH_MIN: Nanos = Nanos::from_micros(2);

/// Maximum number of recent pauses kept to excuse late frames.
const REMEMBERED: usize = 512;

/// One thread's pauses, shared with the sending stages and reports.
#[derive(Debug, Default)]
pub(crate) struct PauseHistory(Mutex<WitnessedPauses>);

#[derive(Debug, Default)]
struct WitnessedPauses {
    /// All pauses.
    log: PauseLog,
    /// Recent pauses, which excuse lateness.
    recent: VecDeque<Pause>,
}

/// A pause's start and end.
type Pause = (Nanos, Nanos);

impl PauseHistory {
    /// Adds a pause. Pauses are in order of time.
    pub fn add(&self, (start, end): Pause) {
        let mut pauses = locked(&self.0);
        let length = end.saturating_sub(start);
        pauses.log.add(length);
        if length > PAUSE_MAX {
            return;
        }
        if pauses.recent.len() == REMEMBERED {
            pauses.recent.pop_front();
        }
        pauses.recent.push_back((start, end));
    }

    /// Returns the log of all pauses so far.
    pub fn log(&self) -> PauseLog {
        locked(&self.0).log
    }

    /// Adds to `found` the parts of pauses that lie within an interval.
    fn collect(&self, (start, end): Pause, found: &mut Vec<Pause>) {
        let pauses = locked(&self.0);
        let recent = pauses.recent.iter().rev();
        let recent = recent.take_while(|(_, until)| *until > start);
        let within = recent.map(|(from, until)| (start.max(*from), end.min(*until)));
        found.extend(within.filter(|(from, until)| from < until));
    }
}

/// Returns how long at least one of these threads was paused between `start` and `end`.
pub(crate) fn stood_still(threads: &[Arc<PauseHistory>], start: Nanos, end: Nanos) -> Nanos {
    let mut found = Vec::new();
    for pauses in threads {
        pauses.collect((start, end), &mut found);
    }
    found.sort_unstable();
    let mut counted_to = start;
    let mut total = Nanos::ZERO;
    for (from, until) in found {
        total = total.saturating_add(until.saturating_sub(from.max(counted_to)));
        counted_to = counted_to.max(until);
    }
    total
}

/// The kernel's accounts of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Accounts {
    /// Time spent waiting for a busy core.
    pub waited: Nanos,
    /// Number of voluntary context switches.
    voluntary: i64,
    /// Number of page faults, each of which may switch the context.
    faults: i64,
}

impl Accounts {
    /// Returns the number of voluntary context switches since `before`.
    pub fn switched_since(self, before: Accounts) -> i64 {
        self.voluntary - before.voluntary
    }

    /// Returns whether any context switch since `before` is explained by neither a sleep nor a page
    /// fault.
    pub fn is_stopped_since(self, before: Accounts) -> bool {
        self.switched_since(before) > 1 && self.faults == before.faults
    }

    #[cfg(test)]
    pub fn of(waited: Nanos, voluntary: i64, faults: i64) -> Accounts {
        Accounts {
            waited,
            voluntary,
            faults,
        }
    }
}

/// The kernel's accounts of the thread that opened this file.
#[derive(Debug)]
pub(crate) struct AccountsFile(File);

impl AccountsFile {
    /// Opens the calling thread's accounts; `None` if the kernel keeps none.
    pub fn open() -> Option<AccountsFile> {
        let file = AccountsFile(File::open("/proc/thread-self/schedstat").ok()?);
        file.read().map(|_| file)
    }

    /// Returns the current accounts.
    pub fn read(&self) -> Option<Accounts> {
        let mut text = [0u8; 80];
        let len = self.0.read_at(&mut text, 0).ok()?;
        let waited = waited_in(std::str::from_utf8(&text[..len]).ok()?)?;
        let usage = getrusage(UsageWho::RUSAGE_THREAD).ok()?;
        Some(Accounts {
            waited,
            voluntary: usage.voluntary_context_switches(),
            faults: usage.minor_page_faults() + usage.major_page_faults(),
        })
    }
}

/// Returns the second number of `CPU_TIME WAITED SLICES`, in nanoseconds.
pub(crate) fn waited_in(schedstat: &str) -> Option<Nanos> {
    let number = schedstat.split_whitespace().nth(1)?;
    number.parse().ok().map(Nanos::from_nanos)
}

/// A thread's evidence about its own waits.
#[derive(Debug)]
pub(crate) struct Witness {
    file: Option<AccountsFile>,
    before: Accounts,
    read_at: Nanos,
    /// Sleeps since the accounts were read.
    sleeps: i64,
    shared: Arc<PauseHistory>,
}

impl Witness {
    /// Returns a witness that publishes to `shared`. The thread must call [`Witness::begin`].
    pub fn new(shared: Arc<PauseHistory>) -> Witness {
        Witness {
            file: None,
            before: Accounts::default(),
            read_at: Nanos::ZERO,
            sleeps: 0,
            shared,
        }
    }

    /// Opens the calling thread's accounts. Without them, no pause is ever found.
    pub fn begin(&mut self) {
        self.file = AccountsFile::open();
        self.refresh(Nanos::ZERO);
    }

    /// Refreshes the accounts before a wait.
    #[inline]
    pub fn before_wait(&mut self, now: Nanos) {
        if now.saturating_sub(self.read_at) >= FRESH {
            self.refresh(now);
        }
    }

    /// Examines a sleep from `start` with a timer set for `due`. `due` must not precede `start`,
    /// because the difference would count as a pause.
    #[inline]
    pub fn slept(&mut self, start: Nanos, due: Nanos, woke: Nanos) {
        // A call that returned immediately switched no context. Counting it would hide a stop in
        // the same millisecond.
        if woke.saturating_sub(start) >= SWITCH_MIN {
            self.sleeps += 1;
        }
        if woke.saturating_sub(due) >= PAUSE_MIN {
            self.judge(due, woke);
        }
    }

    /// Examines two clock readings without work in between.
    #[inline]
    pub fn spun(&mut self, before: Nanos, now: Nanos) {
        if now.saturating_sub(before) >= PAUSE_MIN {
            self.judge(before, now);
        }
    }

    /// Returns the thread's pauses so far.
    #[cfg(test)]
    pub fn log(&self) -> PauseLog {
        self.shared.log()
    }

    /// Returns the time that the thread has spent waiting for busy cores.
    pub fn waited(&self) -> Nanos {
        let accounts = self.file.as_ref().and_then(AccountsFile::read);
        accounts.unwrap_or_default().waited
    }

    #[cold]
    fn judge(&mut self, due: Nanos, woke: Nanos) {
        let (before, sleeps) = (self.before, self.sleeps);
        if !self.refresh(woke) {
            return;
        }
        let gap = woke.saturating_sub(due);
        let stood = standstill(gap, before, self.before, sleeps);
        if let Some(length) = stood {
            self.shared.add((due, due.saturating_add(length)));
        }
    }

    /// Reads the accounts and returns whether they exist.
    fn refresh(&mut self, now: Nanos) -> bool {
        let Some(accounts) = self.file.as_ref().and_then(AccountsFile::read) else {
            return false;
        };
        self.before = accounts;
        self.read_at = now;
        self.sleeps = 0;
        true
    }
}

/// Returns the length of the machine pause within `gap`, from the kernel's accounts before and
/// after it and the number of sleeps in between. `None` if the pause is shorter than [`PAUSE_MIN`]
/// or a context switch is unexplained.
fn standstill(gap: Nanos, before: Accounts, after: Accounts, sleeps: i64) -> Option<Nanos> {
    let explained = after.switched_since(before) <= sleeps;
    let stood = gap.saturating_sub(after.waited.saturating_sub(before.waited));
    (explained && stood >= PAUSE_MIN).then_some(stood)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(us: u64) -> Nanos {
        Nanos::from_micros(us)
    }

    fn accounts(waited_us: u64, voluntary: i64) -> Accounts {
        Accounts::of(micros(waited_us), voluntary, 0)
    }

    #[test]
    fn the_kernels_accounts_are_read() {
        assert_eq!(waited_in("8044 2500 17\n"), Some(Nanos::from_nanos(2_500)));
        assert_eq!(waited_in("8044"), None);
        assert_eq!(waited_in(""), None);
    }

    #[test]
    fn a_late_timer_is_a_pause_unless_something_else_explains_it() {
        let before = accounts(50, 10);
        let of = |after| standstill(micros(4_000), before, after, 1);
        assert_eq!(of(accounts(50, 11)), Some(micros(4_000)));
        // Other threads had the core for part of the time.
        assert_eq!(of(accounts(1_050, 11)), Some(micros(3_000)));
        // An overloaded core is not a pause.
        assert_eq!(of(accounts(4_040, 11)), None);
        // A stop adds one context switch to the sleep's.
        assert_eq!(of(accounts(50, 12)), None);
    }

    #[test]
    fn a_gap_between_two_readings_of_the_clock_is_a_pause_unless_others_had_the_core() {
        let before = accounts(50, 10);
        let of = |after| standstill(micros(500), before, after, 0);
        assert_eq!(of(before), Some(micros(500)));
        assert_eq!(of(accounts(540, 10)), None);
        // The thread blocked.
        assert_eq!(of(accounts(50, 11)), None);
    }

    #[test]
    fn pauses_of_two_threads_count_once() {
        let threads = [(); 2].map(|()| Arc::new(PauseHistory::default()));
        threads[0].add((micros(1), micros(5)));
        threads[0].add((micros(10), micros(20)));
        threads[1].add((micros(15), micros(30)));
        let of = |start, end| stood_still(&threads, micros(start), micros(end));
        assert_eq!(of(0, 100), micros(4 + 20));
        assert_eq!(of(3, 12), micros(2 + 2));
        assert_eq!(of(16, 18), micros(2));
        assert_eq!(of(30, 40), Nanos::ZERO);
        assert_eq!(stood_still(&[], micros(0), micros(9)), Nanos::ZERO);
    }

    /// Returns this thread's witness and history; `None` if the kernel keeps no accounts.
    fn witness() -> Option<(Witness, Arc<PauseHistory>)> {
        let shared = Arc::new(PauseHistory::default());
        let mut witness = Witness::new(Arc::clone(&shared));
        witness.begin();
        witness.file.is_some().then_some((witness, shared))
    }

    fn block(times: usize) {
        for _ in 0..times {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    #[test]
    fn a_late_timer_is_a_pause_and_a_stop_is_none() {
        let Some((mut witness, shared)) = witness() else {
            return;
        };
        // Try several times, because a page fault with I/O would void some attempts.
        let seen = (1..=5).any(|second| {
            let due = Nanos::from_secs(second);
            witness.before_wait(due);
            // The sleep itself switches context once.
            block(1);
            witness.slept(due, due, due.saturating_add(Nanos::from_millis(90)));
            shared.log().count == 1
        });
        assert!(seen, "{:?}", shared.log());
        let all = stood_still(&[Arc::clone(&shared)], Nanos::ZERO, Nanos::MAX);
        // Other threads may have had the core for part of the time.
        assert!(all <= Nanos::from_millis(90), "{all}");
        assert!(all >= PAUSE_MIN, "{all}");
        // The thread blocks more often than it sleeps.
        let due = Nanos::from_secs(6);
        witness.before_wait(due);
        block(2);
        // Waits that returned immediately do not count as sleeps.
        for _ in 0..3 {
            witness.slept(due, due, due.saturating_add(Nanos::from_nanos(800)));
        }
        witness.slept(due, due, due.saturating_add(Nanos::from_millis(90)));
        assert_eq!(shared.log().count, 1);
        let later = stood_still(&[shared], Nanos::from_secs(6), Nanos::MAX);
        assert_eq!(later, Nanos::ZERO);
    }

    #[test]
    fn a_timer_in_time_is_no_pause() {
        let Some((mut witness, shared)) = witness() else {
            return;
        };
        let due = Nanos::from_secs(5);
        witness.before_wait(due);
        let (early, soon) = (
            due.saturating_sub(micros(500)),
            due.saturating_add(micros(99)),
        );
        for woke in [due, early, soon] {
            witness.slept(due, due, woke);
        }
        assert_eq!(shared.log().count, 0);
    }

    #[test]
    fn a_gap_without_a_switch_is_a_pause_and_a_long_one_no_excuse() {
        let Some((mut witness, shared)) = witness() else {
            return;
        };
        let now = Nanos::from_secs(5);
        witness.before_wait(now);
        // There was no work between the readings.
        witness.spun(now, now.saturating_add(micros(2_000)));
        // A gap longer than `PAUSE_MAX` is counted, but excuses nothing.
        witness.spun(now, now.saturating_add(Nanos::from_secs(1)));
        assert_eq!(shared.log().count, 2);
        assert_eq!(shared.log().max, Nanos::from_secs(1));
        let all = stood_still(&[shared], Nanos::ZERO, Nanos::MAX);
        assert_eq!(all, micros(2_000));
    }
}
