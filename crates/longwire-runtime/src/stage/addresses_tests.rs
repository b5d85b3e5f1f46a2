use std::net::Ipv6Addr;

use super::*;

/// Returns an ARP frame. `sender` and `target` are the last octets of addresses in 10.0.0.0/24.
fn arp_frame(operation: u8, sender: u8, target: u8) -> Vec<u8> {
    let mut frame = vec![0xff; 12];
    frame.extend([0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, operation]);
    frame.extend([2, 0, 0, 0, 0, sender, 10, 0, 0, sender]);
    frame.extend([0, 0, 0, 0, 0, 0, 10, 0, 0, target]);
    frame
}

/// Returns a neighbour discovery frame from `source` about `target`. `kind` is the ICMPv6 type.
fn discovery_frame(kind: u8, source: Ipv6Addr, target: Ipv6Addr) -> Vec<u8> {
    let mut frame = vec![0x33; 12];
    frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 32, 58, 255]);
    frame.extend(source.octets());
    frame.extend([0xff; 16]);
    frame.extend([kind, 0, 0, 0, 0, 0, 0, 0]);
    frame.extend(target.octets());
    frame.extend([1, 1, 2, 0, 0, 0, 0, 1]);
    frame
}

fn tagged(frame: &[u8]) -> Vec<u8> {
    [&frame[..12], &[0x81, 0, 0, 7], &frame[12..]].concat()
}

fn at(milliseconds: u64) -> Nanos {
    Nanos::from_millis(milliseconds)
}

fn v4(last: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, last])
}

const ASKING: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
const ASKED: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);

#[test]
fn requests_and_answers_are_recognised() {
    assert_eq!(message(&arp_frame(1, 1, 2)), Some(Message::Request(v4(2))));
    assert_eq!(message(&arp_frame(2, 2, 1)), Some(Message::Answer(v4(2))));
    let frame = discovery_frame(135, ASKING, ASKED);
    assert_eq!(message(&frame), Some(Message::Request(ASKED.into())));
    assert!(is_candidate(&frame) && is_candidate(&tagged(&frame)));
    let tagged = tagged(&discovery_frame(136, ASKED, ASKED));
    assert_eq!(message(&tagged), Some(Message::Answer(ASKED.into())));
}

#[test]
fn frames_that_want_no_answer_are_left_out() {
    let mut probe = arp_frame(1, 1, 2);
    probe[28..32].fill(0);
    assert_eq!(message(&probe), None);
    assert_eq!(message(&arp_frame(1, 2, 2)), None, "an announcement");
    let detection = discovery_frame(135, Ipv6Addr::UNSPECIFIED, ASKED);
    assert_eq!(message(&detection), None);
    let mut udp = discovery_frame(135, ASKING, ASKED);
    udp[20] = 17;
    assert!(!is_candidate(&udp));
    for frame in [arp_frame(1, 1, 2), discovery_frame(136, ASKED, ASKED)] {
        for len in 0..frame.len() {
            // No truncation causes a panic.
            let _ = is_candidate(&frame[..len]).then(|| message(&frame[..len]));
        }
    }
}

#[test]
fn only_requests_without_an_answer_in_time_are_counted() {
    let watch = AddressWatch::new(vec!["a".into(), "b".into()]);
    let (a, b) = (watch.port(0), watch.port(1));
    b.delivered(&arp_frame(1, 1, 2), at(0));
    b.arrived(&arp_frame(2, 2, 1), at(1000));
    b.delivered(&arp_frame(1, 1, 3), at(2000));
    b.delivered(&arp_frame(1, 1, 4), at(2100));
    // The answer from 10.0.0.3 is 1 ms too late.
    b.arrived(&arp_frame(2, 3, 1), at(3001));
    b.arrived(&arp_frame(2, 4, 1), at(3001));
    a.delivered(&discovery_frame(135, ASKED, ASKING), at(4000));
    // This request is still pending.
    b.delivered(&arp_frame(1, 1, 5), at(5000));
    let notes = watch.notes(at(6000));
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(notes[0].starts_with("the far side of a did not answer 1 address request ("));
    assert!(notes[1].starts_with("the far side of b did not answer 1 address request ("));
    let notes = watch.notes(at(6001));
    assert!(
        notes[1].contains("b did not answer 2 address requests"),
        "{notes:?}"
    );
}

#[test]
fn a_flooded_request_is_answered_by_one_port() {
    let watch = AddressWatch::new(vec!["a".into(), "b".into(), "c".into()]);
    let (b, c) = (watch.port(1), watch.port(2));
    b.delivered(&arp_frame(1, 1, 2), at(0));
    b.arrived(&arp_frame(2, 2, 1), at(10));
    // The flooded copy reaches c only after b has answered.
    c.delivered(&arp_frame(1, 1, 2), at(500));
    assert_eq!(watch.notes(at(9000)), [""; 0]);
}

#[test]
fn a_flood_of_requests_takes_bounded_memory() {
    let watch = AddressWatch::new(vec!["a".into()]);
    let port = watch.port(0);
    for number in 0..3 * PENDING_MAX {
        let mut frame = arp_frame(1, 1, 2);
        frame[38..42].copy_from_slice(&(number as u32).to_be_bytes());
        port.delivered(&frame, at(0));
    }
    assert_eq!(locked(&watch.state).pending.len(), PENDING_MAX);
}
