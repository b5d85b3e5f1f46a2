//! Measures the delay line's cost per frame: push, publish, read, and copy into a ring as a network
//! driver does. The cases are one and two cores, with almost no backlog and with 20 ms of backlog
//! at 100 Gbit/s.
//!
//! Two-core results depend on the distance between the cores, which changes from minute to minute
//! on a virtual machine, so the cache-line latency between them is printed too.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use longwire_engine::{Bytes, Nanos};
use longwire_io::Offload;
use longwire_io::delay_line::{
    DelayLineConfig, DelayLineReader, DelayLineWriter, Note, PushError, delay_line,
};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;

/// Frames per push and per read.
const BURST: u64 = 32;

/// Size of the long backlog in bytes.
const LONG: u64 = 250_000_000;

/// Size of the source and of the sink's ring; both fit in the cache.
const RING: usize = 256 << 10;

#[derive(Clone, Copy)]
struct Case {
    len: usize,
    lent: bool,
}

impl Case {
    fn all() -> [Case; 4] {
        let cases = [(64, false), (512, false), (1500, false), (1500, true)];
        cases.map(|(len, lent)| Case { len, lent })
    }

    fn name(self, waiting: u64) -> String {
        let Case { len, lent } = self;
        let lent = if lent { " lent" } else { "" };
        let megabytes = waiting * len as u64 / 1_000_000;
        format!("{len} B{lent}, {megabytes} MB waiting")
    }

    /// Returns the backlogs to test, in frames: none, and enough to fill [`LONG`] bytes.
    fn waiting(self) -> [u64; 2] {
        [0, LONG / self.len as u64 / BURST * BURST]
    }
}

/// The delay line's writer and its frame source.
struct Sender {
    writer: DelayLineWriter,
    source: Slots,
    case: Case,
    number: u64,
}

impl Sender {
    #[inline]
    fn push(&mut self) -> Result<(), PushError> {
        let note = Note {
            release: Nanos::from_nanos(self.number),
            tag: 1,
            offload: Offload::NONE,
            part: None,
            wire_len: self.case.len as u32,
        };
        if self.case.lent {
            self.writer
                .push_lent(self.number, self.case.len as u32, note)?;
        } else {
            self.writer.push(self.source.here(), note)?;
            self.source.step();
        }
        self.number += 1;
        Ok(())
    }

    fn send_burst(&mut self) {
        for _ in 0..BURST {
            while self.push().is_err() {
                self.writer.publish();
                spin_loop();
            }
        }
        self.writer.publish();
    }
}

/// The delay line's reader and the ring that it copies to.
struct Receiver {
    reader: DelayLineReader,
    ring: Slots,
    /// Number of frames to leave on the line.
    waiting: u64,
}

impl Receiver {
    fn receive_burst(&mut self) {
        while self.reader.published() < self.waiting + BURST {
            spin_loop();
        }
        for _ in 0..BURST {
            black_box(self.reader.front());
            let bytes = self.reader.front_bytes();
            if !bytes.is_empty() {
                self.ring.here().copy_from_slice(bytes);
                black_box(&mut self.ring).step();
            }
            self.reader.advance();
        }
        self.reader.settle();
    }
}

/// Cycles through the frames of a small buffer.
struct Slots {
    bytes: Vec<u8>,
    len: usize,
    at: usize,
}

impl Slots {
    fn new(len: usize) -> Slots {
        let slots = RING / len.next_multiple_of(64);
        Slots {
            bytes: vec![7; slots * len.next_multiple_of(64)],
            len,
            at: 0,
        }
    }

    #[inline]
    fn here(&mut self) -> &mut [u8] {
        &mut self.bytes[self.at..][..self.len]
    }

    #[inline]
    fn step(&mut self) {
        self.at += self.len.next_multiple_of(64);
        if self.at == self.bytes.len() {
            self.at = 0;
        }
    }
}

/// Creates a line with a backlog of `waiting` frames and memory for a few more.
fn pair(case: Case, waiting: u64) -> (Sender, Receiver) {
    let frames = waiting * (case.len as u64 + 32);
    let (writer, reader) = delay_line(&DelayLineConfig {
        budget: Bytes(frames + (4 << 20)),
        huge_pages: false,
    })
    .unwrap();
    let mut sender = Sender {
        writer,
        source: Slots::new(case.len),
        case,
        number: 0,
    };
    for _ in 0..waiting / BURST {
        sender.send_burst();
    }
    let ring = Slots::new(case.len);
    (
        sender,
        Receiver {
            reader,
            ring,
            waiting,
        },
    )
}

fn pin(core: usize) {
    let mut cores = CpuSet::new();
    // With too few cores, both sides share one.
    if cores.set(core).is_ok() {
        let _ = sched_setaffinity(Pid::from_raw(0), &cores);
    }
}

fn group<'a>(criterion: &'a mut Criterion, name: &str) -> BenchmarkGroup<'a, WallTime> {
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(BURST));
    group
        .sample_size(20)
        .measurement_time(Duration::from_secs(1));
    group.warm_up_time(Duration::from_millis(300));
    group
}

fn on_one_core(criterion: &mut Criterion) {
    pin(0);
    let mut group = group(criterion, "delay line, one core");
    for case in Case::all() {
        for waiting in case.waiting() {
            let (mut sender, mut receiver) = pair(case, waiting);
            group.bench_function(case.name(waiting), |bencher| {
                bencher.iter(|| {
                    sender.send_burst();
                    receiver.receive_burst();
                });
            });
        }
    }
}

fn on_two_cores(criterion: &mut Criterion) {
    println!("a cache line crosses between the cores in {:?}", crossing());
    let mut group = group(criterion, "delay line, two cores");
    for case in Case::all() {
        for waiting in case.waiting() {
            let (mut sender, mut receiver) = pair(case, waiting);
            group.bench_function(case.name(waiting), |bencher| {
                bencher.iter_custom(|bursts| carry(&mut sender, &mut receiver, bursts));
            });
        }
    }
}

/// Returns the time to carry `bursts` bursts from core 0 to core 1.
fn carry(sender: &mut Sender, receiver: &mut Receiver, bursts: u64) -> Duration {
    thread::scope(|scope| {
        scope.spawn(move || {
            pin(0);
            (0..=bursts).for_each(|_| sender.send_burst());
        });
        pin(1);
        // The first burst is not measured, because it waits for the thread to start.
        receiver.receive_burst();
        let start = Instant::now();
        (0..bursts).for_each(|_| receiver.receive_burst());
        start.elapsed()
    })
}

/// Returns the cache-line latency between the two cores, averaged over many round trips.
fn crossing() -> Duration {
    const TURNS: u64 = 20_000;
    let turn = AtomicU64::new(0);
    let play = |mine: u64| {
        for number in (mine..TURNS).step_by(2) {
            while turn.load(Ordering::Acquire) != number {
                spin_loop();
            }
            turn.store(number + 1, Ordering::Release);
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            pin(0);
            play(1);
        });
        pin(1);
        let start = Instant::now();
        play(0);
        start.elapsed() / TURNS as u32
    })
}

criterion_group!(benches, on_one_core, on_two_cores);
criterion_main!(benches);
