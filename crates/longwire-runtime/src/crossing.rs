//! Cache-line latency between cores. A hypervisor may place two virtual cores on the same cache or
//! on different ones, and migrate them during a run.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::host;
use crate::sync::SetOnDrop;

/// Cache-line latency above which one thread outperforms two that hand frames over. For 64-byte
/// frames without delay, one thread needs 16 to 20 ns per frame; two need 12 to 17 ns at a latency
/// of 22 to 60 ns, and 30 to 80 ns at 190 ns or more.
pub const FAR: Duration = Duration::from_nanos(100);

/// Round trips per measurement.
const TRIPS: u32 = 2_000;

/// Number of measurements. Only the minimum counts, because other threads may interrupt the others.
const ROUNDS: usize = 5;

/// Time limit for all measurements together. It expires if other threads occupy a core.
const LIMIT: Duration = Duration::from_millis(20);

/// Measures the cache-line latency between two cores. Returns `None` if a thread cannot be pinned
/// or a core is busy. Takes less than 3 ms on idle cores, and otherwise at most `LIMIT` plus
/// scheduling delays.
pub fn between(one: usize, other: usize) -> Option<Duration> {
    let ball = AtomicU32::new(0);
    let stop = AtomicBool::new(one == other);
    std::thread::scope(|scope| {
        let spawn = std::thread::Builder::new().spawn_scoped(scope, || {
            if host::pin(other).is_err() {
                stop.store(true, Ordering::Relaxed);
            }
            let mut value = 1;
            while wait_for(&ball, value, &stop) {
                ball.store(value + 1, Ordering::Release);
                value += 2;
            }
        });
        spawn.ok()?;
        let timed = std::thread::Builder::new().spawn_scoped(scope, || {
            let _end = SetOnDrop(&stop);
            host::pin(one).ok()?;
            let started = Instant::now();
            let mut value = 0;
            let mut shortest = None;
            // The first round waits for the other thread to start.
            for round in 0..=ROUNDS {
                let time = round_trips(&ball, &mut value, &stop, started)?;
                if round > 0 {
                    shortest = Some(shortest.map_or(time, |known: Duration| known.min(time)));
                }
            }
            shortest.map(|time| time / (2 * TRIPS))
        });
        timed.ok()?.join().ok().flatten()
    })
}

/// Makes round trips and returns their total time; `None` on timeout.
fn round_trips(
    ball: &AtomicU32,
    value: &mut u32,
    stop: &AtomicBool,
    started: Instant,
) -> Option<Duration> {
    let start = Instant::now();
    for trip in 0..TRIPS {
        ball.store(*value + 1, Ordering::Release);
        *value += 2;
        let mut looks = 0u32;
        while ball.load(Ordering::Acquire) != *value {
            looks += 1;
            if looks.is_multiple_of(1_024)
                && (stop.load(Ordering::Relaxed) || started.elapsed() > LIMIT)
            {
                return None;
            }
            std::hint::spin_loop();
        }
        if trip.is_multiple_of(64) && started.elapsed() > LIMIT {
            return None;
        }
    }
    Some(start.elapsed())
}

/// Waits until `ball` has this value. Returns `false` if stopped first.
fn wait_for(ball: &AtomicU32, value: u32, stop: &AtomicBool) -> bool {
    while ball.load(Ordering::Acquire) != value {
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        std::hint::spin_loop();
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_takes_time_between_two_cores_and_none_to_itself() {
        let cores = host::allowed_cores();
        if let [one, other, ..] = cores[..] {
            // Busy cores yield no result.
            if let Some(time) = between(one, other) {
                let range = Duration::from_nanos(1)..Duration::from_micros(10);
                assert!(range.contains(&time), "{time:?}");
            }
        }
        assert_eq!(between(cores[0], cores[0]), None);
        assert_eq!(between(cores[0], 1 << 20), None, "there is no such core");
    }
}
