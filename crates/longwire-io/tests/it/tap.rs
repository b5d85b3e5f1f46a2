//! `tap:NAME` with the kernel. Without the right to create namespaces, the tests are skipped with a
//! message, except in CI, where they fail.

use crate::common::pair;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};

use longwire_engine::Nanos;
use longwire_io::net::interface::Interface;
use longwire_io::net::{self, NetNamespace, sysctl, tap as persistent};
use longwire_io::port::offload::{cut, finish_checksum};
use longwire_io::port::options::OpenOptions;
use longwire_io::port::{AnyTx, Port, registry, tap};
use longwire_io::{Offload, PushResult, RxFrame, RxPort, TxFrame, TxPort};
use longwire_testbed::support::namespace;
use pair::{carry, now, push_with, tcp_transfer, without_offloads};

const NAME: &str = "tap0";

/// Creates a TAP port in a separate namespace, with an address.
fn station(number: u8, options: &OpenOptions) -> Option<(NetNamespace, Port)> {
    let place = namespace()?;
    let port = place
        .run(|| {
            sysctl::set("ipv6/conf/all/disable_ipv6", "1").unwrap();
            sysctl::set("ipv6/conf/default/disable_ipv6", "1").unwrap();
            let port = registry::open(&format!("tap:{NAME}"), options).unwrap();
            net::addr_add(NAME, IpAddr::V4(Ipv4Addr::new(10, 79, 0, number)), 24).unwrap();
            port
        })
        .unwrap();
    Some((place, port))
}

#[test]
fn a_device_is_made_takes_frames_within_bounds_and_vanishes() {
    let Some((place, mut port)) = station(1, &OpenOptions::default()) else {
        return;
    };
    assert!(port.notes[0].contains("created the TAP device tap0"));
    let mut push = |bytes: &[u8]| port.tx.push(TxFrame::whole(bytes, Nanos::ZERO));
    for len in [0, 1, 13, 100_000] {
        assert_eq!(push(&vec![0; len]), PushResult::Refused, "{len}");
    }
    assert_eq!(push(&[0; 14]), PushResult::Taken);
    assert_eq!(port.tx.flush().unwrap(), 1);
    assert_eq!(port.tx.flush().unwrap(), 0);
    place
        .run(|| {
            let exists = || net::link_names().unwrap().iter().any(|name| name == NAME);
            assert!(exists());
            let Port { rx, tx, .. } = port;
            drop(rx);
            assert!(exists());
            drop(tx);
            assert!(!exists());
        })
        .unwrap();
}

#[test]
fn an_existing_device_is_left_unchanged() {
    let Some(place) = namespace() else { return };
    place
        .run(|| {
            persistent::create_persistent(NAME).unwrap();
            let before = Interface::find(NAME).unwrap();
            let port = registry::open(&format!("tap:{NAME}"), &OpenOptions::default()).unwrap();
            assert!(Interface::find(NAME).unwrap().up);
            let second = registry::open(&format!("tap:{NAME}"), &OpenOptions::default());
            let said = second.err().unwrap().to_string();
            assert!(said.contains("this command already has the device open"));
            drop(port);
            let after = Interface::find(NAME).unwrap();
            assert_eq!(before.up, after.up);
            assert!(!after.up);
            net::link_delete(NAME).unwrap();
        })
        .unwrap();
}

#[test]
fn invalid_names_are_refused() {
    let Some(place) = namespace() else { return };
    let error = |name: &str| {
        let opened = place.run(|| tap::open(name, &OpenOptions::default()));
        opened.unwrap().err().unwrap().to_string()
    };
    for name in ["", "a/b", "a b", "sixteen-letters-", "a:b"] {
        assert!(error(name).contains("1 to 15"), "{name}");
    }
    let said = error("lo");
    assert!(said.contains("not a single-queue TAP device"), "{said}");
}

