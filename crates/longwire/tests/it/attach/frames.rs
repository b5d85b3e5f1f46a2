//! Frames of many kinds over an attached link: long, merged, multicast, and for address
//! resolution.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use longwire_io::net::addr_add;
use longwire_io::net::link::set_mtu;
use nix::sys::signal::Signal;
use nix::sys::socket::{setsockopt, sockopt};

use super::{DEVICE, Joined, name_of};
use crate::common::process::TIMEOUT;
use crate::common::site::run_in;

const DELAY: Duration = Duration::from_millis(15);

/// Addresses of near and far without static neighbour entries.
const UNRESOLVED: [[&str; 2]; 2] = [
    ["10.199.7.1", "10.199.7.2"],
    ["fd00:1:2:3::7", "fd00:1:2:3::8"],
];

impl Joined {
    fn set_mtu(&self, mtu: u32) {
        for namespace in [&self.near, &self.far] {
            let set = namespace.run(|| set_mtu(DEVICE, mtu));
            set.expect("entered").expect("an MTU");
        }
    }

    /// Returns the shortest round trip of four unfragmented datagrams of this length,
    /// in milliseconds.
    fn whole_round_trip(&self, bytes: &str) -> Option<f64> {
        let far = self.far_address.to_string();
        let command = [
            "ping", "-c", "4", "-i", "0.05", "-W", "1", "-q", "-M", "do", "-s", bytes, &far,
        ];
        let text = run_in(&self.near, &command).stdout;
        let times = text.split_once("min/avg/max/mdev = ")?.1;
        times.split('/').next()?.parse().ok()
    }

    fn add_unresolved(&self) {
        for [near, far] in UNRESOLVED {
            for (namespace, text) in [(&self.near, near), (&self.far, far)] {
                let address: IpAddr = text.parse().expect("an address");
                let length = if address.is_ipv4() { 24 } else { 64 };
                let added = namespace.run(|| addr_add(DEVICE, address, length));
                added.expect("entered").expect("an address");
            }
        }
    }

    /// Returns a datagram socket of near, and one of far at this port.
    fn sockets(&self, port: u16) -> (UdpSocket, UdpSocket) {
        let any = |port| SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
        let near = self.near.run(|| UdpSocket::bind(any(0)));
        let far = self.far.run(|| UdpSocket::bind(any(port)));
        let far = far.expect("entered").expect("a socket");
        far.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        (near.expect("entered").expect("a socket"), far)
    }
}

#[test]
fn long_frames_cross_whole() {
    let Some(joined) = Joined::new() else { return };
    joined.set_mtu(9_000);
    let attached = joined.attach(&name_of("jumbo"), &["--delay", "15ms"]);
    let found = joined.whole_round_trip("8972").expect("answers");
    assert!(found > 29.9, "{found} ms");
    let report = attached.detach();
    // Fragments would amount to 28; address resolution may add some.
    let frames = report["ports"][0]["packets_in"].as_u64().expect("a count");
    assert!((4..10).contains(&frames), "{report}");
    // A raised MTU takes effect on the attached link.
    joined.set_mtu(1_500);
    let attached = joined.attach(&name_of("raised"), &["--delay", "15ms"]);
    joined.set_mtu(9_000);
    let found = joined.whole_round_trip("8972").expect("answers");
    assert!(found > 29.9, "{found} ms");
    let _ = attached.detach();
    joined.assert_clean();
}

#[test]
fn addresses_are_resolved_over_the_link() {
    let Some(joined) = Joined::new() else { return };
    joined.add_unresolved();
    let attached = joined.attach(&name_of("resolved"), &["--delay", "15ms"]);
    for [_, far] in UNRESOLVED {
        let began = Instant::now();
        let command = ["ping", "-c", "1", "-W", "5", "-q", far];
        assert_eq!(run_in(&joined.near, &command).code, 0, "{far}");
        // Address resolution crosses the link as well.
        assert!(began.elapsed() >= 4 * DELAY, "{far}");
    }
    let report = attached.detach();
    assert!(
        report["ports"][0]["packets_in"].as_u64() >= Some(4),
        "{report}"
    );
}

#[test]
fn datagrams_for_many_come_once_and_late() {
    let Some(joined) = Joined::new() else { return };
    let group = Ipv4Addr::new(239, 7, 7, 7);
    let (near, far) = joined.sockets(7_001);
    let IpAddr::V4(far_address) = joined.far_address else {
        unreachable!("an IPv4 address")
    };
    far.join_multicast_v4(&group, &far_address)
        .expect("a group");
    near.set_broadcast(true).expect("allowed");
    let route = ["ip", "route", "replace", "239.0.0.0/8", "dev", DEVICE];
    assert_eq!(run_in(&joined.near, &route).code, 0);
    let mut broadcast = far_address.octets();
    broadcast[3] = 255;
    let attached = joined.attach(
        &name_of("many"),
        &["--delay", "15ms", "--filter", "udp dst port 7001"],
    );
    for address in [group, broadcast.into()] {
        let began = Instant::now();
        near.send_to(b"for many", (address, 7_001))
            .expect("it is sent");
        let mut buffer = [0; 64];
        let length = far.recv(&mut buffer).expect("it arrives");
        assert_eq!(&buffer[..length], b"for many");
        assert!(began.elapsed() >= DELAY, "{address}");
    }
    let report = attached.detach();
    assert_eq!(report["ports"][0]["packets_in"], 2, "{report}");
    far.set_nonblocking(true).expect("a socket");
    assert!(far.recv(&mut [0; 64]).is_err(), "no second copy");
}

#[test]
fn joined_datagrams_arrive_apart() {
    const BYTES: usize = 1_000;
    const COUNT: usize = 50;
    let Some(joined) = Joined::new() else { return };
    let (near, far) = joined.sockets(7_002);
    setsockopt(&near, sockopt::UdpGsoSegment, &(BYTES as i32)).expect("UDP GSO");
    let attached = joined.attach(
        &name_of("joined"),
        &["--delay", "15ms", "--filter", "udp dst port 7002"],
    );
    let sent: Vec<u8> = (0..COUNT)
        .flat_map(|number| [number as u8; BYTES])
        .collect();
    let began = Instant::now();
    near.send_to(&sent, (joined.far_address, 7_002))
        .expect("it is sent");
    let mut arrived = BTreeSet::new();
    for _ in 0..COUNT {
        let mut buffer = [0; 2 * BYTES];
        let length = far.recv(&mut buffer).expect("it arrives");
        assert_eq!(length, BYTES);
        assert!(
            buffer[..length].iter().all(|byte| *byte == buffer[0]),
            "of one datagram"
        );
        arrived.insert(buffer[0]);
    }
    assert!(began.elapsed() >= DELAY);
    assert_eq!(arrived.len(), COUNT);
    let report = attached.detach();
    assert_eq!(report["ports"][0]["packets_in"], COUNT, "{report}");
}

#[test]
fn traffic_passes_when_the_program_aborts() {
    let Some(joined) = Joined::new() else { return };
    let attached = joined.attach(&name_of("aborted"), &["--loss", "100%"]);
    assert_eq!(joined.round_trip(), None, "everything is lost");
    attached.program.signal(Signal::SIGABRT);
    let _ = attached.program.end();
    joined.assert_round_trip(0.0);
    joined.assert_clean();
}
