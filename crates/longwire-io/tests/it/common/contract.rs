//! The port contract, checked in the same way for each port.

use std::time::{Duration, Instant};

use longwire_engine::Nanos;
use longwire_io::{PortError, PortLosses, PushResult, RxFrame, RxPort, TxFrame, TxPort};

use super::pair::{now, until};

/// EtherType of the test's frames, which the kernel's stack ignores.
const EXPERIMENTAL: [u8; 2] = [0x88, 0xb5];
/// Frames per burst in the counting test.
const BURST: usize = 3_000;
/// Time limit for a non-blocking call on a busy machine.
const NOT_BLOCKING: Duration = Duration::from_millis(100);
const TIMEOUT: Duration = Duration::from_secs(3);

/// Frame lengths that every port passes, in bytes.
pub const LENGTHS: [usize; 6] = [14, 15, 59, 60, 64, 1514];

/// Permitted differences between ports.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Lengths that pass unchanged.
    pub lens: Vec<usize>,
    /// Whether arrivals are measured on this machine's clock, between sending and receiving.
    pub live: bool,
}

impl Rules {
    pub fn live() -> Rules {
        Rules {
            lens: LENGTHS.to_vec(),
            live: true,
        }
    }

    pub fn and_len(mut self, len: usize) -> Rules {
        self.lens.push(len);
        self
    }
}

/// Sent frames, and the time of the first push.
#[derive(Debug, Default)]
pub struct Sent {
    pub frames: Vec<Vec<u8>>,
    pub begin: Nanos,
}

/// Checks a sending and a receiving half that are connected to each other.
pub fn check_port(tx: &mut impl TxPort, rx: &mut impl RxPort, rules: &Rules) {
    check_empty(rx);
    let sent = send_lengths(tx, rules);
    check_received(rx, &sent, rules);
    send_shorts(tx);
    check_received(rx, &send_lengths(tx, rules), rules);
    check_counts(tx, rx);
    check_empty(rx);
}

/// Sends two frames of each length.
pub fn send_lengths(tx: &mut impl TxPort, rules: &Rules) -> Sent {
    let begin = now();
    let lens = rules.lens.iter().chain(&rules.lens);
    let frames: Vec<_> = lens.enumerate().map(|(n, len)| numbered(n, *len)).collect();
    for bytes in &frames {
        push(tx, bytes);
    }
    drain(tx);
    Sent { frames, begin }
}

/// Checks that exactly these frames arrive, in order and unchanged, with plausible stamps.
pub fn check_received(rx: &mut impl RxPort, sent: &Sent, rules: &Rules) {
    let start = Instant::now();
    let mut got = Vec::new();
    let mut last = Nanos::ZERO;
    while got.len() < sent.frames.len() {
        assert!(
            start.elapsed() < TIMEOUT,
            "only {} frames received",
            got.len()
        );
        let mut seen = 0;
        let called = now();
        let max = 3;
        let received = rx.receive(called, max, &mut |frame: RxFrame<'_>| {
            seen += 1;
            assert!(frame.arrival >= last, "arrivals are out of order");
            last = frame.arrival;
            assert!(frame.wire_len as usize >= frame.bytes.len());
            if is_ours(frame.bytes) {
                if rules.live {
                    // Two clocks are compared as accurately as they can be read.
                    let arrival = frame.arrival.as_nanos();
                    assert!(arrival + 2_000 >= sent.begin.as_nanos(), "before sending");
                    assert!(frame.arrival <= now(), "after the current time");
                }
                got.push(frame.bytes.to_vec());
            }
        });
        let received = received.unwrap();
        assert_eq!(received.frames, seen, "the count of delivered frames");
        assert!(seen <= max, "more frames than `max`");
        if received.end {
            break;
        }
    }
    for (n, (got, sent)) in got.iter().zip(&sent.frames).enumerate() {
        assert!(got == sent, "frame {n}: {got:02x?} instead of {sent:02x?}");
    }
    assert_eq!(got.len(), sent.frames.len());
}

/// Sends frames without a complete Ethernet header, which must be refused or lost without other
/// effects.
pub fn send_shorts(tx: &mut impl TxPort) {
    for bytes in [&[][..], &[0xff; 13]] {
        let _ = tx.push(outgoing(bytes));
        drain(tx);
    }
}

