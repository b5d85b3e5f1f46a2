//! Plugins that crash, call `exit` or are stuck.
//!
//! After a crash or `exit`, the process ends with the plugin's name in its output and a nonzero
//! exit status. The handlers are installed with the first plugin. They make only async-signal-safe
//! calls and read only memory that is never freed.
//!
//! The watchdog ends a run whose plugin is stuck in a hook. Instead of measuring time, it counts
//! how often it finds a thread in the same call: the count does not grow while the process is
//! stopped or starved.

use std::ffi::{c_int, c_void};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, OnceLock};
use std::thread::Builder;
use std::time::Duration;

use super::calls::{self, Call};
use crate::shutdown;
use crate::sync::locked;

/// Signals that indicate a crash.
const CRASHES: [(c_int, &str); 5] = [
    (libc::SIGSEGV, "SIGSEGV, invalid memory access"),
    (libc::SIGABRT, "SIGABRT, abort"),
    (libc::SIGBUS, "SIGBUS, invalid memory access"),
    (
        libc::SIGFPE,
        "SIGFPE, invalid arithmetic such as a division by 0",
    ),
    (libc::SIGILL, "SIGILL, illegal instruction"),
];

/// Exit code after a plugin ended the run.
const EXIT_FAILED: c_int = 1;

/// Installs the handlers, once.
pub(super) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let before = BEFORE.get_or_init(|| CRASHES.map(|(signal, _)| handler_of(signal)));
        for ((signal, _), _) in CRASHES
            .iter()
            .zip(before)
            .filter(|(_, known)| known.is_some())
        {
            handle(*signal);
        }
        // SAFETY: the function may be called at the program's end, from any thread. If it cannot be
        // registered, the only effect is that `exit` in a plugin goes unnoticed.
        unsafe { libc::atexit(at_exit) };
    });
}

/// Previous handlers, by index in [`CRASHES`]. Set before the handler that reads them can run.
static BEFORE: OnceLock<[Option<libc::sigaction>; CRASHES.len()]> = OnceLock::new();

fn handler_of(signal: c_int) -> Option<libc::sigaction> {
    // SAFETY: a sigaction of zeros is valid: no handler, no flags, no mask.
    let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: the call only writes the current handler to a local value.
    let read = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut before) };
    (read == 0).then_some(before)
}

fn handle(signal: c_int) {
    // SAFETY: a sigaction of zeros is valid.
    let mut ours: libc::sigaction = unsafe { std::mem::zeroed() };
    ours.sa_sigaction = on_crash as *const () as usize;
    // Use the alternate stack of Rust's threads, because the normal stack may have overflowed.
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: `on_crash` has the type that SA_SIGINFO requires and is async-signal-safe. If the
    // call fails, a crash is reported without the plugin's name.
    unsafe { libc::sigaction(signal, &raw const ours, std::ptr::null_mut()) };
}

