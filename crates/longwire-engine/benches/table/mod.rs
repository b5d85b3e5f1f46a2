//! Best time per frame of each case, for the tables in SPECIFICATION.md.

use std::cell::RefCell;
use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::Criterion;

/// Best time per frame for each case, in nanoseconds.
#[derive(Default)]
pub struct Table(RefCell<Vec<(String, f64)>>);

impl Table {
    /// Measures one case in rounds of `frames` frames.
    pub fn measure(
        &self,
        criterion: &mut Criterion,
        name: &str,
        frames: u64,
        mut round: impl FnMut() -> u64,
    ) {
        let mut best = f64::INFINITY;
        criterion.bench_function(name, |bencher| {
            bencher.iter_custom(|count| {
                let rounds = count.div_ceil(frames);
                let start = Instant::now();
                for _ in 0..rounds {
                    black_box(round());
                }
                let per_frame = start.elapsed().as_secs_f64() / (rounds * frames) as f64;
                best = best.min(per_frame * 1e9);
                Duration::from_secs_f64(per_frame * count as f64)
            });
        });
        // A command-line filter may have excluded this case.
        if best.is_finite() {
            self.0.borrow_mut().push((name.to_owned(), best));
        }
    }

    /// Prints the rows; a no-op without `--bench`, because nothing was measured.
    pub fn print(&self, print: impl FnOnce(&[(String, f64)])) {
        if std::env::args().any(|argument| argument == "--bench") {
            print(&self.0.borrow());
        }
    }
}

/// Returns a configuration with short measurements, for benchmarks with many cases.
pub fn short() -> Criterion {
    Criterion::default()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(800))
}