/// Sends frames faster than it reads them. Missing frames must be counted.
pub fn check_counts(tx: &mut impl TxPort, rx: &mut impl RxPort) {
    let before = total_losses(tx, rx);
    let mut got = 0;
    for n in 0..BURST {
        let bytes = numbered(n, 60 + n % 900);
        // A port that never loses frames stays full until it is read.
        push_or(tx, &bytes, || got += receive_ours(rx, 64));
        if n % 64 == 0 {
            got += receive_ours(rx, 16);
        }
    }
    drain(tx);
    let start = Instant::now();
    let mut lost = 0;
    while got + lost < BURST as u64 && start.elapsed() < TIMEOUT {
        got += receive_ours(rx, 64);
        lost = total_losses(tx, rx) - before;
    }
    assert_eq!(got + lost, BURST as u64, "{got} received, {lost} lost");
}

fn receive_ours(rx: &mut impl RxPort, max: usize) -> u64 {
    let mut got = 0;
    let take = &mut |frame: RxFrame<'_>| got += u64::from(is_ours(frame.bytes));
    rx.receive(now(), max, take).unwrap();
    got
}

/// Checks that a call that finds no frames returns immediately.
pub fn check_empty(rx: &mut impl RxPort) {
    for _ in 0..20 {
        let start = Instant::now();
        rx.receive(now(), 64, &mut |_| {}).unwrap();
        assert!(start.elapsed() < NOT_BLOCKING, "{:?}", start.elapsed());
    }
}

/// Checks that both halves report the device as gone after `remove`.
pub fn check_gone(tx: &mut impl TxPort, rx: &mut impl RxPort, remove: impl FnOnce()) {
    push(tx, &numbered(0, 64));
    drain(tx);
    remove();
    let error = until(TIMEOUT, "receiving still succeeds", || {
        rx.receive(now(), 64, &mut |_| {}).err()
    });
    assert!(matches!(error, PortError::Gone { .. }), "{error}");
    let error = until(TIMEOUT, "sending still succeeds", || {
        let _ = tx.push(outgoing(&numbered(0, 64)));
        tx.flush().err()
    });
    assert!(matches!(error, PortError::Gone { .. }), "{error}");
}

fn total_losses(tx: &mut impl TxPort, rx: &mut impl RxPort) -> u64 {
    let sum = |lost: PortLosses| {
        lost.ring_full + lost.too_long + lost.send_failed + lost.no_carrier + lost.unusable
    };
    sum(tx.losses()) + sum(rx.losses())
}

/// Pushes as a well-behaved caller does: flushes a full port and tries again.
fn push(tx: &mut impl TxPort, bytes: &[u8]) {
    push_or(tx, bytes, || {});
}

/// Like [`push`], with a callback while the port is full.
fn push_or(tx: &mut impl TxPort, bytes: &[u8], mut meanwhile: impl FnMut()) {
    until(TIMEOUT, "the port stays full", || {
        match tx.push(outgoing(bytes)) {
            PushResult::Taken => Some(()),
            PushResult::Full => {
                tx.flush().unwrap();
                meanwhile();
                None
            }
            PushResult::Refused => panic!("a frame of {} bytes was refused", bytes.len()),
        }
    });
}

/// Flushes until everything has left. The counts must add up.
fn drain(tx: &mut impl TxPort) {
    until(TIMEOUT, "frames are stuck", || {
        let waiting = tx.unsent();
        let begun = Instant::now();
        let left = tx.flush().unwrap();
        assert!(begun.elapsed() < NOT_BLOCKING, "{:?}", begun.elapsed());
        assert!(left >= waiting - tx.unsent().min(waiting));
        (tx.unsent() == 0).then_some(())
    });
}

fn outgoing(bytes: &[u8]) -> TxFrame<'_> {
    TxFrame::whole(bytes, now())
}

/// Builds a frame that no station answers, with contents that depend on its number.
fn numbered(number: usize, len: usize) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 9, 9, 2, 0, 0, 0, 9, number as u8];
    bytes.extend(EXPERIMENTAL);
    bytes.extend((14..len).map(|i| (i * 5 + number) as u8));
    bytes
}

fn is_ours(bytes: &[u8]) -> bool {
    bytes.get(12..14) == Some(&EXPERIMENTAL)
}
