//! `packet:IF` with the kernel, over veth pairs. Without the right to create namespaces, the tests
//! are skipped with a message, except in CI, where they fail.

use crate::common::pair;
use longwire_testbed::support::skip;
use std::thread;
use std::time::Duration;

use longwire_engine::Nanos;
use longwire_io::net::{self, sysctl};
use longwire_io::port::options::OpenOptions;
use longwire_io::port::{AnyTx, Port, registry};
use longwire_io::{PortError, PushResult, RxFrame, RxPort, TxFrame, TxPort};
use pair::{PORT, Pair, STATION, frame, now, number_of, receive_until, send};

#[test]
fn the_shortest_frame_passes_and_shorter_ones_are_refused() {
    let Some(pair) = Pair::new() else { return };
    let (mut port, mut station) = (pair.packet(), pair.station());
    let push = |tx: &mut AnyTx, bytes: &[u8]| tx.push(TxFrame::whole(bytes, Nanos::ZERO));
    for len in [0, 1, 13] {
        assert_eq!(push(&mut port.tx, &[0; 13][..len]), PushResult::Refused);
    }
    send(&mut port.tx, &frame(1, 18)[..14]);
    let got = receive_until(&mut station.rx, |got| !got.is_empty());
    assert_eq!(got[0].bytes, frame(1, 18)[..14]);
    // One byte above the MTU is refused, but a VLAN tag may exceed the MTU.
    assert_eq!(push(&mut port.tx, &frame(1, 1515)), PushResult::Refused);
    let mut tagged = frame(2, 1518);
    tagged[12..16].copy_from_slice(&[0x81, 0, 0, 5]);
    assert_eq!(push(&mut port.tx, &tagged), PushResult::Taken);
    // Jumbo frames pass once the MTU is raised.
    pair.in_port(|| net::link::set_mtu(PORT, 9000)).unwrap();
    let raised = pair.in_station(|| net::link::set_mtu(STATION, 9000));
    raised.unwrap();
    assert_eq!(push(&mut port.tx, &frame(3, 9014)), PushResult::Taken);
    assert_eq!(push(&mut port.tx, &frame(3, 9015)), PushResult::Refused);
    pair::flush(&mut port.tx);
    let got = receive_until(&mut station.rx, |got| got.len() >= 2);
    assert_eq!(got[0].bytes, tagged);
    assert_eq!(got[1].bytes, frame(3, 9014));
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
    assert_eq!(receive_until(&mut port.rx, |got| got.len() >= 3).len(), 3);
}

#[test]
fn a_missing_interface_and_one_that_is_down_have_different_errors() {
    let Some(pair) = Pair::new() else { return };
    let open = |name: &str| {
        let name = name.to_owned();
        let opened = pair
            .in_port(move || registry::open(&format!("packet:{name}"), &OpenOptions::default()));
        opened.err().expect("not a usable interface")
    };
    let error = open("eth7");
    assert!(matches!(error, PortError::NoInterface { .. }));
    let said = "no interface 'eth7'; interfaces are lo, port0";
    assert_eq!(error.to_string(), said);
    let error = open("lo");
    assert!(matches!(error, PortError::Down { .. }), "{error}");
}

#[test]
fn ipv6_of_the_kernel_is_silent_until_the_port_is_closed() {
    let Some(pair) = Pair::new() else { return };
    let key = format!("ipv6/conf/{PORT}/disable_ipv6");
    let read = || pair.in_port(|| sysctl::get(&key));
    let Ok(before) = read() else {
        return skip("no IPv6").unwrap_or(());
    };
    assert_eq!(before, "0");
    let Port { rx, tx, notes, .. } = pair.packet();
    assert_eq!(read().unwrap(), "1");
    assert!(notes.iter().any(|note| note.contains("IPv6")), "{notes:?}");
    drop(rx);
    assert_eq!(read().unwrap(), "1");
    // Restoring works from any namespace: this thread was never in the port's.
    drop(tx);
    assert_eq!(read().unwrap(), "0");
}
