//! `packet:IF` with the kernel, over veth pairs. Without the right to create namespaces the
//! tests are skipped with a message, except in CI, where they fail.

use crate::common::pair;
use longwire_testbed::support::skip;
use std::thread;
use std::time::Duration;

use longwire_engine::Nanos;
use longwire_io::net;
use longwire_io::net::ethtool::Ethtool;
use longwire_io::port::options::OpenOptions;
use longwire_io::port::packet::{self, PacketPort, PacketTx};
use longwire_io::{PortError, PushResult, RxFrame, RxPort, TxFrame, TxPort};
use pair::{
    PORT, Pair, STATION, assert_arrivals_are_tight, assert_overflow_is_counted, both_in_one, frame,
    now, number_of, receive_until, send,
};

#[test]
fn the_shortest_frame_passes_and_shorter_ones_are_refused() {
    let Some(pair) = Pair::new() else { return };
    let (mut port, mut station) = (pair.packet(), pair.station());
    let push = |tx: &mut PacketTx, bytes: &[u8]| tx.push(TxFrame::whole(bytes, Nanos::ZERO));
    for len in [0, 1, 13] {
        assert_eq!(push(&mut port.tx, &[0; 13][..len]), PushResult::Refused);
    }
    send(&mut port.tx, &frame(1, 18)[..14]);
    let got = receive_until(&mut station.rx, |got| !got.is_empty());
    assert_eq!(got[0].bytes, frame(1, 18)[..14]);
    // One byte more than the MTU, and a VLAN tag that may exceed it.
    assert_eq!(push(&mut port.tx, &frame(1, 1515)), PushResult::Refused);
    let mut tagged = frame(2, 1518);
    tagged[12..16].copy_from_slice(&[0x81, 0, 0, 5]);
    assert_eq!(push(&mut port.tx, &tagged), PushResult::Taken);
    // Jumbo frames pass once the MTU is raised.
    pair.in_port(|| net::link::set_mtu(PORT, 9000)).unwrap();
    pair.in_station(|| net::link::set_mtu(STATION, 9000))
        .unwrap();
    assert_eq!(push(&mut port.tx, &frame(3, 9014)), PushResult::Taken);
    assert_eq!(push(&mut port.tx, &frame(3, 9015)), PushResult::Refused);
    pair::flush(&mut port.tx);
    let got = receive_until(&mut station.rx, |got| got.len() >= 2);
    assert_eq!(got[0].bytes, tagged);
    assert_eq!(got[1].bytes, frame(3, 9014));
}

#[test]
fn a_vlan_tag_is_put_back() {
    let Some(pair) = Pair::new() else { return };
    let (mut port, mut station) = (pair.packet(), pair.station());
    // Too short, and too long for a slot of the ring.
    pair.in_station(|| net::link::set_mtu(STATION, 9000))
        .unwrap();
    pair.in_port(|| net::link::set_mtu(PORT, 9000)).unwrap();
    for (len, ethertype) in [(64, [0x81, 0x00]), (64, [0x88, 0xa8]), (5000, [0x81, 0x00])] {
        let mut bytes = frame(7, len);
        bytes.splice(12..12, [ethertype[0], ethertype[1], 0x60, 0x2a]);
        send(&mut station.tx, &bytes);
        let got = receive_until(&mut port.rx, |got| !got.is_empty());
        assert_eq!(got.len(), 1, "{ethertype:x?}");
        assert!(got[0].bytes == bytes, "{ethertype:x?} {len}");
    }
}

#[test]
fn arrivals_are_tight_and_in_order() {
    let Some(pair) = Pair::new() else { return };
    let (mut port, mut station) = (pair.packet(), pair.station());
    // The clocks' difference is known to some tens of nanoseconds.
    assert_arrivals_are_tight(&mut station.tx, &mut port.rx, 500);
    assert_eq!(port.rx.clock_steps(), 0);
}

#[test]
fn frames_that_arrive_after_the_callers_now_wait() {
    let Some(pair) = Pair::new() else { return };
    let (mut port, mut station) = (pair.packet(), pair.station());
    send(&mut station.tx, &frame(0, 64));
    thread::sleep(Duration::from_millis(2));
    let early = now();
    thread::sleep(Duration::from_millis(2));
    for n in 1..4 {
        send(&mut station.tx, &frame(n, 64));
    }
    thread::sleep(Duration::from_millis(2));
    let mut numbers = Vec::new();
    let mut take = |f: RxFrame<'_>| {
        assert!(f.arrival <= early);
        numbers.extend(number_of(f.bytes));
    };
    port.rx.receive(early, 64, &mut take).unwrap();
    assert_eq!(numbers, [0]);
    let rest = receive_until(&mut port.rx, |got| got.len() >= 3);
    assert_eq!(rest.len(), 3);
}

#[test]
fn an_overflowing_ring_is_counted() {
    let Some(pair) = Pair::new() else { return };
    let options = OpenOptions {
        ring_bytes: Some(64 * 1024),
        ..OpenOptions::default()
    };
    let mut port = pair.in_port(|| packet::open(PORT, &options)).unwrap();
    let mut station = pair.station();
    // Reading resets the kernel's counter, but not the port's.
    assert_overflow_is_counted(&mut station.tx, &mut port.rx);
}

#[test]
fn a_missing_interface_and_one_that_is_down_are_told_apart() {
    let Some(pair) = Pair::new() else { return };
    let open = |name: &str| {
        let name = name.to_owned();
        let opened = pair.in_port(move || packet::open(&name, &OpenOptions::default()));
        opened.err().expect("not a usable interface")
    };
    let error = open("eth7");
    assert!(matches!(error, PortError::NoInterface { .. }));
    assert_eq!(
        error.to_string(),
        "no interface 'eth7'; interfaces are lo, port0"
    );
    let error = open("lo");
    assert!(matches!(error, PortError::Down { .. }), "{error}");
}

#[test]
fn ipv6_of_the_kernel_is_silent_until_the_port_is_closed() {
    let Some(pair) = Pair::new() else { return };
    let key = format!("ipv6/conf/{PORT}/disable_ipv6");
    let read = || pair.in_port(|| std::fs::read_to_string(format!("/proc/sys/net/{key}")));
    let Ok(before) = read() else {
        return skip("no IPv6").unwrap_or(());
    };
    assert_eq!(before.trim(), "0");
    let PacketPort { rx, tx, notes } = pair.packet();
    assert_eq!(read().unwrap().trim(), "1");
    assert!(notes.iter().any(|note| note.contains("IPv6")), "{notes:?}");
    drop(rx);
    assert_eq!(read().unwrap().trim(), "1");
    // From any namespace: this thread was never in the port's.
    drop(tx);
    assert_eq!(read().unwrap().trim(), "0");
}

#[test]
fn without_offloads_the_peer_in_the_same_namespace_sends_wire_frames() {
    let Some(place) = both_in_one() else { return };
    let features = || {
        let read = || Ethtool::open()?.features(STATION);
        place.run(read).unwrap().unwrap()
    };
    let before = features();
    assert!(before.active("tx-tcp-segmentation"));
    let options = OpenOptions {
        offloads: false,
        ..OpenOptions::default()
    };
    let port = place.run(|| packet::open(PORT, &options)).unwrap().unwrap();
    assert!(!features().active("tx-tcp-segmentation"));
    let said = |note: &String| note.starts_with("station0: disabled tx-tcp-segmentation");
    assert!(port.notes.iter().any(said), "{:?}", port.notes);
    drop(port);
    assert_eq!(features(), before);
}
