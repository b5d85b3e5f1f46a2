//! `xdp:IF` with the kernel, over veth pairs. Without the rights to create namespaces and
//! to load XDP programs the tests are skipped with a message, except in CI, where they
//! fail.

use crate::common::pair;
use std::net::UdpSocket;

use longwire_io::RxPort;
use longwire_io::port::options::{OpenOptions, XdpMode};
use longwire_io::port::xdp::{self, XdpPort};
use pair::{
    PORT, Pair, assert_arrivals_are_tight, assert_overflow_is_counted, frame, number_of,
    receive_until, send,
};

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
fn a_frame_too_long_for_the_memory_is_refused_with_a_reason() {
    let Some(pair) = Pair::number(1, 9000) else {
        return;
    };
    let opened = pair.in_port(|| xdp::open(PORT, &OpenOptions::default()));
    let error = opened.err().expect("9000 bytes do not fit a page");
    assert!(error.to_string().contains("use packet:port0"), "{error}");
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
