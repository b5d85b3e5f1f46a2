//! Frames that no program here sends: IPv6 extension headers, SCTP, VLAN tags. All have
//! valid checksums.

use std::net::{Ipv4Addr, Ipv6Addr};

use longwire_testbed::support::frames::{self, Ipv4, PLAIN4, crc32c, sum};

pub const CLIENT4: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
pub const SERVER4: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
pub const CLIENT6: Ipv6Addr = Ipv6Addr::new(0xfd09, 0, 0, 0, 0, 0, 0, 1);
pub const SERVER6: Ipv6Addr = Ipv6Addr::new(0xfd09, 0, 0, 0, 0, 0, 0, 2);

/// Frames with timestamps in nanoseconds.
pub type TimedFrames = Vec<(u64, Vec<u8>)>;

/// Returns the frames, one per millisecond.
pub fn timed(frames: impl IntoIterator<Item = Vec<u8>>) -> TimedFrames {
    (0..).map(|n| n * 1_000_000).zip(frames).collect()
}

pub fn ethernet(ether_type: u16, packet: &[u8]) -> Vec<u8> {
    frames::ethernet(&[], ether_type, packet)
}

/// Returns the frame with these VLAN tags (type and VLAN), outer tag first.
pub fn tagged(frame: &[u8], tags: &[(u16, u16)]) -> Vec<u8> {
    let mut bytes = frame[..12].to_vec();
    for (kind, vlan) in tags {
        bytes.extend(kind.to_be_bytes());
        bytes.extend(vlan.to_be_bytes());
    }
    bytes.extend(&frame[12..]);
    bytes
}

fn ipv4(protocol: u8, [from, to]: [Ipv4Addr; 2], payload: &[u8]) -> Vec<u8> {
    let ip = Ipv4 {
        fragment: 0x4000,
        source: from.octets(),
        destination: to.octets(),
        ..PLAIN4
    };
    ethernet(0x0800, &ip.packet(protocol, payload))
}

/// Returns a UDP datagram over IPv4 between the client and port 53 of the server, with
/// the number as payload.
pub fn numbered(from_client: bool, number: u32) -> Vec<u8> {
    numbered_of(SERVER4, from_client, number)
}

/// As [`numbered`], with another server.
pub fn numbered_of(server: Ipv4Addr, from_client: bool, number: u32) -> Vec<u8> {
    let (mut ports, mut addresses) = ([40_000u16, 53], [CLIENT4, server]);
    if !from_client {
        ports.reverse();
        addresses.reverse();
    }
    // Without a checksum, as UDP over IPv4 may be.
    let mut datagram = ports.map(u16::to_be_bytes).concat();
    datagram.extend([0, 12, 0, 0]);
    datagram.extend(number.to_be_bytes());
    ipv4(17, addresses, &datagram)
}

/// Returns the number in a frame of [`numbered`].
pub fn number_of(frame: &[u8]) -> u32 {
    let payload = frame.get(42..46).and_then(|bytes| bytes.first_chunk());
    u32::from_be_bytes(*payload.expect("a numbered frame"))
}

/// Returns a packet from client to server with extension headers before the payload.
fn ipv6(headers: &[(u8, Vec<u8>)], protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut chain = Vec::new();
    let next = headers.iter().skip(1).map(|(kind, _)| *kind);
    for ((_, header), next) in headers.iter().zip(next.chain([protocol])) {
        chain.push(next);
        chain.extend(&header[1..]);
    }
    let first = headers.first().map_or(protocol, |(kind, _)| *kind);
    let len = (chain.len() + payload.len()) as u16;
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend(len.to_be_bytes());
    packet.extend([first, 64]);
    packet.extend(CLIENT6.octets());
    packet.extend(SERVER6.octets());
    packet.extend(chain);
    packet.extend(payload);
    ethernet(0x86dd, &packet)
}

