//! Sides of conversations, and addresses per side.

use longwire_packet::split::Splitter;
use longwire_testbed::support::rows;

use crate::alter::{Alterations, all_of, options};
use longwire_testbed::support::frames::{Ipv4, PLAIN4, ethernet, ipv6, transport};

/// Returns a frame between client 10.1.2.3 and server 192.0.2.77.
fn frame(from_client: bool, protocol: u8, ports: (u16, u16), flags: u8, fragment: u16) -> Vec<u8> {
    let ports = if from_client {
        ports
    } else {
        (ports.1, ports.0)
    };
    let segment = transport(4, protocol, ports, flags, &[7; 32]);
    let packet = Ipv4 { fragment, ..PLAIN4 }.packet(protocol, &segment);
    let mut frame = ethernet(&[], 0x0800, &packet);
    if !from_client {
        frame[26..34].rotate_left(4);
        frame[..12].rotate_left(6);
    }
    frame
}

const SYN: u8 = 0x02;
const ACK: u8 = 0x10;

#[test]
fn networks_and_mac_addresses_decide_the_side() {
    for rule in [
        "client=10.0.0.0/8",
        "client=2001:db8::/32,10.1.2.3",
        "mac=02:00:00:00:00:01",
    ] {
        let mut splitter = rule.parse::<Splitter>().unwrap();
        for from_client in [true, false, true] {
            let frame = frame(from_client, 6, (40_000, 80), ACK, 0);
            assert_eq!(splitter.side(&frame), usize::from(!from_client), "{rule}");
        }
    }
    let mut splitter = "client=2001:db8::/48".parse::<Splitter>().unwrap();
    let packet = ipv6(0, &[], 17, &transport(6, 17, (1, 2), 0, &[]));
    assert_eq!(splitter.side(&ethernet(&[7], 0x86dd, &packet)), 0);
    // ARP identifies its sender.
    let mut splitter = "client=10.0.0.0/8".parse::<Splitter>().unwrap();
    let mut packet = vec![0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 9, 9, 9];
    packet.resize(46, 0);
    assert_eq!(splitter.side(&ethernet(&[], 0x0806, &packet)), 0);
    packet[14] = 11;
    assert_eq!(splitter.side(&ethernet(&[], 0x0806, &packet)), 1);
}

#[test]
fn the_sender_of_the_first_syn_is_the_client() {
    let mut splitter = "syn".parse::<Splitter>().unwrap();
    // Before any SYN, the first sender counts as the client.
    for (from_client, flags, side) in [
        (false, ACK, 0),
        (true, ACK, 1),
        // A SYN shows which side is the client.
        (false, SYN | ACK, 1),
        (true, ACK, 0),
    ] {
        let frame = frame(from_client, 6, (40_000, 80), flags, 0);
        assert_eq!(splitter.side(&frame), side);
    }
    for (from_client, flags) in [(true, SYN), (false, SYN | ACK), (true, ACK), (false, ACK)] {
        let frame = frame(from_client, 6, (40_001, 80), flags, 0);
        assert_eq!(splitter.side(&frame), usize::from(!from_client));
    }
    for from_client in [true, false, false, true] {
        let frame = frame(from_client, 17, (5_000, 5_001), 0, 0);
        assert_eq!(splitter.side(&frame), usize::from(!from_client));
    }
}

#[test]
fn the_end_with_the_lower_port_is_the_server() {
    let mut splitter = "port".parse::<Splitter>().unwrap();
    for from_client in [false, true, false] {
        let frame = frame(from_client, 6, (40_000, 80), ACK, 0);
        assert_eq!(splitter.side(&frame), usize::from(!from_client));
    }
    // With equal ports, the first sender is the client.
    for from_client in [true, false] {
        let frame = frame(from_client, 17, (123, 123), 0, 0);
        assert_eq!(splitter.side(&frame), usize::from(!from_client));
    }
}

/// Later fragments have no ports; they take the side of the first one.
#[test]
fn fragments_follow_their_first() {
    for rule in ["syn", "port"] {
        let mut splitter = rule.parse::<Splitter>().unwrap();
        assert_eq!(splitter.side(&frame(true, 17, (40_000, 53), 0, 0)), 0);
        assert_eq!(splitter.side(&frame(false, 17, (40_000, 53), 0, 0x2000)), 1);
        // The MAC address differs, so only the fragment identifies the side.
        let mut later = frame(false, 17, (40_000, 53), 0, 0x0010);
        later[6..12].fill(0x0e);
        assert_eq!(splitter.side(&later), 1, "{rule}");
    }
}

/// A frame of unknown side takes the side of the last frame from the same MAC address.
#[test]
fn frames_without_ip_follow_their_station() {
    let mut splitter = "syn".parse::<Splitter>().unwrap();
    splitter.side(&frame(true, 6, (40_000, 80), SYN, 0));
    splitter.side(&frame(false, 6, (40_000, 80), SYN | ACK, 0));
    let mut other = ethernet(&[], 0x88cc, &[0; 46]);
    assert_eq!(splitter.side(&other), 0);
    other[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 2]);
    assert_eq!(splitter.side(&other), 1);
    assert_eq!(splitter.side(&[]), 0);
}

/// With more conversations than the table holds, the latest ones are still known.
#[test]
fn the_table_is_bounded() {
    let mut splitter = "syn".parse::<Splitter>().unwrap();
    let of = |n: u32, from_client| {
        let mut frame = frame(from_client, 17, (5_000, 5_001), 0, 0);
        let at = if from_client { 27 } else { 31 };
        frame[at..at + 3].copy_from_slice(&n.to_be_bytes()[1..]);
        frame
    };
    for n in 0..200_000 {
        assert_eq!(splitter.side(&of(n, true)), 0);
    }
    let known = (190_000..200_000).filter(|n| splitter.side(&of(*n, false)) == 1);
    assert!(known.count() > 9_900);
}

#[test]
fn refused_rules_get_a_remedy() {
    for [rule, message] in rows(
        "
        client | '' is not a network or address such as 10.0.0.0/8
        client=10.0.0.0/40 | '10.0.0.0/40' is not a network
        mac=1:2 | '1:2' is not an Ethernet address
        sin | 'sin' is not one of client=NETWORK,..., mac=ADDRESS,..., syn, port
    ",
    ) {
        let error = rule.parse::<Splitter>().unwrap_err().to_string();
        assert!(error.starts_with(message), "{rule}: {error}");
    }
}

/// A MAC address per side.
#[test]
fn each_side_has_its_address() {
    let wanted = "dst-mac=02:00:00:00:00:0a,02:00:00:00:00:0b split=port";
    let mut alterations = Alterations::new(options(wanted));
    for from_client in [true, false] {
        let frame = frame(from_client, 6, (40_000, 80), ACK, 0);
        let after = all_of(&mut alterations, &frame).remove(0);
        assert_eq!(after[5], if from_client { 0x0a } else { 0x0b });
        assert_eq!(after[6..], frame[6..]);
    }
}
