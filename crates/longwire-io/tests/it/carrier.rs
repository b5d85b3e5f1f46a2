//! The carrier of the interface at a port's other end, as the kernel reports it. Without the right
//! to create namespaces, the tests are skipped with a message, except in CI, where they fail.

use std::net::UdpSocket;
use std::process::Command;
use std::thread;
use std::time::Duration;

use longwire_engine::Nanos;
use longwire_io::net::{self, NetNamespace, sysctl, tap};
use longwire_io::port::options::{CarrierControl, OpenOptions};
use longwire_io::port::registry::{self, Port};
use longwire_io::{PortError, PushResult, RxPort, TxFrame, TxPort};
use longwire_testbed::support::namespace;

use crate::common::pair;
use pair::{PORT, Pair, STATION, frame, now, until};

/// Time limit for a change on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(10);

fn options(carrier: CarrierControl) -> OpenOptions {
    OpenOptions {
        carrier,
        ..OpenOptions::default()
    }
}

/// A port that controls a carrier, and the interface that has the carrier.
struct Controlled {
    port: Port,
    /// The interface's namespace and name.
    place: NetNamespace,
    name: &'static str,
    pair: Option<Pair>,
}

impl Controlled {
    /// Opens a port of this kind, or skips the test if that is not permitted.
    fn open(kind: &str) -> Option<Controlled> {
        let options = options(CarrierControl::OwnPair);
        if kind == "tap" {
            let place = namespace()?;
            let opened = place.run(|| {
                sysctl::set("ipv6/conf/default/disable_ipv6", "1").unwrap();
                tap::create_persistent("tap0").unwrap();
                registry::open("tap:tap0", &options)
            });
            return Some(Controlled {
                port: pair::allowed(opened.unwrap())?,
                place,
                name: "tap0",
                pair: None,
            });
        }
        let pair = Pair::new()?;
        Some(Controlled {
            port: pair.open(kind, &options)?,
            place: pair.outside.try_clone().unwrap(),
            name: STATION,
            pair: Some(pair),
        })
    }

    fn set_carrier(&mut self, on: bool) {
        self.port.tx.set_carrier(on);
        self.wait_for(on);
    }

    /// Waits until the kernel reports that the interface has a carrier, or has none.
    fn wait_for(&self, carrier: bool) {
        until(TIMEOUT, &format!("carrier is not {carrier}"), || {
            let arguments = ["link", "show", self.name];
            let show = || Command::new("ip").args(arguments).output();
            let text = String::from_utf8(self.place.run(show).unwrap().unwrap().stdout).unwrap();
            (text.contains("LOWER_UP") == carrier).then_some(())
        });
    }

    /// Receives as a stage does; a device that is down is not an error.
    fn receive(&mut self) {
        let received = self.port.rx.receive(now(), 64, &mut |_| {});
        received.expect("the port is open");
    }

    fn arrived(&self) -> u64 {
        let stats = self.place.run(|| net::link_stats(self.name));
        stats.unwrap().unwrap().rx_packets
    }

    /// Sends a frame that must wait until the carrier is back.
    fn send(&mut self, number: u32) {
        let bytes = frame(number, 64);
        until(TIMEOUT, "the port stays full", || {
            thread::yield_now();
            let pushed = self.port.tx.push(TxFrame::whole(&bytes, Nanos::ZERO));
            (pushed != PushResult::Full).then_some(())
        });
        pair::flush(&mut self.port.tx);
    }
}

#[test]
fn every_frame_arrives_or_is_counted() {
    for kind in ["packet", "xdp", "tap"] {
        let Some(mut controlled) = Controlled::open(kind) else {
            continue;
        };
        controlled.wait_for(true);
        let before = controlled.arrived();
        for turn in 0..20 {
            controlled.send(turn);
            controlled.port.tx.set_carrier(false);
            controlled.send(turn);
            if turn % 4 == 0 {
                controlled.wait_for(false);
            }
            controlled.receive();
            controlled.port.tx.set_carrier(true);
            controlled.send(turn);
            controlled.receive();
            if turn % 4 == 0 {
                controlled.wait_for(true);
            }
        }
        assert_eq!(controlled.port.tx.losses().no_carrier, 20, "{kind}");
        assert_eq!(controlled.arrived() - before, 40, "{kind}");
        // The port receives again, too.
        if let Some(pair) = &controlled.pair {
            pair::send(&mut pair.station().tx, &frame(7, 64));
            let got = pair::receive_until(&mut controlled.port.rx, |got| !got.is_empty());
            assert_eq!(pair::number_of(&got[0].bytes), Some(7), "{kind}");
        }
    }
}

/// Frames that the kernel drops at an interface without a carrier do not count as losses of the
/// port.
#[test]
fn frames_for_a_tap_device_without_a_carrier_are_no_losses() {
    let Some(mut controlled) = Controlled::open("tap") else {
        return;
    };
    controlled.wait_for(true);
    let address = "10.9.0.1".parse().unwrap();
    let added = controlled.place.run(|| net::addr_add("tap0", address, 24));
    added.unwrap().unwrap();
    for turn in 0..2 {
        controlled.set_carrier(false);
        let dropped = controlled.place.run(|| send_without_carrier("tap0", 10));
        assert!(dropped.unwrap() >= 10 * (turn + 1), "the kernel drops them");
        assert_eq!(controlled.port.rx.losses().ring_full, 0);
        controlled.set_carrier(true);
        assert_eq!(controlled.port.rx.losses().ring_full, 0);
    }
}

/// Sends datagrams to a device and returns the number of frames that the kernel dropped there.
fn send_without_carrier(device: &str, datagrams: u32) -> u64 {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.set_broadcast(true).unwrap();
    for _ in 0..datagrams {
        // The kernel may report the drop.
        let _ = socket.send_to(&[0; 60], "10.9.0.255:9");
    }
    let text = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    let mut lines = text.lines().map(str::trim_start);
    let line = lines.find(|line| line.starts_with(device)).unwrap();
    line.split_whitespace().nth(12).unwrap().parse().unwrap()
}

#[test]
fn a_pair_that_is_deleted_without_a_carrier_is_gone() {
    let Some(mut controlled) = Controlled::open("packet") else {
        return;
    };
    controlled.set_carrier(false);
    controlled.receive();
    let delete = || net::link_delete(STATION);
    controlled.place.run(delete).unwrap().unwrap();
    let rx = &mut controlled.port.rx;
    let receive = || rx.receive(now(), 64, &mut |_| {}).err();
    let error = until(TIMEOUT, "receiving still succeeds", receive);
    assert!(matches!(error, PortError::Gone { .. }), "{error}");
}

#[test]
fn interfaces_of_others_keep_their_carrier() {
    let Some(pair) = Pair::new() else { return };
    let options = options(CarrierControl::Tap);
    let reason = |name: &str| {
        let opened = pair.in_port(|| registry::open(name, &options));
        opened.err().expect("it is refused").to_string()
    };
    for name in [format!("packet:{PORT}"), PORT.to_owned()] {
        let reason = reason(&name);
        for part in ["existing interface", "tap:NAME"] {
            assert!(reason.contains(part), "{reason}");
        }
    }
    assert!(reason("null").contains("no interface"));
}