/// Inserts the checksum of RFC 8200, section 8.1 at offset `at`.
fn with_checksum(protocol: u8, mut segment: Vec<u8>, at: usize) -> Vec<u8> {
    let [client, server] = [CLIENT6, SERVER6].map(|address| address.octets());
    let len = (segment.len() as u32).to_be_bytes();
    let tail = [0, 0, 0, protocol];
    let sum = !sum(&[&client, &server, &len, &tail, &segment]);
    segment[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    segment
}

fn udp(payload: usize) -> Vec<u8> {
    let mut datagram = vec![0x9c, 0x40, 0x9c, 0x42];
    datagram.extend((8 + payload as u16).to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend((0..payload).map(|n| n as u8));
    with_checksum(17, datagram, 6)
}

fn tcp_syn() -> Vec<u8> {
    let segment = vec![
        0x9c, 0x40, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x02, 0xff, 0xff, 0, 0, 0, 0,
    ];
    with_checksum(6, segment, 16)
}

fn echo_request() -> Vec<u8> {
    with_checksum(58, vec![128, 0, 0, 0, 0, 7, 0, 1, b'h', b'i'], 2)
}

/// Returns packets with each extension header of RFC 8200, and a datagram in two
/// fragments after hop-by-hop options.
pub fn extension_headers() -> TimedFrames {
    // PadN fills the header.
    let options = |kind| (kind, vec![0, 0, 1, 4, 0, 0, 0, 0]);
    // Type 2 (RFC 6275, section 6.4), at its last segment.
    let mut routing = vec![0, 2, 2, 0, 0, 0, 0, 0];
    routing.extend(SERVER6.octets());
    let routing = (43, routing);
    let fragment = |offset: u16, more: bool| {
        let word = (offset & !7 | u16::from(more)).to_be_bytes();
        (44, vec![0, 0, word[0], word[1], 0, 0, 0, 9])
    };
    let (hop_by_hop, destination) = (options(0), options(60));
    let whole = udp(1_000);
    let (first, second) = whole.split_at(504);
    timed([
        ipv6(std::slice::from_ref(&hop_by_hop), 17, &udp(33)),
        ipv6(std::slice::from_ref(&destination), 6, &tcp_syn()),
        ipv6(std::slice::from_ref(&routing), 58, &echo_request()),
        ipv6(&[fragment(0, false)], 17, &udp(64)),
        ipv6(
            &[
                hop_by_hop.clone(),
                destination.clone(),
                routing,
                destination,
            ],
            17,
            &udp(100),
        ),
        ipv6(&[hop_by_hop.clone(), fragment(0, true)], 17, first),
        ipv6(&[hop_by_hop, fragment(504, false)], 17, second),
        ipv6(&[], 59, &[]),
    ])
}

fn chunk(kind: u8, flags: u8, value: &[u8]) -> Vec<u8> {
    let mut chunk = vec![kind, flags];
    chunk.extend((4 + value.len() as u16).to_be_bytes());
    chunk.extend(value);
    chunk.resize(chunk.len().next_multiple_of(4), 0);
    chunk
}

fn sctp(from_client: bool, tag: u32, chunk: &[u8]) -> Vec<u8> {
    let (mut ports, mut addresses) = ([5_000u16, 6_000], [CLIENT4, SERVER4]);
    if !from_client {
        ports.reverse();
        addresses.reverse();
    }
    let mut packet = ports.map(u16::to_be_bytes).concat();
    packet.extend(tag.to_be_bytes());
    packet.extend([0; 4]);
    packet.extend(chunk);
    let sum = crc32c(&packet).to_le_bytes();
    packet[8..12].copy_from_slice(&sum);
    ipv4(132, addresses, &packet)
}

/// Returns an SCTP association (RFC 9260): setup, four messages each way, shutdown.
pub fn sctp_association() -> TimedFrames {
    let (client, server) = (0x1111_1111u32, 0x2222_2222u32);
    let words = |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|w| w.to_be_bytes()).collect() };
    // Tag, window, streams, first number.
    let init = |tag| words(&[tag, 65_536, 0x000a_000a, 1]);
    let cookie = [7, 7, 7, 7, 8, 8, 8, 8];
    let init_ack = [&init(server)[..], &[0, 7, 0, 12], &cookie].concat();
    let mut frames = vec![
        sctp(true, 0, &chunk(1, 0, &init(client))),
        sctp(false, client, &chunk(2, 0, &init_ack)),
        sctp(true, server, &chunk(10, 0, &cookie)),
        sctp(false, client, &chunk(11, 0, &[])),
    ];
    for number in 1..=4 {
        for (from_client, tag) in [(true, server), (false, client)] {
            let mut data = words(&[number, number - 1, 0]);
            data.extend(vec![b'x'; 50 + number as usize]);
            frames.push(sctp(from_client, tag, &chunk(0, 3, &data)));
            let other = if from_client { client } else { server };
            let ack = chunk(3, 0, &words(&[number, 65_536, 0]));
            frames.push(sctp(!from_client, other, &ack));
        }
    }
    frames.extend([
        sctp(true, server, &chunk(7, 0, &words(&[4]))),
        sctp(false, client, &chunk(8, 0, &[])),
        sctp(true, server, &chunk(14, 0, &[])),
    ]);
    timed(frames)
}
