//! Traffic for the links: single frames and super-packets.

use longwire_io::port::{Checksum, Offload, SegmentKind, Segments};
use longwire_testbed::support::Draws;
use longwire_testbed::support::frames::sum;

/// Returns draws from this seed.
pub fn draws(seed: u64) -> Draws {
    Draws(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// A buffer as a port provides it.
#[derive(Clone, Debug)]
pub struct Buffer {
    /// Nanoseconds after the first buffer.
    pub at: u64,
    pub bytes: Vec<u8>,
    pub offload: Offload,
}

/// Returns bursts with gaps over 50 ms. Buffers in a burst often share a timestamp.
pub fn buffers(draws: &mut Draws) -> Vec<Buffer> {
    let mut at = 0;
    let count = 30 + draws.below(120);
    let mut buffers = Vec::new();
    for number in 0..count {
        at += draws.pick(&[0, 0, 0, 1, 700, 12_112, 120_000, 400_000, 1_000_000]);
        if at > 50_000_000 {
            break;
        }
        let flow = draws.below(6) as u16;
        let len = draws.pick(&[0, 18, 300, 548, 549, 1_400, 1_472]);
        buffers.push(match draws.below(8) {
            0 => super_packet(at, number as u16, flow, draws),
            1 => plain(at, unknown(len)),
            2 => unfinished(at, number as u16, flow, len),
            _ => {
                let flags = draws.pick(&[0, 0, 0, 0x4000]);
                let packet = udp4(number as u16, flow, flags, &payload(len));
                plain(at, packet)
            }
        });
    }
    buffers
}

/// Returns a buffer without offloads.
pub fn plain(at: u64, bytes: Vec<u8>) -> Buffer {
    buffer(at, bytes, Offload::NONE)
}

fn buffer(at: u64, bytes: Vec<u8>, offload: Offload) -> Buffer {
    Buffer { at, bytes, offload }
}

fn payload(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + len) as u8).collect()
}

/// Returns a non-IP frame.
fn unknown(len: usize) -> Vec<u8> {
    let mut frame = vec![0x5a; 12];
    frame.extend([0x12, 0x34]);
    frame.extend(payload(len.max(46)));
    frame
}

/// Returns one of several combinations of DSCP and ECN.
fn class(flow: u16) -> u8 {
    [0x00, 0x02, 0x01, 0xb9, 0x03, 0x20][usize::from(flow) % 6]
}

fn ipv4(number: u16, flow: u16, flags: u16, protocol: u8, segment: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x02; 12];
    frame.extend([0x08, 0x00, 0x45, class(flow)]);
    frame.extend(((20 + segment.len()) as u16).to_be_bytes());
    frame.extend(number.to_be_bytes());
    frame.extend(flags.to_be_bytes());
    frame.extend([64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    let sum = !sum(&[&frame[14..34]]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame.extend(segment);
    frame
}

/// Returns the pseudo-header for these addresses.
fn pseudo(protocol: u8, len: usize) -> Vec<u8> {
    let mut header = vec![10, 0, 0, 1, 10, 0, 0, 2, 0, protocol];
    header.extend((len as u32).to_be_bytes());
    header
}

fn udp(flow: u16, payload: &[u8]) -> Vec<u8> {
    let len = (8 + payload.len()) as u16;
    let words = [flow + 1_000, 9, len, 0];
    let mut datagram: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    datagram.extend(payload);
    datagram
}

fn udp4(number: u16, flow: u16, flags: u16, payload: &[u8]) -> Vec<u8> {
    let mut datagram = udp(flow, payload);
    let sum = match !sum(&[&pseudo(17, datagram.len()), &datagram]) {
        0 => 0xffff,
        sum => sum,
    };
    datagram[6..8].copy_from_slice(&sum.to_be_bytes());
    ipv4(number, flow, flags, 17, &datagram)
}

/// Returns a datagram whose checksum is left to the hardware.
fn unfinished(at: u64, number: u16, flow: u16, len: usize) -> Buffer {
    let mut datagram = udp(flow, &payload(len));
    let partial = sum(&[&pseudo(17, datagram.len())]);
    datagram[6..8].copy_from_slice(&partial.to_be_bytes());
    let checksum = Checksum {
        start: 34,
        offset: 6,
    };
    buffer(
        at,
        ipv4(number, flow, 0, 17, &datagram),
        Offload {
            checksum: Some(checksum),
            segments: None,
        },
    )
}

/// Returns a TCP or UDP super-packet.
fn super_packet(at: u64, number: u16, flow: u16, draws: &mut Draws) -> Buffer {
    let payload_len = draws.pick(&[100u16, 536, 1_448]);
    let len = 1 + draws.below(12 * u64::from(payload_len)) as usize;
    let kind = draws.pick(&[SegmentKind::Udp, SegmentKind::TcpV4]);
    in_segments(at, (number, flow), kind, payload_len, len)
}

/// Returns a buffer of `count` full TCP segments.
pub fn segments(at: u64, count: usize) -> Buffer {
    in_segments(at, (1, 0), SegmentKind::TcpV4, 1_448, 1_448 * count)
}

fn in_segments(
    at: u64,
    (number, flow): (u16, u16),
    kind: SegmentKind,
    payload_len: u16,
    len: usize,
) -> Buffer {
    let payload = payload(len);
    let (protocol, mut segment, at_checksum) = match kind {
        SegmentKind::Udp => (17, udp(flow, &payload), 6),
        _ => (6, tcp(flow, &payload), 16),
    };
    let partial = sum(&[&pseudo(protocol, segment.len())]);
    segment[at_checksum..at_checksum + 2].copy_from_slice(&partial.to_be_bytes());
    let header_len = 34 + (segment.len() - payload.len()) as u16;
    let segments = Segments {
        kind,
        header_len,
        payload_len,
        cwr_once: false,
    };
    let checksum = Checksum {
        start: 34,
        offset: at_checksum as u16,
    };
    let offload = Offload {
        checksum: Some(checksum),
        segments: Some(segments),
    };
    buffer(at, ipv4(number, flow, 0, protocol, &segment), offload)
}

fn tcp(flow: u16, payload: &[u8]) -> Vec<u8> {
    let mut segment = (flow + 2_000).to_be_bytes().to_vec();
    segment.extend([
        0, 9, 0, 0, 1, 0, 0, 0, 2, 0, 0x50, 0x18, 0xff, 0xff, 0, 0, 0, 0,
    ]);
    segment.extend(payload);
    segment
}
