//! Many kinds of frames over an attached link: long frames, super-packets, multicast and address
//! resolution.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use longwire_io::net::link::set_mtu;
use longwire_testbed::support::within;
use nix::sys::socket::{setsockopt, sockopt};

use super::{DEVICE, Joined, name_of};
use crate::common::count;
use crate::common::program::{TIMEOUT, change, ping};
use crate::common::site::assert_not_early;

const DELAY: Duration = Duration::from_millis(15);

impl Joined {
    fn set_mtu(&self, mtu: u32) {
        for namespace in [&self.near, &self.far] {
            within(namespace, || set_mtu(DEVICE, mtu));
        }
    }

    /// Asserts that frames of 9,014 bytes cross the link intact.
    #[track_caller]
    fn assert_long_frames_cross(&self) {
        let whole = "-c 4 -i 0.05 -W 1 -M do -s 8972";
        assert_not_early(ping(&self.near, whole, self.far_address), 30.0);
    }
}

#[test]
fn long_frames_cross_whole() {
    let Some(joined) = Joined::new() else { return };
    joined.set_mtu(9_000);
    let attached = joined.attach(&name_of("jumbo"), "--delay 15ms");
    joined.assert_long_frames_cross();
    let report = attached.detach();
    // Four frames, plus any for address resolution; fragments would be at least 28.
    let frames = count(&report["ports"][0]["packets_in"]);
    assert!((4..10).contains(&frames), "{report}");
    // A raised MTU takes effect on the attached link.
    joined.set_mtu(1_500);
    let attached = joined.attach(&name_of("raised"), "--delay 15ms");
    joined.set_mtu(9_000);
    joined.assert_long_frames_cross();
    attached.detach();
    joined.assert_clean();
}

#[test]
fn addresses_are_resolved_over_the_link() {
    let Some(joined) = Joined::new() else { return };
    let pairs = [
        ("10.199.7.1", "10.199.7.2"),
        ("fd00:1:2:3::7", "fd00:1:2:3::8"),
    ];
    for (near, far) in pairs {
        joined.add_addresses(near, &[far]);
    }
    let attached = joined.attach(&name_of("resolved"), "--delay 15ms");
    for (_, far) in pairs {
        let began = Instant::now();
        change(&joined.near, format!("ping -c 1 -W 5 -q {far}"));
        // Address resolution crosses the link too, which adds two delays.
        assert!(began.elapsed() >= 4 * DELAY, "{far}");
    }
    let report = attached.detach();
    assert!(count(&report["ports"][0]["packets_in"]) >= 4, "{report}");
}

#[test]
fn multicast_and_broadcast_cross_once_and_delayed() {
    let Some(joined) = Joined::new() else { return };
    let group = Ipv4Addr::new(239, 7, 7, 7);
    let (near, far) = joined.sockets(7_001);
    far.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    let IpAddr::V4(far_address) = joined.far_address else {
        unreachable!("an IPv4 address")
    };
    far.join_multicast_v4(&group, &far_address)
        .expect("a group");
    near.set_broadcast(true).expect("allowed");
    change(&joined.near, "ip route replace 239.0.0.0/8 dev eth0");
    let mut broadcast = far_address.octets();
    broadcast[3] = 255;
    let options = "--delay 15ms --filter 'udp dst port 7001'";
    let attached = joined.attach(&name_of("many"), options);
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
    far.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    setsockopt(&near, sockopt::UdpGsoSegment, &(BYTES as i32)).expect("UDP GSO");
    let options = "--delay 15ms --filter 'udp dst port 7002'";
    let attached = joined.attach(&name_of("joined"), options);
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
        let mut bytes = buffer[..length].iter();
        assert!(bytes.all(|byte| *byte == buffer[0]), "of one datagram");
        arrived.insert(buffer[0]);
    }
    assert!(began.elapsed() >= DELAY);
    assert_eq!(arrived.len(), COUNT);
    let report = attached.detach();
    assert_eq!(report["ports"][0]["packets_in"], COUNT, "{report}");
}
