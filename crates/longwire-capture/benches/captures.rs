//! Measures the CPU time per frame to read and to write captures, which is independent of other
//! programs, and the elapsed time per frame to read them with and without compression and a
//! read-ahead thread.
//!
//! Run `cargo bench -p longwire-capture --bench captures`. `-- --test` shortens each measurement;
//! `-- --huge` reads a sparse 20 GB file that stores only record headers.

use std::fs::File;
use std::hint::black_box;
use std::iter::repeat_n;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use longwire_capture::{CaptureReader, CaptureWriter};
use longwire_engine::Nanos;
use nix::time::{ClockId, clock_gettime};

#[path = "../tests/it/common/packing.rs"]
#[allow(dead_code, missing_docs, reason = "the tests use the rest")]
mod packing;

const THIS_THREAD: ClockId = ClockId::CLOCK_THREAD_CPUTIME_ID;
const ALL_THREADS: ClockId = ClockId::CLOCK_PROCESS_CPUTIME_ID;

/// Returns the CPU time used so far, in nanoseconds.
fn cpu_time(clock: ClockId) -> u64 {
    let time = clock_gettime(clock).unwrap();
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}

/// Prints the median time per item of five runs of `work`.
fn measure(what: &str, items: u64, mut work: impl FnMut()) {
    let mut nanos: Vec<f64> = (0..5)
        .map(|_| {
            let begin = cpu_time(THIS_THREAD);
            work();
            (cpu_time(THIS_THREAD) - begin) as f64 / items as f64
        })
        .collect();
    nanos.sort_by(f64::total_cmp);
    let middle = nanos[2];
    println!("{what:<44} {middle:8.1} ns  {:8.2} M/s", 1_000.0 / middle);
}

fn captures(count: u64) {
    let dir = std::env::temp_dir();
    for extension in ["pcap", "pcapng"] {
        for len in [64, 1514] {
            let name = format!("longwire-bench-{}-{len}.{extension}", std::process::id());
            let path = dir.join(name);
            let path = path.to_str().unwrap();
            let frame = vec![0x5a; len];
            let count = count * 64 / len as u64;
            measure(&format!("write {extension}, {len} bytes"), count, || {
                write(path, repeat_n(&frame, count as usize));
            });
            measure(&format!("read {extension}, {len} bytes"), count, || {
                assert_eq!(read(path, false, |bytes| _ = black_box(bytes)), count);
            });
            std::fs::remove_file(path).unwrap();
        }
    }
}

fn write(path: &str, frames: impl Iterator<Item = impl AsRef<[u8]>>) {
    let mut writer = CaptureWriter::create(path).unwrap();
    for (n, frame) in (0..).zip(frames) {
        let stamp = Nanos::from_nanos(1_700_000_000_000_000_000 + n * 1_000);
        let frame = frame.as_ref();
        writer.write(stamp, frame, frame.len() as u32).unwrap();
    }
    writer.finish().unwrap();
}

fn read(path: &str, ahead: bool, mut take: impl FnMut(&[u8])) -> u64 {
    let mut reader = CaptureReader::open(path).unwrap();
    if ahead {
        reader.read_ahead(false, || ()).unwrap();
    }
    let mut seen = 0;
    while let Some(record) = reader.next().unwrap() {
        seen += 1;
        take(record.bytes);
    }
    seen
}

/// Returns a payload that compresses to about half: 16 letters at random.
fn payload(len: usize, state: &mut u32) -> Vec<u8> {
    let bytes = (0..len).map(|_| {
        *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (*state >> 28) as u8 + b'a'
    });
    bytes.collect()
}

fn packed(count: u64) {
    let path = std::env::temp_dir().join(format!("longwire-bench-{}.pcap", std::process::id()));
    let path = path.to_str().unwrap();
    for len in [64, 1514] {
        let count = count * 64 / len as u64;
        let mut state = 1;
        write(path, (0..count).map(|_| payload(len, &mut state)));
        let plain = std::fs::read(path).unwrap();
        let packed = packing::all(&plain).into_iter();
        for (name, bytes) in packed.chain([("plain", plain.clone())]) {
            std::fs::write(path, bytes).unwrap();
            for ahead in [false, true] {
                let mut times: Vec<_> = (0..5).map(|_| read_time(path, count, ahead)).collect();
                times.sort_by(|one, other| one.0.total_cmp(&other.0));
                let (nanos, cpu) = times[2];
                let place = if ahead { "read ahead" } else { "inline" };
                let gigabytes = plain.len() as f64 / count as f64 / nanos;
                println!(
                    "read {name:<5} of {len:>4} bytes, {place:<11} {nanos:8.1} ns {:8.2} M/s \
                     {gigabytes:6.2} GB/s  {cpu:8.1} ns of CPU time",
                    1e3 / nanos,
                );
            }
        }
    }
    std::fs::remove_file(path).unwrap();
}

/// Returns the elapsed time, and the CPU time of all threads, in nanoseconds per frame. Copies each
/// frame once, as a delay line would.
fn read_time(path: &str, count: u64, ahead: bool) -> (f64, f64) {
    let mut line = vec![0u8; 4 << 20];
    let mut at = 0;
    let (begin, cpu_begin) = (Instant::now(), cpu_time(ALL_THREADS));
    let seen = read(path, ahead, |bytes| {
        if at + bytes.len() > line.len() {
            at = 0;
        }
        line[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len().next_multiple_of(64);
    });
    black_box(&line);
    assert_eq!(seen, count);
    let cpu = cpu_time(ALL_THREADS) - cpu_begin;
    let nanos = begin.elapsed().as_nanos() as f64;
    (nanos / count as f64, cpu as f64 / count as f64)
}

/// Reads 20 GB of records whose data are holes in the file, and prints the peak resident memory.
fn huge() {
    const LEN: u32 = 250_000;
    const RECORDS: u64 = 80_000;
    let path = std::env::temp_dir().join(format!("longwire-huge-{}.pcap", std::process::id()));
    let file = File::create(&path).unwrap();
    let words =
        |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|word| word.to_le_bytes()).collect() };
    let head = [0xa1b2_3c4d, 0x0004_0002, 0, 0, 262_144, 1];
    file.write_all_at(&words(&head), 0).unwrap();
    let record_len = 16 + u64::from(LEN);
    for n in 0..RECORDS {
        let record = words(&[1_700_000_000 + n as u32 / 1_000, n as u32 % 1_000, LEN, LEN]);
        file.write_all_at(&record, 24 + n * record_len).unwrap();
    }
    file.set_len(24 + RECORDS * record_len).unwrap();
    drop(file);
    let begin = Instant::now();
    let mut bytes = 0;
    let seen = read(path.to_str().unwrap(), true, |frame| {
        bytes += frame.len() as u64
    });
    let seconds = begin.elapsed().as_secs_f64();
    std::fs::remove_file(&path).unwrap();
    assert_eq!((seen, bytes), (RECORDS, RECORDS * u64::from(LEN)));
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.unwrap().trim();
    println!("read 20 GB in {seconds:.1} s; peak resident memory {peak}");
}

fn main() {
    let short = std::env::args().any(|argument| argument == "--test");
    if std::env::args().any(|argument| argument == "--huge") {
        return huge();
    }
    captures(if short { 10_000 } else { 4_000_000 });
    packed(if short { 10_000 } else { 2_000_000 });
}
