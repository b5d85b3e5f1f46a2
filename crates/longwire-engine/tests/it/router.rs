//! Links that start at a router: drops and ICMP errors.

use longwire_engine::{DropReason, FrameMeta, Lane, Link, LinkChange, LinkId, LinkSpec};
use longwire_engine::{Nanos, NoLoader, Verdict};
use longwire_packet::header::IpHeader;
use longwire_testbed::support::frames::{Ipv4, PLAIN4, ethernet, header_holds, ipv6};

use crate::common::cross;
use crate::common::fates::Fates;

fn link(text: &str) -> Link {
    crate::common::link(text, 1)
}

fn offer(link: &mut Link, at: Nanos, frame: &[u8]) -> Verdict {
    link.offer(FrameMeta::new(at, frame.len() as u32), frame)
}

fn v4(ttl: u8, fragment: u16, payload: usize) -> Vec<u8> {
    let ip = Ipv4 {
        ttl,
        fragment,
        ..PLAIN4
    };
    ethernet(&[], 0x0800, &ip.packet(17, &vec![0; payload]))
}

fn v6(hops: u8, payload: usize) -> Vec<u8> {
    let mut packet = ipv6(0, &[], 17, &vec![0; payload]);
    packet[7] = hops;
    ethernet(&[], 0x86dd, &packet)
}

/// Returns an ICMP error's type, code and MTU.
fn kind_of(error: &[u8]) -> (u8, u8, u32) {
    let ip = IpHeader::parse(error).expect("an IP header");
    let icmp = &error[ip.end(error)..];
    let mtu = u32::from_be_bytes([icmp[4], icmp[5], icmp[6], icmp[7]]);
    (icmp[0], icmp[1], mtu)
}

const DF: u16 = 0x4000;

#[test]
fn a_router_answers_what_it_drops() {
    for managed in ["", " queue=codel"] {
        let mut link = link(&format!("router=hop mtu=1300{managed}"));
        for (frame, reason, error) in [
            (v4(1, 0, 8), DropReason::Ttl, Some((11, 0, 0))),
            (v4(0, 0, 8), DropReason::Ttl, Some((11, 0, 0))),
            (v6(1, 8), DropReason::Ttl, Some((3, 0, 0))),
            (v4(9, DF, 1_281), DropReason::Mtu, Some((3, 4, 1_300))),
            (v6(9, 1_261), DropReason::Mtu, Some((2, 0, 1_300))),
            // The packet allows fragmentation, but `mtu=1300` drops it.
            (v4(9, 0, 1_281), DropReason::Mtu, None),
            // A router checks the TTL first.
            (v4(1, DF, 1_281), DropReason::Ttl, Some((11, 0, 0))),
            (ethernet(&[], 0x0806, &[0; 1_301]), DropReason::Mtu, None),
        ] {
            assert_eq!(offer(&mut link, Nanos::ZERO, &frame), Verdict::Drop(reason));
            assert_eq!(link.icmp_error().map(kind_of), error, "{frame:?}");
        }
        // At the limits of length and TTL; the previous error is cleared.
        for frame in [v4(2, DF, 1_280), v6(2, 1_260)] {
            let dropped = v4(1, 0, 8);
            offer(&mut link, Nanos::ZERO, &dropped);
            let verdict = offer(&mut link, Nanos::ZERO, &frame);
            assert!(!matches!(verdict, Verdict::Drop(_)), "{verdict:?}");
            assert_eq!(link.icmp_error(), None);
        }
    }
}

#[test]
fn a_router_takes_one_hop_and_rewriting_takes_more() {
    for (text, hops) in [
        ("router=hop", 1),
        ("router=hop rewrite=ip:ttl=3", 4),
        ("rewrite=ip:ttl=3 rewrite=ip:ttl=2", 5),
    ] {
        for frame in [v4(hops + 1, 0, 8), v6(hops + 1, 8)] {
            let mut link = link(text);
            let (_, bytes) = cross(&mut link, 0, &frame).expect(text);
            assert_eq!(IpHeader::parse(&bytes).map(|ip| ip.ttl), Some(1), "{text}");
            assert!(frame[12] == 0x86 || header_holds(&bytes, 14), "{text}");
        }
        for frame in [v4(hops, 0, 8), v6(hops, 8)] {
            let mut link = link(text);
            let verdict = offer(&mut link, Nanos::ZERO, &frame);
            assert_eq!(verdict, Verdict::Drop(DropReason::Ttl), "{text}");
            assert_eq!(link.icmp_error().is_some(), text.contains("hop"), "{text}");
        }
    }
    // Link-local control packets keep their TTL.
    let mut packet = ipv6(0, &[], 58, &[135, 0, 0, 0]);
    packet[7] = 255;
    let solicitation = ethernet(&[], 0x86dd, &packet);
    let mut link = link("router=hop");
    let (_, bytes) = cross(&mut link, 0, &solicitation).expect("neighbour discovery");
    assert_eq!(bytes, solicitation);
}

