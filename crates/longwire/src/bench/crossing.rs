//! Latency between two cores. A hypervisor may place them on one cache or on
//! two, and move them while a bench runs.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use longwire_runtime::host;

/// Round trips of one measurement.
const TRIPS: u32 = 20_000;

/// Returns the nanoseconds that a cache line takes from one core to the other;
/// `None` with one core.
pub(super) fn nanos() -> Option<f64> {
    let cores = host::allowed_cores();
    let (one, other) = (*cores.first()?, *cores.get(1)?);
    let ball = AtomicU32::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _ = host::pin(other);
            for trip in 0..TRIPS {
                await_ball(&ball, 2 * trip + 1);
                ball.store(2 * trip + 2, Ordering::Release);
            }
        });
        let timed = scope.spawn(|| {
            let _ = host::pin(one);
            let mut start = Instant::now();
            for trip in 0..TRIPS {
                // The first trip waits for the other thread to begin.
                if trip == 1 {
                    start = Instant::now();
                }
                ball.store(2 * trip + 1, Ordering::Release);
                await_ball(&ball, 2 * trip + 2);
            }
            start.elapsed().as_nanos() as f64 / f64::from(2 * (TRIPS - 1))
        });
        timed.join().ok()
    })
}

fn await_ball(ball: &AtomicU32, value: u32) {
    while ball.load(Ordering::Acquire) != value {
        std::hint::spin_loop();
    }
}
