//! Time to copy a frame: the lower bound that the machine sets.

use std::hint::black_box;
use std::time::{Duration, Instant};

use longwire_runtime::host;

/// Duration of a measurement.
const TIME: Duration = Duration::from_millis(150);

/// Returns the nanoseconds to copy a frame of `size` bytes between two areas of `area`
/// bytes. A second core copies concurrently, as the pipeline's two stages do.
pub(super) fn nanos_per_frame(size: usize, area: usize) -> f64 {
    std::thread::scope(|scope| {
        // On separate threads: pinning must not outlast the measurement.
        let cores = host::allowed_cores();
        let copies: Vec<_> = (0..2)
            .map(|nth| cores.get(nth).copied())
            .map(|core| scope.spawn(move || copy_on(core, size, area)))
            .collect();
        let times = copies.into_iter().map(|copy| {
            copy.join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        times.sum::<f64>() / 2.0
    })
}

fn copy_on(core: Option<usize>, size: usize, area: usize) -> f64 {
    core.map(host::pin);
    let area = area.max(size);
    let source = vec![1u8; area];
    let mut target = vec![2u8; area];
    let frames = area / size;
    let (start, mut copied) = (Instant::now(), 0u64);
    while start.elapsed() < TIME {
        for (from, to) in source.chunks_exact(size).zip(target.chunks_exact_mut(size)) {
            to.copy_from_slice(black_box(from));
            black_box(&to[0]);
        }
        copied += frames as u64;
    }
    start.elapsed().as_nanos() as f64 / copied.max(1) as f64
}
