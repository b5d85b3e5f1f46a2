//! An interface that is removed while frames are sent through it: sending fails at once
//! with an error that names the cause, and the number of frames sent before is known.
//! Without the right to create namespaces the tests are skipped with a message, except
//! in CI, where they fail.

use crate::common::pair;
use longwire_testbed::support::skip;
use std::thread;
use std::time::{Duration, Instant};

use longwire_engine::Nanos;
use longwire_io::net;
use longwire_io::port::options::{OpenOptions, Purpose};
use longwire_io::port::registry::{self, AnyTx};
use longwire_io::{PortError, PushResult, TxFrame, TxPort};
use pair::{PORT, Pair, STATION, frame};

/// Time limit for sending to fail after the interface was removed.
const NOTICE: Duration = Duration::from_secs(2);
/// A length that `packet:` sends by AF_XDP, and one that it sends by a packet socket.
const LENGTHS: [usize; 2] = [64, 6000];

/// Returns `None` with a message if the port is not allowed; in CI that is a failure.
fn open(pair: &Pair, kind: &str) -> Option<AnyTx> {
    let options = OpenOptions {
        purpose: Purpose::Send,
        ..OpenOptions::default()
    };
    let opened = pair.in_port(|| registry::open(&format!("{kind}:{PORT}"), &options));
    match opened {
        Err(error @ PortError::Denied { .. }) => skip(error),
        opened => Some(opened.unwrap().tx),
    }
}

/// Sends until an error occurs. Returns it and the number of frames that had left.
fn send_until_error(tx: &mut AnyTx, len: usize) -> (u64, PortError) {
    let bytes = frame(1, len);
    let start = Instant::now();
    let mut left = 0;
    loop {
        for _ in 0..32 {
            if tx.push(TxFrame::whole(&bytes, Nanos::ZERO)) != PushResult::Taken {
                break;
            }
        }
        match tx.flush() {
            Ok(frames) => left += frames as u64,
            Err(error) => return (left, error),
        }
        assert!(start.elapsed() < NOTICE, "sending never noticed");
    }
}

/// Sends, calls `happen` meanwhile, and checks the result of sending.
fn check(kind: &str, len: usize, happen: fn(&Pair)) {
    let Some(pair) = Pair::number(1, if len > 1514 { 9000 } else { 1500 }) else {
        return;
    };
    let Some(mut tx) = open(&pair, kind) else {
        return;
    };
    let (left, error) = thread::scope(|scope| {
        let sending = scope.spawn(|| send_until_error(&mut tx, len));
        thread::sleep(Duration::from_millis(30));
        happen(&pair);
        sending.join().unwrap()
    });
    assert!(left > 0, "{kind} {len} B: nothing was sent before");
    assert!(
        matches!(error, PortError::Gone { .. }),
        "{kind} {len} B: {error}"
    );
    let said = error.to_string();
    assert!(said.contains(&format!("{kind}:{PORT} is gone")), "{said}");
    // The error persists: no call blocks or succeeds.
    for _ in 0..3 {
        let _ = tx.push(TxFrame::whole(&frame(1, len), Nanos::ZERO));
        assert!(tx.flush().is_err(), "{kind} {len} B");
    }
}

/// Checks all ways to send.
fn check_all(happen: fn(&Pair)) {
    for len in LENGTHS {
        check("packet", len, happen);
    }
    check("xdp", 64, happen);
}

#[test]
fn an_interface_that_is_deleted_ends_sending() {
    check_all(|pair| pair.in_port(|| net::link_delete(PORT)).unwrap());
}

#[test]
fn an_interface_that_is_set_down_ends_sending() {
    check_all(|pair| pair.in_port(|| net::link_down(PORT)).unwrap());
}

/// Like a cable that is pulled out and plugged in again: frames sent meanwhile are lost
/// and counted, each once, and later frames pass.
#[test]
fn frames_sent_without_a_carrier_are_lost_and_counted() {
    for (kind, len) in [("packet", 64), ("packet", 6000), ("xdp", 64)] {
        let Some(pair) = Pair::number(1, if len > 1514 { 9000 } else { 1500 }) else {
            return;
        };
        let Some(mut tx) = open(&pair, kind) else {
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
                // Until the kernel has noticed, frames wait in the port.
                while tx.push(TxFrame::whole(&frame(n, len), Nanos::ZERO)) == PushResult::Full {
                    left += tx.flush().unwrap() as u64;
                    assert!(start.elapsed() < NOTICE, "{kind} {len} B: full for ever");
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
