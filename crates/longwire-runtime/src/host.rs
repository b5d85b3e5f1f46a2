//! Requests to the host: cores, priority, timers.

use std::fs::File;
use std::os::unix::fs::FileExt;

use longwire_engine::Nanos;
use longwire_io::rights::{self, Capability};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// Returns the number of cores in the calling thread's affinity mask, at least 1.
pub fn cores() -> usize {
    allowed_cores().len().max(1)
}

/// Returns the cores in the calling thread's affinity mask; empty if the kernel does not report it.
pub fn allowed_cores() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(Pid::from_raw(0)) else {
        return Vec::new();
    };
    (0..CpuSet::count())
        .filter(|core| set.is_set(*core).unwrap_or(false))
        .collect()
}

/// Pins the calling thread to a core.
///
/// # Errors
/// EINVAL for a core that is unavailable to this process or exceeds the kernel's CPU set.
pub fn pin(core: usize) -> Result<(), nix::Error> {
    let mut set = CpuSet::new();
    set.set(core)?;
    sched_setaffinity(Pid::from_raw(0), &set)
}

/// Nice value to request. It does not select a real-time class, so the kernel's real-time threads
/// take precedence.
const NICE: libc::c_int = -20;

/// Prepares the calling thread for accurate waiting: core, priority, timer slack, locked memory.
/// Returns a note for each refused request.
pub(crate) fn prepare_thread(core: Option<usize>, realtime: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(core) = core
        && let Err(error) = pin(core)
    {
        notes.push(format!("threads are not pinned to cores: {error}"));
    }
    exact_timers();
    if !realtime {
        return notes;
    }
    if let Err(error) = raise_priority() {
        notes.push(format!(
            "normal priority ({error}): other programs may delay releases; run as root, or with \
             CAP_SYS_NICE"
        ));
    }
    if let Err(error) = lock_memory() {
        notes.push(format!(
            "memory is not locked ({error}): harmless without swap; with swap, run as root, or \
             with CAP_IPC_LOCK"
        ));
    }
    notes
}

/// Real-time priority of a replay's sending thread: above normal programs, below the kernel's
/// threads.
const FIFO: libc::c_int = 10;

/// Prepares the calling thread for accurate departures. `fifo` requests a real-time class, so that
/// only the kernel preempts the thread. Returns a note for each refused request.
pub(crate) fn prepare_sender(core: Option<usize>, realtime: bool, fifo: bool) -> Vec<String> {
    let mut notes = prepare_thread(core, realtime);
    if realtime
        && fifo
        && let Err(error) = enter_fifo()
    {
        notes.push(format!(
            "no real-time priority ({error}): other programs may delay departures; run as root, or \
             with CAP_SYS_NICE"
        ));
    }
    notes
}

/// Requests a real-time class for the calling thread and returns whether it was granted. For test
/// loads that take a core from an emulator.
pub fn realtime() -> bool {
    enter_fifo().is_ok()
}

/// Moves the calling thread to SCHED_FIFO.
pub(crate) fn enter_fifo() -> Result<(), nix::Error> {
    schedule_as(libc::SCHED_FIFO, FIFO)
}

/// Returns the thread to the normal class at its highest priority.
pub(crate) fn leave_fifo() -> Result<(), nix::Error> {
    schedule_as(libc::SCHED_OTHER, 0)?;
    raise_priority()
}

fn schedule_as(class: libc::c_int, priority: libc::c_int) -> Result<(), nix::Error> {
    let parameters = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: the kernel reads the parameters during the call; 0 is the
    // calling thread.
    let result = unsafe { libc::sched_setscheduler(0, class, &parameters) };
    nix::Error::result(result).map(drop)
}

/// Drops capabilities that a run does not need once its ports are open. Keeps the right to read
/// other users' traces, which a replay reopens in each round.
pub fn give_up_rights() {
    // Best effort: a thread that keeps its capabilities works too.
    let _ = rights::give_up(&[Capability::DacReadSearch]);
}

/// Keeps idle cores out of deep sleep, from which waking takes tens of microseconds, and twice that
/// in a virtual machine. The kernel drops the request when the file closes, also after a crash.
#[derive(Debug)]
pub(crate) struct StayAwake {
    _request: File,
}

impl StayAwake {
    /// Makes the request. Requires write access to `/dev/cpu_dma_latency`.
    pub fn ask() -> std::io::Result<StayAwake> {
        use std::io::Write;
        let mut request = File::options().write(true).open("/dev/cpu_dma_latency")?;
        // The maximum wake-up latency, in microseconds.
        request.write_all(&0i32.to_ne_bytes())?;
        Ok(StayAwake { _request: request })
    }
}

/// Minimizes this thread's timer slack. The default of 50 us saves power.
fn exact_timers() {
    // SAFETY: PR_SET_TIMERSLACK takes an integer and touches no memory.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
}

