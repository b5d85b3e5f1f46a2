//! Detection of stops of the whole process: SIGSTOP, Ctrl-Z, a debugger or a freezer.
//!
//! A thread sleeps in short turns. When it wakes late, the kernel's accounts show the
//! cause: it waited for a core, the machine paused, or its context was switched once more
//! than its sleep explains, which happens when a process is stopped and continued. All
//! runs of a process share the thread.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use longwire_engine::Nanos;

use crate::clock::monotonic_now;
use crate::host;
use crate::waiting::PauseLog;
use crate::witness::{Accounts, AccountsFile};

/// Length of a turn.
const TURN: Nanos = Nanos::from_millis(10);

/// Lateness above which the thread was stopped or lacked a core.
const STOP_MIN: Nanos = Nanos::from_millis(5);

/// Maximum number of stops kept for runs that have not ended.
const REMEMBERED: usize = 10_000;

/// The thread's record, while a run uses it.
static RECORD: Mutex<Weak<StopRecord>> = Mutex::new(Weak::new());

/// Watches the process during a run; its end returns the stops.
#[derive(Debug)]
pub(crate) struct StopWatch {
    record: Arc<StopRecord>,
    since: Nanos,
}

/// The stops that the thread detected.
#[derive(Debug, Default)]
struct StopRecord {
    noticed: Mutex<NoticedStops>,
    /// Wakes the thread.
    wake: Condvar,
    /// Wakes waiters for the end of a turn.
    turned: Condvar,
}

#[derive(Debug, Default)]
struct NoticedStops {
    /// Time of detection and length of each stop.
    stops: Vec<(Nanos, Nanos)>,
    turns: u64,
}

impl StopWatch {
    /// Starts the watch.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start() -> std::io::Result<StopWatch> {
        let mut shared = RECORD.lock().unwrap_or_else(PoisonError::into_inner);
        let record = match shared.upgrade() {
            Some(record) => record,
            None => {
                let record = Arc::new(StopRecord::default());
                let watched = Arc::downgrade(&record);
                std::thread::Builder::new()
                    .name("longwire-stops".to_owned())
                    .spawn(move || {
                        host::give_up_rights();
                        watch(&watched);
                    })?;
                *shared = Arc::downgrade(&record);
                record
            }
        };
        Ok(StopWatch {
            record,
            since: monotonic_now(),
        })
    }

    /// Ends the watch and returns the stops.
    pub fn end(self) -> PauseLog {
        let record = &self.record;
        let mut noticed = record.lock();
        // A current stop is detected at the end of the turn.
        let turns = noticed.turns;
        record.wake.notify_all();
        while noticed.turns == turns {
            let waited = record.turned.wait(noticed);
            noticed = waited.unwrap_or_else(PoisonError::into_inner);
        }
        let mut stops = PauseLog::default();
        let own = noticed.stops.iter().filter(|(at, _)| *at >= self.since);
        own.for_each(|(_, length)| stops.add(*length));
        stops
    }
}

impl StopRecord {
    fn lock(&self) -> MutexGuard<'_, NoticedStops> {
        self.noticed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps for at most a turn; returns the lateness of the wake-up.
    fn sleep(&self) -> Nanos {
        let noticed = self.lock();
        let due = monotonic_now().saturating_add(TURN);
        let turn = Duration::from_nanos(TURN.as_nanos());
        drop(self.wake.wait_timeout(noticed, turn));
        monotonic_now().saturating_sub(due)
    }

    /// Ends a turn; records a stop if there was one.
    fn turn(&self, stopped: Option<Nanos>) {
        let mut noticed = self.lock();
        noticed.turns += 1;
        if let Some(length) = stopped.filter(|_| noticed.stops.len() < REMEMBERED) {
            noticed.stops.push((monotonic_now(), length));
        }
        self.turned.notify_all();
    }
}

/// Watches for stops while a run needs them.
fn watch(record: &Weak<StopRecord>) {
    let file = AccountsFile::open();
    let read = || file.as_ref().and_then(AccountsFile::read);
    let mut before = read();
    while let Some(record) = record.upgrade() {
        let late = record.sleep();
        let after = read();
        record.turn(
            before
                .zip(after)
                .and_then(|(before, after)| stopped(late, before, after)),
        );
        before = after;
    }
}

