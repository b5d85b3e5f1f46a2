//! Measures the frame rates of the kernel's ports over a veth pair, and the cost and age of a
//! queued frame at reception. Needs the rights to create namespaces and to load XDP programs.
//!
//! Run `cargo bench -p longwire-io --bench ports`; `-- --test` shortens each measurement.

#[path = "../tests/it/common/pair.rs"]
#[allow(dead_code, missing_docs, reason = "the tests use the rest")]
mod pair;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use longwire_engine::Nanos;
use longwire_io::clock::read_clock;
use longwire_io::net;
use longwire_io::port::options::{OpenOptions, XdpMode};
use longwire_io::port::{AnyRx, AnyTx};
use longwire_io::{PushResult, RxPort, TxFrame, TxPort};
use nix::time::ClockId;
use pair::{Pair, STATION, frame, now};

/// A kind of port and its XDP receive mode.
type Kind = (&'static str, XdpMode);

const KINDS: [Kind; 3] = [
    ("packet", XdpMode::Best),
    ("xdp", XdpMode::Native),
    ("xdp", XdpMode::Generic),
];

fn open(pair: &Pair, (kind, xdp_mode): Kind) -> (AnyRx, AnyTx) {
    let options = OpenOptions {
        xdp_mode,
        ..OpenOptions::default()
    };
    let port = pair.open(kind, &options).unwrap();
    (port.rx, port.tx)
}

/// Returns the thread's processor time in nanoseconds, which is independent of other programs.
fn cpu_time() -> u64 {
    read_clock(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

/// Sends at the maximum rate for `time`. Returns the number of frames sent and the processor time
/// per frame in nanoseconds, which includes the kernel's work up to the receiving device.
fn flood(tx: &mut impl TxPort, bytes: &[u8], time: Duration) -> (u64, u64) {
    let start = Instant::now();
    let used = cpu_time();
    let mut left = 0;
    while start.elapsed() < time {
        for _ in 0..64 {
            let taken = tx.push(TxFrame::whole(bytes, Nanos::ZERO));
            if taken != PushResult::Taken {
                break;
            }
        }
        left += tx.flush().unwrap() as u64;
    }
    (left, (cpu_time() - used) / left.max(1))
}

/// Measures the receive rate, with the sender on another core.
fn receive_rate(kind: Kind, len: usize, time: Duration) {
    let Some(pair) = Pair::new() else { return };
    let (mut rx, _tx) = open(&pair, kind);
    let mut sender = pair.station().tx;
    let bytes = frame(1, len);
    let done = AtomicBool::new(false);
    let (sent, cost) = (AtomicU64::new(0), AtomicU64::new(0));
    let mut received = 0u64;
    let mut ages = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            let (left, used) = flood(&mut sender, &bytes, time);
            sent.store(left, Ordering::Relaxed);
            cost.store(used, Ordering::Relaxed);
            done.store(true, Ordering::Release);
        });
        loop {
            let ended = done.load(Ordering::Acquire);
            let mut newest = Nanos::ZERO;
            let clock = now();
            let got = rx.receive(clock, 64, &mut |f| newest = f.arrival).unwrap();
            received += got.frames as u64;
            if got.frames > 0 && ages.len() < 1_000_000 {
                ages.push(clock.saturating_sub(newest).as_nanos());
            }
            if ended && got.frames == 0 {
                break;
            }
        }
    });
    ages.sort_unstable();
    let sent = sent.into_inner();
    println!(
        "receive {kind:?} {len} B: sent {:.3} Mpps, received {:.3} Mpps, sender and kernel {} ns/frame, lost {}, unseen {}, age of a burst's last frame p50 {} ns",
        sent as f64 / time.as_secs_f64() / 1e6,
        received as f64 / time.as_secs_f64() / 1e6,
        cost.into_inner(),
        rx.losses().ring_full,
        sent as i64 - received as i64 - rx.losses().ring_full as i64,
        ages.get(ages.len() / 2).unwrap_or(&0),
    );
}

/// Measures the send rate; the station's stack discards the frames.
fn send_rate(kind: Kind, len: usize, time: Duration) {
    let Some(pair) = Pair::new() else { return };
    let (_rx, mut tx) = open(&pair, kind);
    let stats = || pair.in_station(|| net::link_stats(STATION));
    let arrived = || stats().unwrap().rx_packets;
    let before = arrived();
    let (left, cost) = flood(&mut tx, &frame(1, len), time);
    thread::sleep(Duration::from_millis(20));
    println!(
        "send {kind:?} {len} B: {:.3} Mpps, {cost} ns/frame, lost {}, unseen {}",
        left as f64 / time.as_secs_f64() / 1e6,
        tx.losses().send_failed,
        left as i64 - (arrived() - before) as i64,
    );
}

/// Measures the cost of receiving a queued frame.
fn drain(kind: Kind, len: usize, rounds: usize) {
    let Some(pair) = Pair::new() else { return };
    let (mut rx, _tx) = open(&pair, kind);
    let mut sender = pair.station().tx;
    let bytes = frame(1, len);
    let mut best = u128::MAX;
    for _ in 0..rounds {
        for _ in 0..1000 {
            pair::send(&mut sender, &bytes);
        }
        let (start, mut got, mut sum) = (Instant::now(), 0, 0u64);
        while got < 1000 && start.elapsed() < Duration::from_secs(1) {
            let take = &mut |f: longwire_io::RxFrame<'_>| sum += u64::from(f.bytes[0]);
            got += rx.receive(now(), 64, take).unwrap().frames;
        }
        std::hint::black_box(sum);
        best = best.min(start.elapsed().as_nanos() / 1000);
    }
    println!("receive a queued frame {kind:?} {len} B: {best} ns");
}

fn main() {
    let tiny = std::env::args().any(|argument| argument == "--test");
    let time = Duration::from_millis(if tiny { 20 } else { 2000 });
    for kind in KINDS {
        for len in [64, 1514] {
            receive_rate(kind, len, time);
            send_rate(kind, len, time);
            drain(kind, len, if tiny { 1 } else { 50 });
        }
    }
}
