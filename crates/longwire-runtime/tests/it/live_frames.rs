//! Unusual frames from live hosts: tunnelled packets, and frames above the MTU.

use std::net::{Ipv4Addr, UdpSocket};
use std::thread::sleep;
use std::time::Duration;

use longwire_io::net::link::{link_index, set_mtu};
use longwire_io::net::netlink::{Netlink, REQUEST};
use longwire_io::net::netlink_message::Message;
use longwire_io::net::{NetError, addr_add, link_up};
use longwire_runtime::{Artifact, LinkReport, RunReport};
use longwire_testbed::{DEVICE, Device, EnvironmentConfig, Side};
use nix::sys::socket::{setsockopt, sockopt};

use crate::live::Hosts;

/// Name of the overlay device.
const OVERLAY: &str = "vx";
/// `IFLA_INFO_KIND`, `IFLA_INFO_DATA`, and VXLAN attributes (linux/if_link.h): number, remote and
/// own address, UDP port, checksums.
const KIND: u16 = 1;
const DATA: u16 = 2;
const NUMBER: u16 = 1;
const REMOTE: u16 = 2;
const LINK: u16 = 3;
const LOCAL: u16 = 4;
const PORT: u16 = 15;
const CHECKSUM: u16 = 18;

fn overlay_address(side: Side) -> Ipv4Addr {
    Ipv4Addr::new(10, 5, 0, if side == Side::Near { 1 } else { 2 })
}

impl Hosts {
    /// Adds a VXLAN device to both hosts.
    fn add_overlay(&self, checksum: bool) {
        for [own, other] in [[Side::Near, Side::Far], [Side::Far, Side::Near]] {
            let ((namespace, local), (_, remote)) = (self.host(own), self.host(other));
            let made = namespace.run(|| {
                make_vxlan([local, remote], checksum)?;
                addr_add(OVERLAY, overlay_address(own).into(), 24)?;
                link_up(OVERLAY)
            });
            made.expect("a thread").expect("an overlay");
        }
    }

    /// Binds sockets of near and far.
    fn sockets(&self, [near, far]: [Ipv4Addr; 2]) -> (UdpSocket, UdpSocket) {
        let bind = |side, address: Ipv4Addr| {
            let (host, _) = self.host(side);
            let bound = host.run(|| UdpSocket::bind((address, 0)));
            bound.expect("a thread").expect("a socket")
        };
        let (near, far) = (bind(Side::Near, near), bind(Side::Far, far));
        near.connect(far.local_addr().expect("its address"))
            .expect("the same namespace");
        far.set_read_timeout(Some(Duration::from_secs(10)))
            .expect("a timeout");
        (near, far)
    }

    fn set_mtu(&self, side: Side, mtu: u32) {
        let set = self.host(side).0.run(|| set_mtu(DEVICE, mtu));
        set.expect("a thread").expect("an MTU");
    }
}

fn make_vxlan([local, remote]: [Ipv4Addr; 2], checksum: bool) -> Result<(), NetError> {
    let below = link_index(DEVICE)?;
    let flags = REQUEST | (libc::NLM_F_CREATE | libc::NLM_F_EXCL) as u16;
    let mut message = Message::new(libc::RTM_NEWLINK, flags, &[0; 16]);
    message.text(libc::IFLA_IFNAME, OVERLAY);
    message.nested(libc::IFLA_LINKINFO, |info| {
        info.text(KIND, "vxlan").nested(DATA, |data| {
            data.number(NUMBER, 5)
                .number(LINK, below)
                .attribute(REMOTE, &remote.octets())
                .attribute(LOCAL, &local.octets())
                .attribute(PORT, &4789u16.to_be_bytes())
                .attribute(CHECKSUM, &[u8::from(checksum)]);
        });
    });
    let made = Netlink::route().and_then(|mut netlink| netlink.request(message));
    made.map_err(|source| NetError::NetlinkError {
        action: "make",
        what: OVERLAY.into(),
        source,
    })
}