/// Estimates a stop's length from the lateness of a sleeping thread. Half a turn is
/// added, because the part of the stop within the turn causes no lateness.
fn stopped(late: Nanos, before: Accounts, after: Accounts) -> Option<Nanos> {
    let length = late.saturating_sub(after.waited.saturating_sub(before.waited));
    let is_stop = after.switched_since(before) > 1 && length >= STOP_MIN;
    is_stop.then(|| length.saturating_add(Nanos::from_nanos(TURN.as_nanos() / 2)))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};
    use std::time::Instant;

    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;

    use super::*;

    #[test]
    fn a_late_turn_is_a_stop_only_if_its_context_was_switched_more_than_once() {
        let accounts = |waited, voluntary| Accounts::of(Nanos::from_millis(waited), voluntary);
        let late = Nanos::from_secs(5);
        assert_eq!(stopped(late, accounts(0, 7), accounts(0, 8)), None);
        let with_half_a_turn = Some(Nanos::from_millis(5_005));
        assert_eq!(
            stopped(late, accounts(0, 7), accounts(0, 9)),
            with_half_a_turn
        );
        // The thread had no core.
        assert_eq!(stopped(late, accounts(0, 7), accounts(4_997, 9)), None);
    }

    #[test]
    fn a_watch_that_ends_at_once_saw_no_stop() {
        let watch = StopWatch::start().expect("a thread");
        let other = StopWatch::start().expect("a thread");
        assert_eq!(watch.end().count, 0);
        assert_eq!(other.end().count, 0);
    }

    /// Environment variable that marks the process to be stopped.
    const STOPPED: &str = "LONGWIRE_TEST_IS_STOPPED";

    /// The process that the next test stops; watches until its input ends.
    #[test]
    fn is_stopped() {
        if std::env::var_os(STOPPED).is_none() {
            return;
        }
        let watch = StopWatch::start().expect("a thread");
        std::io::stderr().write_all(b"!").expect("a pipe");
        let mut rest = Vec::new();
        std::io::stdin().read_to_end(&mut rest).expect("a pipe");
        let stops = watch.end();
        eprintln!("{} {}", stops.count, stops.total.as_nanos());
    }

    /// Stops another process; returns the actual length, and the number and total length
    /// of the stops it detected.
    fn stop_for(length: Duration) -> (Duration, u64, Duration) {
        let program = std::env::current_exe().expect("this program");
        let mut child = Command::new(program)
            .args(["--exact", "stops::tests::is_stopped", "--nocapture"])
            .env(STOPPED, "")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut errors = child.stderr.take().expect("a pipe");
        errors.read_exact(&mut [0]).expect("it watches");
        std::thread::sleep(Duration::from_millis(50));
        let pid = Pid::from_raw(child.id().cast_signed());
        kill(pid, Signal::SIGSTOP).expect("stopped");
        let begin = Instant::now();
        std::thread::sleep(length);
        let took = begin.elapsed();
        kill(pid, Signal::SIGCONT).expect("continued");
        drop(child.stdin.take());
        let mut told = String::new();
        errors.read_to_string(&mut told).expect("text");
        assert!(child.wait().expect("it ends").success(), "{told}");
        let mut words = told.split_whitespace().map(|word| word.parse::<u64>());
        let mut next = || words.next().and_then(Result::ok).expect("a number");
        let count = next();
        (took, count, Duration::from_nanos(next()))
    }

    #[test]
    fn a_stop_has_its_length() {
        if AccountsFile::open().is_none() {
            return eprintln!("not run: the kernel keeps no accounts");
        }
        for length in [20, 200, 1_000].map(Duration::from_millis) {
            // A busy machine may delay the other process before or after the stop.
            let found = (0..5)
                .map(|_| stop_for(length))
                .find(|(took, count, total)| {
                    *count == 1 && total.abs_diff(*took) <= Duration::from_millis(8)
                });
            assert!(found.is_some(), "{length:?}");
        }
    }
}
