//! The time that a cache line takes from one core to another. A hypervisor may place
//! virtual cores on one cache or on two, and move them during a run.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::host;

/// Two threads that hand frames to each other are slower than one that does the work of
/// both, if a line takes longer than this: at 64 bytes without delay, one thread needs 16
/// to 20 ns a frame, two need 12 to 17 where a line takes 22 to 60 ns, and 30 to 80 where
/// it takes 190 and more.
pub const FAR: Duration = Duration::from_nanos(100);

/// Round trips of one measurement.
const TRIPS: u32 = 2_000;

/// Measurements, of which the shortest counts: other threads may interrupt one.
const ROUNDS: usize = 5;

/// A measurement that takes longer is given up: a core is in use by others.
const LIMIT: Duration = Duration::from_millis(20);

/// Measures the time that a line takes between two cores. `None` if the threads cannot
/// be pinned to them, or others use the cores. Takes up to 40 ms, and less than 3 ms on
/// idle cores.
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
            let _end = Stop(&stop);
            host::pin(one).ok()?;
            let started = Instant::now();
            let mut value = 0;
            let mut shortest = None;
            // The first round waits for the other thread to begin.
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

/// Sets a flag when it is dropped.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Makes round trips, and returns their time; `None` if they take too long.
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

/// Waits for a value; returns `false` if the other thread has ended.
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
            // Busy cores yield no figure.
            if let Some(time) = between(one, other) {
                let range = Duration::from_nanos(1)..Duration::from_micros(10);
                assert!(range.contains(&time), "{time:?}");
            }
        }
        assert_eq!(between(cores[0], cores[0]), None);
        assert_eq!(between(cores[0], 1 << 20), None, "there is no such core");
    }
}
