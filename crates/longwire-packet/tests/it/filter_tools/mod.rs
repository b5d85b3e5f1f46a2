//! Filters, compared with the programs that define their languages: tcpdump, and tshark for display
//! filters. If a program is not installed, its tests are skipped with a message, except in CI,
//! where they fail.
use std::fs;
use std::process::Command;

use longwire_packet::filter::Filter;
use longwire_testbed::support::capture::pcap;
use longwire_testbed::support::frames::{Ipv4, PLAIN4, ethernet, ipv6, sum, transport};
use longwire_testbed::support::{Draws, Folder, output, rows, words};

/// Writes a capture with these frames, one per second.
fn capture(folder: &Folder, frames: &[Vec<u8>]) -> String {
    let path = folder.file("frames.pcap");
    let timed = (0..).map(|second| second * 1_000_000_000).zip(frames);
    fs::write(&path, pcap(1, timed)).unwrap();
    path
}

/// Returns a tool's output, or skips the test if the tool is not installed.
fn run(tool: &str, arguments: &[&str]) -> Option<String> {
    let output = output(Command::new(tool).args(arguments))?;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{tool} {arguments:?}: {said}");
    Some(String::from_utf8(output.stdout).unwrap())
}

const PORTS: [u16; 10] = [22, 53, 80, 443, 5_060, 8_080, 1_024, 40_000, 53_000, 65_535];

/// The SCTP header after the ports, and a COOKIE ACK chunk.
const SCTP_REST: [u8; 12] = [0, 0, 0, 7, 0, 0, 0, 0, 11, 0, 0, 4];