/// Prints the plugin's name, runs the previous handler, and ends the process with the same signal.
///
/// # Safety
/// The arguments must be the kernel's for this signal.
unsafe extern "C" fn on_crash(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    static NAMED: AtomicBool = AtomicBool::new(false);
    let index = CRASHES.iter().position(|(crash, _)| *crash == signal);
    if !NAMED.swap(true, Ordering::Relaxed) {
        let what = index.map_or("a signal", |index| CRASHES[index].1);
        name_crash(what);
    }
    if let Some(before) = index.and_then(|index| BEFORE.get()?[index]) {
        let handler = before.sa_sigaction;
        let takes_info = before.sa_flags & libc::SA_SIGINFO != 0;
        if takes_info && handler != libc::SIG_DFL && handler != libc::SIG_IGN {
            // SAFETY: with SA_SIGINFO, a handler has this type, and the caller guarantees the
            // arguments. The handler is the standard library's, which reports stack overflows.
            unsafe {
                let handler: unsafe extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                    std::mem::transmute(handler);
                handler(signal, info, context);
            }
        }
    }
    // SAFETY: both calls are async-signal-safe. The signal is blocked until
    // this handler returns, and then ends the process.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

fn name_crash(what: &str) {
    let call = calls::own_call();
    let place = match call {
        Some(_) => ")",
        None => ") outside plugin hooks; a plugin may have corrupted memory",
    };
    print_end(call.as_ref(), &["crashed (", what, place]);
}

/// Set at the program's normal end.
static ENDS: AtomicBool = AtomicBool::new(false);

/// Set when a thread has called `exit` and is blocked there.
static EXITED: AtomicBool = AtomicBool::new(false);

/// Runs in `exit`, on the calling thread.
extern "C" fn at_exit() {
    if ENDS.load(Ordering::Acquire) {
        return;
    }
    const WHAT: &str = "called exit; a plugin must return fail(host, message) instead";
    let in_main = is_main(calls::thread_id());
    if let Some(call) = calls::own_call() {
        if !in_main && call.report(WHAT) {
            // The main thread ends the run and reports the call.
            EXITED.store(true, Ordering::Release);
            rest_for_ever();
        }
        end_now(Some(&call), WHAT);
    }
    if in_main {
        // The program itself exits with its own code.
        return;
    }
    print_end(None, &["a thread of a plugin called exit"]);
    exit_at_once();
}

/// Marks the program's normal end.
///
/// Call at the end of `main`. An earlier `exit` is attributed to a plugin, which must not decide
/// the exit code.
pub fn ends() {
    ENDS.store(true, Ordering::Release);
    if EXITED.load(Ordering::Acquire) {
        // A thread blocks inside `exit` and holds its lock. The call was a fault, so the run has
        // failed.
        let _ = std::io::stdout().flush();
        exit_at_once();
    }
}

/// Prints `why`, names any stuck plugin, and ends the process immediately with exit code 1.
/// Async-signal-safe.
pub fn end_process(why: &str) -> ! {
    let call = calls::slots().find_map(calls::ThreadSlot::call);
    end_now(call.as_ref(), call.map_or(why, |_| "has not returned"))
}

/// Ends the process with the message `what`, prefixed with the stuck plugin and function.
/// Async-signal-safe.
pub(super) fn end_now(call: Option<&Call>, what: &str) -> ! {
    print_end(call, &[what]);
    exit_at_once()
}

/// Returns whether a thread is the one that runs `main`. Async-signal-safe.
pub(super) fn is_main(thread: i32) -> bool {
    // SAFETY: the call takes no arguments and accesses no memory of this process.
    thread == unsafe { libc::getpid() }
}

fn rest_for_ever() -> ! {
    loop {
        // SAFETY: the call takes no arguments and accesses no memory of this process.
        unsafe { libc::pause() };
    }
}

/// Ends the process with exit code 1. Async-signal-safe.
pub(super) fn exit_at_once() -> ! {
    // SAFETY: the call ends the process immediately and is permitted everywhere, including in
    // signal handlers.
    unsafe { libc::_exit(EXIT_FAILED) }
}

/// Prints why the process ends without a report, prefixed with the plugin and function in `call`,
/// as one line in one system call. Async-signal-safe.
fn print_end(call: Option<&Call>, what: &[&str]) {
    let of = call.map(|call| ["plugin ", call.file(), ": ", call.function(), ": "]);
    let parts = ["error: "].iter().chain(of.iter().flatten()).chain(what);
    let parts = parts.chain(&["; there is no report\n"]);
    let mut line = [0u8; 1_024];
    let mut len = 0;
    for byte in parts.flat_map(|part| part.bytes()) {
        if let Some(place) = line.get_mut(len) {
            *place = byte;
            len += 1;
        }
    }
    // SAFETY: the bytes belong to this function and live during the call. A failed write cannot be
    // reported.
    let _ = unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), len) };
}

/// Polling interval.
const LOOK: Duration = Duration::from_millis(50);

/// Number of polls within which a hook must return: 5 s, for work that takes microseconds.
const LOOKS_MAX: u32 = 100;

/// The message for a stuck hook.
const STUCK: &str = "has not returned for 5 s";

/// The message for a plugin that keeps a run from ending.
const STUCK_AT_END: &str = "has not returned since the run was stopped";

/// Starts the watchdog, once.
pub(super) fn start_watchdog() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        let thread = Builder::new().name("longwire-watchdog".to_owned());
        // Best effort: a run needs several more threads, and reports a failure to start them.
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
    /// Returns the calls that reach their limit with this poll, each once. In a hurried stop, the
    /// limit is two polls.
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
                // Step past the limit, so that the call is reported only once.
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
    if is_main(thread) {
        // The main thread is stuck, so this thread ends the process.
        let last = locked(&LAST_WORDS).take();
        if let Some(last) = last {
            last(call.describe(what));
            exit_at_once();
        }
        end_now(Some(&call), what);
    }
}

/// See [`on_stuck_main`].
static LAST_WORDS: Mutex<Option<LastWords>> = Mutex::new(None);

/// Receives the message about a call.
type LastWords = Box<dyn FnOnce(String) + Send>;

/// Registers `last`, which another thread calls when a plugin blocks the main thread forever. The
/// process then ends with exit code 1. For programs that call plugins on the main thread and have a
/// report to write.
pub fn on_stuck_main(last: impl FnOnce(String) + Send + 'static) {
    *locked(&LAST_WORDS) = Some(Box::new(last));
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
        // The call is reported only once.
        for _ in 0..2 * LOOKS_MAX {
            assert!(watch.look([(7, call)].into_iter(), hurry).is_empty());
        }
        found
    }

    #[test]
    fn a_hook_that_does_not_return_is_found_once() {
        assert_eq!(looks_of(call(Function::Delay), false), Some(LOOKS_MAX));
        assert_eq!(looks_of(call(Function::Delay), true), Some(2));
        // Creation has no limit, because a state may read a large table.
        assert_eq!(looks_of(call(Function::Create), false), None);
    }

    #[test]
    fn hooks_that_return_are_never_found() {
        let mut watch = Watch::default();
        for _ in 0..3 * LOOKS_MAX {
            // Each call is new, on the same thread.
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
