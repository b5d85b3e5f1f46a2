//! Alters frames: only the requested changes occur, and checksums stay valid or invalid.
mod encapsulations;
mod incremental;
mod inside;
mod rounds;
mod sides;
mod super_packets;
mod tools;
mod truncated;
mod vlan_mtu;

use std::fmt::Debug;
use std::str::FromStr;

use longwire_packet::alter::{About, AlterOptions, Alterations};
use longwire_packet::header::IpHeader;
use longwire_testbed::support::frames::{self, Ipv4, PLAIN4, ethernet, transport};
use longwire_units::Nanos;

/// Anonymisation key.
const KEY: &str = "1522178d33a4cf80130a5b1649907d10d8988f837979652762574c2d2a842202";

fn parse<T: FromStr<Err: Debug>>(text: &str) -> T {
    text.parse().unwrap()
}

/// Parses options as on the command line: `map=10.0.0.0/8=11.0.0.0/8 inner`.
pub fn options(text: &str) -> AlterOptions {
    let mut options = AlterOptions::default();
    for word in text.split_whitespace() {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        match name {
            "anonymize" => options.anonymize = Some(parse(&format!("{KEY}{value}"))),
            "dscp" => options.dscp = Some(parse(value)),
            "dst-mac" => options.destination_mac = Some(parse(value)),
            "fix-checksums" => options.fix_checksums = true,
            "inner" => options.inner = true,
            "keep-groups" => options.keep_groups = true,
            "loop-addresses" => options.loop_addresses.push(parse(value)),
            "loop-renumber" => options.loop_renumber = true,
            "map" => options.address_maps.push(parse(value)),
            "map-mac" => options.mac_maps.push(parse(value)),
            "map-port" => options.port_maps.push(parse(value)),
            "mtu" => options.mtu = Some(parse(value)),
            "mtu-action" => options.mtu_action = parse(value),
            "seed" => options.seed = parse(value),
            "split" => options.splitter = Some(parse(value)),
            "src-mac" => options.source_mac = Some(parse(value)),
            "strip-fcs" => options.strip_fcs = true,
            "truncated" => options.truncated = parse(value),
            "ttl" => options.ttl = Some(parse(value)),
            "unaltered" => options.unaltered = Some(parse(value)),
            "vlan" => options.vlan.push(parse(value)),
            _ => panic!("no option {name}"),
        }
    }
    options
}

/// Returns the frames that result in the given round.
pub fn altered_in(
    alterations: &mut Alterations,
    frame: &[u8],
    wire_len: usize,
    round: u64,
) -> Vec<Vec<u8>> {
    let mut taken = Vec::new();
    let about = About {
        round,
        into_round: Nanos::from_millis(40),
        number: 3,
    };
    alterations.apply(frame, wire_len as u32, about, &mut |bytes, wire_len| {
        assert!(wire_len as usize >= bytes.len());
        taken.push(bytes.to_vec());
    });
    taken
}

/// Returns the frames that result from a whole frame in the first round.
pub fn all_of(alterations: &mut Alterations, frame: &[u8]) -> Vec<Vec<u8>> {
    altered_in(alterations, frame, frame.len(), 0)
}

/// Alters a captured frame; returns the resulting frames.
pub fn run(wanted: &str, frame: &[u8], wire_len: usize) -> (Vec<Vec<u8>>, Alterations) {
    let mut alterations = Alterations::new(options(wanted));
    let taken = altered_in(&mut alterations, frame, wire_len, 0);
    (taken, alterations)
}

/// Alters a captured frame, which results in a single one.
pub fn one(wanted: &str, frame: &[u8], wire_len: usize) -> (Vec<u8>, Alterations) {
    let (mut taken, alterations) = run(wanted, frame, wire_len);
    assert_eq!(taken.len(), 1, "{wanted}");
    (taken.remove(0), alterations)
}

/// Returns the single frame that results from a whole frame.
pub fn altered(wanted: &str, frame: &[u8]) -> Vec<u8> {
    one(wanted, frame, frame.len()).0
}

/// Whether a repair finds no wrong checksum. Tests of the repair itself are in `edits.rs` and
/// `corruption.rs` of `longwire-engine`.
pub fn holds(frame: &[u8]) -> bool {
    !longwire_packet::repair_checksums(&mut frame.to_vec())
}

