//! Captures without Ethernet headers: on all devices, on loopback and on tunnels. The added headers
//! are checked field by field, and by tshark if it is installed.
use longwire_testbed::support::frames::udp4;
use longwire_testbed::support::{Folder, output, words};
use std::process::Command;

use crate::common::captures::Builder;
use crate::common::{read_whole, reader};
use longwire_capture::{CaptureWriter, RecordCounts};
use longwire_engine::Nanos;

pub const SENDER: [u8; 6] = [2, 0, 0, 0, 0, 1];
pub const RECEIVER: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// Returns an IPv4 UDP packet to this address, with correct checksums.
pub fn v4(to: [u8; 4]) -> Vec<u8> {
    udp4([10, 0, 0, 1], to, (0x3039, 0x303a), b"longwire").split_off(14)
}

/// Returns an IPv6 packet without a next header, optionally to a multicast address.
pub fn v6(multicast: bool) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, 0, 59, 64];
    packet.extend_from_slice(&[0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    let first = if multicast { 0xff } else { 0xfd };
    packet.extend_from_slice(&[
        first, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x12, 0x34, 0x56, 0x78,
    ]);
    packet
}

fn cooked(kind: u16, device: u16, address: &[u8], protocol: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = Builder::new(true);
    frame.u16(kind).u16(device).u16(address.len() as u16);
    frame.raw(address).raw(&[0; 8][address.len()..]);
    frame.u16(protocol).raw(payload);
    frame.bytes
}

fn cooked2(kind: u16, device: u16, address: &[u8], protocol: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = Builder::new(true);
    frame.u16(protocol).u16(0).u32(3).u16(device);
    frame.raw(&[kind as u8, address.len() as u8]);
    frame.raw(address).raw(&[0; 8][address.len()..]);
    frame.raw(payload);
    frame.bytes
}

pub fn ethernet(receiver: [u8; 6], sender: [u8; 6], kind: u16, payload: &[u8]) -> Vec<u8> {
    [&receiver[..], &sender[..], &kind.to_be_bytes()[..], payload].concat()
}

/// Returns the number of skipped records.
fn left_out(counts: &RecordCounts) -> u64 {
    counts.left_out.values().sum()
}

/// Captured frames, each with its Ethernet form if it has one.
pub type Pairs = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// Returns a packet with the header `head`, and its Ethernet form.
pub fn pair(head: &[u8], to: [u8; 6], kind: u16, packet: &[u8]) -> (Vec<u8>, Option<Vec<u8>>) {
    let expected = ethernet(to, SENDER, kind, packet);
    ([head, packet].concat(), Some(expected))
}

/// Reads the frames from classic files in both byte orders, and from pcapng with enhanced and
/// simple packets. Returns the counts, which must be equal.
pub fn check(link_type: u16, frames: &Pairs) -> RecordCounts {
    let mut counts = Vec::new();
    for big in [false, true] {
        let mut classic = Builder::pcap(big, 0xa1b2_c3d4, 200, u32::from(link_type));
        let mut enhanced = Builder::ng(big, link_type, 0, &[]);
        let mut simple = enhanced.clone();
        for (frame, _) in frames {
            let wire_len = frame.len() as u32 + 7;
            classic.record(1, 0, frame, wire_len);
            enhanced.enhanced(0, 5, frame, wire_len);
            simple.block(3, |b| _ = b.u32(frame.len() as u32).raw(frame));
        }
        for (file, stamp, more) in [
            (classic, 1_000_000_000, 7),
            (enhanced, 5_000, 7),
            (simple, 0, 0),
        ] {
            let expected = frames.iter().filter_map(|(_, frame)| frame.clone());
            let whole = |frame: Vec<u8>| {
                let wire_len = frame.len() as u32 + more;
                (stamp, frame, wire_len)
            };
            let expected: Vec<_> = expected.map(whole).collect();
            for ahead in [false, true] {
                let (read, record_counts) = read_whole(&file.bytes, ahead);
                assert_eq!(read, expected, "link type {link_type}, big {big}");
                counts.push(record_counts);
            }
        }
    }
    assert!(counts.iter().all(|count| *count == counts[0]));
    counts.swap_remove(0)
}

#[test]
fn raw_ip_gets_a_header() {
    let group = [0x33, 0x33, 0x12, 0x34, 0x56, 0x78];
    let frames = vec![
        pair(&[], RECEIVER, 0x0800, &v4([10, 0, 0, 2])),
        pair(&[], [1, 0, 0x5e, 1, 2, 3], 0x0800, &v4([239, 129, 2, 3])),
        pair(&[], [0xff; 6], 0x0800, &v4([255; 4])),
        pair(&[], RECEIVER, 0x86dd, &v6(false)),
        pair(&[], group, 0x86dd, &v6(true)),
        (vec![0x50; 40], None),
        (vec![], None),
    ];
    for link_type in [12, 14, 101, 228, 229] {
        let counts = check(link_type, &frames);
        assert_eq!((counts.raw_ip, left_out(&counts)), (5, 2));
    }
}

#[test]
fn loopback_gets_a_header() {
    let packet = v4([127, 0, 0, 1]);
    let mut frames = vec![
        pair(&[2, 0, 0, 0], RECEIVER, 0x0800, &packet),
        pair(&[0, 0, 0, 2], RECEIVER, 0x0800, &packet),
        ([&[9, 0, 0, 0], &packet[..]].concat(), None),
        (vec![2, 0], None),
    ];
    for family in [10, 24, 28, 30] {
        frames.push(pair(&[family, 0, 0, 0], RECEIVER, 0x86dd, &v6(false)));
    }
    for link_type in [0, 108] {
        let counts = check(link_type, &frames);
        assert_eq!((counts.loopback, left_out(&counts)), (6, 2));
    }
}

/// Builds a cooked header from packet type, hardware type, address and protocol, followed by the
/// payload.
type Head = dyn Fn(u16, u16, &[u8], u16, &[u8]) -> Vec<u8>;

#[test]
fn cooked_captures_get_ethernet_headers() {
    let packet = v4([10, 0, 0, 2]);
    let station = [0x52, 0x54, 0, 1, 2, 3];
    let arp = [
        0, 1, 8, 0, 6, 4, 0, 1, 0x52, 0x54, 0, 1, 2, 3, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0,
    ];
    let tagged = [&[0, 7, 8, 0][..], &packet].concat();
    let frames = |head: &Head| -> Pairs {
        // To this host over Ethernet; broadcast; loopback; a tunnel without addresses; a tag; LLC
        // with its length; and three frames that cannot be converted to Ethernet.
        let llc = head(0, 1, &station, 4, &[0x42; 38]);
        let carried = |to, from, (kind, device): (u16, u16), address: &[u8], protocol, packet| {
            let expected = ethernet(to, from, protocol, packet);
            let frame = head(kind, device, address, protocol, packet);
            (frame, Some(expected))
        };
        vec![
            carried(RECEIVER, station, (0, 1), &station, 0x0800, &packet),
            carried([0xff; 6], station, (1, 1), &station, 0x0806, &arp),
            carried(RECEIVER, SENDER, (0, 772), &[0; 6], 0x86dd, &v6(false)),
            carried(RECEIVER, SENDER, (4, 65534), &[], 0x0800, &packet),
            carried(RECEIVER, station, (0, 1), &station, 0x8100, &tagged),
            (head(0, 824, &[], 0x0800, &packet), None),
            (head(0, 803, &station, 0x0800, &packet), None),
            (head(0, 280, &[], 0x000c, &packet), None),
            (llc[..10].to_vec(), None),
        ]
    };
    for (link_type, head) in [(113, &cooked as &Head), (276, &cooked2)] {
        let counts = check(link_type, &frames(head));
        assert_eq!((counts.cooked, left_out(&counts)), (5, 4));
    }
    // The length field counts the bytes on the wire, not only the captured ones.
    let mut file = Builder::pcap(false, 0xa1b2_c3d4, 0, 113);
    let frame = cooked(0, 1, &station, 4, &[0x42; 38]);
    file.record(1, 0, &frame, frame.len() as u32 + 3);
    let expected = ethernet(RECEIVER, station, 41, &[0x42; 38]);
    let wire_len = expected.len() as u32 + 3;
    let (frames, _) = read_whole(&file.bytes, false);
    assert_eq!(frames, [(1_000_000_000, expected, wire_len)]);
}

#[test]
fn tshark_finds_the_packets_whole() {
    let dir = Folder::new();
    let path = dir.file("cooked.pcap");
    let mut file = Builder::pcap(false, 0xa1b2_c3d4, 0, 276);
    for n in 0..20 {
        let packet = v4([10, 0, 0, n]);
        let frame = cooked2(0, 1, &[0x52, 0x54, 0, 1, 2, n], 0x0800, &packet);
        file.record(1, 0, &frame, frame.len() as u32);
    }
    let mut reader = reader(&file.bytes).unwrap();
    let mut writer = CaptureWriter::create(&path).unwrap();
    while let Some(record) = reader.next().unwrap() {
        let written = writer.write(Nanos::from_secs(1), record.bytes, record.wire_len);
        written.unwrap();
    }
    writer.finish().unwrap();
    let options = "-n -o ip.check_checksum:TRUE -o data.show_as_text:TRUE -T fields -e eth.src \
                   -e ip.dst -e ip.checksum.status -e data.text -e _ws.malformed";
    let mut tshark = Command::new("tshark");
    tshark.args(["-r", &path]).args(words(options));
    let Some(output) = output(&mut tshark) else {
        return;
    };
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said.lines().count(), 20);
    for (n, line) in said.lines().enumerate() {
        let expected = format!("52:54:00:01:02:{n:02x}\t10.0.0.{n}\t1\tlongwire\t");
        assert_eq!(line, expected);
    }
}
