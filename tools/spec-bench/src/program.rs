//! The program under measurement; CPU times and threads.

use std::path::PathBuf;
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use longwire::Error;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};

/// Variable with the program's path, if it is not next to this program.
const VARIABLE: &str = "LONGWIRE";

/// Returns the CPU time of all children that have ended, in seconds.
pub fn cpu_of_children() -> f64 {
    getrusage(UsageWho::RUSAGE_CHILDREN).map_or(0.0, |usage| {
        let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
        micros as f64 / 1e6
    })
}

/// Returns the calling thread's CPU time, which, unlike wall time, is independent of
/// other programs' load.
pub fn cpu_of_thread() -> Duration {
    let clock = ClockId::CLOCK_THREAD_CPUTIME_ID;
    // This clock always exists in Linux.
    clock_gettime(clock).map_or(Duration::ZERO, Duration::from)
}

/// Returns the path of `longwire`: the value of `LONGWIRE`, or the file next to this
/// program.
///
/// # Errors
///
/// If there is no such file.
pub fn path() -> Result<PathBuf, Error> {
    if let Some(path) = std::env::var_os(VARIABLE) {
        return Ok(path.into());
    }
    let path = std::env::current_exe()?.with_file_name("longwire");
    if !path.is_file() {
        return Err(Error::Failed(format!(
            "{} is missing: build it (cargo build --release), or set {VARIABLE}",
            path.display()
        )));
    }
    Ok(path)
}

/// Joins a thread and propagates its panic.
pub fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    let panicked = |panic| std::panic::resume_unwind(panic);
    thread.join().unwrap_or_else(panicked)
}
