//! What the runtime asks of the machine: cores, priority, timers.

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// How many cores this process may run on.
pub fn cores() -> usize {
    allowed_cores().len().max(1)
}

/// The cores this process may run on.
pub fn allowed_cores() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(Pid::from_raw(0)) else {
        return Vec::new();
    };
    (0..CpuSet::count())
        .filter(|core| set.is_set(*core).unwrap_or(false))
        .collect()
}

/// Pins the calling thread to a core.
pub fn pin(core: usize) -> Result<(), nix::Error> {
    let mut set = CpuSet::new();
    set.set(core)?;
    sched_setaffinity(Pid::from_raw(0), &set)
}

/// The priority asked for where the kernel allows it. Not the highest: the
/// kernel's own real-time threads keep theirs.
const NICE: libc::c_int = -20;

/// Prepares the calling thread for accurate waiting: its core, its priority,
/// exact timers, memory that stays. What was refused is said in sentences.
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
            "normal priority ({error}): other programs may delay releases; root or CAP_SYS_NICE would raise it"
        ));
    }
    if let Err(error) = lock_memory() {
        notes.push(format!(
            "memory is not locked ({error}): harmless without swap; root or CAP_IPC_LOCK would lock it"
        ));
    }
    notes
}

/// Timers of this thread fire when they are due: a normal thread's are late
/// by 50 us for the sake of power.
fn exact_timers() {
    // SAFETY: PR_SET_TIMERSLACK takes an integer and touches no memory.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
}

/// The best priority of the normal class. A real-time class is no truer on
/// an idle machine, and under load it takes a spinning or busy emulator's
/// core from the programs under test altogether.
fn raise_priority() -> Result<(), nix::Error> {
    // SAFETY: setpriority takes integers and touches no memory; 0 is the
    // calling thread.
    let result = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICE) };
    nix::Error::result(result).map(drop)
}

/// Pages stay in memory once they are touched; untouched ones are not
/// fetched.
fn lock_memory() -> Result<(), nix::Error> {
    let flags = libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT;
    // SAFETY: mlockall takes flags and changes no memory's contents.
    nix::Error::result(unsafe { libc::mlockall(flags) }).map(drop)
}