/// Checks that all frames on a link are accounted for. Frames that a port loses before or after the
/// link are counted only as artifacts.
fn assert_sums_agree(report: &RunReport, what: &str) {
    for link in &report.links {
        let lost = [Artifact::Memory, Artifact::Refused, Artifact::Unusable];
        let lost: u64 = lost.iter().map(|kind| link.artifacts[kind.name()]).sum();
        let dropped: u64 = link.drops.values().sum();
        let traffic = &link.traffic;
        assert_eq!(link.in_flight, 0, "{what}: {link:?}");
        assert_eq!(
            traffic.packets_in,
            traffic.packets_out + dropped + lost,
            "{what}: {link:?}"
        );
    }
}

fn up(report: &RunReport) -> &LinkReport {
    &report.links[0]
}

/// VXLAN leaves segmentation and checksums to the device, without a trace in the frame.
#[test]
fn packets_in_vxlan_cross_every_kind_of_port() {
    const SENT: usize = 60;
    const SEGMENTS: usize = 20;
    const BYTES: usize = 2_000_000;
    for (kind, checksum) in [
        ("packet", false),
        ("packet", true),
        ("xdp", false),
        ("xdp", true),
        ("tap", false),
    ] {
        let what = format!("{kind}, with checksums: {checksum}");
        let device = if kind == "tap" {
            Device::Tap
        } else {
            Device::Veth
        };
        let config = EnvironmentConfig {
            device,
            ..EnvironmentConfig::default()
        };
        let Some(hosts) = Hosts::with(&config) else {
            return;
        };
        hosts.add_overlay(checksum);
        let running = hosts.start(kind);
        let ends = [Side::Near, Side::Far].map(overlay_address);
        let (near, far) = hosts.sockets(ends);
        setsockopt(&near, sockopt::UdpGsoSegment, &1_200).expect("segments");
        let mut buffer = [0; 2_000];
        for number in 0..SENT {
            near.send(&[number as u8; 1_200 * SEGMENTS]).expect("sent");
            for _ in 0..SEGMENTS {
                let len = far.recv(&mut buffer).expect(&what);
                assert_eq!(buffer[..len], [number as u8; 1_200], "{what}");
            }
        }
        hosts.tcp_to(ends[1], BYTES);
        sleep(Duration::from_millis(100));
        let report = running.stop();
        assert_sums_agree(&report, &what);
        let packets = up(&report).traffic.packets_in as usize;
        assert!(
            packets >= SENT * SEGMENTS + BYTES / 1_450,
            "{what}: {report:?}"
        );
        assert_eq!(up(&report).artifacts["unusable"], 0, "{what}");
    }
}

#[test]
fn hosts_may_raise_their_mtu() {
    let Some(hosts) = Hosts::new() else { return };
    let running = hosts.start("packet");
    let ends = [Side::Near, Side::Far].map(|side| hosts.host(side).1);
    let (near, far) = hosts.sockets(ends);
    let mut buffer = vec![0; 10_000];
    hosts.set_mtu(Side::Near, 9_000);
    // Far still has an MTU of 1500: long frames are refused, and do not block others.
    near.send(&[1; 8_900]).expect("sent");
    near.send(&[2; 100]).expect("sent");
    assert_eq!(far.recv(&mut buffer).expect("the short one"), 100);
    hosts.set_mtu(Side::Far, 9_000);
    near.send(&[3; 8_900]).expect("sent");
    assert_eq!(far.recv(&mut buffer).expect("the long one"), 8_900);
    // Long frames are refused again after far lowers its MTU.
    hosts.set_mtu(Side::Far, 1_500);
    near.send(&[4; 8_900]).expect("sent");
    near.send(&[5; 100]).expect("sent");
    assert_eq!(far.recv(&mut buffer).expect("the short one"), 100);
    let report = running.stop();
    assert_sums_agree(&report, "long frames");
    let found = up(&report);
    assert_eq!(found.traffic.packets_in, 5, "whole frames, no fragments");
    let lost = found.artifacts["refused"] + found.artifacts["send_failed"];
    assert_eq!(lost, 2, "{found:?}");
}
