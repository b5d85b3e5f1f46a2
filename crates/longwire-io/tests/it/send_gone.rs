//! An interface that is removed while frames are sent through it. Sending fails immediately with an
//! error that names the cause, and the number of frames sent before is known. Without the right to
//! create namespaces, the tests are skipped with a message, except in CI, where they fail.

use crate::common::pair;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use longwire_engine::Nanos;
use longwire_io::net;
use longwire_io::port::registry::AnyTx;
use longwire_io::{PortError, PushResult, TxFrame, TxPort};
use pair::{PORT, Pair, STATION, frame, sending};

/// Time limit for sending to fail after the interface is removed.
const NOTICE: Duration = Duration::from_secs(2);

/// All send paths: the kind of port and a frame length. `packet:` sends the short frame through
/// AF_XDP and the long one through a packet socket.
const WAYS: [(&str, usize); 3] = [("packet", 64), ("packet", 6000), ("xdp", 64)];

/// Opens a port for frames of this length, or skips the test if that is not permitted.
fn open(kind: &str, len: usize) -> Option<(Pair, AnyTx)> {
    let pair = Pair::number(1, if len > 1514 { 9000 } else { 1500 })?;
    let tx = pair.open(kind, &sending())?.tx;
    Some((pair, tx))
}

/// Sends until an error occurs and returns it; counts sent frames in `left`.
fn send_until_error(tx: &mut AnyTx, len: usize, left: &AtomicU64) -> PortError {
    let bytes = frame(1, len);
    let start = Instant::now();
    loop {
        for _ in 0..32 {
            if tx.push(TxFrame::whole(&bytes, Nanos::ZERO)) != PushResult::Taken {
                break;
            }
        }
        match tx.flush() {
            Ok(frames) => {
                left.fetch_add(frames as u64, Relaxed);
            }
            Err(error) => return error,
        }
        assert!(start.elapsed() < NOTICE, "sending still succeeds");
    }
}

#[test]
fn an_interface_that_is_deleted_or_set_down_ends_sending() {
    for (kind, len) in WAYS {
        for remove in [net::link_delete, net::link_down] {
            let Some((pair, mut tx)) = open(kind, len) else {
                continue;
            };
            let left = AtomicU64::new(0);
            let error = thread::scope(|scope| {
                let sender = scope.spawn(|| send_until_error(&mut tx, len, &left));
                while left.load(Relaxed) == 0 && !sender.is_finished() {
                    thread::yield_now();
                }
                pair.in_port(|| remove(PORT)).unwrap();
                sender.join().unwrap()
            });
            let left = left.into_inner();
            assert!(left > 0, "{kind} {len} B: nothing was sent before");
            let said = error.to_string();
            assert!(matches!(error, PortError::Gone { .. }), "{len} B: {said}");
            assert!(said.contains(&format!("{kind}:{PORT} is gone")), "{said}");
            // The error persists: no call blocks or succeeds.
            for _ in 0..3 {
                let _ = tx.push(TxFrame::whole(&frame(1, len), Nanos::ZERO));
                assert!(tx.flush().is_err(), "{kind} {len} B");
            }
        }
    }
}

/// Frames sent while the carrier is gone, as with an unplugged cable, are lost and counted once
/// each; later frames pass.
#[test]
fn frames_sent_without_a_carrier_are_lost_and_counted() {
    for (kind, len) in WAYS {
        let Some((pair, mut tx)) = open(kind, len) else {
            continue;
        };
        let arrived = || {
            let stats = pair.in_station(|| net::link_stats(STATION));
            stats.unwrap().rx_packets
        };
        let before = arrived();
        let mut left = 0;
        for turn in 0..3 {
            match turn {
                1 => pair.in_station(|| net::link_down(STATION)).unwrap(),
                2 => pair.in_station(|| net::link_up(STATION)).unwrap(),
                _ => {}
            }
            let start = Instant::now();
            for n in 0..100 {
                // Until the kernel notices the missing carrier, frames wait in the port.
                while tx.push(TxFrame::whole(&frame(n, len), Nanos::ZERO)) == PushResult::Full {
                    left += tx.flush().unwrap() as u64;
                    assert!(
                        start.elapsed() < NOTICE,
                        "{kind} {len} B: the port stays full"
                    );
                }
                left += tx.flush().unwrap() as u64;
            }
            while tx.unsent() > 0 {
                left += tx.flush().unwrap() as u64;
                assert!(start.elapsed() < NOTICE, "{kind} {len} B: stuck");
            }
        }
        let losses = tx.losses();
        let lost = losses.send_failed + losses.no_carrier;
        assert_eq!(lost, 100, "{kind} {len} B");
        assert_eq!(left, 200, "{kind} {len} B");
        assert_eq!(arrived() - before, 200, "{kind} {len} B");
    }
}
