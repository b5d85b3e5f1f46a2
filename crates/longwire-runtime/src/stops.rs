//! Notices when the whole process was stopped: by SIGSTOP or Ctrl-Z, a debugger
//! or a freezer.
//!
//! A thread sleeps in short turns. When it wakes long after its time, the
//! kernel's accounts show the cause: it waited for a core, the machine stood
//! still, or its context was switched once more than its sleep explains, as
//! every thread's is when its process is stopped and continued.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use longwire_engine::Nanos;

use crate::clock::monotonic_now;
use crate::host;
use crate::waiting::PauseLog;
use crate::witness::{Accounts, AccountsFile};

/// The length of a turn.
const TURN: Nanos = Nanos::from_millis(100);

/// A thread that wakes this late was stopped, or had no core.
const STOP_MIN: Nanos = Nanos::from_millis(50);

/// Watches the process, and reports the stops at its end.
#[derive(Debug)]
pub(crate) struct StopWatch {
    ended: Arc<(Mutex<bool>, Condvar)>,
    thread: JoinHandle<PauseLog>,
}

impl StopWatch {
    /// Starts to watch.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start() -> std::io::Result<StopWatch> {
        let ended = Arc::new((Mutex::new(false), Condvar::new()));
        let watched = Arc::clone(&ended);
        let thread = std::thread::Builder::new()
            .name("longwire-stops".to_owned())
            .spawn(move || {
                host::give_up_rights();
                watch(&watched)
            })?;
        Ok(StopWatch { ended, thread })
    }

    /// Ends the watch; returns the stops.
    pub fn end(self) -> PauseLog {
        let (ended, wake) = &*self.ended;
        *ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        wake.notify_all();
        self.thread.join().unwrap_or_default()
    }
}

fn watch((ended, wake): &(Mutex<bool>, Condvar)) -> PauseLog {
    let mut stops = PauseLog::default();
    let Some(file) = AccountsFile::open() else {
        return stops;
    };
    let mut before = file.read().unwrap_or_default();
    let mut over = ended.lock().unwrap_or_else(PoisonError::into_inner);
    while !*over {
        let due = monotonic_now().saturating_add(TURN);
        let turn = Duration::from_nanos(TURN.as_nanos());
        let woken = wake.wait_timeout(over, turn);
        (over, _) = woken.unwrap_or_else(PoisonError::into_inner);
        let late = monotonic_now().saturating_sub(due);
        let after = file.read().unwrap_or_default();
        if late >= STOP_MIN
            && let Some(stopped) = stopped(late, before, after)
        {
            stops.add(stopped);
        }
        before = after;
    }
    stops
}

/// Returns the part of a thread's lateness during which it was stopped; the
/// thread slept once.
fn stopped(late: Nanos, before: Accounts, after: Accounts) -> Option<Nanos> {
    let length = late.saturating_sub(after.waited.saturating_sub(before.waited));
    (after.switched_since(before) > 1 && length >= STOP_MIN).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_turn_is_a_stop_only_if_its_context_was_switched_more_than_once() {
        let accounts = |waited, voluntary| Accounts::of(Nanos::from_millis(waited), voluntary);
        let late = Nanos::from_secs(5);
        assert_eq!(stopped(late, accounts(0, 7), accounts(0, 8)), None);
        assert_eq!(stopped(late, accounts(0, 7), accounts(0, 9)), Some(late));
        // It had no core.
        assert_eq!(stopped(late, accounts(0, 7), accounts(4_990, 9)), None);
    }

    #[test]
    fn a_watch_that_ends_at_once_saw_no_stop() {
        let watch = StopWatch::start().expect("a thread");
        assert_eq!(watch.end().count, 0);
    }
}