/// Returns a random packet with its EtherType.
fn packet(random: &mut Draws) -> (u16, Vec<u8>) {
    let protocol = random.pick(&[6, 6, 6, 17, 17, 1, 132, 2]);
    let ports = (random.pick(&PORTS), random.pick(&PORTS));
    let flags = random.pick(&[0x02, 0x12, 0x10, 0x18, 0x11, 0x04, 0xc2, 0x29]);
    let mut payload = vec![0x5a; random.pick(&[0, 1, 10, 60, 200, 900])];
    if protocol == 132 {
        payload = SCTP_REST.to_vec();
    }
    if random.any().is_multiple_of(3) {
        let protocol = if protocol == 1 { 58 } else { protocol };
        let mut segment = transport(6, protocol, ports, flags, &payload);
        if protocol == 58 {
            segment[0] = random.pick(&[128, 129, 135, 136, 134]);
        }
        let mut packet = ipv6(random.pick(&[0, 0xb8, 0x22]), &[], protocol, &segment);
        packet[7] = random.pick(&[1, 64, 255]);
        packet[23] = random.pick(&[1, 2, 3]);
        if random.any().is_multiple_of(6) {
            packet[24..26].copy_from_slice(&[0xff, 0x02]);
        }
        return (0x86dd, packet);
    }
    let mut segment = transport(4, protocol, ports, flags, &payload);
    if protocol == 1 {
        segment[0] = random.pick(&[0, 8, 8, 13]);
        segment[1] = random.pick(&[0, 1]);
    }
    let header = Ipv4 {
        class: random.pick(&[0, 0xb8, 0x29]),
        ttl: random.pick(&[1, 3, 64, 128, 255]),
        fragment: random.pick(&[0, 0, 0, 0x4000, 0x4000, 0x2000, 0x2010, 0x00b9]),
        options: random.pick(&[&[][..], &[], &[], &[0x94, 4, 0, 0]]),
        ..PLAIN4
    };
    let mut packet = header.packet(protocol, &segment);
    packet[12..16].copy_from_slice(&random.pick(&[[10, 1, 2, 3], [10, 1, 2, 4], [192, 168, 1, 9]]));
    packet[16..20].copy_from_slice(&random.pick(&[
        [10, 1, 2, 3],
        [192, 0, 2, 77],
        [224, 0, 0, 251],
        [255, 255, 255, 255],
    ]));
    packet[10..12].fill(0);
    let len = usize::from(packet[0] & 15) * 4;
    let sum = !sum(&[&packet[..len]]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    (0x0800, packet)
}

fn arp(random: &mut Draws, kind: u16) -> (u16, Vec<u8>) {
    let mut packet = vec![0, 1, 8, 0, 6, 4, 0, random.pick(&[1, 2]), 2, 0, 0, 0, 0, 1];
    packet.extend(random.pick(&[[10, 1, 2, 3], [192, 168, 1, 9]]));
    packet.extend([0; 6]);
    packet.extend(random.pick(&[[10, 1, 2, 4], [192, 0, 2, 77]]));
    packet.resize(46, 0);
    (kind, packet)
}

/// Returns 600 frames; unless `tags` is zero, each has one or two tags.
fn frames(tags: usize) -> Vec<Vec<u8>> {
    let mut random = Draws(7 + tags as u64);
    let frame = |_| {
        let (kind, packet) = match random.any() % 12 {
            0 => arp(&mut random, 0x0806),
            1 if random.any().is_multiple_of(3) => arp(&mut random, 0x8035),
            1 => (0x88cc, vec![2; 46]),
            _ => packet(&mut random),
        };
        let vlans = [random.pick(&[5, 7, 100]), random.pick(&[5, 9])];
        let mut frame = ethernet(&vlans[..tags], kind, &packet);
        frame[..6].copy_from_slice(&random.pick(&[
            [2, 0, 0, 0, 0, 2],
            [2, 0, 0, 0, 0, 3],
            [0xff; 6],
            [0x33, 0x33, 0, 0, 0, 1],
        ]));
        frame
    };
    (0..600).map(frame).collect()
}

/// Filters with the same meaning in tcpdump and in Longwire.
const TCPDUMP: &str = include_str!("tcpdump.txt");

/// Rewrites a filter to exclude intended differences: TCP and UDP bytes in IPv6 packets.
fn asked(filter: &str) -> String {
    let of_both = ["tcp[", "udp["].iter().any(|bytes| filter.contains(bytes));
    if of_both && !filter.starts_with("ip ") {
        format!("ip and ({filter})")
    } else {
        filter.to_owned()
    }
}

fn counted(filter: &str, frames: &[Vec<u8>]) -> usize {
    let read = Filter::parse(filter).unwrap_or_else(|error| panic!("{filter}: {error}"));
    let met = |frame: &&Vec<u8>| read.matches(frame, frame.len() as u32);
    frames.iter().filter(met).count()
}

/// Returns the number of frames that tcpdump matches.
fn found_by_tcpdump(filter: &str, path: &str) -> Option<usize> {
    let said = run("tcpdump", &["-n", "-r", path, "--count", filter])?;
    let number = said.split_whitespace().next();
    Some(number.and_then(|number| number.parse().ok()).unwrap())
}

#[test]
fn tcpdump_matches_the_same_frames() {
    let frames = frames(0);
    let folder = Folder::new();
    let file = capture(&folder, &frames);
    let filters = TCPDUMP.lines().map(asked);
    compare(filters, &frames, 105, |filter| {
        found_by_tcpdump(filter, &file)
    });
}

fn compare(
    filters: impl Iterator<Item = String>,
    frames: &[Vec<u8>],
    least: usize,
    by_tool: impl Fn(&str) -> Option<usize>,
) {
    let (mut some, mut differ) = (0, Vec::new());
    for filter in filters {
        let Some(expected) = by_tool(&filter) else {
            return;
        };
        let count = counted(&filter, frames);
        some += usize::from((1..frames.len()).contains(&count));
        if count != expected {
            differ.push(format!("{filter}: {count}, the tool {expected}"));
        }
    }
    assert!(differ.is_empty(), "{differ:#?}");
    assert!(some > least, "{some} filters tell frames apart");
}

/// In tagged frames, tcpdump finds packets only if the filter tests for the tags.
#[test]
fn tcpdump_matches_the_same_tagged_frames() {
    let once = frames(1);
    let twice = frames(2);
    let (folder_one, folder_two) = (Folder::new(), Folder::new());
    let (one, two) = (capture(&folder_one, &once), capture(&folder_two, &twice));
    for filter in [
        "ip",
        "tcp port 80",
        "host 10.1.2.3",
        "udp",
        "arp",
        "ip[8] < 5",
        "tcp[13] & 2 != 0 and ip",
        "port 53 or 443",
        "ip6 multicast",
        "ether[0] & 1 = 0",
        "len > 100",
        "icmp6",
    ] {
        let behind = format!("vlan and ({filter})");
        let Some(expected) = found_by_tcpdump(&behind, &one) else {
            return;
        };
        assert_eq!(counted(&behind, &once), expected, "{behind}");
        assert_eq!(counted(filter, &once), expected, "{filter}");
        let behind = format!("vlan and vlan and ({filter})");
        let expected = found_by_tcpdump(&behind, &two).unwrap();
        assert_eq!(counted(&behind, &twice), expected, "{behind}");
    }
    for filter in ["vlan", "vlan 5", "vlan 4095", "vlan 5 and vlan 9"] {
        for (frames, file) in [(&once, &one), (&twice, &two)] {
            let expected = found_by_tcpdump(filter, file).unwrap();
            assert_eq!(counted(filter, frames), expected, "{filter}");
        }
    }
}

/// Filters in Wireshark's display filter language.
const TSHARK: &str = include_str!("tshark.txt");

#[test]
fn tshark_matches_the_same_frames() {
    let frames = frames(0);
    let folder = Folder::new();
    let file = capture(&folder, &frames);
    let fields = words("-n -o ip.defragment:FALSE -T fields -e frame.number");
    compare(TSHARK.lines().map(str::to_owned), &frames, 55, |filter| {
        let arguments = [&fields[..], &["-r", &file, "-Y", filter]].concat();
        run("tshark", &arguments).map(|said| said.lines().count())
    });
}

#[test]
fn refused_filters_get_a_remedy() {
    for [filter, message] in rows(
        "
        ip broadcast | column 4: IP broadcast needs a netmask; write
        tcp[13 | column 7: the filter ends early; expected ']'
        tcp[13:3] = 1 | column 8: '3' is not a number of bytes: 1, 2 or 4
        vlan[0] = 1 | column 1: 'vlan' has no byte access; write ether, ip,
        len > 5 / 0 | column 11: division by zero
        ip[0] and udp | column 7: 'and' is not one of = != < <= > >=
        ip.addr < 10.0.0.1 | column 11: addresses support only == and !=
        ip.src == 2001:db8::1 | column 11: '2001:db8::1' is not an IPv4 address
        tcp.port in {} | column 15: empty set; write values
        ip.src contains 5 | column 8: 'contains' is not supported
        tcp.nonsense == 5 | column 1: 'tcp.nonsense' is not a test such as
        net 10.0.0.0 mask 255.0.255.0 | column 19: '255.0.255.0' is not a netmask
        port 80 or cheese | column 12: 'cheese' is not a test
    ",
    ) {
        let error = Filter::parse(filter).unwrap_err().to_string();
        assert!(error.starts_with(message), "{filter}: {error}");
    }
}