#[test]
fn frames_dropped_by_the_kernel_are_counted() {
    let Some((place, mut port)) = station(1, &OpenOptions::default()) else {
        return;
    };
    let sent = 20_000;
    let datagrams = place
        .run(|| {
            let socket = UdpSocket::bind("10.79.0.1:0").unwrap();
            // Sending to the broadcast address needs no neighbour resolution.
            socket.set_broadcast(true).unwrap();
            (0..sent)
                .filter(|_| socket.send_to(&[7; 10], "10.79.0.255:9").is_ok())
                .count()
        })
        .unwrap();
    let mut got = 0;
    let mut count = |_: RxFrame<'_>| got += 1;
    while port.rx.receive(now(), 64, &mut count).unwrap().frames > 0 {}
    let lost = port.rx.losses().ring_full;
    assert!(lost > 0 && got >= 10_000, "{got} got, {lost} lost");
    assert_eq!(got + lost, datagrams as u64);
}

#[test]
fn a_frame_for_a_device_that_is_down_counts_once() {
    let Some((place, mut port)) = station(1, &OpenOptions::default()) else {
        return;
    };
    let push = |port: &mut Port, count| {
        for _ in 0..count {
            let pushed = port.tx.push(TxFrame::whole(&[0; 60], Nanos::ZERO));
            assert_eq!(pushed, PushResult::Taken);
        }
        assert_eq!(port.tx.flush().unwrap(), count);
    };
    push(&mut port, 3);
    place.run(|| net::link_down(NAME).unwrap()).unwrap();
    push(&mut port, 20);
    place.run(|| net::link_up(NAME).unwrap()).unwrap();
    push(&mut port, 3);
    let losses = port.tx.losses();
    assert_eq!((losses.no_carrier, losses.send_failed), (20, 0));
}

/// How frames are forwarded from one device to the other.
#[derive(Clone, Copy, Debug)]
enum Forward {
    /// Unchanged, including super-packets.
    Whole,
    /// Cut into two pieces, each again a super-packet if possible.
    Halves,
    /// As wire frames with complete checksums.
    Wire,
}

impl Forward {
    fn pass(self, frame: RxFrame<'_>, tx: &mut AnyTx) {
        let mut piece = Vec::new();
        let Offload { checksum, segments } = frame.offload;
        let segments = match (self, segments, checksum) {
            (Forward::Wire, None, Some(checksum)) => {
                piece.extend_from_slice(frame.bytes);
                assert!(finish_checksum(&mut piece, checksum));
                return push_with(tx, &piece, Offload::NONE);
            }
            (Forward::Halves | Forward::Wire, Some(segments), _) => segments,
            _ => return push_with(tx, frame.bytes, frame.offload),
        };
        let count = segments.wire_frames(frame.bytes.len()).len();
        let step = match self {
            Forward::Wire => 1,
            _ => count.div_ceil(2),
        };
        for first in (0..count).step_by(step) {
            let range = first..count.min(first + step);
            let offload = cut(frame.bytes, segments, range, &mut piece).unwrap();
            push_with(tx, &piece, offload);
        }
    }
}

/// Runs TCP between two namespaces through two TAP ports, and returns the maximum frame length
/// seen.
fn tcp_through(how: Forward, options: &OpenOptions) -> Option<usize> {
    let (near, mut a) = station(1, options)?;
    let (far, mut b) = station(2, options)?;
    let payload: Vec<u8> = (0..3_000_000u32).map(|i| (i ^ i >> 8) as u8).collect();
    let addresses = ["10.79.0.1", "10.79.0.2:7000"];
    let mut largest = 0;
    let pass = |frame: RxFrame<'_>, tx: &mut AnyTx| {
        largest = frame.bytes.len().max(largest);
        how.pass(frame, tx);
    };
    let transfer = || tcp_transfer([&near, &far], addresses, &payload);
    let got = carry([&mut a, &mut b], pass, transfer);
    assert!(got == payload, "{} of {} bytes", got.len(), payload.len());
    Some(largest)
}

#[test]
fn tcp_passes_as_super_packets_as_halves_and_as_wire_frames() {
    let whole = OpenOptions::default();
    for (how, options, lengths) in [
        (Forward::Whole, &whole, 10_001..=65_549),
        (Forward::Halves, &whole, 0..=65_549),
        (Forward::Wire, &whole, 0..=65_549),
        (Forward::Whole, &without_offloads(), 1514..=1514),
    ] {
        let Some(largest) = tcp_through(how, options) else {
            return;
        };
        assert!(lengths.contains(&largest), "{how:?}: {largest}");
    }
}
