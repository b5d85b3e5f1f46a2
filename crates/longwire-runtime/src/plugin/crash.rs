//! Crashes and `exit` in plugins: the process ends with the plugin's name, and never with
//! exit code 0.
//!
//! Handlers are installed with the first plugin. They make only async-signal-safe calls
//! and read only memory that is never freed.

use std::ffi::{c_int, c_void};
use std::io::Write;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};

use super::calls::{self, Call};

/// Signals of a crash.
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
        for (index, (signal, _)) in CRASHES.iter().enumerate() {
            install_one(index, *signal);
        }
        // SAFETY: the function may be called at the program's end, from any
        // thread. If it cannot be registered, only `exit` in a plugin is not
        // noticed.
        unsafe { libc::atexit(at_exit) };
    });
}

/// Previous handlers by index in [`CRASHES`].
static BEFORE: [BeforeCell; CRASHES.len()] = [const { BeforeCell::new() }; CRASHES.len()];

/// A signal disposition, written once before its reader, the handler, can run.
struct BeforeCell {
    handler: AtomicUsize,
    flags: AtomicI32,
}

impl BeforeCell {
    const fn new() -> BeforeCell {
        BeforeCell {
            handler: AtomicUsize::new(libc::SIG_DFL),
            flags: AtomicI32::new(0),
        }
    }
}

fn install_one(index: usize, signal: c_int) {
    // SAFETY: a sigaction of zeros is valid: no handler, no flags, no mask.
    let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: it only writes the current handler to a value of ours.
    if unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut before) } != 0 {
        return;
    }
    BEFORE[index]
        .handler
        .store(before.sa_sigaction, Ordering::Release);
    BEFORE[index]
        .flags
        .store(before.sa_flags, Ordering::Release);
    // SAFETY: as above.
    let mut ours: libc::sigaction = unsafe { std::mem::zeroed() };
    ours.sa_sigaction = on_crash as *const () as usize;
    // Use the alternate stack of Rust's threads: the usual stack may have overflowed.
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: `on_crash` has the type that SA_SIGINFO asks for and is
    // async-signal-safe. Where it is refused, the crash has no name.
    unsafe { libc::sigaction(signal, &raw const ours, std::ptr::null_mut()) };
}

/// Prints the plugin's name, runs the previous handler, and ends the process by the same
/// signal.
///
/// # Safety
/// The arguments are the kernel's, for this signal.
/// The arguments are the kernel's, for this signal.
unsafe extern "C" fn on_crash(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    static NAMED: AtomicBool = AtomicBool::new(false);
    let index = CRASHES.iter().position(|(crash, _)| *crash == signal);
    if !NAMED.swap(true, Ordering::Relaxed) {
        let what = index.map_or("a signal", |index| CRASHES[index].1);
        name_crash(what);
    }
    if let Some(before) = index.map(|index| &BEFORE[index]) {
        let handler = before.handler.load(Ordering::Acquire);
        let takes_info = before.flags.load(Ordering::Acquire) & libc::SA_SIGINFO != 0;
        if takes_info && handler != libc::SIG_DFL && handler != libc::SIG_IGN {
            // SAFETY: with SA_SIGINFO a handler has this type, and the caller
            // guarantees the arguments. It is the standard library's handler,
            // which reports a stack overflow.
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
    match calls::own_call() {
        Some(call) => write_parts(&[
            "error: plugin ",
            call.file(),
            ": ",
            call.function(),
            ": crashed (",
            what,
            "); there is no report\n",
        ]),
        None => write_parts(&[
            "error: crashed (",
            what,
            ") outside the hooks of the plugins in use, one of which may have damaged the \
             memory; there is no report\n",
        ]),
    }
}

/// Set at the normal end of the program.
static ENDS: AtomicBool = AtomicBool::new(false);

/// Set when a thread called `exit` and was blocked there.
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
            // The main thread ends the run and reports it.
            EXITED.store(true, Ordering::Release);
            rest_for_ever();
        }
        end_now(Some(&call), WHAT);
    }
    if in_main {
        // The program itself exits with its own code.
        return;
    }
    write_parts(&["error: a thread of a plugin called exit; there is no report\n"]);
    exit_at_once();
}

/// Marks the normal end of the program.
///
/// Call it at the end of `main`: an earlier `exit` is attributed to a plugin, which must
/// not decide the exit code.
pub fn ends() {
    ENDS.store(true, Ordering::Release);
    if EXITED.load(Ordering::Acquire) {
        // A thread blocks inside `exit` and holds its lock. Its call was a fault, so the
        // run has failed.
        let _ = std::io::stdout().flush();
        exit_at_once();
    }
}

/// Ends the process at once with exit code 1, and prints `why`; names a plugin that is
/// stuck. Async-signal-safe.
pub fn end_process(why: &str) -> ! {
    let call = calls::slots().find_map(calls::ThreadSlot::call);
    match call {
        Some(call) => end_now(Some(&call), "has not returned"),
        None => end_now(None, why),
    }
}

/// Ends the process with the message `what`, prefixed with the stuck plugin and function.
/// Async-signal-safe.
pub(super) fn end_now(call: Option<&Call>, what: &str) -> ! {
    match call {
        Some(call) => write_parts(&[
            "error: plugin ",
            call.file(),
            ": ",
            call.function(),
            ": ",
            what,
            "; there is no report\n",
        ]),
        None => write_parts(&["error: ", what, "; there is no report\n"]),
    }
    exit_at_once()
}

/// Whether a thread runs `main`. Async-signal-safe.
pub(super) fn is_main(thread: i32) -> bool {
    // SAFETY: the call takes nothing and touches no memory of ours.
    thread == unsafe { libc::getpid() }
}

fn rest_for_ever() -> ! {
    loop {
        // SAFETY: the call takes nothing and touches no memory of ours.
        unsafe { libc::pause() };
    }
}

/// Ends the process with exit code 1. Async-signal-safe.
pub(super) fn exit_at_once() -> ! {
    // SAFETY: ends the process at once; always allowed, also in a signal
    // handler.
    unsafe { libc::_exit(EXIT_FAILED) }
}

/// Writes a line to standard error in one call. Async-signal-safe.
fn write_parts(parts: &[&str]) {
    let mut line = [0u8; 1_024];
    let mut len = 0;
    for byte in parts.iter().flat_map(|part| part.bytes()) {
        if let Some(place) = line.get_mut(len) {
            *place = byte;
            len += 1;
        }
    }
    // SAFETY: the bytes are ours and live during the call. A failed write
    // cannot be reported.
    let _ = unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), len) };
}
