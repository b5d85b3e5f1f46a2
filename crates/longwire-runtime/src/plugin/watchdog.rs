//! The watchdog: ends a run whose plugin is stuck in a hook.
//!
//! Its thread starts with the first plugin. It counts how often it finds a thread in the
//! same call instead of measuring time: the count does not grow while the process is
//! stopped or starved.

use std::sync::{Mutex, Once, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use super::calls::{self, Call};
use super::crash;
use crate::shutdown;

/// Polling interval.
const LOOK: Duration = Duration::from_millis(50);

/// Polls within which a hook must return: 5 s, for work of microseconds.
const LOOKS_MAX: u32 = 100;

/// The message about a stuck hook.
const STUCK: &str = "has not returned for 5 s";

/// The message about a plugin that keeps a run from ending.
const STUCK_AT_END: &str = "has not returned since the run was stopped";

/// Starts the watchdog, once.
pub(super) fn start() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        let thread = Builder::new().name("longwire-watchdog".to_owned());
        // Best effort: a run needs several more threads and reports if it gets none.
        let _ = thread.spawn(|| {
            let mut watch = Watch::default();
            loop {
                std::thread::sleep(LOOK);
                let in_calls =
                    calls::slots().filter_map(|slot| Some((slot.thread(), slot.call()?)));
                for (thread, call) in watch.look(in_calls, shutdown::is_hurried()) {
                    end_run(thread, call);
                }
            }
        });
    });
}

/// Calls seen at the last poll.
#[derive(Default)]
struct Watch {
    seen: Vec<(i32, Call, u32)>,
}

impl Watch {
    /// Returns the calls that exceed their limit with this poll, each once. In a hurried
    /// stop the limit is two polls.
    fn look(
        &mut self,
        in_calls: impl Iterator<Item = (i32, Call)>,
        hurry: bool,
    ) -> Vec<(i32, Call)> {
        let before = std::mem::take(&mut self.seen);
        let mut stuck = Vec::new();
        for (thread, call) in in_calls.filter(|(_, call)| call.is_hook()) {
            let same = before
                .iter()
                .find(|(other, seen, _)| (*other, *seen) == (thread, call));
            let mut looks = same.map_or(0, |(_, _, looks)| *looks).saturating_add(1);
            if looks < LOOKS_MAX && hurry && looks > 1 {
                looks = LOOKS_MAX;
            }
            if looks == LOOKS_MAX {
                stuck.push((thread, call));
                // Never equal to the limit again.
                looks += 1;
            }
            self.seen.push((thread, call, looks));
        }
        stuck
    }
}

/// Ends a run that is stuck in a call.
fn end_run(thread: i32, call: Call) {
    let what = if shutdown::is_hurried() {
        STUCK_AT_END
    } else {
        STUCK
    };
    call.report(what);
    if crash::is_main(thread) {
        // The main thread is stuck, so end the process here.
        let last = LAST_WORDS
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(last) = last {
            last(call.describe(what));
            crash::exit_at_once();
        }
        crash::end_now(Some(&call), what);
    }
}

/// See [`on_stuck_main`].
static LAST_WORDS: Mutex<Option<LastWords>> = Mutex::new(None);

/// Receives the message about a call.
type LastWords = Box<dyn FnOnce(String) + Send>;

/// Registers `last`, called on another thread when a plugin blocks the main thread
/// forever; the process then ends with exit code 1. For programs that call plugins on the
/// main thread and have a report to write.
pub fn on_stuck_main(last: impl FnOnce(String) + Send + 'static) {
    let mut kept = LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    *kept = Some(Box::new(last));
}

#[cfg(test)]
mod tests {
    use super::super::calls::{CallSite, Function, own_call};
    use super::*;

    fn call(function: Function) -> Call {
        let site = CallSite::of("watchdog-test.so");
        site.during(function, own_call).expect("in a call")
    }

    /// Returns the number of polls after which a persistent call is reported.
    fn looks_of(call: Call, hurry: bool) -> Option<u32> {
        let mut watch = Watch::default();
        let mut looks = 1..=3 * LOOKS_MAX;
        let found = looks.find(|_| !watch.look([(7, call)].into_iter(), hurry).is_empty());
        // Reported only once.
        for _ in 0..2 * LOOKS_MAX {
            assert!(watch.look([(7, call)].into_iter(), hurry).is_empty());
        }
        found
    }

    #[test]
    fn a_hook_that_does_not_return_is_found_once() {
        assert_eq!(looks_of(call(Function::Delay), false), Some(LOOKS_MAX));
        assert_eq!(looks_of(call(Function::Delay), true), Some(2));
        // Creation has no limit: a state may read a large table.
        assert_eq!(looks_of(call(Function::Create), false), None);
    }

    #[test]
    fn hooks_that_return_are_never_found() {
        let mut watch = Watch::default();
        for _ in 0..3 * LOOKS_MAX {
            // A new call each time on the same thread.
            let next = call(Function::Lose);
            assert!(watch.look([(7, next)].into_iter(), true).is_empty());
        }
    }

    #[test]
    fn a_pause_between_two_calls_begins_the_count_again() {
        let mut watch = Watch::default();
        let stuck = call(Function::Lose);
        for _ in 0..LOOKS_MAX - 1 {
            assert!(watch.look([(7, stuck)].into_iter(), false).is_empty());
        }
        assert!(watch.look(std::iter::empty(), false).is_empty());
        assert!(watch.look([(7, stuck)].into_iter(), false).is_empty());
    }
}
