//! Detection of stops of the whole process by SIGSTOP, Ctrl-Z, a debugger or a freezer.
//!
//! A thread that blocks all signals and holds no lock sleeps in short turns. A stop interrupts its
//! sleep with EINTR, which nothing else does (signal(7)). Outside the sleep, a stop is a context
//! switch that neither the sleep nor a page fault explains. The length of a stop is the lateness of
//! its turn minus the time spent waiting for a core. All runs in a process share the thread.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, Weak};

use longwire_engine::Nanos;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::signal::SigSet;

use crate::clock::monotonic_now;
use crate::host;
use crate::sync::locked;
use crate::waiting::PauseLog;
use crate::witness::{Accounts, AccountsFile};

/// Length of a turn.
const TURN: Nanos = Nanos::from_millis(10);

/// Minimum lateness of a turn that counts as a stop.
const STOP_MIN: Nanos = Nanos::from_millis(5);

/// Maximum number of stops kept for runs that have not ended.
const REMEMBERED: usize = 10_000;

/// The thread's record, while any run uses it.
static RECORD: Mutex<Weak<StopRecord>> = Mutex::new(Weak::new());

/// Watches the process during a run. [`StopWatch::end`] returns the stops.
#[derive(Debug)]
pub(crate) struct StopWatch {
    record: Arc<StopRecord>,
    since: Nanos,
}

/// The stops that the thread detected.
#[derive(Debug)]
struct StopRecord {
    /// Detection time and length of each stop. The thread locks it only for a stop, because waiting
    /// for a lock would switch its context.
    stops: Mutex<Vec<(Nanos, Nanos)>>,
    /// Requests for a response at the end of a whole turn.
    requests: Sender<Sender<()>>,
    /// Wakes the thread.
    wake: EventFd,
}

impl StopWatch {
    /// Starts the watch.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start() -> io::Result<StopWatch> {
        let mut shared = locked(&RECORD);
        let record = match shared.upgrade() {
            Some(record) => record,
            None => {
                let record = StopRecord::start()?;
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
        // A stop in progress is detected at the end of the turn.
        self.record.await_turn();
        let mut stops = PauseLog::default();
        let noticed = locked(&self.record.stops);
        let own = noticed.iter().filter(|(at, _)| *at >= self.since);
        own.for_each(|(_, length)| stops.add(*length));
        stops
    }
}

impl StopRecord {
    /// Starts the thread.
    fn start() -> io::Result<Arc<StopRecord>> {
        let (requests, requested) = channel();
        let wake = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        let sleep = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        sleep.add(&wake, EpollEvent::new(EpollFlags::EPOLLIN, 0))?;
        let record = Arc::new(StopRecord {
            stops: Mutex::default(),
            requests,
            wake,
        });
        let watched = Arc::downgrade(&record);
        let thread = std::thread::Builder::new().name("longwire-stops".to_owned());
        thread.spawn(move || {
            host::give_up_rights();
            // Signal handlers would interrupt the sleep too.
            let _ = SigSet::all().thread_block();
            watch(&watched, &sleep, &requested);
        })?;
        // After a whole turn, the thread is watching and its loop's pages are loaded.
        record.await_turn();
        Ok(record)
    }

