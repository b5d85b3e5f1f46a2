//! `xdp:IF` with the kernel, over veth pairs. Without the rights to create namespaces and
//! to load XDP programs the tests are skipped with a message, except in CI, where they
//! fail.

use crate::common::pair;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use longwire_io::port::options::{OpenOptions, XdpMode};
use longwire_io::port::xdp::{self, XdpPort};
use longwire_io::{PushResult, RxFrame, RxPort, TxFrame, TxPort, net};
use pair::{
    PORT, Pair, STATION, assert_arrivals_are_tight, assert_gone, assert_overflow_is_counted,
    assert_passes, frame, now, number_of, receive_until, send,
};

#[test]
fn frames_pass_both_ways_whole_and_in_order() {
    let Some(pair) = Pair::new() else { return };
    for mode in [XdpMode::Native, XdpMode::Generic] {
        let mut port = pair.xdp(mode);
        let mut station = pair.station();
        eprintln!("{:?}", port.notes);
        assert_passes(&mut station.tx, &mut port.rx);
        assert_passes(&mut port.tx, &mut station.rx);
    }
}

#[test]
fn arrivals_are_tight_and_in_order() {
    let Some(pair) = Pair::new() else { return };
    for mode in [XdpMode::Native, XdpMode::Generic] {
        let mut port = pair.xdp(mode);
        let mut station = pair.station();
        eprintln!("{mode:?}:");
        assert_arrivals_are_tight(&mut station.tx, &mut port.rx, 0);
    }
}

#[test]
fn vlan_tags_stay_where_they_are() {
    let Some(pair) = Pair::new() else { return };
    for mode in [XdpMode::Native, XdpMode::Generic] {
        let mut port = pair.xdp(mode);
        let mut station = pair.station();
        for ethertype in [[0x81, 0x00], [0x88, 0xa8]] {
            let mut bytes = frame(7, 64);
            bytes.splice(12..12, [ethertype[0], ethertype[1], 0x60, 0x2a]);
            send(&mut station.tx, &bytes);
            let got = receive_until(&mut port.rx, |got| !got.is_empty());
            assert_eq!(got.len(), 1);
            assert_eq!(got[0].bytes, bytes, "{mode:?} {ethertype:x?}");
        }
    }
}

#[test]
fn an_overflowing_ring_is_counted() {
    let Some(pair) = Pair::new() else { return };
    for mode in [XdpMode::Native, XdpMode::Generic] {
        let options = OpenOptions {
            ring_bytes: Some(1),
            xdp_mode: mode,
            ..OpenOptions::default()
        };
        let mut port = pair.in_port(|| xdp::open(PORT, &options)).unwrap();
        let mut station = pair.station();
        assert_overflow_is_counted(&mut station.tx, &mut port.rx);
        // The chunks have been returned to the kernel, and frames continue.
        for n in 0..500 {
            send(&mut station.tx, &frame(n, 64));
            let got = receive_until(&mut port.rx, |got| !got.is_empty());
            assert_eq!(number_of(&got[0].bytes), Some(n));
        }
    }
}

#[test]
fn a_deleted_interface_is_gone() {
    let Some(pair) = Pair::new() else { return };
    let mut port = pair.xdp(XdpMode::Best);
    pair.in_station(|| net::link_delete(STATION)).unwrap();
    assert_gone(&mut port.tx, &mut port.rx);
}

#[test]
fn without_a_carrier_frames_are_lost_and_counted() {
    let Some(pair) = Pair::new() else { return };
    let mut port = pair.xdp(XdpMode::Best);
    pair.assert_lost_without_carrier(&mut port.tx, |losses| losses.send_failed);
}

#[test]
fn a_frame_too_long_for_the_memory_is_refused_with_a_reason() {
    let Some(pair) = Pair::number(1, 9000) else {
        return;
    };
    let opened = pair.in_port(|| xdp::open(PORT, &OpenOptions::default()));
    let error = opened.err().expect("9000 bytes do not fit a page");
    assert!(error.to_string().contains("use packet:port0"), "{error}");
}