#[test]
fn errors_have_the_addresses_of_the_router() {
    let text = "router=hop:address=192.0.2.9,address6=2001:db8::9";
    for (frame, address) in [
        (v4(1, 0, 8), &[192, 0, 2, 9][..]),
        (v6(1, 8), &[0x20, 1, 0xd, 0xb8]),
    ] {
        let mut link = link(text);
        offer(&mut link, Nanos::ZERO, &frame);
        let error = link.icmp_error().expect("an error");
        let ip = IpHeader::parse(error).expect("an IP header");
        assert!(error[ip.source_at()..].starts_with(address));
        let asked = IpHeader::parse(&frame).expect("an IP header");
        let len = ip.version.address_len();
        assert_eq!(
            error[ip.destination_at()..][..len],
            frame[asked.source_at()..][..len]
        );
    }
}

/// Sends a packet every `gap` and returns the numbers of the packets that cause an ICMP error.
fn errors(text: &str, gap: Nanos, packets: u64) -> Vec<u64> {
    let (mut link, frame) = (link(text), v4(1, 0, 8));
    let sent = (0..packets).filter(|number| {
        offer(
            &mut link,
            Nanos::from_nanos(number * gap.as_nanos()),
            &frame,
        );
        link.icmp_error().is_some()
    });
    sent.collect()
}

#[test]
fn errors_are_limited_by_a_token_bucket() {
    // 50 immediately, then one per 1 ms since the bucket was full, to the nanosecond: after n
    // packets, min(n, 50 + floor((n - 1) · gap / 1 ms)) in total.
    let gap = Nanos::from_micros(10);
    let sent = errors("router=hop", gap, 20_000);
    for packets in [1, 49, 50, 51, 60, 99, 100, 101, 5_000, 19_999, 20_000u64] {
        let expected = packets.min(50 + (packets - 1) / 100);
        let found = sent.iter().filter(|number| **number < packets).count() as u64;
        assert_eq!(found, expected, "{packets} packets");
    }
    // A rate that does not divide one second loses no fraction of a token.
    let thirds = errors("router=hop:limit=3,burst=2", Nanos::from_millis(1), 10_000);
    assert_eq!(thirds.len(), 31);
    assert_eq!(thirds[..5], [0, 1, 334, 667, 1_000]);
    assert!(errors("router=hop:limit=0", gap, 100).is_empty());
    // A pause fills the bucket, up to the burst.
    let mut link = link("router=hop:limit=10,burst=2");
    let later = Nanos::from_secs(1_000);
    let count = |link: &mut Link, at| {
        let frame = v4(1, 0, 8);
        let sent = (0..9).filter(|_| {
            offer(link, at, &frame);
            link.icmp_error().is_some()
        });
        sent.count()
    };
    assert_eq!(
        [count(&mut link, Nanos::ZERO), count(&mut link, later)],
        [2, 2]
    );
}

/// Packets for which no error may be sent consume no token.
#[test]
fn only_errors_that_are_sent_take_tokens() {
    let mut link = link("router=hop:limit=1,burst=1 mtu=1300");
    offer(&mut link, Nanos::ZERO, &v4(9, 0, 1_281));
    assert_eq!(link.icmp_error(), None);
    offer(&mut link, Nanos::ZERO, &v4(1, 0, 8));
    assert!(link.icmp_error().is_some());
}

#[test]
fn changes_add_and_remove_routers() {
    let spec: LinkSpec = "mtu=1300".parse().unwrap();
    let mut link = Link::new_changeable(spec.build(&NoLoader).unwrap(), 1, LinkId(0));
    let (frame, mut at) = (v4(1, 0, 8), Nanos::ZERO);
    let mut step = |link: &mut Link, text: &str| {
        at = at.saturating_add(Nanos::from_secs(1));
        while link.poll(..at, &()).is_some() {}
        let change: LinkSpec = text.parse().unwrap();
        let change: LinkChange = change.build_change(&NoLoader).unwrap();
        drop(link.change(at, change, &()));
        (offer(link, at, &frame), link.icmp_error().map(kind_of))
    };
    let expired = (Verdict::Drop(DropReason::Ttl), Some((11, 0, 0)));
    assert_eq!(step(&mut link, "delay=1ms"), (Verdict::Queued, None));
    assert_eq!(step(&mut link, "router=hop:limit=1,burst=1"), expired);
    // Other changes preserve the router and its bucket, which is full again after 1 s.
    assert_eq!(step(&mut link, "delay=2ms"), expired);
    assert!(link.changes_frames());
    assert_eq!(step(&mut link, "router=none"), (Verdict::Queued, None));
    assert!(!link.changes_frames());
}

#[test]
fn a_lane_reports_the_errors_of_its_router() {
    let (mut lane, mut fates) = (Lane::new(link("router=hop")), Fates::default());
    let frame = v4(1, 0, 8);
    let meta = FrameMeta::new(Nanos::ZERO, frame.len() as u32);
    let index = fates.add(&frame);
    lane.offer(meta, index, &mut fates);
    assert_eq!(fates.decided, [(index, Verdict::Drop(DropReason::Ttl))]);
    let errors: Vec<_> = fates.errors.iter().map(|error| kind_of(error)).collect();
    assert_eq!(errors, [(11, 0, 0)]);
}
