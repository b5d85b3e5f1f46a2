//! Measures the processor time to complete a checksum and to cut a segment out of a super-packet.
//! Unlike wall time, processor time is independent of other programs.
//!
//! Run `cargo bench -p longwire-io --bench offload`; `-- --test` shortens each measurement.

#[path = "../tests/it/common/frames.rs"]
#[allow(dead_code, missing_docs, reason = "the tests use the rest")]
mod frames;

use std::hint::black_box;

use frames::FrameSpec;
use longwire_io::clock::read_clock;
use longwire_io::port::offload::{cut, finish_if_partial};
use nix::time::ClockId;

/// Returns the thread's processor time in nanoseconds.
fn cpu_time() -> u64 {
    read_clock(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

/// Prints the median processor time per item over five runs of `work`.
fn measure(what: &str, items: u64, mut work: impl FnMut()) {
    let mut nanos: Vec<f64> = (0..5)
        .map(|_| {
            let begin = cpu_time();
            work();
            (cpu_time() - begin) as f64 / items as f64
        })
        .collect();
    nanos.sort_by(f64::total_cmp);
    let middle = nanos[2];
    println!("{what:<44} {middle:8.1} ns  {:8.2} M/s", 1_000.0 / middle);
}

fn offloads(rounds: u64) {
    let spec = FrameSpec::tcp(60_000);
    let super_frame = spec.build_partial();
    let segments = spec.segments(1448);
    let count = segments.wire_frames(super_frame.len()).len();
    let mut out = Vec::with_capacity(super_frame.len());
    measure(
        "cut a wire frame of 1514 bytes",
        rounds * count as u64,
        || {
            for _ in 0..rounds {
                for n in 0..count {
                    black_box(cut(black_box(&super_frame), segments, n..n + 1, &mut out).unwrap());
                }
            }
        },
    );
    measure("cut half a super-packet of 60,000 bytes", rounds, || {
        for _ in 0..rounds {
            black_box(cut(black_box(&super_frame), segments, 0..count / 2, &mut out).unwrap());
        }
    });
    for payload in [0, 1448] {
        let partial = FrameSpec::tcp(payload).build_partial();
        let mut finished = partial.clone();
        finish_if_partial(&mut finished);
        let len = partial.len();
        let rounds = rounds * 40;
        measure(
            &format!("check a complete checksum, {len} bytes"),
            rounds,
            || {
                for _ in 0..rounds {
                    assert!(!finish_if_partial(black_box(&mut finished)));
                }
            },
        );
        measure(&format!("complete a checksum, {len} bytes"), rounds, || {
            for _ in 0..rounds {
                out.clear();
                out.extend_from_slice(&partial);
                assert!(finish_if_partial(black_box(&mut out)));
            }
        });
    }
}

fn main() {
    let short = std::env::args().any(|argument| argument == "--test");
    offloads(if short { 10 } else { 20_000 });
}