/// Carries frames from the stations' pairs to each other while `work` runs.
fn carry<T>(near: &Pair, far: &Pair, work: impl FnOnce() -> T) -> T {
    let (mut a, mut b) = (near.xdp(XdpMode::Best), far.xdp(XdpMode::Best));
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                pass(&mut a.rx, &mut b.tx);
                pass(&mut b.rx, &mut a.tx);
            }
        });
        let result = work();
        stop.store(true, Ordering::Relaxed);
        result
    })
}

fn pass(rx: &mut impl RxPort, tx: &mut impl TxPort) {
    let room = tx.free_slots().min(64);
    let mut forward = |f: RxFrame<'_>| {
        let taken = tx.push(TxFrame {
            bytes: f.bytes,
            release: f.arrival,
            offload: f.offload,
            lent: None,
            wire_len: f.wire_len,
        });
        assert_eq!(taken, PushResult::Taken);
    };
    rx.receive(now(), room, &mut forward).unwrap();
    tx.flush().unwrap();
}

#[test]
fn tcp_and_udp_pass_with_their_checksums_finished() {
    let (Some(near), Some(far)) = (Pair::number(1, 1500), Pair::number(2, 1500)) else {
        return;
    };
    let data: Vec<u8> = (0..20_000_000u32).map(|n| (n ^ (n >> 9)) as u8).collect();
    let listener = far
        .in_station(|| TcpListener::bind("10.78.0.2:5000"))
        .unwrap();
    let udp_to = far
        .in_station(|| UdpSocket::bind("10.78.0.2:5001"))
        .unwrap();
    udp_to
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    let udp_from = near.in_station(|| UdpSocket::bind("10.78.0.1:0")).unwrap();
    carry(&near, &far, || {
        let mut buffer = [0; 2000];
        for len in [0, 1, 999, 1472] {
            udp_from.send_to(&data[..len], "10.78.0.2:5001").unwrap();
            let got = udp_to.recv(&mut buffer).unwrap();
            assert_eq!(buffer[..got], data[..len]);
        }
        let received = thread::scope(|scope| {
            let receiver = scope.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                let mut received = Vec::new();
                stream.read_to_end(&mut received).unwrap();
                received
            });
            near.in_station(|| {
                let mut stream = TcpStream::connect("10.78.0.2:5000").unwrap();
                stream.write_all(&data).unwrap();
            });
            receiver.join().unwrap()
        });
        assert!(received == data, "{} of {}", received.len(), data.len());
    });
}

#[test]
fn all_queues_are_received_in_the_order_of_arrival() {
    let Some(pair) = Pair::with_queues(1, 1500, 4) else {
        return;
    };
    let mut port = pair.xdp(XdpMode::Best);
    let used = |frames: &[pair::Kept]| -> Vec<u8> {
        let last_byte = |kept: &pair::Kept| *kept.bytes.last().unwrap();
        frames.iter().map(last_byte).collect()
    };
    // The kernel spreads flows over the queues; frames of a queue without a socket would be
    // missing.
    pair.in_station(|| {
        for n in 0..200u8 {
            let socket = UdpSocket::bind("10.78.0.1:0").unwrap();
            socket.set_broadcast(true).unwrap();
            socket.send_to(&[0, n], "10.78.0.255:9").unwrap();
        }
    });
    let got = receive_until(&mut port.rx, |got| got.len() >= 200);
    assert_eq!(used(&got), (0..200).collect::<Vec<u8>>());
    // Readable through one descriptor, regardless of the queue.
    let poll = |port: &XdpPort| {
        let fd = nix::poll::PollFd::new(port.rx.readable().unwrap(), nix::poll::PollFlags::POLLIN);
        nix::poll::poll(&mut [fd], 100u16).unwrap()
    };
    assert_eq!(poll(&port), 0);
    for n in 0..20u8 {
        pair.in_station(|| {
            let socket = UdpSocket::bind("10.78.0.1:0").unwrap();
            socket.set_broadcast(true).unwrap();
            socket.send_to(&[0, n], "10.78.0.255:9").unwrap();
        });
        assert_eq!(poll(&port), 1);
        let got = receive_until(&mut port.rx, |got| !got.is_empty());
        assert_eq!(used(&got), [n]);
    }
}
