//! Send stamps: frames' actual departures, as reported by the kernel. Without the right to create
//! namespaces, the tests are skipped with a message, except in CI, where they fail.

use crate::common::pair;
use std::time::{Duration, Instant};

use longwire_engine::Nanos;
use longwire_io::port::AnyTx;
use longwire_io::{PushResult, RxFrame, RxPort, SendStamp, StampedBy, TxFrame, TxPort};
use pair::{Pair, flush, frame, now, number_of, sending};

/// Number of frames per test.
const FRAMES: u32 = 300;
/// Accuracy of comparing two clocks, in nanoseconds.
const SLACK: u64 = 2_000;

/// Polls until `count` stamps have arrived, or for two seconds.
fn stamps(tx: &mut AnyTx, count: usize) -> Vec<SendStamp> {
    let start = Instant::now();
    let mut stamps = Vec::new();
    while stamps.len() < count && start.elapsed() < Duration::from_secs(2) {
        tx.sampled(&mut |stamp| stamps.push(stamp));
    }
    stamps
}

/// Sends frames whose release is the time of the push. Returns each frame's release, and a time on
/// the test's clock by which it had left.
fn send(tx: &mut AnyTx, len: usize) -> Vec<(Nanos, Nanos)> {
    let mut times = Vec::new();
    for n in 0..FRAMES {
        let release = now();
        let bytes = frame(n, len);
        assert_eq!(tx.push(TxFrame::whole(&bytes, release)), PushResult::Taken);
        flush(tx);
        times.push((release, now()));
    }
    times
}

/// Checks that one frame in `every` is stamped, with its own release, between its push and the end
/// of the flush.
fn check_stamps(tx: &mut AnyTx, len: usize, every: u32, what: &str) {
    assert_eq!(tx.sample_every(every), Some(StampedBy::Kernel), "{what}");
    let expected: Vec<_> = send(tx, len).into_iter().step_by(every as usize).collect();
    let stamps = stamps(tx, expected.len());
    assert_eq!(stamps.len(), expected.len(), "{what}");
    let mut transit = Vec::new();
    for (stamp, (release, done)) in stamps.iter().zip(expected) {
        assert_eq!((stamp.release, stamp.by), (release, StampedBy::Kernel));
        let left = stamp.left.as_nanos();
        assert!(left + SLACK >= release.as_nanos(), "{what}: {stamp:?}");
        let done = done.as_nanos();
        assert!(left <= done + SLACK, "{what}: {stamp:?} {done}");
        transit.push(left.saturating_sub(release.as_nanos()));
    }
    transit.sort_unstable();
    let p50 = transit[transit.len() / 2];
    eprintln!("{what}: pushed to left p50 {p50} ns");
    // No stamps once disabled.
    assert_eq!(tx.sample_every(0), None);
    send(tx, len);
    tx.sampled(&mut |stamp| panic!("{what}: {stamp:?} was not asked for"));
}

#[test]
fn stamps_are_those_of_the_frames_asked_for() {
    for (kind, len) in [("packet", 64), ("packet", 1514), ("xdp", 64)] {
        let Some(pair) = Pair::new() else { return };
        let Some(mut port) = pair.open(kind, &sending()) else {
            continue;
        };
        for every in [1, 7] {
            let what = format!("{kind} {len} B 1/{every}");
            check_stamps(&mut port.tx, len, every, &what);
        }
    }
}

#[test]
fn stamped_frames_are_neither_changed_nor_overtaken() {
    for (kind, mtu, lens) in [
        ("packet", 1500, [64, 1514, 200]),
        // The long frames leave through a packet socket.
        ("packet", 9000, [64, 9014, 5000]),
        ("xdp", 1500, [64, 1514, 200]),
    ] {
        let Some(pair) = Pair::number(1, mtu) else {
            return;
        };
        let Some(mut port) = pair.open(kind, &sending()) else {
            continue;
        };
        let mut station = pair.station();
        assert_eq!(port.tx.sample_every(2), Some(StampedBy::Kernel));
        let mut got = Vec::new();
        let mut stamped = 0;
        for n in 0..FRAMES {
            let bytes = frame(n, lens[n as usize % 3]);
            while port.tx.push(TxFrame::whole(&bytes, now())) == PushResult::Full {
                port.tx.flush().unwrap();
            }
            if n % 16 == 15 || n == FRAMES - 1 {
                flush(&mut port.tx);
                let mut keep = |f: RxFrame<'_>| {
                    let number = number_of(f.bytes).unwrap();
                    assert_eq!(f.bytes, frame(number, lens[number as usize % 3]));
                    got.push(number);
                };
                while station.rx.receive(now(), 64, &mut keep).unwrap().frames > 0 {}
                port.tx.sampled(&mut |_| stamped += 1);
            }
        }
        let start = Instant::now();
        while got.len() < FRAMES as usize && start.elapsed() < Duration::from_secs(2) {
            let keep = &mut |f: RxFrame<'_>| got.extend(number_of(f.bytes));
            station.rx.receive(now(), 64, keep).unwrap();
        }
        assert_eq!(got, (0..FRAMES).collect::<Vec<_>>(), "{kind} {mtu}");
        stamped += stamps(&mut port.tx, FRAMES as usize / 2 - stamped).len();
        assert_eq!(stamped, FRAMES as usize / 2, "{kind} {mtu}");
    }
}
