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

/// Returns the single frame that results from a whole frame.
pub fn altered(options: AlterOptions, frame: &[u8]) -> Vec<u8> {
    let mut alterations = Alterations::new(options);
    let mut taken = all_of(&mut alterations, frame);
    assert_eq!(taken.len(), 1);
    taken.remove(0)
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
    assert!(!Alterations::new(AlterOptions::default()).is_nothing());
    let wanted = options("truncated=keep ttl=-1");
    assert!(!Alterations::new(wanted).is_nothing());
    for sample in frames::samples() {
        let mut alterations = Alterations::default();
        let cut = &sample.frame[..sample.frame.len() - 9];
        let kept = altered_in(&mut alterations, cut, sample.frame.len(), 5);
        assert_eq!(kept, [cut.to_vec()]);
        assert_eq!(
            altered(AlterOptions::default(), &sample.frame),
            sample.frame
        );
    }
}

#[test]
fn class_and_ttl_are_written() {
    for sample in frames::samples() {
        for (ttl, dscp, becomes) in [
            ("-1", 10, -1i32),
            ("+2", 0, 2),
            ("-255", 63, -300),
            ("9", 5, 0),
        ] {
            let frame = altered(options(&format!("ttl={ttl} dscp={dscp}")), &sample.frame);
            let ip = longwire_packet::header::IpHeader::parse(&frame).unwrap();
            let before = longwire_packet::header::IpHeader::parse(&sample.frame).unwrap();
            let expected = match becomes {
                0 => 9,
                by => (i32::from(before.ttl) + by).clamp(1, 255) as u8,
            };
            assert_eq!(
                (ip.ttl, ip.dscp, ip.ecn),
                (expected, dscp, before.ecn),
                "{}",
                sample.name
            );
            assert!(sample.holds(&frame), "{}", sample.name);
        }
    }
    // Packets that must not be forwarded keep their TTL.
    let local = Ipv4 { ttl: 255, ..PLAIN4 };
    let mut packet = local.packet(17, &[0; 8]);
    packet[16..20].copy_from_slice(&[224, 0, 0, 251]);
    let mut frame = ethernet(&[], 0x0800, &packet);
    longwire_packet::repair_checksums(&mut frame);
    let wanted = options("ttl=64");
    assert_eq!(altered(wanted, &frame)[22], 255);
}

#[test]
fn check_sequences_are_removed() {
    let frame = udp((1, 2), &[5; 40]);
    let mut with_fcs = frame.clone();
    with_fcs.extend([1, 2, 3, 4]);
    let wanted = || options("strip-fcs");
    assert_eq!(altered(wanted(), &with_fcs), frame);
    // If a frame is truncated before its FCS, only its wire length is reduced.
    let mut alterations = Alterations::new(wanted());
    let filled = altered_in(&mut alterations, &with_fcs[..60], with_fcs.len(), 0);
    assert_eq!(filled[0].len(), frame.len());
    assert!(holds(&filled[0]));
}

/// Wrong checksums are repaired; unknown ones are counted.
#[test]
fn checksums_are_fixed_where_possible() {
    for sample in frames::samples() {
        let mut broken = sample.frame.clone();
        broken[sample.transport_at
            + match sample.protocol {
                6 => 16,
                17 => 6,
                _ => 2,
            }] ^= 0x5a;
        let mut alterations = Alterations::new(options("fix-checksums"));
        let fixed = all_of(&mut alterations, &broken);
        assert_eq!(
            fixed,
            std::slice::from_ref(&sample.frame),
            "{}",
            sample.name
        );
        all_of(&mut alterations, &sample.frame);
        assert_eq!(count(&alterations, "checksums_fixed"), 1, "{}", sample.name);
    }
    let piece = Ipv4 {
        fragment: 0x2000,
        ..PLAIN4
    };
    let piece = ethernet(&[], 0x0800, &piece.packet(17, &[9; 64]));
    let mut alterations = Alterations::new(options("fix-checksums"));
    assert_eq!(
        all_of(&mut alterations, &piece),
        std::slice::from_ref(&piece)
    );
    assert_eq!(count(&alterations, "checksums_unknown"), 1);
}

/// Returns a counter by name.
pub fn count(alterations: &Alterations, name: &str) -> u64 {
    let counts = alterations.counts();
    let found = counts.iter().find(|(known, _)| *known == name);
    found.unwrap_or_else(|| panic!("no {name} in {counts:?}")).1
}
