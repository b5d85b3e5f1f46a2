//! Veth pairs for replays, and traces of numbered datagrams.

use std::net::Ipv4Addr;

use longwire_io::net::veth::End;
use longwire_io::net::{self, NetNamespace, sysctl};
use longwire_testbed::support::frames::{Ipv4, PLAIN4, ethernet};
use longwire_testbed::support::{capture, device, namespace, wire, within};

use crate::common::EPOCH;
use crate::common::program::{RunningProgram, eventually, start_in};

const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);

/// Returns an IPv4 UDP datagram between the client and port 53 of the server, with `number` as
/// payload.
pub fn numbered(from_client: bool, number: u32) -> Vec<u8> {
    numbered_of(SERVER, from_client, number)
}

/// Like [`numbered`], with another server.
pub fn numbered_of(server: Ipv4Addr, from_client: bool, number: u32) -> Vec<u8> {
    let (mut ports, mut addresses) = ([40_000u16, 53], [CLIENT, server]);
    if !from_client {
        ports.reverse();
        addresses.reverse();
    }
    // UDP over IPv4 needs no checksum.
    let mut datagram = ports.map(u16::to_be_bytes).concat();
    datagram.extend([0, 12, 0, 0]);
    datagram.extend(number.to_be_bytes());
    let ip = Ipv4 {
        fragment: 0x4000,
        source: addresses[0].octets(),
        destination: addresses[1].octets(),
        ..PLAIN4
    };
    ethernet(&[], 0x0800, &ip.packet(17, &datagram))
}

/// Returns the number in a frame from [`numbered`].
pub fn number_of(frame: &[u8]) -> u32 {
    let payload = frame.get(42..46).and_then(|bytes| bytes.first_chunk());
    u32::from_be_bytes(*payload.expect("a numbered frame"))
}

/// Returns a pcap file with nanosecond timestamps; `frames` contains times since the start.
pub fn pcap_of(link_type: u32, frames: impl IntoIterator<Item = (u64, Vec<u8>)>) -> Vec<u8> {
    let frames = frames.into_iter();
    capture::pcap(link_type, frames.map(|(time, frame)| (EPOCH + time, frame)))
}

/// Returns a pcap file of numbered client frames at these times.
pub fn trace_of(times: impl IntoIterator<Item = u64>) -> Vec<u8> {
    let frames = times.into_iter().zip(0..);
    pcap_of(
        1,
        frames.map(|(time, number)| (time, numbered(true, number))),
    )
}

/// Devices `near0`, `near1`… joined to `far0`, `far1`…, in two namespaces. The kernel itself sends
/// no frames on them.
pub struct Wire {
    pub near: NetNamespace,
    pub far: NetNamespace,
}

impl Wire {
    pub fn new(pairs: usize) -> Option<Wire> {
        let site = Wire {
            near: namespace()?,
            far: namespace()?,
        };
        for namespace in [&site.near, &site.far] {
            within(namespace, || sysctl::set("ipv6/conf/all/disable_ipv6", "1"));
        }
        for number in 0..pairs {
            let (near, far) = (format!("near{number}"), format!("far{number}"));
            let end = |name, namespace| End {
                mtu: Some(1_500),
                ..device(name, Some(namespace))
            };
            wire(end(&near, &site.near), end(&far, &site.far)).expect("pairs are made");
        }
        Some(site)
    }

    /// Starts `longwire replay` with these arguments at the near ends.
    pub fn replay(&self, arguments: &str) -> RunningProgram {
        start_in(&self.near, format!("longwire replay {arguments}"))
    }

    /// Returns the number of frames that arrived at a far end.
    pub fn arrived(&self, number: usize) -> u64 {
        within(&self.far, || net::link_stats(&format!("far{number}"))).rx_packets
    }

    /// Waits until `frames` frames have arrived at a far end; asserts that no more have.
    pub fn expect_arrived(&self, number: usize, frames: u64) {
        eventually("frames are missing", || self.arrived(number) >= frames);
        assert_eq!(self.arrived(number), frames);
    }
}