/// Sets the normal class's highest priority. A real-time class is no more accurate on an idle
/// machine, and under load it starves programs under test on an emulator's core.
fn raise_priority() -> Result<(), nix::Error> {
    set_niceness(NICE)
}

/// Lowers the calling thread's priority for long background work. Always permitted.
pub fn lower_priority() {
    /// A thread with this niceness gets about 10 % of a core shared with a thread of normal
    /// priority.
    const NICE_LOW: libc::c_int = 10;
    // Best effort: the thread may already have a lower priority.
    let _ = set_niceness(NICE_LOW);
}

/// Raises the calling thread's priority for short work that a user is waiting for. A no-op without
/// the right to do so.
pub fn prompt_priority() {
    // A run's threads may keep two cores busy. At a much lower weight, even short work would wait
    // for milliseconds.
    let _ = raise_priority();
}

/// Restores the default priority, the opposite of [`prompt_priority`]. Always permitted.
pub fn normal_priority() {
    let _ = set_niceness(0);
}

/// Sets the calling thread's niceness.
fn set_niceness(nice: libc::c_int) -> Result<(), nix::Error> {
    // SAFETY: setpriority takes integers and touches no memory; 0 is the
    // calling thread.
    let result = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
    nix::Error::result(result).map(drop)
}

/// Locks pages into memory as they are touched.
fn lock_memory() -> Result<(), nix::Error> {
    let flags = libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT;
    // SAFETY: mlockall takes flags and changes no memory's contents.
    nix::Error::result(unsafe { libc::mlockall(flags) }).map(drop)
}

/// Detects whether the machine has more runnable threads than this process has cores. Queries the
/// kernel at intervals.
#[derive(Debug)]
pub(crate) struct CoreContention {
    /// Source of the kernel's count of runnable threads; `None` if hidden.
    source: Option<File>,
    cores: usize,
    asked: Nanos,
    contended: bool,
}

/// Polling interval. A query takes about 2 us.
const LOOK_EVERY: Nanos = Nanos::from_millis(5);

impl CoreContention {
    pub fn new() -> CoreContention {
        CoreContention {
            source: File::open("/proc/loadavg").ok(),
            cores: cores(),
            asked: Nanos::ZERO,
            contended: false,
        }
    }

    /// Returns a detector that never queries the kernel.
    #[cfg(test)]
    pub fn fixed(contended: bool) -> CoreContention {
        CoreContention {
            source: None,
            cores: 0,
            asked: Nanos::MAX,
            contended,
        }
    }

    /// Returns the result of the last query, which is at most [`LOOK_EVERY`] old.
    pub fn is_contended(&mut self, now: Nanos) -> bool {
        if now.saturating_sub(self.asked) >= LOOK_EVERY {
            self.asked = now;
            self.contended = self.runnable().is_some_and(|threads| threads > self.cores);
        }
        self.contended
    }

    fn runnable(&self) -> Option<usize> {
        let mut text = [0u8; 64];
        let len = self.source.as_ref()?.read_at(&mut text, 0).ok()?;
        runnable_in(std::str::from_utf8(&text[..len]).ok()?)
    }
}

/// Returns the number of runnable threads, from `0.20 0.18 0.12 1/80 11206`.
fn runnable_in(loadavg: &str) -> Option<usize> {
    let (runnable, _) = loadavg.split_whitespace().nth(3)?.split_once('/')?;
    runnable.parse().ok()
}

/// Makes the allocator return freed large blocks to the system. By default, glibc raises its mmap
/// threshold when the first such block is freed. A fixed threshold disables that; 256 KiB is twice
/// the initial one.
pub fn return_large_blocks() {
    // SAFETY: these calls take no pointers and may be made at any time.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 256 << 10);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 512 << 10);
    }
}

/// Returns the allocator's free memory to the system.
pub fn release_free_memory() {
    // SAFETY: the call takes no pointers and may be made at any time.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_count_of_runnable_threads_is_read() {
        assert_eq!(runnable_in("0.20 0.18 0.12 3/80 11206\n"), Some(3));
        assert_eq!(runnable_in("0.20 0.18"), None);
        // At least this thread is runnable.
        assert!(
            CoreContention::new()
                .runnable()
                .is_some_and(|threads| threads >= 1)
        );
    }

    #[test]
    fn contention_is_detected_until_it_ends() {
        let mut contention = CoreContention::new();
        contention.cores = 0;
        assert!(contention.is_contended(Nanos::from_secs(1)));
        contention.cores = usize::MAX;
        let soon = Nanos::from_secs(1).saturating_add(Nanos::from_millis(1));
        assert!(contention.is_contended(soon), "not asked again so soon");
        assert!(!contention.is_contended(Nanos::from_secs(2)));
    }
}