/// Returns an SCTP frame with one DATA chunk and valid checksums.
pub fn sctp(len: usize) -> Vec<u8> {
    let mut segment = vec![0x13, 0xc4, 0x13, 0xc4, 0, 0, 0, 7, 0, 0, 0, 0];
    let chunk_len = 16 + len as u16;
    segment.extend([0, 3]);
    segment.extend(chunk_len.to_be_bytes());
    segment.extend([0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    segment.extend(vec![0x61; len.next_multiple_of(4)]);
    let mut frame = ethernet(&[], 0x0800, &PLAIN4.packet(132, &segment));
    longwire_packet::repair_checksums(&mut frame);
    frame
}

/// Returns a UDP datagram over IPv4 between these ports.
pub fn udp(ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
    let segment = transport(4, 17, ports, 0, payload);
    ethernet(&[], 0x0800, &PLAIN4.packet(17, &segment))
}

#[test]
fn default_alterations_change_nothing() {
    assert!(Alterations::default().is_nothing());
    for wanted in ["", "truncated=keep ttl=-1"] {
        assert!(!Alterations::new(options(wanted)).is_nothing());
    }
    for sample in frames::samples() {
        let mut alterations = Alterations::default();
        let cut = &sample.frame[..sample.frame.len() - 9];
        let kept = altered_in(&mut alterations, cut, sample.frame.len(), 5);
        assert_eq!(kept, [cut.to_vec()]);
        assert_eq!(altered("", &sample.frame), sample.frame);
    }
}

#[test]
fn class_and_ttl_are_written() {
    for sample in frames::samples() {
        let (name, before) = (sample.name, IpHeader::parse(&sample.frame).unwrap());
        for (ttl, dscp, becomes) in [
            ("-1", 10, -1i32),
            ("+2", 0, 2),
            ("-255", 63, -300),
            ("9", 5, 0),
        ] {
            let frame = altered(&format!("ttl={ttl} dscp={dscp}"), &sample.frame);
            let ip = IpHeader::parse(&frame).unwrap();
            let expected = match becomes {
                0 => 9,
                by => (i32::from(before.ttl) + by).clamp(1, 255) as u8,
            };
            assert_eq!((ip.ttl, ip.dscp), (expected, dscp), "{name}");
            assert_eq!(ip.ecn, before.ecn, "{name}");
            assert!(sample.holds(&frame), "{name}");
        }
    }
    // Packets that must not be forwarded keep their TTL.
    let local = Ipv4 { ttl: 255, ..PLAIN4 };
    let mut packet = local.packet(17, &[0; 8]);
    packet[16..20].copy_from_slice(&[224, 0, 0, 251]);
    let mut frame = ethernet(&[], 0x0800, &packet);
    longwire_packet::repair_checksums(&mut frame);
    assert_eq!(altered("ttl=64", &frame)[22], 255);
}

#[test]
fn check_sequences_are_removed() {
    let frame = udp((1, 2), &[5; 40]);
    let mut with_fcs = frame.clone();
    with_fcs.extend([1, 2, 3, 4]);
    assert_eq!(altered("strip-fcs", &with_fcs), frame);
    // If a frame is truncated before its FCS, only its wire length is reduced.
    let (filled, _) = one("strip-fcs", &with_fcs[..60], with_fcs.len());
    assert_eq!(filled.len(), frame.len());
    assert!(holds(&filled));
}

/// Wrong checksums are repaired; unknown ones are counted.
#[test]
fn checksums_are_fixed_where_possible() {
    for sample in frames::samples() {
        let (name, mut broken) = (sample.name, sample.frame.clone());
        let field = match sample.protocol {
            6 => 16,
            17 => 6,
            _ => 2,
        };
        broken[sample.transport_at + field] ^= 0x5a;
        let (fixed, mut alterations) = one("fix-checksums", &broken, broken.len());
        assert_eq!(fixed, sample.frame, "{name}");
        all_of(&mut alterations, &sample.frame);
        assert_eq!(count(&alterations, "checksums_fixed"), 1, "{name}");
    }
    let fragment = 0x2000;
    let piece = Ipv4 { fragment, ..PLAIN4 }.packet(17, &[9; 64]);
    let piece = ethernet(&[], 0x0800, &piece);
    let (same, alterations) = one("fix-checksums", &piece, piece.len());
    assert_eq!(same, piece);
    assert_eq!(count(&alterations, "checksums_unknown"), 1);
}

/// Returns a counter by name.
pub fn count(alterations: &Alterations, name: &str) -> u64 {
    let counts = alterations.counts();
    let found = counts.iter().find(|(known, _)| *known == name);
    found.unwrap_or_else(|| panic!("no {name} in {counts:?}")).1
}