    /// Waits for the end of a whole turn.
    fn await_turn(&self) {
        let (response, turned) = channel();
        if self.requests.send(response).is_ok() {
            // Fails only if the counter is full, and then the thread wakes too.
            let _ = self.wake.write(1);
            // Fails if the thread panicked.
            let _ = turned.recv();
        }
    }
}

/// Measurements of one turn.
#[derive(Clone, Copy, Debug)]
struct WatchTurn {
    /// Time beyond the planned length of the sleep.
    late: Nanos,
    /// Whether the sleep ended with EINTR.
    interrupted: bool,
    before: Accounts,
    after: Accounts,
}

impl WatchTurn {
    /// Estimates the length of a stop during the turn. Adds half a turn, because the part of the
    /// stop within the sleep causes no lateness.
    fn stop(self) -> Option<Nanos> {
        let waited = self.after.waited.saturating_sub(self.before.waited);
        let length = self.late.saturating_sub(waited);
        let is_stop = self.interrupted || self.after.is_stopped_since(self.before);
        let half = Nanos::from_nanos(TURN.as_nanos() / 2);
        (is_stop && length >= STOP_MIN).then(|| length.saturating_add(half))
    }
}

/// Watches for stops while any run uses the record.
fn watch(record: &Weak<StopRecord>, sleep: &Epoll, requested: &Receiver<Sender<()>>) {
    let file = AccountsFile::open();
    let read = || file.as_ref().and_then(AccountsFile::read);
    let mut before = read();
    let mut start = monotonic_now();
    while let Some(record) = record.upgrade() {
        let responses: Vec<Sender<()>> = requested.try_iter().collect();
        let length = if responses.is_empty() {
            TURN
        } else {
            Nanos::ZERO
        };
        let interrupted = interrupted(sleep, length);
        let _ = record.wake.read();
        let after = read();
        let end = monotonic_now();
        let turn = before.zip(after).map(|(before, after)| WatchTurn {
            late: end.saturating_sub(start).saturating_sub(length),
            interrupted,
            before,
            after,
        });
        if let Some(stop) = turn.and_then(WatchTurn::stop) {
            let mut stops = locked(&record.stops);
            if stops.len() < REMEMBERED {
                stops.push((end, stop));
            }
        }
        // Fails if the requester no longer waits.
        for response in responses {
            let _ = response.send(());
        }
        (before, start) = (after, end);
    }
}

/// Sleeps for `length`, or until the record's event wakes the thread. Returns whether a signal
/// interrupted the sleep.
fn interrupted(sleep: &Epoll, length: Nanos) -> bool {
    let length = u16::try_from(length.as_nanos() / 1_000_000).unwrap_or(u16::MAX);
    let mut events = [EpollEvent::empty()];
    sleep.wait(&mut events, EpollTimeout::from(length)) == Err(Errno::EINTR)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::path::PathBuf;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use nix::sys::signal::{Signal, kill};
    use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
    use nix::unistd::Pid;

    use super::*;

    fn turn(interrupted: bool, after: Accounts) -> WatchTurn {
        WatchTurn {
            late: Nanos::from_secs(5),
            interrupted,
            before: Accounts::of(Nanos::ZERO, 7, 3),
            after,
        }
    }

    #[test]
    fn a_late_turn_is_a_stop_if_interrupted_or_switched_without_a_fault() {
        let accounts =
            |waited, voluntary, faults| Accounts::of(Nanos::from_millis(waited), voluntary, faults);
        let with_half_a_turn = Some(Nanos::from_millis(5_005));
        assert_eq!(turn(true, accounts(0, 8, 3)).stop(), with_half_a_turn);
        assert_eq!(turn(false, accounts(0, 8, 3)).stop(), None);
        assert_eq!(turn(false, accounts(0, 9, 3)).stop(), with_half_a_turn);
        assert_eq!(turn(false, accounts(0, 9, 4)).stop(), None);
        // The thread waited for a core.
        assert_eq!(turn(true, accounts(4_997, 9, 3)).stop(), None);
    }

    #[test]
    fn a_wait_for_another_thread_is_no_stop() {
        let watch = StopWatch::start().expect("a thread");
        let stops = locked(&watch.record.stops);
        std::thread::sleep(Duration::from_millis(100));
        drop(stops);
        assert_eq!(watch.end().count, 0);
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

    /// Returns the total time that this process's watching thread waited for a core.
    fn waited_of_watch() -> Nanos {
        let tasks = std::fs::read_dir("/proc/self/task").expect("threads");
        let mut tasks = tasks.map(|task| task.expect("a thread").path());
        let is_watch = |task: &PathBuf| {
            let name = std::fs::read_to_string(task.join("comm"));
            name.is_ok_and(|name| name.trim() == "longwire-stops")
        };
        let task = tasks.find(is_watch).expect("the thread");
        let accounts = std::fs::read_to_string(task.join("schedstat"));
        crate::witness::waited_in(&accounts.expect("accounts")).expect("a number")
    }

    /// Runs in the process that the next test stops. Watches until its input ends.
    #[test]
    fn is_stopped() {
        if std::env::var_os(STOPPED).is_none() {
            return;
        }
        let watch = StopWatch::start().expect("a thread");
        std::io::stderr().write_all(b"!").expect("a pipe");
        let mut rest = Vec::new();
        std::io::stdin().read_to_end(&mut rest).expect("a pipe");
        // Keep the thread alive, because its accounts include a wait only after the wait ends.
        let _other = StopWatch::start().expect("a thread");
        let stops = watch.end();
        let waited = waited_of_watch();
        let (count, total) = (stops.count, stops.total.as_nanos());
        eprintln!("{count} {total} {}", waited.as_nanos());
    }

    /// Observations by a stopped process and by the one that stopped it.
    #[derive(Debug)]
    struct Observed {
        count: u64,
        total: Duration,
        /// Time that the watching thread waited for a core, whether or not during the stop.
        waited: Duration,
        /// Bounds on the actual length.
        least: Duration,
        most: Duration,
    }

    /// Stops another process for `length`. Returns what it and this process observed.
    fn stop_for(length: Duration) -> Observed {
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
        let before = Instant::now();
        kill(pid, Signal::SIGSTOP).expect("a signal");
        // The thread needs a core to receive the signal; until then, SIGCONT would discard it.
        let state = waitpid(pid, Some(WaitPidFlag::WUNTRACED)).expect("a child");
        assert_eq!(state, WaitStatus::Stopped(pid, Signal::SIGSTOP));
        let stopped = Instant::now();
        std::thread::sleep(length);
        let least = stopped.elapsed();
        kill(pid, Signal::SIGCONT).expect("continued");
        let most = before.elapsed();
        drop(child.stdin.take());
        let mut told = String::new();
        errors.read_to_string(&mut told).expect("text");
        assert!(child.wait().expect("it ends").success(), "{told}");
        let mut words = told.split_whitespace().map(|word| word.parse::<u64>());
        let mut next = || words.next().and_then(Result::ok).expect("a number");
        Observed {
            count: next(),
            total: Duration::from_nanos(next()),
            waited: Duration::from_nanos(next()),
            least,
            most,
        }
    }

    #[test]
    fn a_stop_has_its_length() {
        /// Half a turn plus the accuracy of timers.
        const ERROR_MAX: Duration = Duration::from_millis(8);
        if AccountsFile::open().is_none() {
            return eprintln!("not run: the kernel keeps no accounts");
        }
        for length in [20, 200, 1_000].map(Duration::from_millis) {
            let found = stop_for(length);
            // A wait for a core does not count as a stop, even if it hides most of one.
            assert!(found.count <= 1, "{found:?}");
            assert!(
                found.total + found.waited + ERROR_MAX >= found.least,
                "{found:?}"
            );
            assert!(found.total <= found.most + ERROR_MAX, "{found:?}");
        }
    }
}
