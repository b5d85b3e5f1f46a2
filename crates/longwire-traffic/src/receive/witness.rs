//! Detects machine pauses. A thread reads the clock continuously; a gap without a context switch
//! means that the core was stopped.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use longwire_engine::Nanos;
use longwire_runtime::clock::monotonic_now;
use longwire_runtime::host;
use nix::sys::resource::{UsageWho, getrusage};

use super::report::WitnessReport;

/// Minimum gap between clock readings that counts as a pause.
const PAUSE_MIN: Nanos = Nanos::from_micros(100);

/// Interval between published results.
const PUBLISH: Nanos = Nanos::from_millis(20);

/// Handle to a witness thread, which ends when the handle is dropped.
pub(super) struct Witness {
    shared: Arc<Watch>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Watch {
    stop: AtomicBool,
    seen: Mutex<WitnessReport>,
}

impl Witness {
    /// Watches `core`, or the core chosen by the scheduler. The thread is in the idle scheduling
    /// class, so it preempts no other thread.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub(super) fn start(core: Option<usize>) -> std::io::Result<Witness> {
        let shared = Arc::new(Watch::default());
        let watched = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("longwire-witness".to_owned())
            .spawn(move || {
                host::give_up_rights();
                if let Some(core) = core {
                    // Best effort: on failure, the thread watches a core chosen by the scheduler.
                    let _ = host::pin(core);
                }
                yield_to_everybody();
                watch(&watched);
            })?;
        Ok(Witness {
            shared,
            thread: Some(thread),
        })
    }

    /// Returns the pauses detected so far.
    pub(super) fn seen(&self) -> WitnessReport {
        let seen = self.shared.seen.lock();
        *seen.unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops and returns the pauses.
    pub(super) fn stop(mut self) -> WitnessReport {
        self.end();
        self.seen()
    }

    fn end(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.end();
    }
}

/// Switches to SCHED_IDLE, so that any other thread preempts this one.
fn yield_to_everybody() {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the pointer refers to a live value that the call only reads; 0 means the calling
    // thread. On failure, the witness is an ordinary thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) };
}

fn watch(shared: &Watch) {
    let mut seen = WitnessReport::default();
    let mut taken = times_taken();
    let mut last = monotonic_now();
    let mut published = last;
    while !shared.stop.load(Ordering::Relaxed) {
        let now = monotonic_now();
        let gap = now.saturating_sub(last);
        last = now;
        if gap >= PAUSE_MIN {
            let before = std::mem::replace(&mut taken, times_taken());
            if taken != before {
                continue;
            }
            seen.pauses.count += 1;
            seen.pauses.total_us += gap.as_micros_f64();
            seen.pauses.max_us = seen.pauses.max_us.max(gap.as_micros_f64());
        }
        seen.watched_s += gap.as_secs_f64();
        if now.saturating_sub(published) >= PUBLISH {
            published = now;
            publish(shared, seen);
        }
    }
    publish(shared, seen);
}

fn publish(shared: &Watch, seen: WitnessReport) {
    *shared.seen.lock().unwrap_or_else(PoisonError::into_inner) = seen;
}

/// Returns this thread's number of context switches.
fn times_taken() -> i64 {
    getrusage(UsageWho::RUSAGE_THREAD).map_or(0, |usage| {
        usage.involuntary_context_switches() + usage.voluntary_context_switches()
    })
}

/// Returns the steal time of all cores since boot in seconds; `None` if the kernel does not report
/// it.
pub(super) fn stolen_s() -> Option<f64> {
    // SAFETY: sysconf takes an integer and accesses no memory of the caller.
    let ticks_per_s = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    let stat = fs::read_to_string("/proc/stat").ok()?;
    (ticks_per_s > 0).then_some(stolen_ticks(&stat)? as f64 / ticks_per_s as f64)
}

/// Returns the eighth number on the `cpu` line.
fn stolen_ticks(stat: &str) -> Option<u64> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    line.split_whitespace().nth(7)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn steal_time_is_parsed() {
        let stat = "cpu  2914304 59497 398798 1331093 7323 0 14672 1320 0 0\ncpu0 1 2 3\n";
        assert_eq!(stolen_ticks(stat), Some(1_320));
        assert_eq!(stolen_ticks("cpu  1 2 3\n"), None);
        assert_eq!(stolen_ticks(""), None);
    }

    #[test]
    fn a_witness_reports_at_most_its_lifetime() {
        let start = Instant::now();
        let Ok(witness) = Witness::start(None) else {
            panic!("a thread starts");
        };
        std::thread::sleep(Duration::from_millis(100));
        let seen = witness.stop();
        let lived = start.elapsed().as_secs_f64();
        assert!(seen.watched_s <= lived, "{seen:?}");
        assert!(seen.pauses.total_us <= lived * 1e6, "{seen:?}");
        assert!(seen.pauses.max_us <= seen.pauses.total_us);
    }
}
