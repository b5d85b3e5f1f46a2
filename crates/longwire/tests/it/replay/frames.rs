//! Numbered datagrams with timestamps.

use std::net::Ipv4Addr;

use longwire_testbed::support::frames::{Ipv4, PLAIN4, ethernet};

const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);

/// Frames with timestamps in nanoseconds.
pub type TimedFrames = Vec<(u64, Vec<u8>)>;

/// Returns a UDP datagram over IPv4 between the client and port 53 of the server, with
/// the number as payload.
pub fn numbered(from_client: bool, number: u32) -> Vec<u8> {
    numbered_of(SERVER, from_client, number)
}

/// As [`numbered`], with another server.
pub fn numbered_of(server: Ipv4Addr, from_client: bool, number: u32) -> Vec<u8> {
    let (mut ports, mut addresses) = ([40_000u16, 53], [CLIENT, server]);
    if !from_client {
        ports.reverse();
        addresses.reverse();
    }
    // Without a checksum, as UDP over IPv4 may be.
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

/// Returns the number in a frame of [`numbered`].
pub fn number_of(frame: &[u8]) -> u32 {
    let payload = frame.get(42..46).and_then(|bytes| bytes.first_chunk());
    u32::from_be_bytes(*payload.expect("a numbered frame"))
}
